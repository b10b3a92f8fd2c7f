"""Converts column types to Iceberg's types, and schemas to Arrow as in data files, with the ids of the columns.

Runs where batches are committed: on the driver. Knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from hintplan.runtime.connectors.lakes.target import LakeTarget
from hintplan.runtime.types import to_arrow

_PLAIN: tuple[tuple[pa.DataType, iceberg.PrimitiveType], ...] = (
    (pa.bool_(), iceberg.BooleanType()),
    (pa.int8(), iceberg.IntegerType()),
    (pa.int16(), iceberg.IntegerType()),
    (pa.int32(), iceberg.IntegerType()),
    (pa.int64(), iceberg.LongType()),
    (pa.float32(), iceberg.FloatType()),
    (pa.float64(), iceberg.DoubleType()),
    (pa.string(), iceberg.StringType()),
    (pa.binary(), iceberg.BinaryType()),
    (pa.date32(), iceberg.DateType()),
    (pa.timestamp("us"), iceberg.TimestampType()),
    (pa.timestamp("us", tz="UTC"), iceberg.TimestamptzType()),
)


def iceberg_schema(target: LakeTarget) -> Schema:
    """Return the schema of the declared columns, with new ids."""
    ids = count(1)
    required = target.required
    return Schema(
        *(
            iceberg.NestedField(next(ids), c.name, _type(to_arrow(c.type), ids), required=c.name in required)
            for c in target.columns
        )
    )


def in_files(schema: Schema, names: Iterable[str]) -> pa.Schema:
    """Return some columns of a table as an Arrow schema, each with its id."""
    converted = schema_to_pyarrow(schema)
    return pa.schema([converted.field(name) for name in names])


def is_same_type(one: iceberg.IcebergType, other: iceberg.IcebergType) -> bool:
    """Return true if two types are equal, ignoring field ids and nullability."""
    return bool(_plain(one) == _plain(other))


def _type(arrow: pa.DataType, ids: Iterator[int]) -> iceberg.IcebergType:
    if pa.types.is_decimal(arrow):
        return iceberg.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_map(arrow):
        return iceberg.MapType(
            key_id=next(ids), key_type=_type(arrow.key_type, ids), value_id=next(ids),
            value_type=_type(arrow.item_type, ids), value_required=False,
        )  # fmt: skip
    if pa.types.is_list(arrow):
        return iceberg.ListType(element_id=next(ids), element_type=_type(arrow.value_type, ids), element_required=False)
    if pa.types.is_struct(arrow):
        return iceberg.StructType(
            *(iceberg.NestedField(next(ids), f.name, _type(f.type, ids), required=False) for f in arrow)
        )
    return next(theirs for ours, theirs in _PLAIN if ours == arrow)


def _plain(kind: iceberg.IcebergType) -> Any:
    if isinstance(kind, iceberg.StructType):
        return [(field.name, _plain(field.field_type)) for field in kind.fields]
    if isinstance(kind, iceberg.ListType):
        return "list", _plain(kind.element_type)
    if isinstance(kind, iceberg.MapType):
        return "map", _plain(kind.key_type), _plain(kind.value_type)
    return str(kind)
