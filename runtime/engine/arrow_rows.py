"""Rows that are in Arrow where they are made, so that the next operator with state need not ask Spark for them.

Spark only carries what they are read from in a worker: the paths of files, or the packed input of an operator with
state, which runs where its output is read. What stands between it and the next such operator, as far as it can be done
in Arrow, are ``steps``. Whoever wants Spark's rows has them with :meth:`ArrowRows.in_spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.runtime.engine.named import named
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.worker.metered import METRICS_COLUMN, counts, data, with_metrics

ROWS = "rows"
UNCOUNTED = "uncounted"
"""The metric that says how many rows a task has read beyond those that Spark has counted; the scan's id follows."""

Metrics = list[int | None]
"""What a task has counted, to which ``read`` adds at the end; None where it knows nothing."""

Aggregate = Literal["sum", "max", "min"]
"""How what tasks have counted becomes one number."""

Read = Callable[[Iterable[pa.RecordBatch], Metrics], Iterator[pa.Table]]
"""What the batches of a task stand for; picklable."""

Step = Callable[[pa.Table], pa.Table]
"""What becomes of rows on the way, each table by itself; picklable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowRows:
    """Rows with ``schema``, which ``steps`` make of what ``read`` finds in ``frame``.

    ``metrics`` names what ``read`` counts, and how that is aggregated over tasks; it is observed under ``observed_as``,
    or else under a name of its reader's.
    """

    frame: DataFrame
    read: Read
    schema: pa.Schema
    steps: tuple[Step, ...] = ()
    metrics: tuple[tuple[str, Aggregate], ...] = ()
    observed_as: str | None = None

    def then(self, step: Step, schema: pa.Schema) -> ArrowRows:
        """The rows with ``schema`` that ``step`` makes of these."""
        return replace(self, steps=(*self.steps, step), schema=schema)

    def tables(self) -> Callable[[Iterable[pa.RecordBatch], Metrics], Iterator[pa.Table]]:
        """What makes the rows in a task, where there are any; picklable."""
        return partial(_tables, read=self.read, steps=self.steps)

    def in_spark(self, reader: str) -> DataFrame:
        """The same rows as Spark has them, for ``reader``."""
        return self._data(partial(_unpacked, tables=self.tables(), schema=self.schema), self.schema, reader)

    def counted(self, reader: str) -> DataFrame:
        """How many rows each task has, in the column ``rows``; the rows are made, and dropped."""
        return self._data(partial(_counted, tables=self.tables()), _COUNTED, reader)

    def observe(self, frame: DataFrame, reader: str) -> DataFrame:
        """``frame``, whose tasks put the metrics out in ``METRICS_COLUMN``, with these observed."""
        if not self.metrics:
            return frame
        found = [aggregated(METRICS_COLUMN, index, *metric) for index, metric in enumerate(self.metrics)]
        return frame.observe(self.observed_as or f"read by {reader}", *found)

    def _data(
        self, run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema, reader: str
    ) -> DataFrame:
        spark_schema = from_arrow_schema(with_metrics(schema), prefer_timestamp_ntz=True)
        mapped = map_in_arrow(self.frame, named(run, self.observed_as or reader), spark_schema)
        observed = self.observe(mapped, reader)
        return observed.where(F.col(METRICS_COLUMN).isNull()).drop(METRICS_COLUMN)


_COUNTED = pa.schema([(ROWS, pa.int64())])


_AGGREGATES: dict[Aggregate, Callable[[Column], Column]] = {"sum": F.sum, "max": F.max, "min": F.min}


def aggregated(column: str, index: int, name: str, how: Aggregate) -> Column:
    """The metric that stands at ``index`` of the arrays in ``column``, over all rows that have one."""
    return _AGGREGATES[how](F.get(column, F.lit(index))).alias(name)


def _tables(
    batches: Iterable[pa.RecordBatch], metrics: Metrics, *, read: Read, steps: Sequence[Step]
) -> Iterator[pa.Table]:
    for table in read(batches, metrics):
        for step in steps:
            table = step(table)
        if table.num_rows:
            yield table


def _counted(batches: Iterable[pa.RecordBatch], *, tables: Read) -> Iterator[pa.RecordBatch]:
    metrics: Metrics = []
    rows = sum(table.num_rows for table in tables(batches, metrics))
    yield from data([pa.table([[rows]], schema=_COUNTED)], _COUNTED)
    if metrics:
        yield counts(metrics, _COUNTED)


def _unpacked(batches: Iterable[pa.RecordBatch], *, tables: Read, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    metrics: Metrics = []
    yield from data((table.cast(schema) for table in tables(batches, metrics)), schema)
    if metrics:
        yield counts(metrics, schema)
