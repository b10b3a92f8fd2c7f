"""INSERT OVERWRITE: files of a batch job take the place of those that are in a directory, or in its partitions.

All files are written below a hidden directory first, so a job that fails or is killed before its end takes nothing
away. Then the old files are deleted and the new ones renamed into their places, as Flink does: that is not one step,
and who reads meanwhile, or is killed then, finds less.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.success import mark
from hintplan.runtime.connectors.filesystem.write import saving
from hintplan.runtime.spark.session import is_remote

_STAGED = "_hintplan_overwrite-"


def batch_overwriter(df: DataFrame, name: str, table: Table) -> Callable[[], None]:
    """What writes all rows in place of what is there; RunError, now, as ``batch_writer``, and on Spark Connect."""
    if is_remote(df.sparkSession):
        raise RunError(
            f"table {name} cannot be overwritten by a client of Spark Connect, which cannot move files",
            hint="run the job on the cluster itself, or overwrite a table of delta or iceberg",
            path=f"tables.{name}",
        )
    staged = f"{table.options['path'].rstrip('/')}/{_STAGED}{uuid.uuid4()}"
    save = saving(df, name, table, staged)
    return partial(_overwrite, df.sparkSession, save, table, staged)


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


def _partitions(files: Any, place: Any, depth: int, below: str = "") -> Iterator[tuple[str, Any]]:
    """The directories that are so deep below a place, with their paths there."""
    if depth == 0:
        yield below, place
        return
    for child in _visible(files, place):
        yield from _partitions(files, child, depth - 1, f"{below}/{child.getName()}".lstrip("/"))


def _visible(files: Any, place: Any) -> list[Any]:
    """What is in a directory, but for what readers take for hidden."""
    if not files.exists(place):
        return []
    return [each.getPath() for each in files.listStatus(place) if not each.getPath().getName().startswith(("_", "."))]
