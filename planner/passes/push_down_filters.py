"""Predicate pushdown: moves each condition down to where its meaning allows, so irrelevant rows never enter a state.

The join type determines the side to which a condition may move. A condition of WHERE never moves to a side whose rows
are padded with NULL. A condition of ON moves only to a side whose rows are not preserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import (
    Expr,
    Field,
    FieldRef,
    calls_user_code,
    conjunction,
    factored_conjuncts,
    is_deterministic,
    referenced_fields,
    substitute,
)
from hintplan.planner.properties.windows import grouped_window
from hintplan.planner.relations import (
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
    identity,
    map_inputs,
)

Parts = tuple[Expr, ...]
Fits = Callable[[set[int]], bool]
"""Returns True if a condition can move. The argument has the ids of the fields that it reads."""

# The sides to which conditions from above, and then one-sided conditions of ON, may move.
_FROM_ABOVE = {"inner": "lr", "left": "l", "right": "r", "full": "", "semi": "l", "anti": "l"}
_FROM_ON = {"inner": "lr", "left": "r", "right": "l", "full": "", "semi": "lr", "anti": "r"}


def push_down_filters(context: Context, relation: Relation) -> Relation:
    """Move conditions below projections, joins, aggregates and unions."""
    return _push(relation, ())


def _push(relation: Relation, parts: Parts) -> Relation:
    match relation:
        case LogicalCalc():
            return _through_calc(relation, parts)
        case LogicalJoin():
            return _through_join(relation, parts)
        case LogicalLookupJoin():
            return _through_lookup(relation, parts)
        case LogicalCorrelate() | LogicalUnnest():
            # Only the relation above has the results of a call. A row that is filtered below needs no call.
            below, above = _split(parts, _only_of(relation.input.fields))
        case LogicalAggregate():
            window = grouped_window(relation) if parts else None
            # A condition on the window stays above, so that nothing below needs the window.
            keys = relation.keys if window is None else tuple(f for f in relation.keys if f.id not in window.ids)
            below, above = _split(parts, _only_of(keys))
        case LogicalWindowAggregate():
            below, above = _split(parts, _only_of(relation.keys))
        case LogicalExpand():
            values = {i.field.id: i.expr for i in relation.common}
            below, above = _split(parts, _only_of((*(i.field for i in relation.common), *relation.passed)))
            below = tuple(substitute(p, values) for p in below)
        case LogicalUnion():
            return _through_union(relation, parts)
        case LogicalPassthrough():
            taken = relation.offered(parts)
            if taken is not None:
                return _push(*taken)
            below, above = _split(parts, relation.lets_through)
        case LogicalScan() | LogicalValues():
            below, above = (), parts
        case _:
            assert_never(relation)
    return _filtered(map_inputs(relation, lambda each: _push(each, below)), above)


def _only_of(fields: Iterable[Field]) -> Fits:
    """Return a function that is true if a condition reads some of ``fields`` and no others."""
    allowed = {f.id for f in fields}
    return lambda ids: bool(ids) and ids <= allowed


def _split(parts: Parts, fits: Fits, *, everywhere: bool = False) -> tuple[Parts, Parts]:
    """Return the deterministic parts whose field ids satisfy ``fits``, and the remaining parts.

    A condition with a call of user code stays where the query has it, unless ``everywhere`` is set.
    """
    movable = (p for p in parts if is_deterministic(p) and (everywhere or not calls_user_code(p)))
    chosen = tuple(p for p in movable if fits({f.id for f in referenced_fields(p)}))
    return chosen, tuple(p for p in parts if p not in chosen)


def _filtered(relation: Relation, parts: Parts) -> Relation:
    if not parts:
        return relation
    return LogicalCalc(
        input=relation,
        filter=conjunction(parts),
        items=identity(relation.fields),
        base=relation.base,
        block=relation.block,
    )


def _through_calc(calc: LogicalCalc, parts: Parts) -> Relation:
    values = {i.field.id: i.expr for i in calc.items}
    movable = {i.field.id for i in calc.items if is_deterministic(i.expr)}
    below, above = _split(parts, lambda ids: ids <= movable)
    own_parts = factored_conjuncts(calc.filter)
    fixed = tuple(p for p in own_parts if not is_deterministic(p))
    moved = (*(p for p in own_parts if p not in fixed), *(substitute(p, values) for p in below))
    pushed = replace(calc, input=_push(calc.input, moved), filter=conjunction(fixed))
    return _filtered(pushed, above)


def _through_join(join: LogicalJoin, parts: Parts) -> Relation:
    left = {f.id for f in join.left.fields}
    right = {f.id for f in join.right.fields}
    above_to, on_to = _FROM_ABOVE[join.join_type], _FROM_ON[join.join_type]
    if join.as_of is not None:  # without some of the versions, older ones would last longer
        above_to, on_to = above_to.replace("r", ""), on_to.replace("r", "")

    def to_left(ids: set[int]) -> bool:
        return bool(ids) and ids <= left

    def to_right(ids: set[int]) -> bool:
        return bool(ids) and ids <= right

    nothing: Parts = ()
    from_above_left, remaining = _split(parts, to_left) if "l" in above_to else (nothing, parts)
    from_above_right, remaining = _split(remaining, to_right) if "r" in above_to else (nothing, remaining)
    on = join.on
    if join.join_type == "inner":
        both, remaining = _split(remaining, lambda ids: bool(ids & left) and bool(ids & right), everywhere=True)
        on = (*on, *both)
    from_on_left, on = _split(on, to_left) if "l" in on_to else (nothing, on)
    from_on_right, on = _split(on, to_right) if "r" in on_to else (nothing, on)
    pushed = replace(
        join,
        left=_push(join.left, (*from_on_left, *from_above_left)),
        right=_push(join.right, (*from_on_right, *from_above_right)),
        on=on,
    )
    return _filtered(pushed, remaining)


def _through_union(union: LogicalUnion, parts: Parts) -> Relation:
    below, above = _split(parts, bool)

    def moved(branch: Relation) -> Relation:
        values: dict[int, Expr] = {f.id: FieldRef(field=g) for f, g in zip(union.fields, branch.fields, strict=True)}
        return _push(branch, tuple(substitute(p, values) for p in below))

    return _filtered(map_inputs(union, moved), above)


def _through_lookup(lookup: LogicalLookupJoin, parts: Parts) -> Relation:
    """Move conditions on the input below the lookup.

    Conditions on the table join the condition of an inner lookup.
    """
    left = {f.id for f in lookup.input.fields}
    values = {i.field.id: i.expr for i in lookup.items}
    below, remaining = _split(parts, lambda ids: bool(ids) and ids <= left)
    on = lookup.on
    if lookup.join_type == "inner":
        joined, remaining = _split(remaining, bool, everywhere=True)
        from_on, on = _split((*on, *(substitute(p, values) for p in joined)), lambda ids: bool(ids) and ids <= left)
        below = (*below, *from_on)
    return _filtered(replace(lookup, input=_push(lookup.input, below), on=on), remaining)
