"""Removes ORDER BY where no reader keeps the order: without LIMIT or OFFSET, below a join, a grouping or similar.

The order of the query's own result remains, also if it comes from a sub-query or view that the query only filters and
projects. Sorts with LIMIT or OFFSET remain. A cached result keeps its order, because all readers share it.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.context import Context
from hintplan.planner.relations import LogicalCache, LogicalCalc, LogicalSort, Relation, map_inputs


def drop_idle_sorts(context: Context, relation: Relation) -> Relation:
    """Keep only the sorts that affect the result: its order, or the choice of rows."""
    return _dropped(context, relation, seen=True)


def _joined(cut: LogicalSort) -> Relation:
    """Merge a LIMIT without an order into the sort that it reads, if only a projection lies between."""
    below = cut.input
    if cut.order:
        return cut
    if isinstance(below, LogicalSort) and below.limit is None and not below.offset:
        return replace(below, offset=cut.offset, limit=cut.limit)
    if isinstance(below, LogicalCalc) and below.filter is None:
        joined = _joined(replace(cut, input=below.input))
        if not isinstance(joined, LogicalSort) or joined.order:
            return replace(below, input=joined)
    return cut


def _dropped(context: Context, relation: Relation, *, seen: bool) -> Relation:
    """Remove sorts from ``relation``. ``seen`` is true if a reader depends on the order of its rows."""
    if isinstance(relation, LogicalSort):
        cuts = relation.limit is not None or relation.offset > 0
        if cuts or seen:
            # A LIMIT without an order takes the first rows of its input.
            return _joined(replace(relation, input=_dropped(context, relation.input, seen=not relation.order)))
        message = "ORDER BY has no effect: nothing above it keeps the order"
        context.report.note(message, relation.place or 0, "remove it, or add LIMIT")
        return _dropped(context, relation.input, seen=False)
    # A reader of a cached result may depend on its order. Of the other relations, only a calc keeps the order.
    below = isinstance(relation, LogicalCache) or (seen and isinstance(relation, LogicalCalc))
    return map_inputs(relation, lambda each: _dropped(context, each, seen=below))
