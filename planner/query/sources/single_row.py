"""The single row from which a SELECT without FROM, or an UNNEST at the beginning of FROM, is computed."""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import INT, literal
from hintplan.planner.relations import LogicalValues


def single_row(context: Context, block: str) -> LogicalValues:
    """Return a relation with one row, whose only column has no name that a query can use."""
    field = context.field("ZERO", INT)
    return LogicalValues(fields=(field,), rows=((literal(0, INT),),), base=(block,), block=block)
