"""Combines literal rows into one list: SELECTs without FROM, VALUES, and UNION ALL of both.

Without this pass, each row would be a source of its own.
"""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Expr, Field, FieldRef, calls_user_code, substitute, walk
from hintplan.planner.relations import LogicalCalc, LogicalUnion, LogicalValues, Relation, map_inputs


def fold_values(context: Context, relation: Relation) -> Relation:
    """Combine literal rows, bottom up."""
    relation_above = map_inputs(relation, lambda below: fold_values(context, below))
    if isinstance(relation_above, LogicalCalc) and isinstance(relation_above.input, LogicalValues):
        return _computed(relation_above, relation_above.input) or relation_above
    if isinstance(relation_above, LogicalUnion):
        return _together(relation_above)
    return relation_above


def _computed(calc: LogicalCalc, values: LogicalValues) -> LogicalValues | None:
    """Return the rows of ``values`` with the items of ``calc``, or None if the calc filters or calls user code."""
    if calc.filter is not None or any(calls_user_code(item.expr) for item in calc.items):
        return None
    rows = []
    for row in values.rows:
        values_of_fields = {f.id: value for f, value in zip(values.fields, row, strict=True)}
        if not all(_takes(item.expr, values.fields, values_of_fields) for item in calc.items):
            return None
        rows.append(tuple(substitute(item.expr, values_of_fields) for item in calc.items))
    fields = tuple(item.field for item in calc.items)
    return LogicalValues(fields=fields, rows=tuple(rows), base=calc.base, block=calc.block)


def _takes(expression: Expr, fields: tuple[Field, ...], known: dict[int, Expr]) -> bool:
    """Return True if values can replace the columns in ``expression``.

    It must be a single column, or the values must have the columns' types.
    """
    if isinstance(expression, FieldRef):
        return True
    types = {f.id: f.type.as_nullable() for f in fields}
    read = [e.field.id for e in walk(expression) if isinstance(e, FieldRef)]
    return all(known[field_id].type.as_nullable() == types[field_id] for field_id in read)


def _together(union: LogicalUnion) -> Relation:
    inputs: list[Relation] = []
    for relation in union.inputs:
        last = inputs[-1] if inputs else None
        if isinstance(relation, LogicalValues) and isinstance(last, LogicalValues) and _alike(last, relation):
            inputs[-1] = LogicalValues(
                fields=last.fields, rows=(*last.rows, *relation.rows), base=last.base, block=last.block
            )
        else:
            inputs.append(relation)
    if len(inputs) > 1 or not isinstance(inputs[0], LogicalValues):
        return LogicalUnion(inputs=tuple(inputs), fields=union.fields, base=union.base, block=union.block)
    return LogicalValues(fields=union.fields, rows=inputs[0].rows, base=union.base, block=union.block)


def _alike(a: LogicalValues, b: LogicalValues) -> bool:
    return [f.type.as_nullable() for f in a.fields] == [f.type.as_nullable() for f in b.fields]
