"""Scans below a cached result, which always read the files that were listed when they were built.

A cached result may be computed after it is built, in parts, and again after an executor is lost. Each time it must read
the same files. Spark alone would list them again: a write into a directory makes Spark forget its cached results of
that directory. Spark recognises these by the relation of files in their plan. So such a plan gets the tasks that read
the files instead of the relation.

A client of Spark Connect cannot do that. There the plan names the files one by one, and after a write the cached result
is computed again from them.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.table import files_reader
from hintplan.runtime.jvm.java import jvm_of
from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import facts


def snapshot(spark: SparkSession, frame: DataFrame, name: str, table: Table, columns: tuple[str, ...]) -> DataFrame:
    """Return the rows of ``frame``, a scan of ``columns`` of ``table``, from only the files that it has listed."""
    read_files = files_reader(table)
    if read_files is None:
        return frame
    if is_remote(spark):
        files = frame.inputFiles()
        return read_files(spark, name, table, columns, files) if files else frame.limit(0)
    return _settled(spark, frame)


def _settled(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the same rows as a scan of an RDD, which keeps the columns, the partitions and the size of ``frame``."""
    jvm, java = jvm_of(spark), frame._jdf
    companion = getattr(jvm.org.apache.spark.sql.execution, "LogicalRDD$").__getattr__("MODULE$")
    plan = companion.fromDataset(java.queryExecution().toRdd(), java, *facts(str(spark.version)).of_rdd)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)
