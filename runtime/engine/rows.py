"""The rows on the edges of a stream while it is built: as Spark has them, or in Arrow.

Rows stay in Arrow between stateful operators, and on their way from Parquet files, wherever they can. So the next
stateful operator need not read them from Spark. Spark only carries the source that a worker reads them from: the paths
of files, or the packed input of a stateful operator, which runs in the task that reads its output. ``steps`` are the
operators up to the next stateful one, if Arrow can compute them. :meth:`ArrowRows.in_spark` returns the rows as Spark's
own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.runtime.engine.marks import KEEP, MARK_COLUMNS, Marking, Marks, give_marks, mark_rows
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.names import named_function
from hintplan.runtime.worker.metered import METRICS_COLUMN, counts, data, with_metrics

ROWS = "rows"
UNCOUNTED = "uncounted"
"""The prefix of the metric for rows that a task has read but Spark has not counted; the scan's id follows."""

Metrics = list[int | None]
"""The values that a task has counted, appended by ``read`` at the end; None if a value is unknown."""


@dataclass(slots=True)
class Report:
    """The report of a task on the rows that it has read: its ``metrics``, and the ``marks`` of event time."""

    metrics: Metrics = field(default_factory=list)
    marks: Marks = field(default_factory=dict)


Aggregate = Literal["sum", "max", "min", "list"]
"""The function that aggregates a metric over tasks. The last metric may be a ``list``: of all values from its place on,
as text with blanks between them."""

Read = Callable[[Iterable[pa.RecordBatch], Report], Iterator[pa.Table]]
"""Returns the rows for the batches of a task, which completes the report; picklable."""

Step = Callable[[pa.Table], pa.Table]
"""Transforms rows, each table independently of the others; picklable."""


@runtime_checkable
class Dropping(Protocol):
    """A step that drops rows by a condition."""

    def drops(self, rows: pa.Table, unknown: Sequence[Set[str]]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that it drops whatever the values are of the columns ``unknown`` in a row."""


class ReadBefore(ABC):
    """A ``Read`` that depends on the first step: a source may read a row only if this step needs it."""

    @abstractmethod
    def __call__(self, batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        """Return the rows."""

    @abstractmethod
    def before(self, step: Step | Marking) -> Read:
        """Return the same function for rows that ``step`` transforms first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFor:
    """The ``operator``, and the number of its input, for which a frame has packed rows in the right partitions."""

    operator: str
    side: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowRows:
    """Rows with ``schema``: ``read`` makes tables from the batches of ``frame``, and ``steps`` transform them.

    ``metrics`` are the names of the values that ``read`` counts, and their aggregation over tasks. They are observed
    under ``observed_as``, or else under a name derived from the reader. With ``marks``, the reader needs the marks of
    event time, which rows in Spark carry in ``MARK_COLUMNS``. If the rows are ``packed`` for an operator, it may take
    the frame as its input; other readers unpack it.
    """

    frame: DataFrame
    read: Read
    schema: pa.Schema
    steps: tuple[Step | Marking, ...] = ()
    metrics: tuple[tuple[str, Aggregate], ...] = ()
    observed_as: str | None = None
    marks: bool = False
    packed: PackedFor | None = None

    def then(self, step: Step | Marking, schema: pa.Schema) -> ArrowRows:
        """Return these rows after a further ``step``, which yields ``schema``."""
        read = self.read.before(step) if isinstance(self.read, ReadBefore) and not self.steps else self.read
        return replace(self, read=read, steps=(*self.steps, step), schema=schema, packed=None)

    @property
    def transformations(self) -> tuple[Step, ...]:
        """The steps that change rows; other steps note marks of event time."""
        return tuple(step for step in self.steps if not isinstance(step, Marking))

    def tables(self) -> Read:
        """Return the function that makes the tables of a task, without empty ones; picklable."""
        return partial(_tables, read=self.read, steps=self.steps)

    def in_spark(self, reader: str) -> DataFrame:
        """Return the same rows as Spark's own, for ``reader``."""
        run = partial(_unpacked, tables=self.tables(), schema=self.schema, marks=self.marks)
        return self._data(run, with_marks(self.schema) if self.marks else self.schema, reader)

    def counted(self, reader: str) -> DataFrame:
        """Return the number of rows of each task, in the column ``rows``; the rows are computed and dropped."""
        return self._data(partial(_counted, tables=self.tables()), _COUNTED, reader)

    def observe(self, frame: DataFrame, reader: str) -> DataFrame:
        """Return ``frame``, whose tasks emit metrics in ``METRICS_COLUMN``, with these metrics observed."""
        if not self.metrics:
            return frame
        aggregates = [aggregated(METRICS_COLUMN, index, *metric) for index, metric in enumerate(self.metrics)]
        return frame.observe(self.observed_as or f"read by {reader}", *aggregates)

    def _data(
        self, run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema, reader: str
    ) -> DataFrame:
        spark_schema = from_arrow_schema(with_metrics(schema), prefer_timestamp_ntz=True)
        mapped = map_in_arrow(self.frame, named_function(run, self.observed_as or reader), spark_schema)
        observed = self.observe(mapped, reader)
        return observed.where(F.col(METRICS_COLUMN).isNull()).drop(METRICS_COLUMN)


class EdgeRows:
    """The rows of an operator while a stream is built; ``in_arrow`` is None if only Spark has them.

    A reader that needs Spark's rows gets them converted. The choice never changes the values. With ``marks``, the rows
    carry the marks of event time.
    """

    def __init__(
        self, spark: Callable[[], DataFrame], in_arrow: ArrowRows | None = None, *, marks: bool = False
    ) -> None:
        self._spark = spark
        self._frame: DataFrame | None = None
        self.in_arrow = in_arrow
        self.marks = marks

    def without_marks(self) -> EdgeRows:
        """Return the rows for a reader that does not go by event time."""
        if not self.marks:
            return self
        in_arrow = None if self.in_arrow is None else replace(self.in_arrow, marks=False, packed=None)
        return EdgeRows(lambda: self.frame.where(KEEP).drop(*MARK_COLUMNS.names), in_arrow)

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark has them, built on first access."""
        if self._frame is None:
            self._frame = self._spark()
        return self._frame


_COUNTED = pa.schema([(ROWS, pa.int64())])


_MOST_VALUES = 1 << 16
_AGGREGATES: dict[Aggregate, Callable[[Column], Column]] = {"sum": F.sum, "max": F.max, "min": F.min}


def aggregated(column: str, index: int, name: str, how: Aggregate) -> Column:
    """Return the metric at ``index`` of the arrays in ``column``, aggregated over all rows that have one."""
    if how == "list":
        values = F.array_join(F.slice(F.col(column), index + 1, _MOST_VALUES), " ")
        return F.array_join(F.collect_list(values), " ").alias(name)
    return _AGGREGATES[how](F.get(column, F.lit(index))).alias(name)


def with_marks(schema: pa.Schema) -> pa.Schema:
    """Return the ``schema`` of rows in Spark that carry marks."""
    return pa.schema([*schema, *MARK_COLUMNS])


def _tables(
    batches: Iterable[pa.RecordBatch], report: Report, *, read: Read, steps: Sequence[Step | Marking]
) -> Iterator[pa.Table]:
    for table in read(batches, report):
        for step in steps:
            table = step(table, report.marks) if isinstance(step, Marking) else step(table)
        if table.num_rows:
            yield table


def _counted(batches: Iterable[pa.RecordBatch], *, tables: Read) -> Iterator[pa.RecordBatch]:
    report = Report()
    rows = sum(table.num_rows for table in tables(batches, report))
    yield from data([pa.table([[rows]], schema=_COUNTED)], _COUNTED)
    if report.metrics:
        yield counts(report.metrics, _COUNTED)


def _unpacked(
    batches: Iterable[pa.RecordBatch], *, tables: Read, schema: pa.Schema, marks: bool
) -> Iterator[pa.RecordBatch]:
    report, out = Report(), with_marks(schema) if marks else schema
    rows = (table.cast(schema) for table in tables(batches, report))
    yield from data(map(give_marks, rows) if marks else rows, out)
    if marks and report.marks:
        yield from data([mark_rows(report.marks, schema)], out)
    if report.metrics:
        yield counts(report.metrics, out)
