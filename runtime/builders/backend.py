"""The backend of a stream: how the rows of sources are read, and how operators of the engine are applied and shared.

Builders describe operators, and the backend computes them. :class:`SparkBackend` is the backend of a run.
:mod:`hintplan.runtime.rehearsal` has the backend of a test with a clock.

    edges = edges_of(plan, SparkBackend(session=spark), places=places, lookups=RequestRun(token="1"))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession

from hintplan.plans.compare.sources import waking_name
from hintplan.plans.declarations.tables import Table
from hintplan.plans.operators import Operator, Scan
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.program_objects import ProgramObjects
from hintplan.runtime.engine.arrivals import as_arrived
from hintplan.runtime.engine.mapped import map_batches
from hintplan.runtime.engine.marks import Marks
from hintplan.runtime.engine.rows import Aggregate, ArrowRows, EdgeRows, PackedFor
from hintplan.runtime.engine.shared import shared_input, shared_rows
from hintplan.runtime.engine.stateful import apply_operator
from hintplan.runtime.engine.watermarks import EventTime
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.operator import StatefulOperator, TimeOperator
from hintplan.runtime.spark.between_tasks import MapBatches
from hintplan.runtime.spark.ending import ending_source
from hintplan.runtime.spark.names import named_function
from hintplan.runtime.spark.once import one_row
from hintplan.runtime.spark.source_order import mark_source
from hintplan.runtime.spark.waking import waking_source
from hintplan.runtime.storage.pins import PinPlace
from hintplan.runtime.storage.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The read of a scan: its columns, the metadata columns to add, and the filter that the source evaluates."""

    scan: Scan
    table: Table
    row_order: bool = False
    splits: bool = False
    last_row: bool = False
    pins: PinPlace | None = None
    pushed_filter: PushedFilter | None = None
    why_spark: str | None
    objects: ProgramObjects


class Backend(ABC):
    """Reads the sources of a stream, applies operators of the engine, and shares their rows."""

    @property
    @abstractmethod
    def spark(self) -> SparkSession:
        """The session that computes rows which are not in Arrow."""

    def built(
        self, operator: Operator, inputs: Sequence[EdgeRows], schema: pa.Schema, build: Callable[[], EdgeRows]
    ) -> EdgeRows:
        """Return the rows of ``operator``, with ``schema``, that ``build`` makes of its ``inputs``."""
        return build()

    @abstractmethod
    def read(self, reading: Reading) -> DataFrame:
        """Return the rows of a scan as Spark has them."""

    @abstractmethod
    def read_in_arrow(self, reading: Reading) -> ArrowRows | None:
        """Return the rows of a scan in Arrow; None if only Spark can read them."""

    @abstractmethod
    def arrived(self, reading: Reading, schema: pa.Schema, key: Sequence[str]) -> ArrowRows:
        """Return the changes of a scan, with ``schema``, in order of arrival; equal values of ``key`` in one task."""

    @abstractmethod
    def one_row(self, operator: str) -> DataFrame:
        """Return a frame that has one row in the first batch, and none afterwards."""

    @abstractmethod
    def union(self, inputs: Sequence[EdgeRows], schemas: Sequence[pa.Schema], schema: pa.Schema) -> ArrowRows | None:
        """Return the rows of all ``inputs``, with ``schema``, in Arrow; None if only Spark can.

        ``schemas`` are the schemas of the inputs, which may lack columns of metadata.
        """

    @abstractmethod
    def lookup_source(self, name: str, table: Table) -> LookupSource:
        """Return the source that answers the lookups in the table ``name``."""

    def given_function(self, name: str) -> type[Any] | None:
        """Return a class that stands for the function ``name``; None to load the class that the plan names."""
        return None

    @abstractmethod
    def apply(
        self,
        kernel: StatefulOperator | TimeOperator,
        inputs: Sequence[DataFrame | ArrowRows],
        place: Place,
        *,
        row_order: Collection[int] = (),
        metrics: Sequence[tuple[str, Aggregate]] = (),
        marked: Collection[int] = (),
        event_time: EventTime | None = None,
        ends: Marks | None = None,
        wakes: bool = False,
        retry_delay: int | None = None,
    ) -> ArrowRows:
        """Return the output of ``kernel``, whose arguments :func:`apply_operator` explains.

        ``ends`` are the marks of the batch that ends time; None for an operator whose watermark comes from operators.
        An operator that ``wakes`` has something to do at times at which no row need come. ``retry_delay`` is the time
        in ms after which rows of a lookup wait no longer.
        """

    @abstractmethod
    def shared(
        self, rows: ArrowRows | DataFrame, schema: pa.Schema, operator: str, *, marks: bool = False
    ) -> ArrowRows:
        """Return the rows of ``operator`` for several readers, computed once per batch."""

    @abstractmethod
    def shared_input(
        self,
        rows: ArrowRows,
        schema: pa.Schema,
        place: Place,
        operator: str,
        *,
        reader: PackedFor,
        route: Sequence[str],
    ) -> ArrowRows:
        """Return the rows of ``operator`` for several readers, packed as an input of ``reader`` with its ``place``."""

    @abstractmethod
    def mapped(
        self,
        frame: DataFrame,
        run: MapBatches,
        output: pa.Schema,
        name: str,
        observed: str | Observation,
        metrics: Sequence[tuple[str, Aggregate]],
        *,
        marks: bool,
    ) -> DataFrame:
        """Return the rows that ``run`` makes from the batches of ``frame``, for the operator ``name``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBackend(Backend):
    """The backend of a run on Spark; with the file ``ending``, the sources of event time end in the next batch."""

    session: SparkSession
    ending: str | None = None
    spark_reads: dict[str, str] = field(default_factory=dict, compare=False)
    """The scans that Spark reads although the plan lets workers read them, each with the reason; filled by building."""

    @property
    def spark(self) -> SparkSession:
        return self.session

    def read(self, reading: Reading) -> DataFrame:
        if reading.why_spark is None:
            self.spark_reads.setdefault(reading.scan.id, "an operator above it runs in Spark")
        rows = connectors.read_stream(
            self.spark, reading.scan.table, reading.table, reading.scan.columns,
            row_order=reading.row_order, splits=reading.splits, last_row=reading.last_row, pins=reading.pins,
            pushed_filter=reading.pushed_filter, objects=reading.objects,
        )  # fmt: skip
        return mark_source(rows, reading.scan.id)

    def read_in_arrow(self, reading: Reading) -> ArrowRows | None:
        scan, table = reading.scan, reading.table
        if reading.why_spark is not None:
            return None
        reason = connectors.why_not_in_arrow(self.spark, scan.table, table, scan.columns)
        if reason is not None:
            self.spark_reads[scan.id] = reason
            return None
        rows = connectors.read_in_arrow(
            self.spark, scan.table, table, scan.columns, row_order=reading.row_order, splits=reading.splits
        )
        counted = tuple((f"{metric} {scan.id}", how) for metric, how in rows.metrics)
        return replace(rows, frame=mark_source(rows.frame, scan.id), metrics=counted)

    def arrived(self, reading: Reading, schema: pa.Schema, key: Sequence[str]) -> ArrowRows:
        return as_arrived(self.read(reading), schema, key, self._partitions, reading.scan.id)

    def one_row(self, operator: str) -> DataFrame:
        return mark_source(one_row(self.spark), operator)

    def union(self, inputs: Sequence[EdgeRows], schemas: Sequence[pa.Schema], schema: pa.Schema) -> ArrowRows | None:
        return None

    def lookup_source(self, name: str, table: Table) -> LookupSource:
        return connectors.lookup_source(table.options)

    def apply(
        self,
        kernel: StatefulOperator | TimeOperator,
        inputs: Sequence[DataFrame | ArrowRows],
        place: Place,
        *,
        row_order: Collection[int] = (),
        metrics: Sequence[tuple[str, Aggregate]] = (),
        marked: Collection[int] = (),
        event_time: EventTime | None = None,
        ends: Marks | None = None,
        wakes: bool = False,
        retry_delay: int | None = None,
    ) -> ArrowRows:
        calling: list[tuple[DataFrame, Marks]] = []
        if ends is not None:
            calling.append((mark_source(ending_source(self.spark, self.ending), place.operator), ends))
        if wakes:
            name = waking_name(place.operator)
            calling.append((mark_source(waking_source(self.spark, place.root, None), name), {}))
        if retry_delay is not None:
            calling.append((mark_source(waking_source(self.spark, place.root, retry_delay), place.operator), {}))
        return apply_operator(
            kernel,
            inputs,
            place,
            row_order=row_order,
            metrics=metrics,
            marked=marked,
            event_time=event_time,
            calling=calling,
        )

    def shared(
        self, rows: ArrowRows | DataFrame, schema: pa.Schema, operator: str, *, marks: bool = False
    ) -> ArrowRows:
        return shared_rows(rows, schema, self._partitions, operator, marks=marks)

    def shared_input(
        self,
        rows: ArrowRows,
        schema: pa.Schema,
        place: Place,
        operator: str,
        *,
        reader: PackedFor,
        route: Sequence[str],
    ) -> ArrowRows:
        return shared_input(rows, schema, place.partitions, operator, reader=reader, route=tuple(route))

    def mapped(
        self,
        frame: DataFrame,
        run: MapBatches,
        output: pa.Schema,
        name: str,
        observed: str | Observation,
        metrics: Sequence[tuple[str, Aggregate]],
        *,
        marks: bool,
    ) -> DataFrame:
        return map_batches(frame, named_function(run, name), output, observed, metrics, marks=marks)

    @property
    def _partitions(self) -> int:
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
