"""A Spark session with one core, whose workers find this directory's modules, and the time that a job takes on it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from hintplan.runtime.spark.session import start_session

__all__ = ["ROOT", "one_core", "seconds"]

ROOT = Path(__file__).resolve().parent.parent


def one_core(scratch: str, *, arrow_rows: int = 65_536) -> SparkSession:
    """A session with one core and Arrow batches of ``arrow_rows``; ``scratch`` is a directory for its files."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    conf = {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": scratch,
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(arrow_rows),
        "spark.sql.files.maxPartitionBytes": "8g",
        "spark.sql.files.openCostInBytes": "0",
    }
    return start_session("local[1]", conf)


def seconds(frame: DataFrame) -> float:
    """Seconds that it takes to compute and discard ``frame``."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started
