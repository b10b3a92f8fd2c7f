"""The datagen source: generated rows at a steady rate, unbounded or up to a number of rows.

A running query gets ``rows-per-second`` rows for each second since its start, and none for the time when it was down. A
bounded table delivers all its rows at once to a run with ``--once``, in micro-batches of ``rows-per-second`` rows, and
to a batch job. Both refuse an unbounded table.

Rows depend only on their number (see :mod:`hintplan.runtime.connectors.datagen.generators`). A time column holds the
time at which the micro-batch was planned. The offset contains this time, so a replayed micro-batch has the same rows.
The last row of a bounded table ends its event time.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from hintplan.plans.connectors.datagen import DATAGEN, FieldSpec, field_specs, row_limit
from hintplan.plans.connectors.table import option
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.columns import physical_schema
from hintplan.runtime.connectors.connector import StreamSource, TableRead
from hintplan.runtime.connectors.datagen.generators import batch, row_width
from hintplan.runtime.engine.marks import LAST
from hintplan.runtime.spark.session import is_prepared_for_once
from hintplan.runtime.spark.versions import available_now

_TASKS = 8
_ROWS_PER_TASK = 50_000
_BYTES_PER_BATCH = 4_000_000


class GeneratedRows(StreamSource):
    """Generates the columns of a table; the choice of columns does not change their values.

    All rows are inserts, whose order does not matter.
    """

    connector = DATAGEN

    def read_stream(self, read: TableRead) -> DataFrame:
        return _load(read.spark.readStream, read, once=is_prepared_for_once(read.spark))

    def read_batch(self, read: TableRead) -> DataFrame:
        """Return all generated rows of a bounded table."""
        return _load(read.spark.read, read, once=True)


def _load(reader: DataFrameReader | DataStreamReader, read: TableRead, *, once: bool) -> DataFrame:
    specs = {spec.name: spec for spec in field_specs(read.table)}
    # Another session of the same Spark finds a source under its registered name, but cannot read it: use a unique name.
    name = f"hintplan_datagen_{uuid.uuid4().hex}"
    read.spark.dataSource.register(type("DatagenSource", (DatagenSource,), {"registered_as": name}))
    limit = row_limit(read.table)
    schema = physical_schema(read.table, read.columns)
    reader = reader.format(name).schema(schema.add(LAST, "boolean") if read.last_row else schema)
    return reader.options(
        fields=json.dumps([asdict(specs[column]) for column in read.columns], default=str),
        rate=option(read.table, "rows-per-second") or "",
        limit="" if limit is None else str(limit),
        once="true" if once else "",
        last="true" if read.last_row else "",
        table=read.name,
    ).load()


class DatagenSource(DataSource):
    """The Spark data source of the connector; :class:`GeneratedRows` sets its options."""

    registered_as: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.registered_as

    def reader(self, schema: StructType) -> DatagenBatchReader:
        return DatagenBatchReader(specs=self._specs(), rows=int(self.options["limit"]))

    def streamReader(self, schema: StructType) -> DatagenReader:
        limit = self.options["limit"]
        return DatagenReader(
            specs=self._specs(),
            rate=int(self.options["rate"]),
            limit=int(limit) if limit else None,
            once=bool(self.options["once"]),
            last=bool(self.options["last"]),
            table=self.options["table"],
        )

    def _specs(self) -> tuple[FieldSpec, ...]:
        return tuple(_spec(fields) for fields in json.loads(self.options["fields"]))


class DatagenBatchReader(DataSourceReader):
    """Plans all ``rows`` at once; a time column holds the time of planning."""

    def __init__(
        self,
        *,
        specs: tuple[FieldSpec, ...],
        rows: int,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.specs = specs
        self.rows = rows
        self.clock = clock

    def partitions(self) -> list[InputPartition]:
        return _partitions(0, self.rows, self.clock())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.specs, partition)


class DatagenReader(DataSourceStreamReader, available_now()):  # type: ignore[misc]
    """Plans micro-batches by the clock and generates their rows. An offset is ``{"row": next row, "time": ms}``.

    ``rate`` is in rows per second, ``limit`` is the total number of rows, and ``clock`` returns the time in ms. Before
    version 4.2, Spark does not pass the start offset; planning continues from the last planned offset, also after a
    restart. With these versions, ``once`` means that a single micro-batch reads all rows and the query then ends. With
    ``last``, rows have the column ``LAST``, which is true in row ``limit``. A reader that starts behind that row raises
    RunError with the name of the ``table``.
    """

    def __init__(
        self,
        *,
        specs: tuple[FieldSpec, ...],
        rate: int,
        limit: int | None,
        once: bool = False,
        last: bool = False,
        table: str = "",
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.specs = specs
        self.table = table
        self.rate = rate
        self.limit = limit
        self.once = once
        self.last = last
        self.clock = clock
        self.all_at_once = False
        self.started: tuple[int, int] | None = None
        self.planned: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        self.planned = self.planned or {"row": 0, "time": self.clock()}
        return self.planned if self.planned["row"] == 0 else {"row": 0, "time": self.clock()}

    def prepareForTriggerAvailableNow(self) -> None:
        if self.limit is None:
            raise RunError("a datagen table without 'number-of-rows' never ends", hint="run without --once")
        self.all_at_once = True

    def latestOffset(self, start: dict[str, int] | None = None, limit: object = None) -> dict[str, int]:
        now = self.clock()
        at_end = start is None and self.once
        start = start or self.planned or self.initialOffset()
        if self.last and self.limit is not None and start["row"] > self.limit:
            raise RunError(
                f"table {self.table} has made {start['row']:,} rows, and now ends with row {self.limit:,}: no last row "
                "can come, and windows over the table would stay open",
                hint=f"let it end with row {start['row'] + 1} or a later one, or start with a new checkpoint",
            )
        if self.started is None:
            self.started = (start["row"], now)
        if at_end and self.limit is not None:
            row = self.limit
        elif self.all_at_once:
            row = start["row"] + self.rate
        else:
            first_row, first_time = self.started
            row = max(start["row"], first_row + (now - first_time) * self.rate // 1000)
        if self.limit is not None:
            row = min(row, max(self.limit, start["row"]))
        self.planned = start if row == start["row"] else {"row": row, "time": now}
        return self.planned

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        self.planned = end
        return _partitions(start["row"], end["row"], end["time"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, _, _ = partition.value
        for rows in _read(self.specs, partition):
            if self.last:
                numbers = range(first + 1, first + rows.num_rows + 1)
                rows = rows.append_column(LAST, pa.array([number == self.limit for number in numbers], pa.bool_()))
            first += rows.num_rows
            yield rows


def _partitions(start: int, end: int, time_ms: int) -> list[InputPartition]:
    rows = end - start
    tasks = min(_TASKS, -(-rows // _ROWS_PER_TASK))
    cuts = [start + rows * task // tasks for task in range(tasks)] + [end]
    return [InputPartition((cuts[task], cuts[task + 1], time_ms)) for task in range(tasks)]


def _read(specs: tuple[FieldSpec, ...], partition: InputPartition) -> Iterator[pa.RecordBatch]:
    first, last, time_ms = partition.value
    step = max(1, _BYTES_PER_BATCH // row_width(specs))
    for low in range(first, last, step):
        yield batch(specs, low, min(low + step, last), time_ms=time_ms)


def _spec(fields: dict[str, Any]) -> FieldSpec:
    return FieldSpec(**{**fields, "minimum": Decimal(fields["minimum"]), "maximum": Decimal(fields["maximum"])})
