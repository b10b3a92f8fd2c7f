"""Clauses that no query can say, and those that only a query of a batch job can."""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.syntax.dialect import offset_of

_IN_BATCH = "write SET 'execution.runtime-mode' = 'batch'"

_WITHOUT_LIMIT = {
    "order": ("ORDER BY is not supported in streaming", f"a stream of changes has no end: add LIMIT, or {_IN_BATCH}"),
    "offset": ("OFFSET is not supported in streaming", f"a stream of changes has no end: add LIMIT, or {_IN_BATCH}"),
}
"""What a stream has below a LIMIT only."""

_CLAUSES = {
    "laterals": ("LATERAL is not supported", "join tables, views or sub-queries"),
    "match": ("MATCH_RECOGNIZE is not supported", "remove it"),
    "pivots": ("PIVOT is not supported", "use GROUP BY with FILTER"),
}


def refuse_clauses(context: Context, node: exp.Expr) -> None:
    """Refuse what no query can say, and what only a batch job can."""
    unlimited = {} if context.batch or node.args.get("limit") else _WITHOUT_LIMIT
    for key, (message, advice) in {**unlimited, **_CLAUSES}.items():
        found = node.args.get(key)
        if found:
            place = found[0] if isinstance(found, list) else found
            raise context.source.error(message, offset_of(place) or offset_of(node), advice)
