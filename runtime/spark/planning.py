"""How Spark plans the queries of a run, and writes their logs: settings of the run's own session.

plan_batches_as_a_whole(own)
plan_wide_rows(own, columns=800)
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from hintplan.runtime.spark.session import is_remote
from hintplan.runtime.spark.versions import facts

_ADAPTIVE = "spark.sql.adaptive.enabled"
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
_MOST_INFERRED = 500
"""The columns of the tables of a plan, up to which Spark infers conditions from others."""


def plan_batches_as_a_whole(spark: SparkSession) -> None:
    """Let Spark plan a micro-batch of a query of ``spark`` as one job, unless it was told how it is to plan.

    Adaptive execution would plan anew behind each exchange, for a number of partitions that is fixed.
    """
    if is_remote(spark) or not spark.sparkContext.getConf().contains(_ADAPTIVE):
        spark.conf.set(_ADAPTIVE, "false")


def plan_wide_rows(spark: SparkSession, columns: int) -> None:
    """Let Spark plan queries of ``spark`` over rows of so many ``columns``, unless it was told how it is to plan.

    It infers conditions of columns from each other, in a time that grows with the square of their number.
    """
    if is_remote(spark) or not spark.sparkContext.getConf().contains(_CONSTRAINTS):
        spark.conf.set(_CONSTRAINTS, "false" if columns > _MOST_INFERRED else "true")


def write_logs_by_renaming(spark: SparkSession) -> None:
    """Let queries of ``spark`` write their logs by ``FileSystem.rename``, on a disk of this machine or on S3.

    Spark's own way asks programs of the system about each file, some twenty a batch; on S3 it makes 22 requests for an
    entry instead of 10. On a disk a rename is atomic. On S3 both ways look whether the entry is there, and copy it to
    its name as a whole. Elsewhere, Spark's own way stays.
    """
    spark.conf.set(
        "spark.sql.streaming.checkpointFileManagerClass",
        facts(str(spark.version)).log_files,
    )
