"""FLOAT and DOUBLE of a batch job in the form that :mod:`hintplan.runtime.kernels.floats` gives those of a stream.

By itself Spark takes 0.0 and -0.0 for the same, and all NaNs, but hands on whichever row it had.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructField

from hintplan.runtime.spark.names import quoted


def normal_floats(frame: DataFrame) -> DataFrame:
    """``frame`` with 0.0 for -0.0 and one NaN for all, in its columns of FLOAT and DOUBLE."""
    if not any(isinstance(field.dataType, FloatType | DoubleType) for field in frame.schema):
        return frame
    return frame.select(*map(_normal, frame.schema))


def _normal(field: StructField) -> Column:
    column = F.col(quoted(field.name))
    if not isinstance(field.dataType, FloatType | DoubleType):
        return column
    one = F.when(column == 0, F.lit(0.0)).when(F.isnan(column), F.lit(float("nan"))).otherwise(column)
    return one.cast(field.dataType).alias(field.name)
