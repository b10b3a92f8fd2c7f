"""INSERT OVERWRITE: the files of a batch job replace the files in a directory or in its partitions.

The job first writes all files below a hidden directory, so a job that fails or is killed while writing removes nothing.
Then it deletes the old files and renames the new ones into their places, as Flink does. This step is not atomic: while
it runs, or after a crash in it, readers find fewer rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.connector import OverwritingSink, TableWrite
from hintplan.runtime.connectors.filesystem.success import mark
from hintplan.runtime.connectors.filesystem.write import FileWriter, saving
from hintplan.runtime.spark.session import is_remote

_STAGED = "_hintplan_overwrite-"


class OverwritingFileWriter(FileWriter, OverwritingSink):
    """Replaces files, in addition to appending them."""

    def batch_overwriter(self, write: TableWrite, rows: DataFrame) -> Callable[[], None]:
        """Return a function that replaces the existing files with all rows.

        Raises RunError immediately on Spark Connect, and in the cases of ``batch_writer``.
        """
        name, table = write.name, write.table
        if is_remote(rows.sparkSession):
            raise RunError(
                f"table {name} cannot be overwritten by a client of Spark Connect, which cannot move files",
                hint="run the job on the cluster itself, or overwrite a table of delta or iceberg",
                path=f"tables.{name}",
            )
        staged = f"{table.options['path'].rstrip('/')}/{_STAGED}{uuid.uuid4()}"
        save = saving(rows, name, table, staged)
        return partial(_overwrite, rows.sparkSession, save, table, staged)


def _overwrite(spark: SparkSession, save: Callable[[], None], table: Table, staged: str) -> None:
    jvm: Any = spark._jvm
    path_of = jvm.org.apache.hadoop.fs.Path
    files = path_of(staged).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    try:
        save()
        root = path_of(table.options["path"])
        written = []
        for below, new in list(_partitions(files, path_of(staged), len(table.partitioned_by))):
            target = path_of(root, below) if below else root
            for old in _visible(files, target):
                files.delete(old, True)
            files.mkdirs(target)
            for file in _visible(files, new):
                if not files.rename(file, path_of(target, file.getName())):
                    raise RunError(f"{file.toString()} cannot be renamed to be in {target.toString()}")
            written.append(target.toString())
        mark(spark, table, written)
    finally:
        files.delete(path_of(staged), True)


def _partitions(files: JavaObject, place: JavaObject, depth: int, below: str = "") -> Iterator[tuple[str, JavaObject]]:
    """Yield the directories ``depth`` levels below a place, each with its relative path."""
    if depth == 0:
        yield below, place
        return
    for child in _visible(files, place):
        yield from _partitions(files, child, depth - 1, f"{below}/{child.getName()}".lstrip("/"))


def _visible(files: JavaObject, place: JavaObject) -> list[JavaObject]:
    """Return the entries of a directory, except hidden ones."""
    if not files.exists(place):
        return []
    return [
        child.getPath() for child in files.listStatus(place) if not child.getPath().getName().startswith(("_", "."))
    ]
