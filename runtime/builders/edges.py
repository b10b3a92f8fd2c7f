"""The context of builders: the columns and properties of each edge of the plan, and the run.

places = {"join_o_c": Place(root="/tmp/state", operator="join_o_c")}
edges = edges_of(plan, SparkBackend(session=spark), places=places, lookups=lookups)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.late_rows import carried_columns, edges_with_late_rows, late_inputs
from hintplan.plans.analysis.row_order import ordered_by_scan, read_in_order, told_by_arrival
from hintplan.plans.analysis.watermarks import edges_with_marks, waking_operators
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.declarations.tables import Column
from hintplan.plans.model.plan import Plan
from hintplan.runtime.builders.backend import Backend
from hintplan.runtime.builders.event_time import edges_with_last_rows, edges_with_splits, event_times
from hintplan.runtime.connectors.program_objects import NO_OBJECTS, ProgramObjects
from hintplan.runtime.engine.marks import LAST, MARK_COLUMNS, SPLIT
from hintplan.runtime.engine.row_order import ROW_ORDER
from hintplan.runtime.engine.watermarks import EventTime
from hintplan.runtime.operator import KIND
from hintplan.runtime.operators.late_rows import late_column, late_fields
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.storage.pins import PinPlace
from hintplan.runtime.storage.place import Place
from hintplan.runtime.types import to_arrow


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition of an operator on the columns of its input."""

    operator: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """The columns on each edge, the edges with row kinds, the order of rows or marks, and the facts of the run."""

    backend: Backend
    plan: Plan
    columns: Mapping[str, tuple[Column, ...]]
    changelog: Mapping[str, bool]
    lookups: RequestRun
    places: Mapping[str, Place] = field(default_factory=dict)
    """The place of each operator's state; a batch job keeps none."""
    pins: Mapping[str, PinPlace] = field(default_factory=dict)
    """The places where operators pin answers, for operators that must; a batch job pins none."""
    row_order: frozenset[str] = frozenset()
    """The operators whose rows have the columns of ``ROW_ORDER`` (:mod:`hintplan.plans.analysis.row_order`).

    Empty in a batch job.
    """
    ordered_by_scan: frozenset[str] = frozenset()
    """The scans that sort their rows (:mod:`hintplan.plans.analysis.row_order`); none in a batch job."""
    ordered: frozenset[str] = frozenset()
    """The operators whose output order matters to a reader (:mod:`hintplan.plans.analysis.row_order`)."""
    marks: frozenset[str] = frozenset()
    """The operators whose rows carry marks of event time (:mod:`hintplan.plans.analysis.watermarks`).

    Rows in Spark have ``MARK_COLUMNS`` then. Empty in a batch job.
    """
    event_time: Mapping[str, EventTime] = field(default_factory=dict)
    """The event time of the operators that go by the watermark."""
    waking: frozenset[str] = frozenset()
    """The operators for which a batch may run without rows (:mod:`hintplan.plans.analysis.watermarks`)."""
    splits: frozenset[str] = frozenset()
    """The operators below a watermark assigner whose rows have the column ``SPLIT``, the split of their source."""
    last_rows: frozenset[str] = frozenset()
    """The operators below a watermark assigner whose rows have the column ``LAST``."""
    carried: Mapping[str, pa.StructType] = field(default_factory=dict)
    """The rows of sources, by scan, that go with the rows made of them, because late rows go to a table."""
    late: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The scans whose rows an operator's output carries (:mod:`hintplan.plans.analysis.late_rows`)."""
    late_inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The scans whose rows the inputs of an operator carry that emits its late rows."""
    conditions_above: Mapping[str, Condition] = field(default_factory=dict)
    """The condition of each operator's only reader, which the operator may check itself; none in a batch job."""
    objects: ProgramObjects = NO_OBJECTS
    """The DataFrames and functions of the program that runs the plan."""
    observe_as: Callable[[str], Any] = str
    """Returns the Observation, or its name, for an operator's metrics: in a stream the operator's id."""

    @property
    def spark(self) -> SparkSession:
        """The session of the backend."""
        return self.backend.spark

    def metadata(self, operator_id: str) -> pa.Schema:
        """Return the columns of rows without their data: row kind, order, split, last row, rows of sources."""
        kind = [pa.field(KIND, pa.int8())] if self.changelog[operator_id] else []
        split = [pa.field(SPLIT, pa.string())] if operator_id in self.splits else []
        last = [pa.field(LAST, pa.bool_())] if operator_id in self.last_rows else []
        order = ROW_ORDER if operator_id in self.row_order else []
        return pa.schema([*kind, *order, *split, *last, *self.late_columns(operator_id)])

    def late_columns(self, operator_id: str) -> pa.Schema:
        """Return the columns of rows that carry rows of sources."""
        return pa.schema([(late_column(scan), self.carried[scan]) for scan in self.late.get(operator_id, ())])

    def with_late_rows(self, operator_id: str) -> pa.Schema:
        """Return the columns in which an operator emits its results and its late rows."""
        below = [self.late_columns(name) for name in self.plan.by_id[operator_id].inputs]
        return pa.schema([*self.schema(operator_id), *late_fields(below)])

    def spark_metadata(self, operator_id: str) -> pa.Schema:
        """Return the metadata of rows in Spark, which include the marks of event time."""
        marks = MARK_COLUMNS if operator_id in self.marks else ()
        return pa.schema([*self.metadata(operator_id), *marks])

    def schema(self, operator_id: str) -> pa.Schema:
        """Return the columns of rows in Arrow, data and metadata."""
        data = [pa.field(column.name, to_arrow(column.type)) for column in self.columns[operator_id]]
        return pa.schema([*data, *self.metadata(operator_id)])

    def names(self, operator_id: str) -> tuple[str, ...]:
        """Return the names of the data columns."""
        return tuple(column.name for column in self.columns[operator_id])


def edges_of(
    plan: Plan,
    backend: Backend,
    *,
    places: Mapping[str, Place],
    lookups: RequestRun,
    pins: Mapping[str, PinPlace] = MappingProxyType({}),
    objects: ProgramObjects = NO_OBJECTS,
) -> Edges:
    """Return the context of builders for ``plan``; ``lookups`` holds the facts of the run that lookups need."""
    return Edges(
        backend=backend,
        plan=plan,
        columns=output_columns(plan),
        changelog={name: kinds != INSERT_ONLY for name, kinds in output_kinds(plan).items()},
        lookups=lookups,
        places=places,
        pins=pins,
        objects=objects,
        row_order=told_by_arrival(plan),
        ordered_by_scan=ordered_by_scan(plan),
        ordered=read_in_order(plan),
        marks=edges_with_marks(plan),
        event_time=event_times(plan),
        waking=waking_operators(plan),
        splits=edges_with_splits(plan),
        last_rows=edges_with_last_rows(plan),
        carried={
            scan: pa.struct([(column.name, to_arrow(column.type)) for column in columns])
            for scan, columns in carried_columns(plan).items()
        },
        late=edges_with_late_rows(plan),
        late_inputs=late_inputs(plan),
    )
