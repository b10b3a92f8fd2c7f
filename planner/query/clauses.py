"""Checks that the planner reads every clause of a query's blocks.

A block is a SELECT, a set operation, a query in parentheses with clauses of its own, or a table in FROM. Code that
compiles a block calls :func:`read_clauses` with the names of the clauses that it reads; any other clause is an error.
:func:`check_clauses_read` finds blocks for which no code made this call. The parts of a clause are the same in every
place, so :func:`number_blocks` refuses a part that no code reads.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.syntax.dialect import offset_of, select_offset
from hintplan.planner.translation.translator import only

_IN_BATCH = "write SET 'execution.runtime-mode' = 'batch'"

UNSORTED = (
    "ORDER BY is not supported in streaming",
    f"a stream has no end: write ORDER BY with the rowtime first, add LIMIT, or {_IN_BATCH}",
)
"""The message and the advice for an order of a stream that does not begin with a rowtime."""

_WITHOUT_LIMIT = {
    "offset": (
        "OFFSET is not supported in streaming without LIMIT, by Flink neither",
        f"a stream of changes has no end: add LIMIT, or {_IN_BATCH}",
    ),
}
"""Clauses that a stream supports only together with LIMIT."""

_CLAUSES = {
    "laterals": ("LATERAL is not supported", "join tables, views or sub-queries"),
    "match": ("MATCH_RECOGNIZE is not supported", "remove it"),
    "pivots": ("PIVOT is not supported", "use GROUP BY with FILTER"),
}

_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.With: ("expressions", "recursive"),
    exp.CTE: ("this", "alias"),
    exp.From: ("this",),
    exp.Where: ("this",),
    exp.Group: ("expressions", "all"),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Fetch: ("direction", "count", "limit_options"),
    exp.LimitOptions: ("percent", "with_ties", "rows"),
    exp.TableAlias: ("this", "columns"),
    exp.Exists: ("this",),
    exp.In: ("this", "expressions", "query"),
    exp.Any: ("this",),
    exp.All: ("this",),
    exp.Lateral: ("this", "alias"),
}
"""The parts of a clause that the planner reads, wherever the clause stands. Reading a part means compiling it, or
refusing it with a reason.
"""

_BLOCKS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Table)
_NUMBER = "block"
_TOP = "top"


def refuse_clauses(context: Context, node: exp.Expr) -> None:
    """Refuse clauses that no query supports, and clauses that only batch jobs support."""
    unlimited = {} if context.batch or node.args.get("limit") else _WITHOUT_LIMIT
    for key, (message, advice) in {**unlimited, **_CLAUSES}.items():
        clause = node.args.get(key)
        if clause:
            place = clause[0] if isinstance(clause, list) else clause
            raise context.source.error(message, offset_of(place) or offset_of(node), advice)


def is_top(node: exp.Expr) -> bool:
    """Return True if the block ``node`` is the whole query, whose order its readers see."""
    return bool(node.meta.get(_TOP))


def clauses_of(node: exp.Expr) -> frozenset[str]:
    """Return sqlglot's names of the clauses that ``node`` has."""
    return frozenset(key for key, value in node.args.items() if value)


def read_clauses(context: Context, node: exp.Expr, *read: str) -> None:
    """Refuse the clauses of the block ``node`` that are not in ``read``, the clauses that the caller compiles."""
    only(context.source, node, *read)
    context.blocks_read.add(node.meta.get(_NUMBER, -1))


def number_blocks(context: Context, query: exp.Expr) -> None:
    """Assign a number to each block of ``query``, and refuse parts of clauses that no code reads.

    A copy of a block has the same number.
    """
    top: exp.Expr = query
    top.meta[_TOP] = True
    while isinstance(top, exp.Subquery):
        top = top.this
        top.meta[_TOP] = True
    for node in query.walk():
        if isinstance(node, exp.Order | exp.Limit | exp.Fetch) and isinstance(node.this, exp.Query | exp.Order):
            message = "ORDER BY and LIMIT behind a query in parentheses are not supported here"
            raise context.source.error(message, offset_of(node), "write them inside the parentheses")
        parts = _PARTS.get(type(node))
        if parts is not None:
            only(context.source, node, *parts)
        if isinstance(node, exp.CTE) and node.args.get("materialized") is not None:
            raise context.source.error("MATERIALIZED is not supported here", offset_of(node), "remove it")
        if isinstance(node, exp.Distinct) and node.args.get("on") is not None:
            message, advice = "DISTINCT ON is not supported", "write QUALIFY ROW_NUMBER() OVER (PARTITION BY ...) = 1"
            place = select_offset(node.parent) if isinstance(node.parent, exp.Select) else offset_of(node)
            raise context.source.error(message, place, advice)
        if isinstance(node, _BLOCKS):
            context.blocks += 1
            node.meta[_NUMBER] = context.blocks


def check_clauses_read(context: Context, query: exp.Expr) -> None:
    """Raise SqlError for a block of ``query`` that no code compiled, or whose clauses no code checked."""
    for node in query.walk():
        if not isinstance(node, _BLOCKS) or node.meta.get(_NUMBER) in context.blocks_read:
            continue
        if isinstance(node, exp.Subquery) and clauses_of(node) <= {"this"}:
            continue  # parentheses without a clause need no code
        message = "this part of the query is not supported here: nothing reads it"
        raise context.source.error(message, offset_of(node), "write it as a query in FROM")
