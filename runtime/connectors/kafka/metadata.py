"""METADATA columns of messages, of what Spark says of each, and the headers of those that are written.

Of headers with the same name the last counts, as in Flink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.types import to_spark

HEADERS = "headers"
HEADERS_DDL = "array<struct<key: string, value: binary>>"
HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _headers() -> Column:
    """The headers as a map, empty if there are none."""
    found = F.coalesce(F.col(HEADERS), F.array().cast(HEADERS_DDL))

    def is_last(header: Column, place: Column) -> Column:
        after = F.slice(found, place + 2, F.size(found))
        return ~F.exists(after, lambda other: other["key"] == header["key"])

    return F.map_from_entries(F.filter(found, is_last))


def _timestamp_type() -> Column:
    created, appended = (F.col("timestampType") == number for number in (0, 1))
    return F.when(created, "CreateTime").when(appended, "LogAppendTime").otherwise("NoTimestampType")


_VALUES: Mapping[str, Callable[[], Column]] = {
    "topic": lambda: F.col("topic"),
    "partition": lambda: F.col("partition"),
    "offset": lambda: F.col("offset"),
    "timestamp": lambda: F.col("timestamp"),
    "timestamp-type": _timestamp_type,
    HEADERS: _headers,
}


def metadata_of(table: Table, columns: tuple[str, ...]) -> tuple[TableColumn, ...]:
    """The METADATA columns among ``columns``, in the order of the table."""
    return tuple(column for column in table.columns if column.metadata is not None and column.name in columns)


def reads_headers(metadata: tuple[TableColumn, ...]) -> bool:
    """Whether one of the columns is of the headers, which Spark reads if it is told to."""
    return any(column.metadata == HEADERS for column in metadata)


def values(metadata: tuple[TableColumn, ...], name_of: Callable[[int], str]) -> list[Column]:
    """The columns for messages as Spark reads them, each under the name of its place."""
    return [
        _VALUES[column.metadata or ""]().cast(to_spark(column.type)).alias(name_of(place))
        for place, column in enumerate(metadata)
    ]


def written_headers(table: Table) -> str | None:
    """The column whose values are written as headers."""
    return next((column.name for column in table.columns if column.metadata == HEADERS and not column.virtual), None)


def header_structs(headers: tuple[tuple[str, bytes | None], ...] | None) -> list[dict[str, Any]] | None:
    """The headers of a message, as Spark writes them."""
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
