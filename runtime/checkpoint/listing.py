"""What is in a directory, wherever it is: also the logs of Spark's file sink, which no reader of Spark's lists.

Spark takes what is in ``_spark_metadata`` for its own, and reads nothing there without a word.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import local_directory, refuse_unreadable
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.storage.listing import names_by_task, names_in


def files_in(spark: SparkSession, directory: str) -> tuple[str, ...]:
    """The names of what is in ``directory``, a path or a URL; none if it is not there.

    On Spark Connect, a task looks, since only the server and its workers know it. RunError if nobody can.
    """
    if is_remote(spark):
        found = map_in_arrow(spark.range(1), partial(names_by_task, directory=directory), "name string")
        return tuple(row.name for row in found.collect())
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

    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(directory)
    try:
        system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        return tuple(str(each.getPath().getName()) for each in system.listStatus(path))
    except Py4JJavaError as error:
        if "FileNotFoundException" in str(error.java_exception.toString()):
            return ()
        raise RunError(f"{directory} cannot be listed: {root_cause(error)}") from error
