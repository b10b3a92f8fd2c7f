"""Scans below a cached result: what they read is settled when they are built.

A cached result may be computed later than it is built, in parts, and once more after an executor is lost. Each time it
has to come from the same files. Spark on its own would list the files anew: a write into a directory makes it forget
whatever it has cached of that directory. It tells by the relation of files in the plan of what is cached, so such a
plan has the tasks that read the files in its place.

On Spark Connect no client can do that: the files are named one by one there, and what is cached is computed again from
them after a write.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.table import files_reader
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import facts


def snapshot(spark: SparkSession, frame: DataFrame, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """The rows of ``frame``, a scan of ``columns`` of ``table``, from the files that it has listed, and no others."""
    read_files = files_reader(table)
    if read_files is None:
        return frame
    if is_remote(spark):
        files = frame.inputFiles()
        return read_files(spark, name, table, columns, files) if files else frame.limit(0)
    return _settled(spark, frame)


def _settled(spark: Any, frame: Any) -> DataFrame:
    """The same rows as a scan of an RDD, which keeps the columns, the partitions and the size of ``frame``."""
    jvm, java = spark.sparkContext._jvm, frame._jdf
    companion = getattr(jvm.org.apache.spark.sql.execution, "LogicalRDD$").__getattr__("MODULE$")
    plan = companion.fromDataset(java.queryExecution().toRdd(), java, *facts(str(spark.version)).of_rdd)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)
