"""Settings of a run's own session for the planning of its queries and the writing of their logs.

plan_batches_as_a_whole(own)
plan_wide_rows(own, columns=800)
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from hintplan.runtime.spark.session import is_remote, shares_machine
from hintplan.runtime.spark.versions import facts

_ADAPTIVE = "spark.sql.adaptive.enabled"
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
_CHECKSUMS = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
"""Either of them makes Spark (4.2 and later) compute a checksum of each row that it shuffles."""
_MOST_INFERRED = 500
"""With more columns than this in the tables of a plan, Spark no longer infers constraints."""


def plan_batches_as_a_whole(spark: SparkSession) -> None:
    """Let Spark plan each micro-batch of ``spark`` as one job, unless the user has configured adaptive execution.

    Adaptive execution would plan again after each exchange, although the number of partitions is fixed.
    """
    if is_remote(spark) or not spark.sparkContext.getConf().contains(_ADAPTIVE):
        spark.conf.set(_ADAPTIVE, "false")


def plan_wide_rows(spark: SparkSession, columns: int) -> None:
    """Turn off constraint propagation for queries with many ``columns``, unless the user has configured it.

    Spark infers constraints of columns from each other, in a time that grows with the square of their number.
    """
    if is_remote(spark) or not spark.sparkContext.getConf().contains(_CONSTRAINTS):
        spark.conf.set(_CONSTRAINTS, "false" if columns > _MOST_INFERRED else "true")


def shuffle_without_checksums(spark: SparkSession) -> None:
    """Let Spark compute no checksums of shuffled rows if its workers are on this machine, unless the user wants them.

    They show whether a task that ran again, because an executor was lost, had the same output. Here, the loss of the
    only executor ends the run. The checksums would take a tenth of a run's processor time.
    """
    if shares_machine(spark):
        for key in _CHECKSUMS:
            if not spark.sparkContext.getConf().contains(key):
                spark.conf.set(key, "false")


def write_logs_by_renaming(spark: SparkSession) -> None:
    """Let queries of ``spark`` write their logs with ``FileSystem.rename``, on a disk of this machine or on S3.

    Spark's default starts system programs for each file, about twenty per batch. On S3, it makes 22 requests per entry
    instead of 10. On a disk, a rename is atomic. On S3, both ways check if the entry exists, and copy the whole entry
    to its name. On other file systems, use Spark's default.
    """
    spark.conf.set(
        "spark.sql.streaming.checkpointFileManagerClass",
        facts(str(spark.version)).log_files,
    )
