"""Makes one list of rows of what is written in the query: SELECTs without FROM, and UNION ALL of such and of VALUES.

So each of them is one operator, not a source of its own for each row.
"""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, Field, Ref, calls_user_code, substitute, walk
from hintplan.planner.relations import Calc, Relation, Union, Values, map_inputs


def fold_values(context: Context, relation: Relation) -> Relation:
    """Fold from the bottom up."""
    found = map_inputs(relation, lambda below: fold_values(context, below))
    if isinstance(found, Calc) and isinstance(found.input, Values):
        return _computed(found, found.input) or found
    if isinstance(found, Union):
        return _together(found)
    return found


def _computed(calc: Calc, values: Values) -> Values | None:
    """What ``calc`` makes of one row, if it makes no less of it and calls nobody."""
    if calc.filter is not None or any(calls_user_code(item.expr) for item in calc.items):
        return None
    rows = []
    for row in values.rows:
        known = {f.id: value for f, value in zip(values.fields, row, strict=True)}
        if not all(_takes(item.expr, values.fields, known) for item in calc.items):
            return None
        rows.append(tuple(substitute(item.expr, known) for item in calc.items))
    fields = tuple(item.field for item in calc.items)
    return Values(fields=fields, rows=tuple(rows), base=calc.base, block=calc.block)


def _takes(expression: Expr, fields: tuple[Field, ...], known: dict[int, Expr]) -> bool:
    """Whether a value can stand for its column in ``expression``: a column alone, or a value of the column's type."""
    if isinstance(expression, Ref):
        return True
    types = {f.id: f.type.as_nullable() for f in fields}
    read = [e.field.id for e in walk(expression) if isinstance(e, Ref)]
    return all(known[each].type.as_nullable() == types[each] for each in read)


def _together(union: Union) -> Relation:
    inputs: list[Relation] = []
    for each in union.inputs:
        last = inputs[-1] if inputs else None
        if isinstance(each, Values) and isinstance(last, Values) and _alike(last, each):
            inputs[-1] = Values(fields=last.fields, rows=(*last.rows, *each.rows), base=last.base, block=last.block)
        else:
            inputs.append(each)
    if len(inputs) > 1 or not isinstance(inputs[0], Values):
        return Union(inputs=tuple(inputs), fields=union.fields, base=union.base, block=union.block)
    return Values(fields=union.fields, rows=inputs[0].rows, base=union.base, block=union.block)


def _alike(a: Values, b: Values) -> bool:
    return [f.type.as_nullable() for f in a.fields] == [f.type.as_nullable() for f in b.fields]
