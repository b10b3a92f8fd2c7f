"""METADATA columns of messages, from the columns of Spark's connector, and the headers of written messages.

Of several headers with the same name, the last one counts, as in Flink.
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
    """Return the headers as a map, empty if there are none."""
    headers = F.coalesce(F.col(HEADERS), F.array().cast(HEADERS_DDL))

    def is_last(header: Column, place: Column) -> Column:
        after = F.slice(headers, place + 2, F.size(headers))
        return ~F.exists(after, lambda other: other["key"] == header["key"])

    return F.map_from_entries(F.filter(headers, is_last))


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
    """Return the METADATA columns among ``columns``, in the order of the table."""
    return tuple(column for column in table.columns if column.metadata is not None and column.name in columns)


def reads_headers(metadata: tuple[TableColumn, ...]) -> bool:
    """Return true if a column holds the headers, which Spark reads only on request."""
    return any(column.metadata == HEADERS for column in metadata)


def values(metadata: tuple[TableColumn, ...], name_of: Callable[[int], str]) -> list[Column]:
    """Return the columns of messages as Spark reads them, each under the name for its position."""
    return [
        _VALUES[column.metadata or ""]().cast(to_spark(column.type)).alias(name_of(index))
        for index, column in enumerate(metadata)
    ]


def written_headers(table: Table) -> str | None:
    """Return the column whose values are written as headers."""
    return next((column.name for column in table.columns if column.metadata == HEADERS and not column.virtual), None)


def header_structs(headers: tuple[tuple[str, bytes | None], ...] | None) -> list[dict[str, Any]] | None:
    """Return the headers of a message in the form that Spark writes."""
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
