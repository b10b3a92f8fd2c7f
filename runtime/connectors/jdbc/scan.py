"""Database tables as sources: the tasks of Spark read all existing rows once, with the drivers of lookups.

Each part of a table, a range of ``scan.partition.column``, is one query in one task. The parts are not read from one
snapshot: a later part contains rows that were committed in the meantime, as in Flink. In a stream, the rows of a part
are pinned if anything downstream depends on them. A batch that runs again then has the same rows, even if the table has
changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

from hintplan.plans.connectors.jdbc import ScanPart, scan_parts
from hintplan.plans.declarations.tables import Column, Table, physical_columns
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.columns import physical_schema
from hintplan.runtime.connectors.connector import TableRead
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.lookup.source import LookupSource, open_source
from hintplan.runtime.requests.pins import batch_pins
from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.spark.versions import available_now
from hintplan.runtime.storage.pins import Pin, PinPlace, question_of, token_of
from hintplan.runtime.types import to_arrow

_PART = "part"
_SCHEMA = StructType([StructField(_PART, LongType())])
_NO_LIMIT = {"statement.timeout": "0 ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """The part of a scan that runs in tasks: its source, parts, pushed-down condition, and place of pins."""

    context: LookupContext
    source: LookupSource
    parts: tuple[ScanPart | None, ...]
    pushed_filter: PushedFilter | None = None
    pins: PinPlace | None = None

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the parts whose numbers are in ``batches``."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._read(number) if self.pins is None else self._pinned(number, self.pins)

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        source: Any = open_source(self.source, "full", self.context)
        yield from source.scan_part(self.context, self.parts[number], self.pushed_filter)

    def _pinned(self, number: int, place: PinPlace) -> Iterator[pa.RecordBatch]:
        """Yield the rows that this part had when it was first read in this batch."""
        pins, token = batch_pins(place), token_of(_PART, number)
        heeded = pins.heeded()
        label = str(self.parts) if self.pushed_filter is None else f"{self.parts} {self.pushed_filter}"
        if any(pin.label != label for pin in heeded.values()):
            raise RunError(
                f"table {self.context.table} had other splits or another filter when batch {pins.batch} began, of "
                f"which a part is kept",
                hint="set the options scan.partition.* and the query as they were, and change them once the table is "
                "read",
                path=f"tables.{self.context.table}.options",
            )
        pin_of_part = heeded.get(token) or pins.find(token)
        if pin_of_part is None:
            schema = pa.schema([(column.name, to_arrow(column.type)) for column in self.context.columns])
            rows = pa.Table.from_batches(self._read(number), schema)
            fresh = Pin(
                label=label,
                at=str(number),
                division=place.division,
                questions=(question_of(number),),
                count=np.array([rows.num_rows], np.int64),
                marks=np.zeros(1, np.bool_),
                rows=rows,
            )
            pin_of_part = pins.publish(token, fresh)
        yield from pin_of_part.rows.to_batches(max_chunksize=65_536)


def stream_of_parts(read: TableRead, source: LookupSource) -> DataFrame:
    """Return the rows of the table that satisfy the pushed-down filter, as a stream with a single micro-batch."""
    parts = _parts(read.table)
    registered = f"hintplan_jdbc_{uuid.uuid4().hex}"
    read.spark.dataSource.register(type("PartsSource", (PartsSource,), {"registered_as": registered}))
    numbers = read.spark.readStream.format(registered).schema(_SCHEMA).option("parts", str(len(parts))).load()
    return _scanned(numbers, read, source, parts)


def batch_of_parts(read: TableRead, source: LookupSource) -> DataFrame:
    """Return the rows of the table that satisfy the pushed-down filter."""
    parts = _parts(read.table)
    numbers = read.spark.range(0, len(parts), 1, len(parts)).toDF(_PART)
    return _scanned(numbers, read, source, parts)


def _parts(table: Table) -> tuple[ScanPart | None, ...]:
    return scan_parts(table) or (None,)


def _scanned(
    numbers: DataFrame, read: TableRead, source: LookupSource, parts: tuple[ScanPart | None, ...]
) -> DataFrame:
    declared = {column.name: column for column in physical_columns(read.table)}
    columns = read.columns or tuple(declared)[:1]  # Arrow has no row count without columns
    wanted: tuple[Column, ...] = tuple(declared[column] for column in columns)
    options: Mapping[str, str] = {**_NO_LIMIT, **read.table.options}
    context = LookupContext(
        table=read.name, options=options, keys=(), columns=wanted, declared=tuple(declared.values())
    )
    scan = TableScan(context=context, source=source, parts=parts, pushed_filter=read.pushed_filter, pins=read.pins)
    return map_in_arrow(numbers, partial(_rows, scan), physical_schema(read.table, columns)).select(*read.columns)


def _rows(scan: TableScan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return scan.rows(batches)


class PartsSource(DataSource):
    """The part numbers of a table, each once, as a stream that ends after its first micro-batch."""

    registered_as: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.registered_as

    def streamReader(self, schema: StructType) -> PartsReader:
        return PartsReader(int(self.options["parts"]))


class PartsReader(DataSourceStreamReader, available_now()):  # type: ignore[misc]
    """Plans all parts once. An offset records whether the table has been read, but not the parts, which may change."""

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def initialOffset(self) -> dict[str, int]:
        return {"read": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, start: dict[str, int] | None = None, limit: object = None) -> dict[str, int]:
        return {"read": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self.parts)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([partition.value], pa.int64())], names=[_PART])
