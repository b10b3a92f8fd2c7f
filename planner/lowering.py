"""The logical plan written as the operators of a plan: ids, column names, expressions as text, TTLs with their origin.

Operators that are equal in everything but their id become one. Names of columns are unique within an operator, also
when case is ignored, because Spark ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from planner.expressions.spark_text import identifier, spark_text
from planner.expressions.typed import Expr, Field, Literal, Ref
from planner.hints.ledger import Ledger
from planner.ids import IdSupply
from planner.passes.merge_calcs import is_projection
from planner.properties.repeated_reads import Asked, readings_of
from planner.relations import (
    Aggregate,
    Cached,
    Calc,
    Correlate,
    Expand,
    Item,
    Join,
    LookupJoin,
    Relation,
    Scan,
    Sort,
    StateInput,
    Union,
    UnnamedInput,
)
from plans import operators as model
from plans.model.optional_groups import with_group
from plans.operators import AggregateCall, JoinColumn, JoinKey, Operator, SelectItem, SortKey
from plans.settings.cached import CACHED, ENABLED
from plans.settings.calls import resolved_call
from plans.settings.state import DEFAULT_STATE_TTL, STATE_TTL, StateEntry

__all__ = ["Lowering"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lowered:
    """An operator: its id, its columns in order, and which of them holds which field."""

    id: str
    columns: tuple[str, ...]
    names: Mapping[int, str]

    def printed(self, prefix: str = "") -> dict[int, str]:
        return {field: prefix + identifier(name) for field, name in self.names.items()}


class Lowering:
    """Collects the operators of all sinks of a script; ``config`` gives the TTL where no hint does.

    A ``batch`` job keeps no state. ``asked`` has each lookup and call as often as the job comes to it, by its place.
    """

    def __init__(
        self,
        ledger: Ledger,
        config: Mapping[str, str],
        *,
        batch: bool = False,
    ) -> None:
        self.ledger = ledger
        self.config = config
        self.batch = batch
        self.operators: list[Operator] = []
        self._ids = IdSupply()
        self._known: dict[str, str] = {}
        self.asked: dict[int, list[Asked]] = {}

    def sink(self, table: str, relation: Relation, materialized: tuple[str, ...]) -> None:
        """Add a sink for ``relation``, whose fields have the names of the table's columns.

        ``materialized`` are the columns of the sink's key if all rows must be kept by it.
        """
        source = self._lower(relation, exact=True)
        feed = source.id
        if materialized:
            states = self._states((("sinkMaterializeState", UnnamedInput, source),))
            keeper = model.SinkMaterialize(id="", inputs=(feed,), key=materialized, state=states, changelog=())
            feed = self._add(keeper, (table,), table)
        self._add(model.Sink(id="", inputs=(feed,), table=table), (table,), table)

    def _add(self, operator: Operator, names: tuple[str, ...], block: str) -> str:
        key = repr(operator)
        if isinstance(operator, model.Sink) or key not in self._known:
            found = self._ids.take(_kind(operator), names, block)
            operator = replace(operator, id=found)
            self.operators.append(operator)
            self._known[key] = found
        return self._known[key]

    def _lower(self, relation: Relation, *, exact: bool = False) -> _Lowered:
        """Lower ``relation``; ``exact`` asks for columns named and ordered as its fields are."""
        if isinstance(relation, Scan):
            return self._scan(relation, exact)
        if isinstance(relation, Calc):
            return self._calc(relation, exact)
        if isinstance(relation, Join):
            return self._join(relation)
        if isinstance(relation, LookupJoin):
            return self._lookup(relation)
        if isinstance(relation, Correlate):
            return self._correlate(relation)
        if isinstance(relation, Expand):
            return self._expand(relation)
        if isinstance(relation, Aggregate):
            return self._aggregate(relation, exact)
        if isinstance(relation, Sort):
            return self._sort(relation, exact)
        if isinstance(relation, Cached):
            return self._cached(relation)
        if isinstance(relation, Union):
            return self._union(relation)
        assert_never(relation)

    def _scan(self, scan: Scan, exact: bool) -> _Lowered:
        columns = tuple(f.name for f in scan.fields)
        operator = model.Scan(id="", table=scan.table, columns=columns)
        found = self._add(operator, (scan.table,), scan.block)
        lowered = _Lowered(id=found, columns=columns, names={f.id: f.name for f in scan.fields})
        if not scan.normalized:
            return lowered
        states = self._states((("changelogNormalizeState", StateInput(name=scan.table), lowered),))
        whole = model.ChangelogNormalize(id="", inputs=(found,), key=scan.normalized, state=states, changelog=())
        return replace(lowered, id=self._add(whole, (scan.table,), scan.block))

    def _calc(self, calc: Calc, exact: bool) -> _Lowered:
        source = self._lower(calc.input)
        wanted = _unique(calc.fields)
        if is_projection(calc):
            passed = {i.field.id: source.names[i.expr.field.id] for i in calc.items if isinstance(i.expr, Ref)}
            if not exact or tuple(passed.values()) == source.columns == wanted:
                return replace(source, names=passed)
        names = source.printed()
        select = tuple(_select_item(n, i, source, names) for n, i in zip(wanted, calc.items, strict=True))
        condition = None if calc.filter is None else spark_text(calc.filter, names)
        operator = model.Calc(id="", inputs=(source.id,), select=select, filter=condition)
        found = self._add(operator, _above(calc.input, calc.block), calc.block)
        return _Lowered(id=found, columns=wanted, names=_names(calc.fields, wanted))

    def _join(self, join: Join) -> _Lowered:
        left, right = self._lower(join.left), self._lower(join.right)
        columns = _unique(join.fields)
        output = tuple(_join_column(n, i, left, right) for n, i in zip(columns, join.items, strict=True))
        condition = None
        if join.condition is not None:
            condition = spark_text(join.condition, {**left.printed("l."), **right.printed("r.")})
        operator = model.Join(
            id="",
            inputs=(left.id, right.id),
            join_type=join.join_type,
            keys=tuple(JoinKey(left=left.names[a.id], right=right.names[b.id]) for a, b in join.keys),
            condition=condition,
            output=output,
            changelog=(),
            state=self._states((("leftState", join.states[0], left), ("rightState", join.states[1], right))),
        )
        found = self._add(operator, (*join.left.base, *join.right.base), join.block)
        self._account(found, join.states, ("leftState", "rightState"))
        return _Lowered(id=found, columns=columns, names=_names(join.fields, columns))

    def _lookup(self, lookup: LookupJoin) -> _Lowered:
        source = self._lower(lookup.input)
        columns = _unique(lookup.fields)
        table = _Lowered(
            id="",
            columns=tuple(f.name for f in lookup.fetched),
            names={f.id: f.name for f in lookup.fetched},
        )
        keys = tuple(
            model.LookupKey(column=key.column.name, constant=spark_text(key.value, {}))
            if isinstance(key.value, Literal)
            else model.LookupKey(column=key.column.name, left=source.names[key.value.id])
            for key in lookup.keys
        )
        both = {**source.printed("l."), **table.printed("r.")}
        operator = model.LookupJoin(
            id="",
            table=lookup.table,
            inputs=(source.id,),
            join_type=lookup.join_type,
            keys=keys,
            columns=table.columns,
            pre_filter=_printed(lookup.pre_filter, source.printed()),
            filter=_printed(lookup.filter, table.printed()),
            condition=_printed(lookup.condition, both),
            output=tuple(_join_column(n, i, source, table) for n, i in zip(columns, lookup.items, strict=True)),
            settings=lookup.settings,
        )
        found = self._add(operator, (lookup.name,), lookup.block)
        for offset, setting in lookup.hinted:
            self.ledger.applied(offset, f"{found}.{setting}".rstrip("."))
        self._ask(lookup, found)
        return _Lowered(id=found, columns=columns, names=_names(lookup.fields, columns))

    def _correlate(self, call: Correlate) -> _Lowered:
        source = self._lower(call.input)
        columns = _unique(call.fields)
        names = {f.id: f.name for f in call.returned}
        returned = _Lowered(id="", columns=tuple(names.values()), names=names)
        operator = model.Correlate(
            id="",
            inputs=(source.id,),
            function=call.function,
            join_type=call.join_type,
            arguments=tuple(
                model.Argument(column=source.names[a.field.id])
                if isinstance(a, Ref)
                else model.Argument(constant=spark_text(a, {}))
                for a in call.arguments
            ),
            output=tuple(_join_column(n, i, source, returned) for n, i in zip(columns, call.items, strict=True)),
            settings=resolved_call(call.kind, self.config),
        )
        found = self._add(operator, (call.function,), call.block)
        self._ask(call, found)
        return _Lowered(id=found, columns=columns, names=_names(call.fields, columns))

    def _ask(self, relation: LookupJoin | Correlate, operator: str) -> None:
        target = relation.table if isinstance(relation, LookupJoin) else relation.function
        lookup = isinstance(relation, LookupJoin)
        asked = Asked(operator=operator, target=target, is_lookup=lookup, readings=readings_of(relation))
        self.asked.setdefault(relation.offset, []).append(asked)

    def _expand(self, expand: Expand) -> _Lowered:
        source = self._lower(expand.input)
        keys = tuple(source.names[i.expr.field.id] for i in expand.keys if isinstance(i.expr, Ref))
        passed = tuple(source.names[f.id] for f in expand.passed)
        *_, group_id = _unique((expand.group_id,), source.columns)
        operator = model.Expand(
            id="",
            inputs=(source.id,),
            keys=keys,
            sets=tuple(tuple(keys[place] for place in sorted(each)) for each in expand.sets),
            group_id=group_id,
        )
        found = self._add(operator, _above(expand.input, expand.block), expand.block)
        columns = (*source.columns, group_id)
        return _Lowered(id=found, columns=columns, names=_names(expand.fields, (*keys, *passed, group_id)))

    def _aggregate(self, aggregate: Aggregate, exact: bool) -> _Lowered:
        source = self._lower(aggregate.input)
        keys = tuple(source.names[k.id] for k in aggregate.keys)
        columns = _unique(tuple(c.field for c in aggregate.calls), keys)
        calls = tuple(
            AggregateCall(
                name=name,
                function=c.function,
                distinct=c.distinct,
                type=str(c.field.type),
                argument=None if c.argument is None else source.names[c.argument.id],
                filter=None if c.filter is None else source.names[c.filter.id],
                separator=c.separator,
            )
            for name, c in zip(columns[len(keys) :], aggregate.calls, strict=True)
        )
        operator: Operator = model.Aggregate(
            id="",
            inputs=(source.id,),
            keys=keys,
            aggregates=calls,
            changelog=(),
            state=self._states((("groupAggregateState", aggregate.state, source),)),
        )
        found = self._add(operator, _above(aggregate.input, aggregate.block), aggregate.block)
        self._account(found, (aggregate.state,), ("groupAggregateState",))
        lowered = _Lowered(id=found, columns=columns, names=_names(aggregate.fields, columns))
        wanted = _unique(aggregate.fields)
        if exact and wanted != columns:  # keys are called as in the input
            return self._renamed(lowered, aggregate, wanted)
        return lowered

    def _renamed(self, source: _Lowered, relation: Relation, wanted: tuple[str, ...]) -> _Lowered:
        items = tuple(Item(field=f, expr=Ref(field=f)) for f in relation.fields)
        names = source.printed()
        select = tuple(_select_item(n, i, source, names) for n, i in zip(wanted, items, strict=True))
        operator = model.Calc(id="", inputs=(source.id,), select=select, filter=None)
        found = self._add(operator, _above(relation, relation.block), relation.block)
        return _Lowered(id=found, columns=wanted, names=_names(relation.fields, wanted))

    def _union(self, union: Union) -> _Lowered:
        columns = _unique(union.fields)
        inputs: list[str] = []
        for branch in union.inputs:
            # every input shows the columns under the names of the union
            shown = tuple(
                Item(field=replace(f, name=n), expr=Ref(field=f)) for f, n in zip(branch.fields, columns, strict=True)
            )
            as_union = Calc(input=branch, filter=None, items=shown, base=branch.base, block=branch.block)
            if isinstance(branch, Calc):
                named = zip(branch.items, columns, strict=True)
                items = tuple(replace(i, field=replace(i.field, name=n)) for i, n in named)
                as_union = replace(branch, items=items)
            inputs.append(self._lower(as_union, exact=True).id)
        found = self._add(model.Union(id="", inputs=tuple(inputs)), union.base, union.block)
        return _Lowered(id=found, columns=columns, names=_names(union.fields, columns))

    def _sort(self, sort: Sort, exact: bool) -> _Lowered:
        source = self._lower(sort.input, exact=exact)
        order = tuple(
            SortKey(
                column=source.names[key.field.id],
                direction="desc" if key.descending else "asc",
                nulls="first" if key.nulls_first else "last",
            )
            for key in sort.order
        )
        operator = model.Sort(id="", inputs=(source.id,), order=order, offset=sort.offset, limit=sort.limit)
        return replace(source, id=self._add(operator, _above(sort.input, sort.block), sort.block))

    def _cached(self, cached: Cached) -> _Lowered:
        """The operator of the result, with what was asked; one that others read uncached is the same operator."""
        source = self._lower(cached.input, exact=True)
        at = next(i for i, operator in enumerate(self.operators) if operator.id == source.id)
        operator = self.operators[at]
        assert not isinstance(operator, model.Sink)
        old = operator.settings.get(CACHED.name)
        enabled = CACHED.resolved(cached.asked).values[ENABLED]
        if cached.asked and (old is None or enabled or not old.values[ENABLED]):
            origin = {**(old.origin if old is not None else {}), **cached.asked}
            self.operators[at] = with_group(operator, CACHED.name, CACHED.resolved(origin))
        for (layer, name), offset in cached.places.items():
            if layer == "hint":
                self.ledger.applied(offset, f"{source.id}.cached.{name}")
            else:
                self.ledger.statements[source.id, f"cached.{name}"] = offset
        return source

    def _states(self, wanted: tuple[tuple[str, StateInput, _Lowered], ...]) -> tuple[StateEntry, ...]:
        if self.batch:
            return ()
        return tuple(self._state(i, name, state, source) for i, (name, state, source) in enumerate(wanted))

    def _state(self, index: int, name: str, state: StateInput, source: _Lowered) -> StateEntry:
        config = self.config.get(STATE_TTL)
        origin = {"default": DEFAULT_STATE_TTL} if config is None else {"config": config}
        ttl = DEFAULT_STATE_TTL if config is None else config
        if state.hint is not None:
            ttl = origin["hint"] = state.hint.ttl
        return StateEntry(index=index, name=name, input=state.name or source.id, ttl=ttl, origin=origin)

    def _account(self, operator: str, states: tuple[StateInput, ...], names: tuple[str, ...]) -> None:
        for state, name in zip(states, names, strict=True):
            if state.hint is not None and not self.batch:
                self.ledger.applied(state.hint.offset, f"{operator}.{name}")


def _kind(operator: Operator) -> str:
    return _KINDS.get(type(operator), type(operator).__name__.lower())


_KINDS = {model.ChangelogNormalize: "normalize", model.LookupJoin: "lookup", model.SinkMaterialize: "materialize"}


def _printed(expression: Expr | None, names: Mapping[int, str]) -> str | None:
    return None if expression is None else spark_text(expression, names)


def _above(source: Relation, block: str) -> tuple[str, ...]:
    """What an operator that reads ``source`` is named after: the one input that it comes from, or else the block.

    So a table that is joined as well renames joins at most, whose own rows it changes.
    """
    return source.base if len(source.base) == 1 else (block,)


def _unique(fields: tuple[Field, ...], before: tuple[str, ...] = ()) -> tuple[str, ...]:
    """``before`` and then a name for each field, none of them twice."""
    names = list(before)
    taken = {n.lower() for n in before} | {f.name.lower() for f in fields}
    used = {n.lower() for n in before}
    for field in fields:
        name = field.name
        if not name or name.lower() in used:
            stem, number = name or "expr", 0
            while f"{stem}{number}".lower() in taken | used:
                number += 1
            name = f"{stem}{number}"
        used.add(name.lower())
        names.append(name)
    return tuple(names)


def _names(fields: tuple[Field, ...], columns: tuple[str, ...]) -> dict[int, str]:
    return {f.id: n for f, n in zip(fields, columns, strict=True)}


def _select_item(name: str, item: Item, source: _Lowered, names: Mapping[int, str]) -> SelectItem:
    expression: Expr = item.expr
    if isinstance(expression, Ref) and source.names[expression.field.id] == name:
        return SelectItem(name=name)
    return SelectItem(name=name, expression=spark_text(expression, names), type=str(item.field.type))


def _join_column(name: str, item: Item, left: _Lowered, right: _Lowered) -> JoinColumn:
    assert isinstance(item.expr, Ref)
    field = item.expr.field
    if field.id in left.names:
        return JoinColumn(name=name, type=str(item.field.type), side="left", column=left.names[field.id])
    return JoinColumn(name=name, type=str(item.field.type), side="right", column=right.names[field.id])
