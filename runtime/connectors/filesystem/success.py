"""Success files: an empty file in each directory to which a micro-batch or a batch job has added files.

They are written once readers see the new files, so a job that waits for a success file then reads all of them. A
micro-batch that runs again after a crash writes them if they are missing. On classic Spark only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from hintplan.plans.connectors.filesystem import POLICY, SUCCESS_FILE
from hintplan.plans.connectors.table import option
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.source_files import STREAM_LOG
from hintplan.runtime.spark.session import is_remote


def success_file(table: Table) -> str | None:
    """Return the name of the success files of ``table``; None if it has none."""
    if option(table, POLICY) is None:
        return None
    return option(table, SUCCESS_FILE)


def refuse_marks_by_clients(spark: SparkSession, name: str, table: Table) -> None:
    """Raise RunError on Spark Connect if ``table`` has success files, because clients do not see the files."""
    if success_file(table) is not None and is_remote(spark):
        raise RunError(
            f"table {name} has success files, which a client of Spark Connect cannot write",
            hint=f"run the job on the cluster itself, or remove {POLICY!r}",
            path=f"tables.{name}.options.{POLICY}",
        )


def mark_batch(spark: SparkSession, table: Table, batch: int) -> None:
    """Mark the directories to which ``batch`` of a stream has added files, according to the log of its sink."""
    name = success_file(table)
    if name is None:
        return
    files, path_of = _file_system(spark, table.options["path"])
    log = f"{table.options['path'].rstrip('/')}/{STREAM_LOG}"
    jvm: Any = spark._jvm
    newest: dict[str, int] = {}
    for entry in _entries(spark, files, path_of, log, batch):
        directory = path_of(jvm.java.net.URI(entry["path"])).getParent().toString()
        newest[directory] = max(newest.get(directory, 0), int(entry["modificationTime"]))
    for directory, time in newest.items():
        success_path = path_of(f"{directory}/{name}")
        # A compacted log lists the files of all batches.
        if not files.exists(success_path) or files.getFileStatus(success_path).getModificationTime() <= time:
            _create(files, success_path)


def mark(spark: SparkSession, table: Table, directories: Iterable[str]) -> None:
    """Mark ``directories`` of ``table``, to which a batch job has added files."""
    name = success_file(table)
    if name is not None:
        files, path_of = _file_system(spark, table.options["path"])
        for directory in sorted(directories):
            _create(files, path_of(f"{directory}/{name}"))


def marking(spark: SparkSession, table: Table, save: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls ``save`` and then marks the directories with new files."""
    if success_file(table) is None:
        return save

    def save_and_mark() -> None:
        before = data_files(spark, table)
        save()
        added = data_files(spark, table) - before
        mark(spark, table, {file.rpartition("/")[0] for file in added})

    return save_and_mark


def data_files(spark: SparkSession, table: Table) -> frozenset[str]:
    """Return the files of ``table`` that readers see, at the depth of its partitions."""
    files, path_of = _file_system(spark, table.options["path"])
    root = path_of(table.options["path"])
    return frozenset(_below(files, root, len(table.partitioned_by))) if files.exists(root) else frozenset()


def _below(files: JavaObject, place: JavaObject, depth: int) -> Iterator[str]:
    for status in files.listStatus(place):
        if status.getPath().getName().startswith(("_", ".")):
            continue
        if depth and status.isDirectory():
            yield from _below(files, status.getPath(), depth - 1)
        elif not depth and status.isFile():
            yield status.getPath().toString()


def _entries(
    spark: SparkSession, files: JavaObject, path_of: JavaObject, log: str, batch: int
) -> Iterator[dict[str, Any]]:
    """Yield the entries for a batch in the log of Spark's file sink, after the version line."""
    jvm: Any = spark._jvm
    for suffix in ("", ".compact"):
        entry = path_of(f"{log}/{batch}{suffix}")
        if files.exists(entry):
            stream = files.open(entry)
            try:
                text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
            finally:
                stream.close()
            yield from (json.loads(line) for line in text.splitlines()[1:])
            return


def _create(files: JavaObject, place: JavaObject) -> None:
    files.create(place, True).close()


def _file_system(spark: SparkSession, path: str) -> tuple[JavaObject, JavaObject]:
    jvm: Any = spark._jvm
    path_of = jvm.org.apache.hadoop.fs.Path
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    return path_of(path).getFileSystem(configuration), path_of
