"""Converts Flink type text to Spark types and to Arrow types: the only place that maps the three.

Both functions need no Spark session, so Python workers may call them; Arrow types need no PySpark. Nullability is
dropped: outer joins may produce NULL in any column, and neither Spark's readers nor Arrow enforce it. Lengths are also
dropped, because Spark has no such columns in a DataFrame: CHAR and VARCHAR are strings, BINARY and VARBINARY bytes. A
MULTISET is a map from each element to its count. A TIME is its text, without trailing zeros in the fraction. Timestamps
have microseconds, regardless of their declared precision. This module knows neither plans nor connectors.

>>> str(to_arrow("ROW<a INT, b ARRAY<TIMESTAMP_LTZ(3)>>"))
'struct<a: int32, b: list<item: timestamp[us, tz=UTC]>>'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from hintplan.plans.declarations.types import DataType, parse_type

if TYPE_CHECKING:
    from pyspark.sql import types as spark

_PLAIN: dict[str, tuple[str, pa.DataType]] = {
    "BOOLEAN": ("BooleanType", pa.bool_()),
    "TINYINT": ("ByteType", pa.int8()),
    "SMALLINT": ("ShortType", pa.int16()),
    "INT": ("IntegerType", pa.int32()),
    "BIGINT": ("LongType", pa.int64()),
    "FLOAT": ("FloatType", pa.float32()),
    "DOUBLE": ("DoubleType", pa.float64()),
    "DATE": ("DateType", pa.date32()),
    "STRING": ("StringType", pa.string()),
    "CHAR": ("StringType", pa.string()),
    "VARCHAR": ("StringType", pa.string()),
    "BYTES": ("BinaryType", pa.binary()),
    "BINARY": ("BinaryType", pa.binary()),
    "VARBINARY": ("BinaryType", pa.binary()),
    "TIME": ("StringType", pa.string()),
    "TIMESTAMP": ("TimestampNTZType", pa.timestamp("us")),
    "TIMESTAMP_LTZ": ("TimestampType", pa.timestamp("us", tz="UTC")),
}


def to_spark(type_text: str) -> spark.DataType:
    """Return the Spark type of a Flink type; ValueError if the text is not a supported type."""
    return _spark(parse_type(type_text))


def to_arrow(type_text: str) -> pa.DataType:
    """Return the Arrow type of a Flink type in segments of state and deltas; ValueError as :func:`to_spark`."""
    return _arrow(parse_type(type_text))


def _spark(parsed: DataType) -> spark.DataType:
    from pyspark.sql import types as spark

    parts = [_spark(part) for part in parsed.parts]
    if parsed.root == "DECIMAL":
        return spark.DecimalType(parsed.precision or 0, parsed.scale or 0)
    if parsed.root == "ARRAY":
        return spark.ArrayType(parts[0])
    if parsed.has_entries:
        return spark.MapType(parts[0], parts[1])
    if parsed.root == "ROW":
        return spark.StructType([spark.StructField(name, part) for name, part in zip(parsed.names, parts, strict=True)])
    plain: spark.DataType = getattr(spark, _PLAIN[parsed.root][0])()
    return plain


def _arrow(parsed: DataType) -> pa.DataType:
    parts = [_arrow(part) for part in parsed.parts]
    if parsed.root == "DECIMAL":
        return pa.decimal128(parsed.precision, parsed.scale)
    if parsed.root == "ARRAY":
        return pa.list_(parts[0])
    if parsed.has_entries:
        return pa.map_(parts[0], parts[1])
    if parsed.root == "ROW":
        return pa.struct([pa.field(name, part) for name, part in zip(parsed.names, parts, strict=True)])
    return _PLAIN[parsed.root][1]
