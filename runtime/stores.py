"""File systems behind URLs, as pyarrow opens them in whatever process: a worker, or one that Spark starts itself.

    s3://bucket/path (also s3a://)   hdfs://host:port/path   gs://bucket/path   abfs[s]://container@account.../path

S3 is as :mod:`hintplan.runtime.s3` says. HDFS is asked in Hadoop's own protocol by the package hdfs-native, which reads
the configuration of ``HADOOP_CONF_DIR``, and needs neither a JVM nor Hadoop's libraries. Whoever is pickled by value
may use this, for it uses nothing of hintplan's but that.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hintplan.runtime import s3

if TYPE_CHECKING:
    import pyarrow.fs as pafs


_PORTS = {"http": 80, "https": 443}
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_CONNECT_SECONDS = 10.0


def silence(url: str) -> str | None:
    """Why nothing listens at the server of ``url``; None if something does, or if that cannot be told from here.

    Clients ask a server that is not there again and again, for minutes, before they say so.
    """
    server = s3.endpoint(os.environ) if s3.is_s3(url) else url if url.startswith("hdfs:") else None
    if server is None or any(os.environ.get(name) for name in _PROXIES):
        return None
    split = urlsplit(server if "://" in server else f"https://{server}")
    try:
        if (port := split.port or _PORTS.get(split.scheme)) is None:
            return None  # a name of several servers
        socket.create_connection((split.hostname or "", port), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        return f"no server answers at {server}: {error}"
    return None


def opened(url: str) -> tuple[pafs.FileSystem, str]:
    """The file system of ``url``, and the path in it; ValueError, OSError or ArrowException if nothing can open it.

    ImportError if a package lacks.
    """
    import pyarrow.fs as pafs

    if s3.is_s3(url):
        return s3.s3_system(), url.partition("://")[2]
    split = urlsplit(url)
    if split.scheme == "hdfs":
        from hdfs_native.fsspec import HdfsFileSystem

        # A new one each time: fsspec keeps what it has opened, also across a fork.
        system = HdfsFileSystem(split.hostname, split.port, skip_instance_cache=True)
        return pafs.PyFileSystem(pafs.FSSpecHandler(system)), split.path
    system, path = pafs.FileSystem.from_uri(url)
    return system, path


def move_onto(system: pafs.FileSystem, source: str, target: str) -> None:
    """Give a file a name that another may have, which is gone then, where a rename alone would refuse it."""
    import pyarrow.fs as pafs

    if isinstance(system, pafs.PyFileSystem):
        system.handler.fs.mv(source, target, overwrite=True)
    else:
        system.move(source, target)
