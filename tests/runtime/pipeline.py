"""Runs a compiled plan in this process, on the engine's own operators: what a Spark job does, without Spark.

Scans read given rows, stateful operators run on in-memory state, and calcs are evaluated by Arrow
if the condition compiler supports them. Watermarks go by tests/runtime/event_time/watermarks.py, independent of the
engine. For properties over many small inputs; the Spark tests run the real thing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.row_order import read_in_order
from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.evidence.ages import Counts
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import (
    Calc,
    Expand,
    Operator,
    Scan,
    Sink,
    Stateful,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowTableFunction,
)
from hintplan.plans.settings.watermark import DELAY, IDLE_TIMEOUT, WATERMARK
from hintplan.runtime.builders.bound import build_operator, users_aggregates
from hintplan.runtime.expressions.condition import compile_filter, compile_values
from hintplan.runtime.kernels.comparison import normalise_floats
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.operator import (
    KIND,
    Result,
    SegmentStore,
    StatefulOperator,
    TimeOperator,
    Watermarks,
    hash_column,
)
from hintplan.runtime.operators.window_function import WindowsOfRows
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.storage.manifest import added_lateness
from hintplan.runtime.types import to_arrow
from tests.runtime.changelog import KINDS, Event, events_of, fold, stable_hash
from tests.runtime.event_time.times import FOREVER, NEVER
from tests.runtime.event_time.watermarks import Marks, moved
from tests.runtime.expressions.checking import checked_over, condition_of

PROCTIME = "date_trunc('MILLISECOND', current_timestamp())"
"""PROCTIME() in a plan: the time of the batch."""


class Pipeline:
    """A plan with one sink, run batch by batch; ``result`` is the multiset that its changelog has left so far.

    ``computed`` has functions of a row for expressions that only Spark computes, by their text in the plan.
    """

    def __init__(self, plan: Plan, *, computed: Mapping[str, Callable[[dict], Any]] = MappingProxyType({})) -> None:
        self.plan, self.computed = plan, computed
        self.columns = output_columns(plan)
        self.changelog = {name: kinds != ("+I",) for name, kinds in output_kinds(plan).items()}
        self.stores: dict[str, MemoryStore] = {}
        self.manifests: dict[str, bytes | None] = {}
        self.given: set[str] = set()
        self.result: Counter = Counter()
        self.events: list[Event] = []
        self.marks: dict[str, Marks] = {}
        self.watermarks: dict[str, int] = {}
        """The watermark of each operator that goes by time, after the last batch."""
        self.idle: dict[str, bool] = {}
        self.late_rows: Counter[str] = Counter()
        self.lateness: dict[str, tuple[Counts, ...]] = {}
        self.waiting_rows: dict[str, int] = {}
        self.is_ended = False
        """True in a batch with the end of all tables."""
        self.dues: dict[str, list[int]] = {}
        """The times at which operators have something to do, of the partitions that do, after the last batch."""

    def batch(self, rows: Mapping[str, Sequence[tuple]], now: int = 0, *, ended: Collection[str] = ()) -> None:
        """One micro-batch of ``rows`` per table, in the order of its columns; of a changelog, the kind first.

        ``rows`` of a split of a table stand under ``table@split``. The tables ``ended`` have no rows after this batch.
        """
        parts = {name: _splits(name, rows) for name in self.plan.tables}
        self.is_ended = set(self.plan.tables) <= set(ended)
        self.dues, self.now = {}, now
        outputs: dict[str, pa.Table] = {}
        for operator in self.plan.operators:
            inputs = [outputs[name] for name in operator.inputs]
            if isinstance(operator, Scan):
                outputs[operator.id] = self._scan(
                    operator, [row for part in parts[operator.table].values() for row in part]
                )
            elif isinstance(operator, WatermarkAssigner):
                self._mark(operator, *inputs, parts, now, ended)
                outputs[operator.id] = inputs[0]
            elif isinstance(operator, Values):
                outputs[operator.id] = self._values(operator)
            elif isinstance(operator, Calc):
                outputs[operator.id] = self._calc(operator, inputs[0])
            elif isinstance(operator, Expand):
                outputs[operator.id] = self._expand(operator, *inputs)
            elif isinstance(operator, Unnest):
                outputs[operator.id] = self._unnest(operator, *inputs)
            elif isinstance(operator, Union):
                outputs[operator.id] = self._union(operator, inputs)
            elif isinstance(operator, Sink):
                events = events_of(inputs[0])
                self.events += events
                self.result = fold(events, self.result)
                assert all(count > 0 for count in self.result.values()), "deleted what was not inserted"
            elif isinstance(operator, WindowTableFunction) and not operator.goes_by_time:
                outputs[operator.id] = self._windows(operator, *inputs)
            elif operator.goes_by_time:
                times = self._moved(operator, now)
                outputs[operator.id] = self._stateful(operator, inputs, now, times)
            else:
                outputs[operator.id] = self._stateful(operator, inputs, now)

    def drain(self, now: int = 0) -> None:
        """The batch after the end of all tables, which closes all windows."""
        self.batch({}, now, ended=tuple(self.plan.tables))

    def _mark(
        self,
        operator: WatermarkAssigner,
        rows: pa.Table,
        parts: Mapping[str, Mapping[str, Sequence[tuple]]],
        now: int,
        ended: Collection[str],
    ) -> None:
        """Note the marks of a source, by its splits; above an operator with state, all rows are of one split."""
        marks = self.marks.setdefault(operator.id, Marks())
        marks.begin(now)
        below = [self.plan.operator(name) for name in self.plan.upstream(operator.id) if name != operator.id]
        tables = [each.table for each in below if isinstance(each, Scan)]
        if all(isinstance(each, Scan | Calc) for each in below):
            by_split = {
                split: self._below(operator.inputs[0], rows) for split, rows in parts[tables[0]].items() if rows
            }
        else:
            by_split = {"": rows} if rows.num_rows else {}
        for split, table in by_split.items():
            marks.see(split, self._highest(operator, table), now)
        if set(tables) <= set(ended):
            marks.end()

    def _highest(self, operator: WatermarkAssigner, table: pa.Table) -> int:
        """The highest value of the base of a watermark, in ms; NEVER if there is none."""
        base = compile_values(checked_over(operator.base, table.column_names), table.schema)
        highest = pc.max(base.answers(pa.table({}), table, table.num_rows)).cast(pa.int64()).as_py()
        return NEVER if highest is None else highest // 1000

    def _below(self, name: str, rows: Sequence[tuple]) -> pa.Table:
        """The output of a scan and the calcs above it for some of the rows of a batch."""
        operator = self.plan.operator(name)
        if isinstance(operator, Scan):
            return self._scan(operator, rows)
        assert isinstance(operator, Calc)
        return self._calc(operator, self._below(operator.inputs[0], rows))

    def _moved(self, operator: Operator, now: int) -> Watermarks:
        """Move the watermark of an operator, which is idle if all its sources are."""
        before, sources = self.watermarks.get(operator.id, NEVER), list(self._upstream(operator, now))
        if operator.goes_by_clock:
            sources = [FOREVER if self.is_ended else now - 1]
        self.watermarks[operator.id] = moved(before, sources)
        self.idle[operator.id] = all(each is None for each in sources)
        return Watermarks(before, self.watermarks[operator.id])

    def _upstream(self, operator: Operator, now: int) -> Iterator[int | None]:
        """The watermarks of the nearest operators below that have one; None for an idle source."""
        for name in operator.inputs:
            below = self.plan.operator(name)
            if isinstance(below, WatermarkAssigner):
                settings = below.settings[WATERMARK.name].values
                delay, idle_timeout = (parse_duration(str(settings[key])) for key in (DELAY, IDLE_TIMEOUT))
                yield self.marks[name].watermark(delay=delay, idle_timeout=idle_timeout, now=now)
            elif below.goes_by_time:
                yield None if self.idle[name] else _held_back(self.watermarks[name], self.plan.by_id[name])
            else:
                yield from self._upstream(below, now)

    def _schema(self, operator: str) -> pa.Schema:
        fields = [pa.field(column.name, to_arrow(column.type)) for column in self.columns[operator]]
        return pa.schema([*fields, *([pa.field(KIND, pa.int8())] if self.changelog[operator] else [])])

    def _scan(self, operator: Scan, rows: Sequence[tuple]) -> pa.Table:
        names = [column.name for column in self.plan.tables[operator.table].columns]
        places = [names.index(column) for column in operator.columns]
        kinds = source_kinds(self.plan.tables[operator.table])
        if kinds != ("+I",):
            places = [place + 1 for place in places]
        arrays = [[row[place] for row in rows] for place in places]
        if kinds != ("+I",):
            arrays.append([KINDS.index(row[0]) for row in rows])
        return pa.table(
            [pa.array(values, field.type) for values, field in zip(arrays, self._schema(operator.id), strict=True)],
            schema=self._schema(operator.id),
        )

    def _values(self, operator: Values) -> pa.Table:
        """The rows, which come with the first batch alone."""
        row, schema = (pa.table({}), pa.table({"row": [0]}), 1), self._schema(operator.id)
        rows = [] if operator.id in self.given else operator.rows
        self.given.add(operator.id)
        answers = (
            [
                [compile_values(checked_over(text, ()), row[1].schema).answers(*row).cast(f.type)[0] for text in column]
                for column, f in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            if rows
            else [[] for _ in schema]
        )
        return pa.table(
            [pa.array([v.as_py() for v in c], f.type) for c, f in zip(answers, schema, strict=True)], schema=schema
        )

    def _calc(self, operator: Calc, table: pa.Table) -> pa.Table:
        schema = self._schema(operator.id)
        carried = [name for name in table.column_names if name == KIND]
        rows = pa.table({}), table, table.num_rows
        if operator.filter is not None:
            condition = compile_filter(checked_over(operator.filter, table.column_names), table.schema)
            table = table.filter(pa.array(condition.holds(*rows)))
            rows = pa.table({}), table, table.num_rows

        def computed(text: str) -> pa.Array:
            if text == PROCTIME:
                return pa.array([self.now * 1000] * table.num_rows, pa.timestamp("us", "UTC"))
            if text in self.computed:
                return pa.array([self.computed[text](row) for row in table.to_pylist()])
            copies = re.fullmatch(r"array_repeat\(TRUE, CAST\((?:least\((\w+), (\w+)\)|(.*)) AS INT\)\)", text)
            if copies is None:
                return compile_values(checked_over(text, table.column_names), table.schema).answers(*rows)
            counts = pc.min_element_wise(*(computed(count) for count in copies.groups() if count))
            return pa.array([[True] * count for count in counts.to_pylist()], pa.list_(pa.bool_()))

        columns = {item.name: computed(item.expression or f"`{item.name}`") for item in operator.select}
        columns |= {name: table[name] for name in carried}
        return pa.table(columns).cast(schema)

    def _expand(self, operator: Expand, table: pa.Table) -> pa.Table:
        rows = [
            {**row, **dict.fromkeys(set(operator.keys) - set(kept)), operator.group_id: self._group_id(operator, kept)}
            for row in table.to_pylist()
            for kept in operator.sets
        ]
        return pa.Table.from_pylist(rows, self._schema(operator.id))

    @staticmethod
    def _group_id(operator: Expand, kept: Sequence[str]) -> int:
        return int("".join("0" if key in kept else "1" for key in operator.keys), 2)

    def _unnest(self, operator: Unnest, table: pa.Table) -> pa.Table:
        """A row for each element of an array or a multiset; its place is not asked for."""

        def elements(collection: list | None) -> list:
            if pa.types.is_map(table.schema.field(operator.column).type):
                return [element for element, count in collection or () for _ in range(count)]
            return collection or []

        rows = [
            {c.name: row[c.column] if c.side == "left" else element for c in operator.output}
            | ({KIND: row[KIND]} if KIND in row else {})
            for row in table.to_pylist()
            for element in elements(row[operator.column]) or ([None] if operator.join_type == "left" else [])
        ]
        return pa.Table.from_pylist(rows, self._schema(operator.id))

    def _windows(self, operator: WindowTableFunction, table: pa.Table) -> pa.Table:
        """A row for each window of each row."""
        names = (operator.start, operator.end, operator.window_time)
        step = WindowsOfRows(
            operator=operator.id,
            time=operator.time,
            window=operator.window,
            names=names,
            schema=self._schema(operator.id),
        )
        return step(table)

    def _union(self, operator: Union, inputs: list[pa.Table]) -> pa.Table:
        schema = self._schema(operator.id)
        parts = []
        for table in inputs:
            if KIND in schema.names and KIND not in table.column_names:
                table = table.append_column(KIND, pa.array(np.zeros(table.num_rows, np.int8)))
            parts.append(table.select(schema.names).cast(schema))
        return pa.concat_tables(parts)

    def _stateful(
        self, operator: Stateful, inputs: list[pa.Table], now: int, times: Watermarks | None = None
    ) -> pa.Table:
        columns = tuple(self.columns[name] for name in operator.inputs)
        in_order = operator.id in read_in_order(self.plan)
        changelog = tuple(self.changelog[name] for name in operator.inputs)
        users = users_aggregates(operator, self.plan.functions, RequestRun(token="test", allowed_modules=("tests",)))
        condition = condition_of(operator, columns)
        built = build_operator(operator, columns, changelog, in_order=in_order, users=users, condition=condition)
        deltas = []
        for spec, table in zip(built.inputs, inputs, strict=True):
            table = normalise_floats(table)
            rows = table.to_pylist()
            for index, names in enumerate(spec.hashes):
                columns = [table[name].combine_chunks() for name in names]
                if any(
                    pa.types.is_nested(column.type) for column in columns
                ):  # of which equal ones may be written otherwise
                    hashes = hash_rows(columns, table.num_rows)
                else:
                    hashes = [stable_hash(tuple(row[name] for name in names)) for row in rows]
                table = table.append_column(hash_column(index), pa.array(hashes, pa.int64()))
            deltas.append(table if table.num_rows else None)
        if times is None:
            return self._process(operator.id, built, deltas, now)
        kernel = AtWatermarks(built, times)
        output = self._process(operator.id, kernel, deltas, now)
        self.late_rows[operator.id] += kernel.late_rows
        self.lateness[operator.id] = added_lateness(self.lateness.get(operator.id, ()), kernel.lateness)
        self.waiting_rows[operator.id] = kernel.waiting_rows
        self.dues[operator.id] = kernel.dues
        return output

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        store = self.stores.setdefault(name, MemoryStore())
        result = operator.process(deltas, self.manifests.get(name), store, now)
        self.manifests[name] = result.manifest
        return result.output

    def resumed(self, plan: Plan | None = None) -> Pipeline:
        """A pipeline that continues from this one's stored state, with another plan's settings if given."""
        other = Pipeline(replace(plan or self.plan), computed=self.computed)
        other.manifests = dict(self.manifests)
        other.stores = self.stores
        self._hand_over_to(other)
        return other

    def _hand_over_to(self, other: Pipeline) -> None:
        other.given = set(self.given)
        other.result = Counter(self.result)
        other.marks = deepcopy(self.marks)
        other.watermarks = dict(self.watermarks)
        other.late_rows, other.lateness = Counter(self.late_rows), dict(self.lateness)


def _held_back(watermark: int, operator: Operator) -> int:
    """The watermark that an operator sends."""
    return watermark if watermark in (NEVER, FOREVER) else watermark - operator.holds_back


class AtWatermarks:
    """A kernel that goes by time, in one batch, as a kernel that does not."""

    def __init__(self, operator: TimeOperator, watermarks: Watermarks) -> None:
        self.operator, self.watermarks = operator, watermarks
        self.inputs, self.output, self.inherit = operator.inputs, operator.output, operator.inherit
        self.late_rows = self.waiting_rows = 0
        self.dues: list[int] = []
        self.lateness: tuple[Counts, ...] = ()

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        result = self.operator.process(deltas, manifest, store, now, self.watermarks)
        self.late_rows += result.late_rows
        self.lateness = added_lateness(self.lateness, result.lateness)
        self.waiting_rows += result.waiting_rows
        self.dues += [] if result.due is None else [result.due]
        return result


def _splits(table: str, rows: Mapping[str, Sequence[tuple]]) -> dict[str, Sequence[tuple]]:
    """The rows of a table by split; without splits, all are of the split ""."""
    return {name.partition("@")[2]: part for name, part in rows.items() if name.partition("@")[0] == table}
