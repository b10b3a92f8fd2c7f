r"""Selects the files of a table: every file in the directory or its partitions, once, whatever its name.

By default, Spark treats ``* ? [ ] { } \`` in a path as a pattern. A stream reads the files of a micro-batch by their
literal names. However, for each name that looks like a pattern, Spark reads the other files once more. Spark does not
do so with ``recursiveFileLookup``, so a stream sets this option, and a filter then drops the files in subdirectories
without reading them. Hadoop's checksums of local files fail at a ``:`` in a name, so they are disabled.

    rows = load_stream(spark, spark.readStream.format("json").schema(schema), "/data/orders [new]")
"""

from __future__ import annotations

import os
import posixpath
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from hintplan.plans.connectors.reach import file_place
from hintplan.plans.errors import RunError
from hintplan.plans.text.links import link_to_nowhere
from hintplan.runtime.connectors.filesystem.parquet_files import PATHS_DDL
from hintplan.runtime.spark.names import escaped_path
from hintplan.runtime.spark.session import is_remote

STREAM_LOG = "_spark_metadata"
"""The log in which Spark's file sink lists the files of a stream; readers of the directory use only this list."""

_PATTERN = "* ? [ ] { } \\"
_LITERALLY = {"__globPaths__": "false"}
_WITHOUT_CHECKSUMS = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


def load_batch(spark: SparkSession, reader: DataFrameReader, path: str, *, below: bool = False) -> DataFrame:
    """Return the files that are now at ``path``, or also ``below`` it; raise AnalysisException if nothing exists."""
    _require(spark, path)
    reader = reader.option("recursiveFileLookup", "true") if below else reader
    return reader.options(**_LITERALLY, **_WITHOUT_CHECKSUMS).load(path)


def load_files(reader: DataFrameReader, files: list[str]) -> DataFrame:
    """Return the rows of ``files``, named as in ``DataFrame.inputFiles``."""
    return reader.options(**_WITHOUT_CHECKSUMS).load([escaped_path(unquote(file)) for file in files])


def load_stream(spark: SparkSession, reader: DataStreamReader, path: str, *, below: bool = False) -> DataFrame:
    """Return the files at ``path``, or also ``below`` it, as a stream.

    Raises AnalysisException if nothing exists at the path, and RunError if Spark cannot read a path of this name.
    """
    partitioned = not below and are_partitioned(spark, path)
    reader = reader.options(**_WITHOUT_CHECKSUMS)
    pattern = escaped_path(path)
    if pattern != path:
        if path_exists(spark, f"{path.rstrip('/')}/{STREAM_LOG}"):
            raise RunError(
                f"{path!r} was written by a streaming job, and Spark does not find its list of files below such a name",
                hint=f"rename the directory: without any of {_PATTERN} in its path",
            )
        reader = reader.option("basePath", path)
    if below:
        _require(spark, path, always=True)
        return reader.option("recursiveFileLookup", "true").load(pattern)
    depth = path_depth(spark, path)
    if partitioned or depth is None:
        return reader.load(pattern)
    rows = reader.option("recursiveFileLookup", "true").load(pattern)
    file = rows.metadataColumn("_metadata")
    url, root = file["file_path"], _url(spark, path)
    inside = F.startswith(url, F.lit(f"{root}/")) & (
        F.octet_length(url) - F.octet_length(file["file_name"]) == len(root.encode()) + 1
    )
    # Spark evaluates the condition for each row, and the depth of a path costs more than most queries.
    return rows.where(F.when((url == root) | inside, True).otherwise(_is_at(url, depth)))


def refuse_unread_files(path: str, name: str, *, below: bool = False) -> None:
    """Raise RunError for an entry of the local ``path`` that Spark would skip silently.

    Such an entry is a file whose name is not UTF-8, or a dangling link.
    """
    place = file_place("path", path)
    if not place.is_local:
        return
    folders = [os.fsencode(place.local_path)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:  # loading raises the error
            return
        for entry in entries:
            if entry.name.startswith((b"_", b".")):
                continue
            try:
                entry.name.decode("utf-8")
            except UnicodeDecodeError:
                raise RunError(
                    f"table {name} cannot be read: the file {os.fsdecode(entry.path)!r} has a name that is not UTF-8, "
                    "and Spark would pass it over",
                    hint="rename it, or move it out of the directory",
                    path=f"tables.{name}.options.path",
                ) from None
            if entry.is_symlink() and (link := link_to_nowhere(os.fsdecode(entry.path))) is not None:
                raise RunError(
                    f"table {name} cannot be read: {link}, and Spark would pass it over",
                    hint="restore its target, or remove the link",
                    path=f"tables.{name}.options.path",
                )
            if below and entry.is_dir():
                folders.append(entry.path)


def are_partitioned(spark: SparkSession, path: str) -> bool:
    """Return true if there are directories like ``day=1`` below ``path``; raise AnalysisException if nothing exists."""
    reader = spark.read.format("binaryFile").schema(PATHS_DDL)
    return len(load_batch(spark, reader, path).columns) > PATHS_DDL.count(",") + 1


def path_exists(spark: SparkSession, path: str) -> bool:
    """Return true if ``path`` exists on any file system that Spark knows."""
    try:
        _require(spark, path, always=True)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True


def _require(spark: SparkSession, path: str, *, always: bool = False) -> None:
    """Raise AnalysisException if ``path`` does not exist; if it looks like a pattern, Spark itself would not check."""
    looks_like_pattern = escaped_path(path) != path
    if looks_like_pattern and ":" in path.partition("://")[2 * ("://" in path)]:
        raise RunError(
            f"Spark cannot find {path!r}, whose name has both a ':' and one of {_PATTERN}",
            hint="rename the directory, or make a link to it with another name",
        )
    if always or looks_like_pattern:
        # On Spark Connect, only a request for the schema makes the server check the path.
        spark.read.option("recursiveFileLookup", "true").text(escaped_path(path)).schema.fieldNames()


def path_depth(spark: SparkSession, path: str) -> int | None:
    """Return the number of names in the absolute ``path``; None if only the server can resolve a relative one."""
    if "://" not in path and not path.startswith("/"):
        return None if is_remote(spark) else int(_qualified(spark, path).depth())
    absolute = urlsplit(path).path if "://" in path else path
    return len([name for name in posixpath.normpath(absolute).split("/") if name])


def _url(spark: SparkSession, path: str) -> str:
    """Return the URL of ``path`` as rows of its files most likely have it."""
    url = path if is_remote(spark) else str(_qualified(spark, path).toUri().toString())
    url = url if "://" in url else f"file:{url}"
    return url.replace("file:///", "file:/", 1).rstrip("/")


def _qualified(spark: SparkSession, path: str) -> Any:
    """Return the Hadoop path with its file system and its absolute directory."""
    jvm: Any = spark.sparkContext._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    return hadoop_path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).makeQualified(hadoop_path)


def _is_at(url: Column, depth: int) -> Column:
    """Return a condition that a file is the path itself or directly in it; it fails the run for a new partition."""

    def first(names: int) -> Column:
        return F.when(F.contains(url, F.lit("://")), F.substring_index(url, "/", names + 3)).otherwise(
            F.substring_index(url, "/", names + 1)
        )

    directory = F.substring_index(F.substring_index(url, "/", -2), "/", 1)
    late = F.concat(F.lit("there are new partitions since the run began; start it again: "), url)
    return F.when(first(depth + 1) == url, True).otherwise(
        F.when(F.contains(directory, F.lit("=")), F.raise_error(late).cast("boolean")).otherwise(False)
    )
