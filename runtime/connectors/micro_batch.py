"""The rows of a micro-batch for one of several sinks: those that are few have come to the driver with the batch.

A connector asks for them in the form that it can use; the other one is not made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Rows of a sink, of which the last column may be the row kind: in Spark, on the driver, or only counted.

    ``is_on_driver`` says that they have come there, so that Spark need not do anything for a connector that wants them.
    """

    spark: SparkSession
    in_spark: Callable[[], DataFrame]
    on_driver: Callable[[], pa.Table]
    counted: Callable[[], int]
    is_on_driver: bool = False
