"""Leaves at most one calc between two other operators, and none that only renames columns.

Two calcs become one, unless this repeats a non-deterministic expression or makes the expressions too large. A
projection over a join or an aggregate becomes the output of that operator where possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.expressions.casts import simplify_casts
from hintplan.planner.expressions.typed import (
    Expr,
    FieldRef,
    conjunction,
    factored_conjuncts,
    is_deterministic,
    node_count,
    substitute,
)
from hintplan.planner.relations import (
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalCorrelate,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalUnnest,
    Relation,
    map_inputs,
)

_MAX_SIZE = 500


def merge_calcs(context: Context, relation: Relation) -> Relation:
    """Merge adjacent calcs, bottom up."""
    merged = map_inputs(relation, lambda below: merge_calcs(context, below))
    return _merged(merged) if isinstance(merged, LogicalCalc) else merged


def is_projection(calc: LogicalCalc) -> bool:
    """Return True if the calc only drops, renames and reorders columns, and repeats none."""
    refs = [i.expr.field.id for i in calc.items if isinstance(i.expr, FieldRef)]
    return calc.filter is None and len(refs) == len(calc.items) == len(set(refs))


def _merged(calc: LogicalCalc) -> Relation:
    below = calc.input
    if isinstance(below, LogicalCalc):
        return _over_calc(calc, below)
    if not is_projection(calc):
        return calc
    if calc.fields == below.fields and all(a.name == b.name for a, b in zip(calc.fields, below.fields, strict=True)):
        return replace(below, base=calc.base)
    match below:
        case LogicalJoin() | LogicalLookupJoin() | LogicalCorrelate() | LogicalUnnest():
            values = {i.field.id: i.expr for i in below.items}
            return replace(below, items=_substituted(calc.items, values), base=calc.base)
        case LogicalAggregate():
            return _over_aggregate(calc, below)
        case _:
            return calc


def _substituted(items: tuple[Item, ...], values: Mapping[int, Expr]) -> tuple[Item, ...]:
    return tuple(replace(i, expr=simplify_casts(substitute(i.expr, values))) for i in items)


def _over_calc(calc: LogicalCalc, below: LogicalCalc) -> Relation:
    values = {i.field.id: i.expr for i in below.items}
    items = _substituted(calc.items, values)
    outer = tuple(simplify_casts(substitute(p, values)) for p in factored_conjuncts(calc.filter))
    condition = conjunction((*factored_conjuncts(below.filter), *outer))
    repeats = not all(is_deterministic(i.expr) for i in below.items)
    grown = sum(node_count(i.expr) for i in items) + (node_count(condition) if condition is not None else 0)
    if (repeats and not _reads_once(calc, below)) or grown > _MAX_SIZE:
        return calc
    return _merged(replace(calc, input=below.input, filter=condition, items=items))


def _reads_once(calc: LogicalCalc, below: LogicalCalc) -> bool:
    """Return True if ``calc`` only passes on each non-deterministic column of ``below``, and at most once."""
    changing = {i.field.id for i in below.items if not is_deterministic(i.expr)}
    passed = [i.expr.field.id for i in calc.items if isinstance(i.expr, FieldRef) and i.expr.field.id in changing]
    read = [
        e for e in (calc.filter, *(i.expr for i in calc.items if not isinstance(i.expr, FieldRef))) if e is not None
    ]
    inside = {f for e in read for f in changing if substitute(e, {f: FieldRef(field=below.items[0].field)}) != e}
    return len(passed) == len(set(passed)) and not inside


def _over_aggregate(calc: LogicalCalc, below: LogicalAggregate) -> Relation:
    """Rename the results of the aggregate calls, if the projection does no more."""
    sources = tuple(i.expr.field for i in calc.items if isinstance(i.expr, FieldRef))
    keys = len(below.keys)
    if sources != below.fields or any(
        i.field != f or i.field.name != f.name for i, f in zip(calc.items[:keys], below.keys, strict=True)
    ):
        return calc
    calls = tuple(replace(c, field=i.field) for c, i in zip(below.calls, calc.items[keys:], strict=True))
    return replace(below, calls=calls, base=calc.base)
