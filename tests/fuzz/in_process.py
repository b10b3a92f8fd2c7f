"""A stream without Spark's streaming: the runtime rehearses each micro-batch over local rows.

All that hintplan does to rows is its own code: the builders of :mod:`hintplan.runtime.builders.stream`, packing and
hashing, two partitions, the operators, calcs in Arrow, and expressions in Spark, which evaluates them on local
relations at once. Not here are Spark's sources, shuffle and codegen, nor files of state, which the share of queries on
real streams has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.tables import Table
from hintplan.plans.model.plan import Plan
from hintplan.runtime.operator import KIND
from hintplan.runtime.rehearsal.rehearsal import Rehearsal
from hintplan.runtime.types import to_arrow
from tests.fuzz.data import Event, World
from tests.runtime.changelog import KINDS

__all__ = ["Stream", "run_in_process"]

Row = tuple[Any, ...]


class Stream:
    """A plan, run batch by batch."""

    def __init__(self, plan: Plan, spark: SparkSession) -> None:
        self._plan = plan
        self._rehearsal = Rehearsal(plan, session=lambda: spark, partitions=2)
        self._count: dict[str, Counter[str]] = {sink.table: Counter() for sink in plan.sinks}
        self._rows: dict[str, Row] = {}

    def batch(self, events: Mapping[str, list[Event]]) -> None:
        """One micro-batch with these events of each table."""
        tables = self._plan.tables
        rows = {name: _table(tables[name], given) for name, given in events.items() if given and name in tables}
        for table, changes in self._rehearsal.step(0, rows).items():
            self._fold(table, changes)

    def end(self) -> None:
        """The end of all input, which closes all windows."""
        for table, changes in self._rehearsal.step(0, {}, ends=True).items():
            self._fold(table, changes)

    def _fold(self, table: str, changes: pa.Table) -> None:
        names = [name for name in changes.column_names if name != KIND]
        columns = [changes[name].to_pylist(maps_as_pydicts="strict") for name in names]
        kinds = changes[KIND].to_pylist() if KIND in changes.column_names else [0] * changes.num_rows
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
        """Build the operators again, as after a restart; what is stored stays."""
        self._rehearsal.restart()


def run_in_process(plan: Plan, world: World, spark: SparkSession) -> list[Row]:
    """The rows that ``plan`` leaves of the world's events, cut as the world is."""
    stream = Stream(plan, spark)
    for number, events in enumerate(world.batches()):
        if number in world.restarts:
            stream.resumed()
        stream.batch(events)
    (rows,) = stream.results().values()
    return rows


def _table(table: Table, events: list[Event]) -> pa.Table:
    columns = {column.name: to_arrow(column.type) for column in table.columns}
    rows = pa.table(
        [pa.array([row[place] for _, row in events], kind) for place, kind in enumerate(columns.values())],
        pa.schema(list(columns.items())),
    )
    if source_kinds(table) == ("+I",):
        return rows
    return rows.append_column(KIND, pa.array([KINDS.index(kind) for kind, _ in events], pa.int8()))


def _text(row: Row) -> str:
    """A row as text, in which -0.0 is 0.0, as SQL has it."""
    return repr(tuple(0.0 if isinstance(value, float) and value == 0 else value for value in row))
