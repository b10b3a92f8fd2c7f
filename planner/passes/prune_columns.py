"""Drops every column that nothing above reads, so that scans read less and states hold less.

Group keys stay (they decide the groups); unused aggregate calls go. Every operator keeps at least one column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from planner.context import Context
from planner.expressions.typed import Expr, Field, fields_of
from planner.relations import (
    Aggregate,
    Cached,
    Calc,
    Correlate,
    Expand,
    Join,
    LookupJoin,
    Relation,
    Scan,
    Sort,
    Union,
)

__all__ = ["prune_columns"]


def prune_columns(context: Context, relation: Relation) -> Relation:
    """Keep only columns that the output of ``relation`` depends on."""
    return _prune(relation, {f.id for f in relation.fields})


def _ids(expressions: Iterable[Expr | None]) -> set[int]:
    return {f.id for e in expressions if e is not None for f in fields_of(e)}


def _prune(relation: Relation, needed: set[int]) -> Relation:
    if isinstance(relation, Scan):
        kept = tuple(f for f in relation.fields if f.id in needed or f.name in relation.normalized)
        return replace(relation, fields=kept or relation.fields[:1])
    if isinstance(relation, Calc):
        items = tuple(i for i in relation.items if i.field.id in needed) or relation.items[:1]
        return replace(
            relation, input=_prune(relation.input, _ids((relation.filter, *(i.expr for i in items)))), items=items
        )
    if isinstance(relation, Join):
        items = tuple(i for i in relation.items if i.field.id in needed) or relation.items[:1]
        below = _ids((relation.condition, *(i.expr for i in items))) | {f.id for pair in relation.keys for f in pair}
        return replace(relation, left=_prune(relation.left, below), right=_prune(relation.right, below), items=items)
    if isinstance(relation, LookupJoin):
        return _prune_lookup(relation, needed)
    if isinstance(relation, Correlate):
        return _prune_call(relation, needed)
    if isinstance(relation, Expand):
        passed = tuple(f for f in relation.passed if f.id in needed)
        below = {f.id for f in passed} | _ids(i.expr for i in relation.keys)
        return replace(relation, input=_prune(relation.input, below), passed=passed)
    if isinstance(relation, Aggregate):
        calls = tuple(c for c in relation.calls if c.field.id in needed)
        if not calls and not relation.keys:
            calls = relation.calls[:1]
        read = {f.id for f in relation.keys} | {f.id for c in calls for f in (c.argument, c.filter) if f is not None}
        return replace(relation, input=_prune(relation.input, read), calls=calls)
    if isinstance(relation, Sort):
        return replace(relation, input=_prune(relation.input, needed | {key.field.id for key in relation.order}))
    if isinstance(relation, Cached):
        # Whoever reads it, it is the same: all its columns are kept.
        return replace(relation, input=_prune(relation.input, {f.id for f in relation.fields}))
    if not isinstance(relation, Union):
        assert_never(relation)
    kept_at = [i for i, f in enumerate(relation.fields) if f.id in needed] or [0]
    inputs = tuple(_prune(r, {r.fields[i].id for i in kept_at}) for r in relation.inputs)
    return replace(relation, inputs=inputs, fields=tuple(relation.fields[i] for i in kept_at))


def _prune_call(call: Correlate, needed: set[int]) -> Relation:
    """Without the columns that nobody reads; the call itself stays, as it may return any number of rows or none."""
    returned = {f.id for f in call.returned}
    items = tuple(i for i in call.items if i.field.id in needed)
    if call.scalar and not _ids(i.expr for i in items) & returned:
        # One row for each, and no column of it: as good as no call.
        passed = tuple(i for i in call.items if i in items or (not items and not _ids((i.expr,)) & returned))
        unused = Calc(input=call.input, filter=None, items=items or passed[:1], base=call.base, block=call.block)
        return _prune(unused, needed)
    items = items or call.items[:1]
    below = _ids((*call.arguments, *(i.expr for i in items)))
    return replace(call, input=_prune(call.input, below), items=items)


def _prune_lookup(lookup: LookupJoin, needed: set[int]) -> LookupJoin:
    items = tuple(i for i in lookup.items if i.field.id in needed) or lookup.items[:1]
    read = _ids((lookup.pre_filter, lookup.filter, lookup.condition, *(i.expr for i in items)))
    read |= {key.column.id for key in lookup.keys}
    read |= {key.value.id for key in lookup.keys if isinstance(key.value, Field)}
    fetched = tuple(f for f in lookup.fetched if f.id in read)
    return replace(lookup, input=_prune(lookup.input, read), fetched=fetched, items=items)
