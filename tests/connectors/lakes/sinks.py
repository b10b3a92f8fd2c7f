"""Tables and micro-batches for tests of sinks in data lakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from plans.declarations.tables import Table, TableColumn
from runtime.connectors.micro_batch import MicroBatch
from runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from runtime.types import to_arrow

KINDS = {"+I": INSERT, "-U": UPDATE_BEFORE, "+U": UPDATE_AFTER, "-D": DELETE}
Change = tuple[str, tuple[Any, ...]]


def delta_table(path: Path | str, *columns: tuple[str, str], key: tuple[str, ...] = (), **more: str) -> Table:
    """A table with ``columns``, and ``more`` options, in whose names ``_`` is ``-``."""
    return Table(
        columns=tuple(TableColumn(name=name, type=type_) for name, type_ in columns),
        options={"connector": "delta", "table-path": str(path), **{k.replace("_", "-"): v for k, v in more.items()}},
        primary_key=key,
    )


def arrow(table: Table, changes: Iterable[Change], *, changelog: bool = True) -> pa.Table:
    """The rows of ``changes``, with their kinds in a changelog."""
    found = list(changes)
    columns = {
        column.name: pa.array([row[i] for _, row in found], to_arrow(column.type))
        for i, column in enumerate(table.columns)
    }
    if changelog:
        columns[KIND] = pa.array([KINDS[kind] for kind, _ in found], pa.int8())
    return pa.table(columns)


def micro_batch(spark: SparkSession, rows: pa.Table, *, on_driver: bool) -> MicroBatch:
    """A micro-batch with ``rows``, which have come to the driver or are with Spark."""
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    return MicroBatch(
        spark=spark,
        in_spark=lambda: spark.createDataFrame(rows, schema=schema).coalesce(1),
        on_driver=lambda: rows,
        counted=lambda: int(rows.num_rows),
        is_on_driver=on_driver,
    )


def applied(rows: dict[Any, Any], changes: Sequence[Change], key: int = 1) -> None:
    """Apply a changelog with ``-U`` to rows by their key, one after the other."""
    for kind, row in changes:
        if kind in ("+I", "+U"):
            rows[row[:key]] = row
        elif rows.get(row[:key]) == row:
            del rows[row[:key]]
