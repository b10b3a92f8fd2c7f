"""The file systems of tables, as the driver and the workers reach them.

Spark reaches a file system by Hadoop's configuration. Workers mount it as a directory, or open it with pyarrow
(:mod:`hintplan.runtime.stores`), which is configured by the environment. Workers read files only if both ways lead to
the same server with the same credentials.

    why_spark_only(spark, "s3a://lake/orders")  # None, or a reason such as 'fs.s3a.access.key is set for Spark only'
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import SparkSession

from hintplan.runtime import s3
from hintplan.runtime.spark.session import shares_machine
from hintplan.runtime.stores import open_store

_PREFIX = "fs.s3a."
_SECRETS = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
}
"""The settings for which Spark takes variables of the environment."""

_PROVIDERS = "hadoop.security.credential.provider.path"

_TUNING = (
    "attempts.", "block.size", "buffer.dir", "change.detection.", "committer.", "connection.acquisition.",
    "connection.establish.", "connection.idle.", "connection.maximum", "connection.request.", "connection.timeout",
    "connection.ttl", "directory.marker.", "downgrade.", "etag.", "executor.", "experimental.", "fast.upload", "input.",
    "max.total.tasks", "metadatastore.", "multipart.", "optimized.", "paging.", "performance.", "prefetch.",
    "readahead.", "retry.", "socket.", "threads.", "user.agent.prefix", "vectored.",
)  # fmt: skip
"""Settings that change neither the server nor the credentials."""


def why_spark_only(spark: SparkSession, path: str) -> str | None:
    """Return the reason why workers cannot open files at ``path`` as Spark does, or None; not for Spark Connect."""
    url, scheme = _qualified(spark, path)
    if scheme == "file":
        return None
    if scheme in s3.SCHEMES:
        jvm: Any = spark.sparkContext._jvm
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        defaults = jvm.org.apache.hadoop.conf.Configuration(False)
        defaults.addResource("core-default.xml")
        found, usual = (dict(conf.getPropsWithPrefix(_PREFIX)) for conf in (hadoop, defaults))
        if hadoop.get(_PROVIDERS):
            return f"{_PROVIDERS} is set for Spark only"
        reason = _differs(found, usual, os.environ, urlsplit(url).netloc)
    else:
        reason = None if scheme == "hdfs" else f"{scheme}://"
    return reason or _lacks(spark, scheme) or _unreachable(url)


def is_local(spark: SparkSession, path: str) -> bool:
    """Return true if workers mount ``path`` as a directory; not for Spark Connect."""
    return _qualified(spark, path)[1] == "file"


def file_sizes(spark: SparkSession, path: str, *, below: bool) -> Iterator[int]:
    """Yield the sizes of the files at ``path``, or also ``below`` it; :func:`why_spark_only` has found no reason."""
    _, entries = _entries(spark, path, below=below)
    yield from (entry.size for entry in entries if entry.is_file)


def newest_file(spark: SparkSession, path: str, *, below: bool) -> tuple[pafs.FileSystem, str] | None:
    """Return the newest file at ``path``, or also ``below`` it, that is not empty, and its file system."""
    system, entries = _entries(spark, path, below=below)
    visible = [e for e in entries if e.is_file and e.size and not e.base_name.startswith(("_", "."))]
    newest = max(visible, key=lambda entry: (entry.mtime_ns or 0, entry.path), default=None)
    return None if newest is None else (system, newest.path)


def _entries(spark: SparkSession, path: str, *, below: bool) -> tuple[pafs.FileSystem, list[pafs.FileInfo]]:
    url, scheme = _qualified(spark, path)
    system, inner = (pafs.LocalFileSystem(), url.removeprefix("file:")) if scheme == "file" else opened(url)
    place = system.get_file_info(inner.rstrip("/") or "/")
    is_directory = place.type == pafs.FileType.Directory
    entries = system.get_file_info(pafs.FileSelector(place.path, recursive=below)) if is_directory else [place]
    return system, entries


def _qualified(spark: SparkSession, path: str) -> tuple[str, str]:
    """Return the absolute URL of ``path`` as Hadoop writes it, and its scheme."""
    jvm: Any = spark.sparkContext._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    system = hadoop_path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return str(system.makeQualified(hadoop_path).toString()), urlsplit(str(system.getUri().toString())).scheme


def _differs(
    found: Mapping[str, str], usual: Mapping[str, str], environment: Mapping[str, str], bucket: str
) -> str | None:
    """Return the setting of S3 in Hadoop's configuration that the ``environment`` does not have, as a reason.

    The names in ``found`` and in Hadoop's ``usual`` values are without their prefix. The reason has no values.
    """
    ours = {key.removeprefix(f"spark.hadoop.{_PREFIX}"): value for key, value in s3.settings(environment).items()}
    ours |= {key: environment[name] for key, name in _SECRETS.items() if environment.get(name)}
    buckets = f"bucket.{bucket}."
    for key, value in sorted(found.items()):
        name = key.removeprefix(buckets)
        if name.startswith(("bucket.", *_TUNING)):
            continue
        if value not in (ours.get(name), usual.get(name)) and value:
            return f"{_PREFIX}{key} is set for Spark only"
    for name, value in sorted(ours.items()):
        effective = found.get(f"{buckets}{name}") or found.get(name)
        if effective != value and name != "aws.credentials.provider":
            return f"{_PREFIX}{name} of Spark differs from the environment"
    return None


def _lacks(spark: SparkSession, scheme: str) -> str | None:
    """Return the reason why workers on other machines may not reach the file system."""
    if shares_machine(spark):
        return None
    if scheme == "hdfs":
        return "workers on other machines may lack hdfs-native"
    conf = spark.sparkContext.getConf()
    for name in s3.VARIABLES:
        if name in os.environ and conf.get(f"spark.executorEnv.{name}", None) != os.environ[name]:
            return f"workers may lack {name}"
    return None


def _unreachable(url: str) -> str | None:
    try:
        system, path = opened(url)
        exists = system.get_file_info(path.rstrip("/")).type != pafs.FileType.NotFound
    except ImportError as error:
        return f"the Python package {error.name} is missing"
    except (pa.ArrowException, OSError, ValueError):
        return "pyarrow cannot open it"
    return None if exists else "pyarrow does not find it"


def opened(url: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of an absolute ``url`` that Hadoop has written, and the path in it."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    system, base = _store(f"{scheme}://{authority}/", os.getpid())
    return system, f"{base.rstrip('/')}/{path}"


@cache
def _store(root: str, process: int) -> tuple[pafs.FileSystem, str]:
    """Open the file system once for each process, because a fork must not use its parent's."""
    return open_store(root)
