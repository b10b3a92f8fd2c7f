"""Columns in the form in which batch jobs compare them.

Each MAP becomes a sorted array of its entries. Streams compare by :mod:`hintplan.runtime.state.nested_values`, with the
same result.

FLOAT and DOUBLE get the normal form of :mod:`hintplan.runtime.kernels.floats`. Spark itself treats 0.0 and -0.0, and
all NaNs, as equal, but passes on the value of an arbitrary row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from hintplan.runtime.spark.names import quoted


def comparable_column(frame: DataFrame, name: str) -> Column:
    """Return the column ``name`` of ``frame``, with an array of its entries, sorted by key, for each MAP in it."""
    kind = frame.schema[name].dataType
    column = F.col(quoted(name))
    return _in_order(column, kind) if _has_map(kind) else column


def has_map(frame: DataFrame, name: str) -> bool:
    """Return True if the column ``name`` of ``frame`` is or contains a MAP."""
    return _has_map(frame.schema[name].dataType)


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind)
    return isinstance(kind, MapType)


def _in_order(column: Column, kind: DataType) -> Column:
    if not _has_map(kind):
        return column
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(column, lambda item: _in_order(item, element))
    if isinstance(kind, StructType):
        fields = (_in_order(column.getField(field.name), field.dataType).alias(field.name) for field in kind)
        return F.when(column.isNotNull(), F.struct(*fields))
    assert isinstance(kind, MapType)
    value = kind.valueType
    entries = F.transform(
        F.map_entries(column),
        lambda entry: F.struct(
            entry.getField("key").alias("key"), _in_order(entry.getField("value"), value).alias("value")
        ),
    )
    return F.array_sort(entries)


def with_normal_floats(frame: DataFrame) -> DataFrame:
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
