"""Literal rows of the query."""

from __future__ import annotations

from hintplan.planner.expressions.spark_text import spark_text
from hintplan.planner.expressions.typed import Call, Expr, Field, Literal
from hintplan.planner.lowering.builder import Builder
from hintplan.planner.lowering.columns import Lowered, lowered, unique_names
from hintplan.planner.relations import Values
from hintplan.plans import operators as model


def lower_values(builder: Builder, values: Values) -> Lowered:
    """Add the rows. The operator converts each value to the type of its column."""
    columns = unique_names(values.fields)
    named_fields = zip(columns, values.fields, strict=True)
    operator = model.Values(
        id="",
        columns=tuple(model.GivenColumn(name=name, type=str(field.type)) for name, field in named_fields),
        rows=tuple(tuple(_text(v, f) for v, f in zip(row, values.fields, strict=True)) for row in values.rows),
    )
    return lowered(builder.add(operator, "values", values.base, values.block), values.fields, columns)


def _text(value: Expr, field: Field) -> str:
    """Return a value as text. The operator converts it to the type of ``field``."""
    if isinstance(value, Literal) and value.text is None:
        return "NULL"
    if isinstance(value, Call) and value.function == "CAST" and value.type == field.type.as_nullable():
        inner = value.args[0]
        value = inner if isinstance(inner, Literal) else value
    return spark_text(value, {})
