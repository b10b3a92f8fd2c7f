"""A stream without Spark's streaming: the runtime builds each micro-batch as a plan over local rows.

All that hintplan does to rows is its own code: the builders of :mod:`hintplan.runtime.builders.stream`, packing and
hashing, two partitions, the operators, calcs in Arrow, and expressions in Spark, which evaluates them on local
relations at once. Not here are Spark's sources, shuffle and codegen, nor files of state, which the share of queries on
real streams has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Sink
from hintplan.runtime.builders import builder, scan, stream, values
from hintplan.runtime.builders.edges import Edges, edges_of
from hintplan.runtime.builders.stream import build_stream
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects
from hintplan.runtime.engine.blobs import from_blob
from hintplan.runtime.engine.pack import TICK, Packing, hashed
from hintplan.runtime.engine.process import joined
from hintplan.runtime.engine.row_order import ROW_ORDER, in_row_order
from hintplan.runtime.engine.rows import ArrowRows, Report
from hintplan.runtime.expressions.pushed_filter import PushedFilter
from hintplan.runtime.operator import KIND, StatefulOperator
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.storage.pins import PinPlace
from hintplan.runtime.storage.place import Place, Scale
from hintplan.runtime.types import to_arrow
from tests.fuzz.data import Event, World
from tests.runtime.changelog import KINDS

__all__ = ["Stream", "run_in_process"]

_PARTITIONS = 2
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalRows(ArrowRows):
    """Rows of a micro-batch that are here."""

    spark: SparkSession

    def here(self) -> pa.Table:
        return next(self.tables()([], Report()), self.schema.empty_table())

    def in_spark(self, reader: str) -> DataFrame:
        return _frame(self.spark, self.here().cast(self.schema))


class Stream:
    """A plan, run batch by batch."""

    def __init__(self, plan: Plan, spark: SparkSession) -> None:
        self._spark = spark
        self._edges = _edges_of(plan, spark)
        self._sinks = tuple(operator for operator in plan.operators if isinstance(operator, Sink))
        self._plan = plan
        self._stores: dict[tuple[str, int], MemoryStore] = {}
        self._manifests: dict[tuple[str, int], bytes | None] = {}
        self._events: Mapping[str, list[Event]] = {}
        self._count: dict[str, Counter[str]] = {sink.table: Counter() for sink in self._sinks}
        self._rows: dict[str, Row] = {}
        self._begun = False

    def batch(self, events: Mapping[str, list[Event]]) -> None:
        """One micro-batch with these events of each table."""
        self._events = events
        with (
            mock.patch.object(builder, "apply_operator", self._apply),
            mock.patch.object(stream, "shared_rows", _shared),
            mock.patch.object(stream, "shared_input", lambda rows, *_arguments, **_names: rows),
            mock.patch.object(scan, "mark_source", lambda frame, operator: frame),
            mock.patch.object(values, "one_row", lambda spark: spark.range(0 if self._begun else 1)),
            mock.patch.object(values, "mark_source", lambda frame, operator: frame),
            mock.patch.object(connectors, "read_stream", self._read),
            mock.patch.object(connectors, "read_in_arrow", self._read_in_arrow),
        ):
            built = build_stream(self._edges, self._plan.by_id)
            for sink in self._sinks:
                rows = built[sink.inputs[0]]
                schema = self._edges.schema(sink.inputs[0])
                here = isinstance(rows.in_arrow, _LocalRows)
                self._fold(sink.table, rows.in_arrow.here() if here else _collected(rows.frame, schema), schema)

        self._begun = True

    def _fold(self, table: str, found: pa.Table, schema: pa.Schema) -> None:
        columns = [found[name].to_pylist(maps_as_pydicts="strict") for name in schema.names if name != KIND]
        kinds = found[KIND].to_pylist() if KIND in schema.names else [0] * found.num_rows
        for row, kind in zip(zip(*columns, strict=True), kinds, strict=True):
            # By their text: NaN is not equal to itself.
            self._count[table][_text(row)] += 1 if KINDS[kind] in ("+I", "+U") else -1
            self._rows.setdefault(_text(row), row)

    def results(self) -> dict[str, list[Row]]:
        """The rows of each sink that its changelog has left; AssertionError if it took back what was not there."""
        for table, found in self._count.items():
            wrong = [self._rows[text] for text, count in found.items() if count < 0]
            assert not wrong, f"the changelog of {table} takes back what is not there: {wrong[:3]}"
        return {table: [self._rows[t] for t in (+found).elements()] for table, found in self._count.items()}

    def resumed(self) -> None:
        """Go on as after a restart: with what is stored, and operators that are built anew."""
        self._edges = _edges_of(self._plan, self._spark)

    def _read(
        self,
        spark: SparkSession,
        name: str,
        table: Table,
        columns: tuple[str, ...],
        *,
        row_order: bool = False,
        pins: PinPlace | None = None,
        pushed_filter: PushedFilter | None = None,
        objects: ProgramObjects = NO_OBJECTS,
        splits: bool = False,
        last_row: bool = False,
    ) -> DataFrame:
        # Only what asks another system has a place for pins and a condition to ask it.
        assert objects == NO_OBJECTS
        assert pins is None
        assert pushed_filter is None
        assert not splits
        assert not last_row
        return _frame(spark, self._scanned(name, table, columns, row_order=row_order))

    def _read_in_arrow(
        self, spark: SparkSession, name: str, table: Table, columns: tuple[str, ...], *, splits: bool = False
    ) -> ArrowRows | None:
        assert not splits
        if source_kinds(table) != ("+I",):
            return None
        rows = self._scanned(name, table, columns, row_order=False)
        return _local(spark, rows)

    def _scanned(self, name: str, table: Table, columns: tuple[str, ...], *, row_order: bool) -> pa.Table:
        names = [column.name for column in table.columns]
        types = {column.name: to_arrow(column.type) for column in table.columns}
        events = self._events.get(name, [])
        found = pa.table(
            [pa.array([row[names.index(c)] for _, row in events], types[c]) for c in columns],
            pa.schema([(c, types[c]) for c in columns]),
        )
        if source_kinds(table) != ("+I",):
            found = found.append_column(KIND, pa.array([KINDS.index(kind) for kind, _ in events], pa.int8()))
        for field in ROW_ORDER if row_order else ():
            # One file a batch: its rows stand in their order.
            same = "file" if pa.types.is_string(field.type) else 0
            found = found.append_column(field, pa.array([same] * len(events), field.type))
        return found

    def _apply(
        self,
        operator: StatefulOperator,
        inputs: Sequence[DataFrame | ArrowRows],
        place: Place,
        *,
        row_order: Collection[int] = (),
        metrics: Sequence[Any] = (),
        marked: Collection[int] = (),
    ) -> ArrowRows:
        assert not marked
        deltas: dict[tuple[int, int], list[pa.Table]] = {}
        for side, (rows, spec) in enumerate(zip(inputs, operator.inputs, strict=True)):
            extra = [
                *([pa.field(KIND, pa.int8())] if spec.changelog else []),
                *(ROW_ORDER if side in row_order else []),
            ]
            schema = pa.schema([*spec.columns, *extra])
            here = rows.here() if isinstance(rows, _LocalRows) else _collected(rows.select(*schema.names), schema)
            packing = Packing(
                side=side,
                schema=schema,
                route=spec.hashes[0],
                buckets=range(place.partitions),
                presum=None if side in row_order else spec.presum,
            )
            for batch in packing(here.select(schema.names).cast(schema).to_batches()):
                for row in batch.to_pylist():
                    if row["side"] != TICK:
                        deltas.setdefault((row["bucket"], side), []).append(from_blob(row["blob"]))
        outputs = []
        for bucket in range(place.partitions):
            given = []
            for side, spec in enumerate(operator.inputs):
                found = deltas.get((bucket, side))
                given.append(hashed(in_row_order(joined(found, spec.presum)), spec.hashes, 1) if found else None)
            key = (place.operator, bucket)
            store = self._stores.setdefault(key, MemoryStore())
            result = operator.process(given, self._manifests.get(key), store, 0)
            self._manifests[key] = result.manifest
            outputs.append(result.output)
        return _local(self._spark, pa.concat_tables(outputs))


def run_in_process(plan: Plan, world: World, spark: SparkSession) -> list[Row]:
    """The rows that ``plan`` leaves of the world's events, cut as it says."""
    stream = Stream(plan, spark)
    for number, events in enumerate(world.batches()):
        if number in world.restarts:
            stream.resumed()
        stream.batch(events)
    (rows,) = stream.results().values()
    return rows


def _edges_of(plan: Plan, spark: SparkSession) -> Edges:
    places = {
        operator.id: Place(root="", operator=operator.id, scales=(Scale(_PARTITIONS),)) for operator in plan.operators
    }
    return edges_of(plan, spark, places=places, lookups=RequestRun(token="fuzz"))


def _shared(
    rows: ArrowRows | DataFrame, schema: pa.Schema, partitions: int, name: str, *, marks: bool = False
) -> ArrowRows:
    return rows if isinstance(rows, ArrowRows) else _local(rows.sparkSession, _collected(rows, schema))


def _local(spark: SparkSession, table: pa.Table) -> _LocalRows:
    def read(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.Table]:
        yield table

    return _LocalRows(frame=None, read=read, schema=table.schema, spark=spark)  # type: ignore[arg-type]


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    # Of some tables in several chunks, Spark takes but the first into a local relation.
    table = table.combine_chunks()
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _collected(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    rows = frame.collect()
    columns = []
    for index, field in enumerate(schema):
        values = [_instant(row[index]) if field.type == pa.timestamp("us", "UTC") else row[index] for row in rows]
        columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=schema)


def _instant(value: datetime | None) -> datetime | None:
    """Spark collects an instant as a local time without a zone."""
    return None if value is None else value.astimezone(UTC)


def _text(row: Row) -> str:
    """A row as text, in which -0.0 is 0.0, as SQL has it."""
    return repr(tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row))
