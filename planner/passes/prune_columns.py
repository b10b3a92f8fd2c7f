"""Removes each column that nothing above reads, so that scans read less and states hold less.

Group keys remain, because they determine the groups. Unused aggregate calls disappear. Each operator keeps at least one
column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, Field, referenced_fields
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalPassthrough,
    LogicalScan,
    LogicalUnion,
    LogicalUnnest,
    LogicalValues,
    LogicalWindowAggregate,
    Relation,
)


def prune_columns(context: Context, relation: Relation) -> Relation:
    """Keep only the columns on which the output of ``relation`` depends."""
    return _prune(relation, {f.id for f in relation.fields})


def _ids(expressions: Iterable[Expr | None]) -> set[int]:
    return {f.id for e in expressions if e is not None for f in referenced_fields(e)}


def _prune(relation: Relation, needed: set[int]) -> Relation:
    match relation:
        case LogicalScan():
            kept = tuple(f for f in relation.fields if f.id in needed or f.name in relation.normalized)
            return replace(relation, fields=kept or relation.fields[:1])
        case LogicalValues():
            places = [place for place, f in enumerate(relation.fields) if f.id in needed] or [0]
            rows = tuple(tuple(row[place] for place in places) for row in relation.rows)
            return replace(relation, fields=tuple(relation.fields[place] for place in places), rows=rows)
        case LogicalCalc():
            items = _needed_items(relation.items, needed)
            read = _ids((relation.filter, *(i.expr for i in items)))
            return replace(relation, input=_prune(relation.input, read), items=items)
        case LogicalJoin():
            return _prune_join(relation, needed)
        case LogicalLookupJoin():
            return _prune_lookup(relation, needed)
        case LogicalCorrelate():
            return _prune_call(relation, needed)
        case LogicalUnnest():
            items = _needed_items(relation.items, needed)
            below = _ids((relation.collection, *(i.expr for i in items)))
            return replace(relation, input=_prune(relation.input, below), items=items)
        case LogicalExpand():
            passed = tuple(f for f in relation.passed if f.id in needed)
            read = {f.id for f in passed} | _ids(i.expr for i in relation.keys)
            return replace(relation, input=_prune(relation.input, read), passed=passed)
        case LogicalAggregate():
            return _prune_aggregate(relation, needed)
        case LogicalWindowAggregate():
            return _prune_windows(relation, needed)
        case LogicalUnion():
            return _prune_union(relation, needed)
        case LogicalPassthrough():
            passing = relation.without_unread(needed)
            return replace(passing, input=_prune(relation.input, needed | {f.id for f in passing.reads}))
        case _:
            assert_never(relation)


def _needed_items(items: tuple[Item, ...], needed: set[int]) -> tuple[Item, ...]:
    return tuple(i for i in items if i.field.id in needed) or items[:1]


def _prune_join(join: LogicalJoin, needed: set[int]) -> LogicalJoin:
    items = _needed_items(join.items, needed)
    read = _ids((join.condition, *(i.expr for i in items))) | {f.id for pair in join.keys for f in pair}
    read |= {f.id for side in join.windows or () for f in (side.start, side.end)}
    if join.interval is not None and not join.interval.processing_time:
        read |= {join.interval.left.id, join.interval.right.id}
    if join.as_of is not None:
        read |= {f.id for f in (join.as_of.left_time, join.as_of.right_time) if f is not None}
    return replace(join, left=_prune(join.left, read), right=_prune(join.right, read), items=items)


def _prune_aggregate(aggregate: LogicalAggregate, needed: set[int]) -> LogicalAggregate:
    calls = tuple(c for c in aggregate.calls if c.field.id in needed)
    if not calls and not aggregate.keys:
        calls = aggregate.calls[:1]
    read = {f.id for f in aggregate.keys} | {f.id for c in calls for f in (*c.arguments, c.filter) if f is not None}
    return replace(aggregate, input=_prune(aggregate.input, read), calls=calls)


def _prune_windows(aggregate: LogicalWindowAggregate, needed: set[int]) -> LogicalWindowAggregate:
    """Remove unread calls and columns of the window. The groups depend on the window in any case."""
    calls = tuple(c for c in aggregate.calls if c.field.id in needed)
    kept = {f.id for f in aggregate.of_window} & needed
    if not (calls or aggregate.keys or kept):
        kept = {f.id for f in aggregate.of_window[:1]}
    start, end, window_time = (
        f if f is not None and f.id in kept else None for f in (aggregate.start, aggregate.end, aggregate.window_time)
    )
    pruned = replace(aggregate, calls=calls, start=start, end=end, window_time=window_time)
    return replace(pruned, input=_prune(aggregate.input, {f.id for f in pruned.reads}))


def _prune_union(union: LogicalUnion, needed: set[int]) -> LogicalUnion:
    kept = [i for i, f in enumerate(union.fields) if f.id in needed] or [0]
    inputs = tuple(_prune(r, {r.fields[i].id for i in kept}) for r in union.inputs)
    return replace(union, inputs=inputs, fields=tuple(union.fields[i] for i in kept))


def _prune_call(call: LogicalCorrelate, needed: set[int]) -> Relation:
    """Remove unread columns. The call of a table function remains, because it may return any number of rows."""
    returned = {f.id for f in call.returned}
    items = tuple(i for i in call.items if i.field.id in needed)
    if call.scalar and not _ids(i.expr for i in items) & returned:
        # The call returns exactly one row, and nothing reads it.
        passed = tuple(i for i in call.items if i in items or (not items and not _ids((i.expr,)) & returned))
        unused = LogicalCalc(input=call.input, filter=None, items=items or passed[:1], base=call.base, block=call.block)
        return _prune(unused, needed)
    items = items or call.items[:1]
    below = _ids((*call.arguments, *(i.expr for i in items)))
    return replace(call, input=_prune(call.input, below), items=items)


def _prune_lookup(lookup: LogicalLookupJoin, needed: set[int]) -> LogicalLookupJoin:
    items = _needed_items(lookup.items, needed)
    read = _ids((lookup.pre_filter, lookup.filter, lookup.condition, *(i.expr for i in items)))
    read |= {key.column.id for key in lookup.keys}
    read |= {key.value.id for key in lookup.keys if isinstance(key.value, Field)}
    fetched = tuple(f for f in lookup.fetched if f.id in read)
    return replace(lookup, input=_prune(lookup.input, read), fetched=fetched, items=items)
