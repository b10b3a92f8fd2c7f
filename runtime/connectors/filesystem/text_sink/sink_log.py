"""The log in which Spark's file sink lists the files of each micro-batch, for files that Spark has not written itself.

Spark's own code reads, writes and compacts the log. On classic Spark only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.file_sink import java_class
from hintplan.runtime.spark.versions import facts

_ADDED = "add"
"""Spark's name for the action of an entry."""


def local_folder(spark: SparkSession, path: str) -> str:
    """Return the directory ``path`` as an absolute local path."""
    _, folder = _qualified(spark, path)
    return str(folder.toUri().getPath())


def access_rights(spark: SparkSession) -> tuple[int, int]:
    """Return the access rights that Hadoop gives to new files and to new directories."""
    jvm: Any = spark._jvm
    rights = jvm.org.apache.hadoop.fs.permission.FsPermission
    umask = rights.getUMask(_configuration(spark))
    return rights.getFileDefault().applyUMask(umask).toShort(), rights.getDirDefault().applyUMask(umask).toShort()


class SinkLog:
    """The log of the directory ``path``, which it makes if it is missing."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        jvm: Any = spark._jvm
        self._files, self._folder = _qualified(spark, path)
        sink_class = facts(spark.version).file_sink
        package = sink_class.rpartition(".")[0]
        log_of = java_class(jvm, f"{package}.FileStreamSinkLog")
        conf = spark._jsparkSession.sessionState().conf()
        where = java_class(jvm, sink_class).getMetadataLogPath(self._files, self._folder, conf).toString()
        self._log = log_of(log_of.VERSION(), spark._jsparkSession, where, jvm.scala.Option.empty())
        self._status_of = java_class(jvm, f"{package}.SinkFileStatus")
        self._gateway: Any = spark.sparkContext._gateway

    def has(self, batch: int) -> bool:
        """Return true if the log has ``batch`` or a later one."""
        last = self._log.getLatestBatchId()
        return bool(last.isDefined()) and int(last.get()) >= batch

    def add(self, batch: int, files: Sequence[tuple[str, int, int]]) -> None:
        """Add the files of ``batch``: the name, the bytes and the time of the last change of each.

        Raises RunError if another run has added the batch.
        """
        entries = self._gateway.new_array(self._status_of, len(files))
        folder = str(self._folder.toUri().toString()).rstrip("/")
        facts_of_disk = self._files.getDefaultReplication(self._folder), self._files.getDefaultBlockSize(self._folder)
        for number, (name, size, modified) in enumerate(files):
            entries[number] = self._status_of(f"{folder}/{name}", size, False, modified, *facts_of_disk, _ADDED)
        if not self._log.add(batch, entries):
            raise RunError(
                f"another run has written batch {batch} to {self._folder.toString()}",
                hint="stop one of them; a checkpoint and a directory of files have one run at a time",
            )


def _qualified(spark: SparkSession, path: str) -> tuple[JavaObject, JavaObject]:
    """Return the file system of ``path``, and the path with it."""
    jvm: Any = spark._jvm
    folder = jvm.org.apache.hadoop.fs.Path(path)
    files = folder.getFileSystem(_configuration(spark))
    return files, files.makeQualified(folder)


def _configuration(spark: SparkSession) -> JavaObject:
    return spark._jsparkSession.sessionState().newHadoopConf()
