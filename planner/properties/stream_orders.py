"""Decides how a stream orders the rows of window functions (OVER): by a rowtime, by arrival, or by any other column."""

from __future__ import annotations

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Field
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.properties.time_attributes import is_processing_time
from hintplan.planner.relations import Relation, StreamOrder
from hintplan.plans.operators.contract.timed import MOST_PRECISION


def stream_order(context: Context, place: int, relation: Relation, key: Field) -> StreamOrder:
    """Return the order of the rows of ``relation`` by ``key``, which is written at ``place``."""
    if is_processing_time(context, relation, key.id):
        return "arrival"
    if why_no_rowtime(context, relation, key) is not None:
        return "column"
    if (key.type.precision or 0) > MOST_PRECISION:
        message = (
            f"a rowtime has at most {MOST_PRECISION} digits of a second, but '{key.name}' is {key.type.as_nullable()}"
        )
        raise context.source.error(message, place, f"declare it as {key.type.root}({MOST_PRECISION})")
    return "rowtime"
