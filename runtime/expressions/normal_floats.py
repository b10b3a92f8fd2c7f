"""FLOAT and DOUBLE columns of a batch job in the normal form of :mod:`hintplan.runtime.kernels.comparison`.

Spark itself treats 0.0 and -0.0, and all NaNs, as equal, but passes on the value of an arbitrary row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructField

from hintplan.runtime.spark.names import quoted


def normal_floats(frame: DataFrame) -> DataFrame:
    """Replace -0.0 with 0.0, and every NaN with a single one, in the FLOAT and DOUBLE columns of ``frame``."""
    if not any(isinstance(field.dataType, FloatType | DoubleType) for field in frame.schema):
        return frame
    return frame.select(*map(_normal, frame.schema))


def _normal(field: StructField) -> Column:
    column = F.col(quoted(field.name))
    if not isinstance(field.dataType, FloatType | DoubleType):
        return column
    normal = F.when(column == 0, F.lit(0.0)).when(F.isnan(column), F.lit(float("nan"))).otherwise(column)
    return normal.cast(field.dataType).alias(field.name)
