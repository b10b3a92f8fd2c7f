"""Lists directories on any file system, including the logs of Spark's file sink.

No reader of Spark can list those logs: Spark treats a ``_spark_metadata`` directory as its own, and silently reads
nothing from it.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import local_directory, refuse_unreadable
from hintplan.runtime.jvm.java import jvm_of
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.storage.files import names_by_task, names_in


def files_in(spark: SparkSession, directory: str) -> tuple[str, ...]:
    """Return the names of the entries of ``directory``, a path or a URL; none if it does not exist.

    On Spark Connect, a task lists it, since only the server and its workers reach the file system. RunError if it
    cannot be listed.
    """
    if is_remote(spark):
        rows = map_in_arrow(spark.range(1), partial(names_by_task, directory=directory), "name string")
        return tuple(row.name for row in rows.collect())
    local = local_directory(spark, directory)
    if local is None:
        return _listed_by_hadoop(spark, directory)
    try:
        return names_in(str(local))
    except OSError as error:
        refuse_unreadable(error)
        raise


def _listed_by_hadoop(spark: SparkSession, directory: str) -> tuple[str, ...]:
    from py4j.protocol import Py4JJavaError

    jvm = jvm_of(spark)
    path = jvm.org.apache.hadoop.fs.Path(directory)
    try:
        system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        return tuple(str(status.getPath().getName()) for status in system.listStatus(path))
    except Py4JJavaError as error:
        if "FileNotFoundException" in str(error.java_exception.toString()):
            return ()
        raise RunError(f"{directory} cannot be listed: {root_cause(error)}") from error
