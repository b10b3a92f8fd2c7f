"""The rows of a micro-batch for one of several sinks; a small batch is already on the driver.

A connector requests the rows in the form that it needs; the other form is not computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """The rows of a sink, whose last column may be the row kind: in Spark, on the driver, or only their number.

    ``is_on_driver`` is true if the rows are already on the driver, so that Spark has nothing to do for ``on_driver``.
    """

    spark: SparkSession
    in_spark: Callable[[], DataFrame]
    on_driver: Callable[[], pa.Table]
    counted: Callable[[], int]
    is_on_driver: bool = False
