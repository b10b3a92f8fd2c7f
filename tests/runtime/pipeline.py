"""Runs a compiled plan in this process, on the engine's own operators: what a Spark job does, without Spark.

Scans read given rows, stateful operators are those of the runtime on in-memory state, and calcs are evaluated by Arrow
as far as the condition compiler goes. For properties over many small inputs; the Spark tests run the real thing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.row_order import read_in_order
from hintplan.plans.connectors.table import source_kinds
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Expand, Scan, Sink, Stateful, Union, Unnest, Values
from hintplan.runtime.builders.bound import build_operator, users_aggregates
from hintplan.runtime.expressions.condition import compile_filter, compile_values
from hintplan.runtime.kernels.comparison import normalise_floats
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.operator import KIND, StatefulOperator, hash_column
from hintplan.runtime.requests.request import RequestRun
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.types import to_arrow
from tests.runtime.changelog import KINDS, Event, events_of, fold, stable_hash
from tests.runtime.expressions.checking import checked_over, condition_of


class Pipeline:
    """A plan with one sink, run batch by batch; ``result`` is the multiset that its changelog has left so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.columns = output_columns(plan)
        self.changelog = {name: kinds != ("+I",) for name, kinds in output_kinds(plan).items()}
        self.stores: dict[str, MemoryStore] = {}
        self.manifests: dict[str, bytes | None] = {}
        self.given: set[str] = set()
        self.result: Counter = Counter()
        self.events: list[Event] = []

    def batch(self, rows: Mapping[str, Sequence[tuple]], now: int = 0) -> None:
        """One micro-batch of ``rows`` per table, in the order of its columns; of a changelog, the kind first."""
        outputs: dict[str, pa.Table] = {}
        for operator in self.plan.operators:
            inputs = [outputs[name] for name in operator.inputs]
            if isinstance(operator, Scan):
                outputs[operator.id] = self._scan(operator, rows.get(operator.table, ()))
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
            else:
                outputs[operator.id] = self._stateful(operator, inputs, now)

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

    def _union(self, operator: Union, inputs: list[pa.Table]) -> pa.Table:
        schema = self._schema(operator.id)
        parts = []
        for table in inputs:
            if KIND in schema.names and KIND not in table.column_names:
                table = table.append_column(KIND, pa.array(np.zeros(table.num_rows, np.int8)))
            parts.append(table.select(schema.names).cast(schema))
        return pa.concat_tables(parts)

    def _stateful(self, operator: Stateful, inputs: list[pa.Table], now: int) -> pa.Table:
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
        return self._process(operator.id, built, deltas, now)

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        store = self.stores.setdefault(name, MemoryStore())
        result = operator.process(deltas, self.manifests.get(name), store, now)
        self.manifests[name] = result.manifest
        return result.output

    def resumed(self, plan: Plan | None = None) -> Pipeline:
        """A pipeline that continues from this one's stored state, with another plan's settings if given."""
        other = Pipeline(replace(plan or self.plan))
        other.manifests = dict(self.manifests)
        other.stores = self.stores
        other.given = set(self.given)
        other.result = Counter(self.result)
        return other
