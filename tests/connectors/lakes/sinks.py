"""Micro-batches and changelogs for tests of sinks in data lakes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.plans.declarations.tables import Table
from hintplan.runtime.connectors.micro_batch import MicroBatch
from hintplan.runtime.connectors.table import batch_writer, micro_batch_writer, read_batch
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.types import to_arrow

KINDS = {"+I": INSERT, "-U": UPDATE_BEFORE, "+U": UPDATE_AFTER, "-D": DELETE}
Change = tuple[str, tuple[Any, ...]]


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


def changes_of(chance: random.Random, rows: dict[Any, Any], *, size: int, update_before: bool) -> list[Change]:
    """A changelog that makes sense after ``rows``, which it changes."""
    found: list[Change] = []
    for _ in range(size):
        key = (chance.randrange(12), chance.choice("ab"))
        old = rows.get(key)
        new = (*key, chance.randrange(99), chance.choice(["x", "y", None]))
        if old is None:
            found.append(("+I", new))
            rows[key] = new
        elif chance.random() < 0.4:
            found.append(("-D", old))
            del rows[key]
        else:
            found += [("-U", old)] if update_before else []
            found.append(("+U", new))
            rows[key] = new
    return found


def sink(spark: SparkSession, table: Any, *, changelog: bool = False, part: str = "/r", on_driver: bool = True) -> Any:
    write = micro_batch_writer("r", table, changelog=changelog, checkpoint="c", part=part)
    return lambda rows, batch: write(micro_batch(spark, rows, on_driver=on_driver), batch)


def written(spark: SparkSession, table: Any, rows: list[tuple[Any, ...]]) -> None:
    found = arrow(table, [("+I", row) for row in rows], changelog=False)
    frame = spark.createDataFrame(found, schema=from_arrow_schema(found.schema, prefer_timestamp_ntz=True))
    batch_writer(frame.repartition(2), "r", table)()


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple((value is None, str(value)) for value in row))


def read_back(spark: SparkSession, table: Table) -> list[tuple[Any, ...]]:
    """The rows that a batch job reads."""
    found = read_batch(spark, "r", table, tuple(column.name for column in table.columns)).toArrow()
    return in_order(tuple(row.values()) for row in found.to_pylist(maps_as_pydicts="strict"))
