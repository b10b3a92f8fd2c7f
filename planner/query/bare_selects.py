"""Sub-queries without FROM, such as ``(SELECT 1)``, ``x IN (SELECT 1)`` and ``EXISTS (SELECT 1)``.

Such a sub-query has one row, or none if its WHERE is not true. This module replaces it with its value in the syntax
tree, before other modules decide which sub-queries become joins. ``x IN (VALUES 1, 2)`` becomes a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.query.clauses import clauses_of, number_blocks
from hintplan.planner.query.join_conditions import move_to_where
from hintplan.planner.query.subquery_kinds import is_one_group, plain_select, without_parentheses
from hintplan.planner.query.unread_windows import drop_unread_windows
from hintplan.planner.syntax.dialect import (
    Token,
    cells_of,
    is_values,
    offset_of,
    parse_query,
    place_at,
    select_offset,
    with_idle,
)
from hintplan.planner.syntax.source import Source
from hintplan.planner.translation import aggregates
from hintplan.plans.text.counts import count

_ADVICE = "write the values without SELECT, or read from a table"


def parse_simplified_query(context: Context, tokens: Sequence[Token]) -> exp.Query:
    """Parse a query, and replace every sub-query in its expressions that reads no table.

    Works like :func:`hintplan.planner.syntax.dialect.parse_query`. Raises SqlError for a sub-query that cannot be
    replaced.
    """
    source = context.source
    query = parse_query(source, context.text, list(tokens))
    aggregates.mark_users(query, context.catalog.functions)
    for rows in list(query.find_all(exp.Any, exp.All)):
        if isinstance(rows.this, exp.Query) and _has_one_row(rows.this):
            rows.replace(exp.Subquery(this=rows.this.copy()))
    for node in reversed(list(query.find_all(exp.Exists, exp.In, exp.Subquery))):  # the inner ones first
        replacement: exp.Expr | None = None
        if isinstance(node, exp.Exists):
            replacement = _exists(source, node)
            if not context.batch:
                drop_unread_windows(node)
        elif isinstance(node, exp.In):
            replacement = _in(source, node)
        elif _is_value(node):
            replacement = _scalar(source, node)
        if replacement is not None:
            node.replace(replacement)
    move_to_where(query)
    number_blocks(context, query)
    return query


def _has_one_row(query: exp.Expr) -> bool:
    """Return True if ``query`` aggregates to exactly one row on any input, so that ANY and ALL mean this row."""
    select = plain_select(query)
    return select is not None and is_one_group(select) and clauses_of(select) <= _OF_ONE_ROW


_OF_ONE_ROW = frozenset(("hint", "expressions", "from_", "joins", "where", "distinct", "with_", "order"))
"""The clauses that do not change the single row of an aggregate without GROUP BY."""


_NOT_VALUES = exp.Query | exp.From | exp.Join | exp.Exists | exp.All | exp.Any | exp.CTE | exp.Lateral


def _is_value(node: exp.Expr) -> bool:
    """Return True if a query in parentheses stands for its value, not for its rows."""
    if isinstance(node.parent, exp.Select):
        return node.arg_key == "expressions"
    if isinstance(node.parent, exp.In):
        return node.arg_key != "query"
    return node.parent is not None and not isinstance(node.parent, _NOT_VALUES)


def _bare(source: Source, query: exp.Expr | None) -> exp.Select | None:
    """Return the only SELECT of ``query`` if it reads no table, else None."""
    query = None if query is None else without_parentheses(query)
    if not isinstance(query, exp.Select) or query.args.get("from_") is not None or is_values(query):
        return None
    for key in sorted(clauses_of(query) - {"hint", "expressions", "where", "distinct"}):
        what = {"with_": "WITH", "having": "HAVING", "group": "GROUP BY"}.get(key, key.upper())
        message = f"{what} in a sub-query without FROM is not supported"
        raise source.error(message, select_offset(query), _ADVICE)
    for node in query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query)):
        if isinstance(node, exp.Star) or aggregates.is_aggregate(node):
            what = "'*'" if isinstance(node, exp.Star) else "an aggregate"
            message = f"{what} in a sub-query without FROM is not supported"
            raise source.error(message, select_offset(query), _ADVICE)
    return query


def _values(select: exp.Select) -> list[exp.Expr]:
    return [(e.this if isinstance(e, exp.Alias) else e).copy() for e in select.expressions]


def _is_there(select: exp.Select) -> exp.Expr:
    """Return the condition under which the sub-query has its row."""
    where = select.args.get("where")
    if where is None:
        return place_at(exp.Boolean(this=True), select_offset(select))
    is_true = place_at(exp.Boolean(this=True), offset_of(where))
    return exp.Paren(this=exp.Is(this=exp.Paren(this=where.this.copy()), expression=is_true))


def _given(query: exp.Expr | None) -> list[exp.Expr]:
    """Return the values of ``query`` if it is VALUES with one column, else an empty list."""
    query = None if query is None else without_parentheses(query)
    if query is None or not is_values(query) or not _is_plain(query):
        return []
    cells = [cells_of(row) for row in query.args["expressions"]]
    return [cell for (cell,) in cells] if all(len(row) == 1 for row in cells) else []


def _is_plain(values: exp.Expr) -> bool:
    """Return True if VALUES has no clauses, such as LIMIT."""
    return clauses_of(values) <= {"hint", "expressions"}


def _exists(source: Source, node: exp.Expr) -> exp.Expr | None:
    if is_values(node.this) and _is_plain(node.this):
        return place_at(exp.Boolean(this=True), select_offset(node.this))
    select = _bare(source, node.this)
    if select is None:
        return None
    condition, values = _is_there(select), _values(select)
    for value in values:
        if value.find(exp.Query, exp.Exists):
            message = "a sub-query in SELECT of EXISTS without FROM is not supported"
            raise source.error(message, offset_of(value), "write EXISTS (SELECT 1)")
    return with_idle(condition, values)


def _scalar(source: Source, node: exp.Expr) -> exp.Expr | None:
    cells = _given(node)
    if len(cells) == 1:
        return exp.Paren(this=cells[0].copy())
    select = _bare(source, node)
    if select is None:
        return None
    values = _values(select)
    if len(values) != 1:
        message = f"a scalar sub-query has one column, found {len(values)}"
        raise source.error(message, select_offset(select), "select one column")
    if select.args.get("where") is None:
        return exp.Paren(this=values[0])
    return exp.Case(ifs=[exp.If(this=_is_there(select), true=values[0])])


def _in(source: Source, node: exp.Expr) -> exp.Expr | None:
    cells = _given(node.args.get("query"))
    if cells and not isinstance(node.this, exp.Tuple):
        return exp.In(this=node.this.copy(), expressions=[value.copy() for value in cells])
    select = _bare(source, node.args.get("query"))
    if select is None:
        return None
    compared = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    values = _values(select)
    if len(values) != len(compared):
        what = "one value" if len(compared) == 1 else f"{len(compared)} values"
        message = f"IN compares {what} with {count(len(values), 'column')}"
        raise source.error(message, offset_of(node), f"select {count(len(compared), 'column')}")
    pairs = [exp.In(this=a.copy(), expressions=[v]) for a, v in zip(compared, values, strict=True)]
    parts = [*([_is_there(select)] if select.args.get("where") is not None else []), *pairs]
    condition: exp.Expr = parts[0]
    for part in parts[1:]:
        condition = exp.And(this=condition, expression=part)
    return exp.Paren(this=condition)
