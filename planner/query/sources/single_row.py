"""The row that a SELECT without FROM is computed from, and an UNNEST with which FROM begins."""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import INT, literal
from hintplan.planner.relations import Values


def single_row(context: Context, block: str) -> Values:
    """Return a relation of one row, whose only column nobody can name."""
    field = context.field("ZERO", INT)
    return Values(fields=(field,), rows=((literal(0, INT),),), base=(block,), block=block)
