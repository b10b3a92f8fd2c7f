"""Rows that are in Arrow where they are made, so that the next operator with state need not ask Spark for them.

Spark only carries what they are read from in a worker: the blobs that an operator put out, or the paths of files. What
stands between it and the next operator, as far as it can be done in Arrow, are ``steps``. Whoever wants Spark's rows
has them with :meth:`ArrowRows.in_spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from runtime.spark.shipping import with_code
from runtime.worker.zip_paths import forget_zip_finders

ROWS = "rows"

Read = Callable[[pa.RecordBatch], Iterator[pa.Table]]
"""What a batch of the frame stands for; picklable."""

Step = Callable[[pa.Table], pa.Table]
"""What becomes of rows on the way, each table by itself; picklable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowRows:
    """Rows with ``schema``, which ``steps`` make of what ``read`` finds in ``frame``.

    ``uncounted`` says that Spark counts the rows of ``frame`` as those of a source, which stand for any number of rows.
    """

    frame: DataFrame
    read: Read
    schema: pa.Schema
    steps: tuple[Step, ...] = ()
    uncounted: bool = False

    def then(self, step: Step, schema: pa.Schema) -> ArrowRows:
        """The rows with ``schema`` that ``step`` makes of these."""
        return replace(self, steps=(*self.steps, step), schema=schema)

    def in_spark(self) -> DataFrame:
        """The same rows as Spark has them."""
        spark_schema = from_arrow_schema(self.schema, prefer_timestamp_ntz=True)
        unpacking = partial(_unpacked, read=self.read, steps=self.steps, schema=self.schema)
        return self.frame.mapInArrow(with_code(unpacking, self.frame), spark_schema)

    def counted(self) -> DataFrame:
        """How many rows each task has, in the column ``rows``; the rows are made, and dropped."""
        counting = partial(_counted, read=self.read, steps=self.steps)
        return self.frame.mapInArrow(with_code(counting, self.frame), f"{ROWS} bigint")


def tables(found: Iterable[pa.Table], steps: Sequence[Step]) -> Iterator[pa.Table]:
    """What ``steps`` make of each table, where that has rows."""
    for table in found:
        for step in steps:
            table = step(table)
        if table.num_rows:
            yield table


def _counted(batches: Iterable[pa.RecordBatch], *, read: Read, steps: Sequence[Step]) -> Iterator[pa.RecordBatch]:
    forget_zip_finders()
    rows = sum(table.num_rows for batch in batches for table in tables(read(batch), steps))
    yield pa.RecordBatch.from_arrays([pa.array([rows])], [ROWS])


def _unpacked(
    batches: Iterable[pa.RecordBatch], *, read: Read, steps: Sequence[Step], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    forget_zip_finders()
    for batch in batches:
        for table in tables(read(batch), steps):
            yield from table.cast(schema).to_batches()
