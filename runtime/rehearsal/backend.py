"""The backend of a rehearsal: rows of a step come from the test, and kernels run in this process on state in memory.

Rows stay in Arrow, as in a run, and Spark computes the expressions that Arrow cannot. Spark starts only for these. An
operator is called only in steps that bring rows to its query, as Spark runs a batch only for new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from hintplan.plans.connectors.table import is_looked_up_by_users_code, source_kinds
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import Table, read_columns
from hintplan.plans.errors import RunError
from hintplan.plans.operators import Calc, Correlate, Expand, LookupJoin, Operator, Unnest
from hintplan.runtime.builders.backend import Backend, Reading
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.engine.blobs import from_blob
from hintplan.runtime.engine.marks import LAST, MARK_COLUMNS, SPLIT, Marks
from hintplan.runtime.engine.pack import TICK, Packing, hashed
from hintplan.runtime.engine.process import joined, stored_with
from hintplan.runtime.engine.row_order import ROW_ORDER, in_row_order
from hintplan.runtime.engine.rows import Aggregate, ArrowRows, EdgeRows, PackedFor
from hintplan.runtime.engine.watermarks import EventTime, Moved, moved_watermark
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.operator import INSERT, KIND, Result, StatefulOperator, TimeOperator
from hintplan.runtime.rehearsal.local_rows import LocalRows, Session, local_frame, local_rows, table_of
from hintplan.runtime.spark.between_tasks import MapBatches
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.storage.manifest import StoredWatermark
from hintplan.runtime.storage.place import Place
from hintplan.runtime.types import to_arrow
from hintplan.runtime.worker.metered import METRICS_COLUMN

_OF_EACH_ROW = (Calc, Correlate, Expand, LookupJoin, Unnest)
"""Operators that make their rows of the rows of one input, one by one."""


@dataclass(slots=True)
class PartitionState:
    """The state of an operator in a partition."""

    store: MemoryStore = field(default_factory=MemoryStore)
    manifest: bytes | None = None
    watermark: StoredWatermark | None = None


@dataclass(slots=True, kw_only=True)
class Step:
    """A step: its time in ms, the rows of each source in order, and the operators that are called.

    The rows have the columns of the source that a scan can read, and ``KIND`` if it is a changelog. ``ends`` is True
    in the last step, which ends event time.
    """

    now: int = 0
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    called: Collection[str] = ()
    first: bool = True
    ends: bool = False


@dataclass(slots=True, kw_only=True)
class RehearsalBackend(Backend):
    """The backend of a rehearsal; ``step`` is the step at work, ``state`` the state by operator and partition.

    ``lookups`` are the sources of lookup tables that the test answers itself, and ``functions`` the classes of such
    functions.
    """

    session: Session
    lookups: Mapping[str, LookupSource] = field(default_factory=dict)
    functions: Mapping[str, type[Any]] = field(default_factory=dict)
    step: Step = field(default_factory=Step)
    state: dict[tuple[str, int], PartitionState] = field(default_factory=dict)
    used_spark: bool = False
    """True if rows have gone through Spark, whose frames hold the rows of one step."""
    by_spark: set[str] = field(default_factory=set)
    """The operators whose rows Spark has computed in a step before."""

    @property
    def spark(self) -> SparkSession:
        return self._session()

    def _session(self) -> SparkSession:
        self.used_spark = True
        return self.session()

    def built(
        self, operator: Operator, inputs: Sequence[EdgeRows], schema: pa.Schema, build: Callable[[], EdgeRows]
    ) -> EdgeRows:
        """Return the rows of ``operator``, without Spark if its only input has no rows in this step."""
        if operator.id in self.by_spark and isinstance(operator, _OF_EACH_ROW) and not operator.parks_rows:
            (rows,) = inputs
            marks: Marks = {}
            if isinstance(rows.in_arrow, LocalRows) and not rows.in_arrow.table(marks).num_rows:
                self.used_spark = True  # the next step may have rows
                return self._without_rows(schema, marks, marked=rows.marks)
        before, self.used_spark = self.used_spark, False
        made = build()
        if self.used_spark:
            self.by_spark.add(operator.id)
        self.used_spark |= before
        return made

    def _without_rows(self, schema: pa.Schema, marks: Marks, *, marked: bool) -> EdgeRows:
        def compute(noted: Marks) -> pa.Table:
            noted |= marks
            return schema.empty_table()

        none = self._lazy(schema, compute, marks=marked)
        return EdgeRows(lambda: none.in_spark("no rows"), none, marks=marked)

    def read(self, reading: Reading) -> DataFrame:
        return local_frame(self.spark, self._rows(reading))

    def read_in_arrow(self, reading: Reading) -> ArrowRows | None:
        return self._lazy(self._schema(reading), lambda marks: self._rows(reading))

    def arrived(self, reading: Reading, schema: pa.Schema, key: Sequence[str]) -> ArrowRows:
        return self._lazy(schema, lambda marks: self._rows(reading).select(schema.names))

    def one_row(self, operator: str) -> DataFrame:
        return self.spark.range(1 if self.step.first else 0)

    def union(self, inputs: Sequence[EdgeRows], schemas: Sequence[pa.Schema], schema: pa.Schema) -> ArrowRows | None:
        parts = [rows.in_arrow for rows in inputs]
        if not all(isinstance(part, LocalRows) for part in parts):
            return None

        def compute(marks: Marks) -> pa.Table:
            tables = [
                table_of(part, own, marks, marked=False)
                for part, own in zip(parts, schemas, strict=True)
                if part is not None
            ]
            return pa.concat_tables([pa.table([_column(table, field) for field in schema], schema) for table in tables])

        return self._lazy(schema, compute, marks=any(rows.marks for rows in inputs))

    def lookup_source(self, name: str, table: Table) -> LookupSource:
        if name in self.lookups:
            return self.lookups[name]
        if not is_looked_up_by_users_code(table):
            raise RunError(
                f"the plan looks rows up in '{name}', and the test has no rows of it",
                hint=f"write lookups: {{{name}: [...]}} in the file of the tests, or in a step",
            )
        return connectors.lookup_source(table.options)

    def given_function(self, name: str) -> type[Any] | None:
        return self.functions.get(name)

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
        def compute(noted: Marks) -> pa.Table:
            return self._applied(kernel, inputs, place, row_order, marked, event_time, ends, noted)

        return self._lazy(kernel.output, compute, marks=event_time is not None or bool(marked))

    def _applied(
        self,
        kernel: StatefulOperator | TimeOperator,
        inputs: Sequence[DataFrame | ArrowRows],
        place: Place,
        row_order: Collection[int],
        marked: Collection[int],
        event_time: EventTime | None,
        ends: Marks | None,
        noted: Marks,
    ) -> pa.Table:
        """Return the output of ``kernel`` in this step, and note the marks for the operators above."""
        if place.operator not in self.step.called:
            return kernel.output.empty_table()
        marks: Marks = {}
        packed: dict[tuple[int, int], list[pa.Table]] = {}
        for side, (rows, spec) in enumerate(zip(inputs, kernel.inputs, strict=True)):
            extra = [
                *([pa.field(KIND, pa.int8())] if spec.changelog else []),
                *(ROW_ORDER if side in row_order else []),
            ]
            schema = pa.schema([*spec.columns, *extra])
            packing = Packing(
                side=side,
                schema=schema,
                route=spec.hashes[0],
                buckets=range(place.partitions),
                presum=None if side in row_order else spec.presum,
            )
            here = table_of(rows, schema, marks, marked=side in marked)
            for batch in packing(here.combine_chunks().to_batches()):
                for row in batch.to_pylist():
                    if row["side"] != TICK:
                        packed.setdefault((row["bucket"], side), []).append(from_blob(row["blob"]))
        if ends is not None and self.step.ends:
            marks |= ends
        outputs = []
        above: Marks = marks
        for partition in range(place.partitions):
            deltas: list[pa.Table | None] = []
            for side, spec in enumerate(kernel.inputs):
                tables = packed.get((partition, side))
                deltas.append(hashed(in_row_order(joined(tables, spec.presum)), spec.hashes, 1) if tables else None)
            result, moved = self._called(kernel, deltas, place.operator, partition, marks, event_time)
            outputs += [result.output] if result.late is None else [result.output, result.late]
            if moved is not None and event_time is not None:
                above = {(event_time.number, ""): moved.mark(event_time.hold)}
        noted |= above
        return pa.concat_tables(outputs)

    def _called(
        self,
        kernel: Any,
        deltas: Sequence[pa.Table | None],
        operator: str,
        partition: int,
        marks: Marks,
        event_time: EventTime | None,
    ) -> tuple[Result, Moved | None]:
        """Call ``kernel`` for a partition, whose state it changes; return its result and the watermark."""
        state = self.state.setdefault((operator, partition), PartitionState())
        now = self.step.now
        moved = None if event_time is None else moved_watermark(state.watermark, marks, event_time, now)
        further = () if moved is None else (moved.watermarks,)
        result: Result = kernel.process(deltas, state.manifest, state.store, now, *further)
        state.manifest = result.manifest
        if moved is not None:
            state.watermark = stored_with(moved.stored, result)
        return result, moved

    def shared(
        self, rows: ArrowRows | DataFrame, schema: pa.Schema, operator: str, *, marks: bool = False
    ) -> ArrowRows:
        return self._lazy(schema, lambda noted: table_of(rows, schema, noted, marked=marks), marks=marks)

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
        return self.shared(rows, schema, operator, marks=rows.marks)

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
        noted: Marks = {}
        schema = pa.schema(
            [field for field in to_arrow_schema(frame.schema) if not marks or field.name not in MARK_COLUMNS.names]
        )
        rows = table_of(frame, schema, noted, marked=marks)
        tables = [
            table.filter(pc.is_null(table[METRICS_COLUMN])).select(output.names).cast(output)
            for table in map(_one_batch, run(iter(rows.combine_chunks().to_batches())))
        ]
        made = pa.concat_tables([output.empty_table(), *tables])

        def compute(above: Marks) -> pa.Table:
            above |= noted
            return made

        return self._lazy(output, compute, marks=marks).in_spark(name)

    def _lazy(self, schema: pa.Schema, compute: Callable[[Marks], pa.Table], *, marks: bool = False) -> LocalRows:
        """Return rows that are computed once in each step, however many operators read them."""
        known: tuple[Step, pa.Table, Marks] | None = None

        def once(noted: Marks) -> pa.Table:
            nonlocal known
            if known is None or known[0] is not self.step:
                own: Marks = {}
                table = compute(own)
                known = (self.step, table, own)
            noted |= known[2]
            return known[1]

        return local_rows(self._session, schema, once, marks=marks)

    def _schema(self, reading: Reading) -> pa.Schema:
        """Return the columns of the rows of a scan."""
        types = {column.name: to_arrow(column.type) for column in read_columns(reading.table)}
        kind = [] if source_kinds(reading.table) == INSERT_ONLY else [pa.field(KIND, pa.int8())]
        split = [pa.field(SPLIT, pa.string())] if reading.splits else []
        last = [pa.field(LAST, pa.bool_())] if reading.last_row else []
        order = ROW_ORDER if reading.row_order else []
        return pa.schema([*((name, types[name]) for name in reading.scan.columns), *kind, *order, *split, *last])

    def _rows(self, reading: Reading) -> pa.Table:
        """Return the rows of a scan in this step, with the columns of metadata that it reads."""
        schema = self._schema(reading)
        rows = self.step.rows.get(reading.scan.table)
        if rows is None:
            return schema.empty_table()
        # The rows of a step are in one file, and in one split of the source.
        fixed = {SPLIT: "0", LAST: False, **{order.name: _first_place(order) for order in ROW_ORDER}}
        columns = [
            pa.array([fixed[column.name]] * rows.num_rows, column.type)
            if column.name in fixed
            else rows[column.name].cast(column.type)
            for column in schema
        ]
        return pa.table(columns, schema)


def _first_place(order: pa.Field) -> str | int:
    return "step" if pa.types.is_string(order.type) else 0


def _column(table: pa.Table, wanted: pa.Field) -> pa.Array | pa.ChunkedArray:
    """Return a column of ``table``, or its default: a row without a kind is an insertion."""
    if wanted.name in table.column_names:
        return table[wanted.name].cast(wanted.type)
    value = INSERT if wanted.name == KIND else "" if pa.types.is_string(wanted.type) else 0
    if wanted.name not in (KIND, *ROW_ORDER.names):
        return pa.nulls(table.num_rows, wanted.type)
    return pa.array([value] * table.num_rows, wanted.type)


def _one_batch(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])
