"""Rows of a step that are in this process: tables of Arrow, which become frames of Spark only if Spark computes more.

A frame of Spark is a local relation, so expressions over it need no task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.runtime.engine.marks import MARK_COLUMNS, Marks, give_marks, mark_rows, take_marks
from hintplan.runtime.engine.rows import ArrowRows, Report

Session = Callable[[], SparkSession]
"""Returns the session of the rehearsal, and starts it at the first call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRows(ArrowRows):
    """Rows of a step in this process."""

    session: Session

    def table(self, marks: Marks) -> pa.Table:
        """Return the rows, and note their marks."""
        report = Report()
        tables = [rows.select(self.schema.names).cast(self.schema) for rows in self.tables()([], report)]
        marks |= report.marks
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def in_spark(self, reader: str) -> DataFrame:
        marks: Marks = {}
        rows = self.table(marks)
        if self.marks:
            rows = pa.concat_tables([give_marks(rows), mark_rows(marks, self.schema)])
        return local_frame(self.session(), rows)


def local_rows(
    session: Session, schema: pa.Schema, compute: Callable[[Marks], pa.Table], *, marks: bool = False
) -> LocalRows:
    """Return the rows that ``compute`` returns in each step, and whose marks it notes."""

    def read(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        yield compute(report.marks)

    return LocalRows(frame=None, read=read, schema=schema, session=session, marks=marks)  # type: ignore[arg-type]


def local_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return ``table`` as a local relation of Spark."""
    # Spark reads only the first chunk of a table into a local relation.
    table = table.combine_chunks()
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def table_of(rows: ArrowRows | DataFrame, schema: pa.Schema, marks: Marks, *, marked: bool) -> pa.Table:
    """Return the columns of ``schema`` of ``rows``, and note the marks of event time if they are ``marked``."""
    if isinstance(rows, LocalRows):
        return rows.table(marks).select(schema.names).cast(schema)
    assert isinstance(rows, DataFrame)  # no other backend makes rows of a rehearsal
    if not marked:
        return collected(rows, schema)
    return take_marks(collected(rows, pa.schema([*schema, *MARK_COLUMNS])), marks)


def collected(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """Return the rows of a frame, computed by Spark."""
    rows = frame.collect()
    if not rows:
        return schema.empty_table()
    places = {name: place for place, name in enumerate(rows[0].__fields__)}
    columns = []
    for field in schema:
        place = places[field.name]
        columns.append(pa.array([_instants(row[place], field.type) for row in rows], field.type))
    return pa.table(columns, schema=schema)


def _instants(value: Any, kind: pa.DataType) -> Any:
    """Return a value with its zone: Spark collects an instant as a local time without one."""
    if value is None or not _has_instants(kind):
        return value
    if pa.types.is_timestamp(kind):
        assert isinstance(value, datetime)
        return value.astimezone(UTC)
    if pa.types.is_list(kind):
        return [_instants(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        entries = value.items() if isinstance(value, Mapping) else value
        return [(_instants(key, kind.key_type), _instants(item, kind.item_type)) for key, item in entries]
    return {field.name: _instants(value[field.name], field.type) for field in kind}


def _has_instants(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_instants(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None
