"""Drops every ORDER BY that orders nothing anyone sees: without LIMIT or OFFSET, below a join, a grouping or the like.

The order of the query's own result stays, also from a sub-query or view that it only filters and projects, and so does
what LIMIT and OFFSET cut. A cached result keeps its order, so that it is the same whoever reads it.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.relations import Cached, Calc, Relation, Sort, map_inputs


def drop_idle_sorts(context: Context, relation: Relation) -> Relation:
    """Keep only sorts whose order shows, or that keep some rows and not others."""
    return _dropped(context, relation, seen=True)


def _joined(cut: Sort) -> Relation:
    """A LIMIT without an order as part of the sort that it reads, if nothing but a projection lies between."""
    below = cut.input
    if cut.order:
        return cut
    if isinstance(below, Sort) and below.limit is None and not below.offset:
        return replace(below, offset=cut.offset, limit=cut.limit)
    if isinstance(below, Calc) and below.filter is None:
        joined = _joined(replace(cut, input=below.input))
        if not isinstance(joined, Sort) or joined.order:
            return replace(below, input=joined)
    return cut


def _dropped(context: Context, relation: Relation, *, seen: bool) -> Relation:
    """``seen`` tells whether the order of the rows of ``relation`` matters to anyone."""
    if isinstance(relation, Sort):
        cuts = relation.limit is not None or relation.offset > 0
        if cuts or seen:
            # Without an order of its own, a LIMIT takes the first rows of what it reads.
            return _joined(replace(relation, input=_dropped(context, relation.input, seen=not relation.order)))
        message = "ORDER BY has no effect: nothing above it keeps the order"
        context.report.note(message, relation.place or 0, "remove it, or add LIMIT")
        return _dropped(context, relation.input, seen=False)
    # A cached result may be read in its order; of the others only a calc passes the order on.
    below = isinstance(relation, Cached) or (seen and isinstance(relation, Calc))
    return map_inputs(relation, lambda each: _dropped(context, each, seen=below))
