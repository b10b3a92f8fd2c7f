"""Rewrites of the syntax tree, before other modules decide which sub-queries become joins.

- A sub-query without FROM, such as ``(SELECT 1)``, ``x IN (SELECT 1)`` and ``EXISTS (SELECT 1)``, has one row, or none
  if its WHERE is not true. Its value replaces it. ``x IN (VALUES 1, 2)`` becomes a list.
- Sub-queries in ON of inner joins move to WHERE, where they mean the same and can be compiled. Conditions below a RIGHT
  or FULL JOIN stay, because that join adds rows to which the condition does not apply.
- Window functions (OVER) in the SELECT list of EXISTS are dropped, because the reader only needs to know that a row
  exists. In a stream, the columns and aggregates that the windows read replace the list. So all names are still
  resolved, but no window is computed. Flink's planner drops the list, too. A batch job compiles the windows in order to
  check them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.query.clauses import clauses_of, number_blocks
from hintplan.planner.query.subquery_kinds import is_one_group, plain_select, without_parentheses
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
from hintplan.planner.translation.aggregates import is_aggregate
from hintplan.plans.operators.over_aggregate import OVER_FUNCTIONS
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


def move_to_where(query: exp.Query) -> None:
    """Move conditions with sub-queries from ON of inner joins to WHERE, in all blocks of ``query``."""
    for select in query.find_all(exp.Select):
        for join in _movable(select):
            parts = list(_parts(join.args.get("on")))
            moved = [part for part in parts if part.find(exp.Query, exp.Exists) is not None]
            if not moved:
                continue
            kept = [part for part in parts if part not in moved]
            join.set("on", _all_of(kept) if kept else None)
            join.set("kind", join.args.get("kind") if kept else "CROSS")
            where = select.args.get("where")
            present = [] if where is None else [where.this]
            select.set("where", exp.Where(this=_all_of([*map(_closed, present), *moved])))


def _movable(select: exp.Select) -> Iterator[exp.Join]:
    for join in reversed(select.args.get("joins") or []):
        side = str(join.args.get("side") or "").upper()
        if side in ("RIGHT", "FULL"):
            return
        if not side and isinstance(join.this, exp.Table | exp.Subquery) and join.this.args.get("version") is None:
            yield join


def _parts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    elif node is not None:
        yield node


def _closed(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Paren | exp.And) else exp.Paren(this=node)


def _all_of(parts: list[exp.Expr]) -> exp.Expr:
    conjunction = parts[0]
    for part in parts[1:]:
        conjunction = exp.And(this=conjunction, expression=part)
    return conjunction


_READ_BY = ("qualify", "order", "distinct", "windows")
"""The clauses that read the SELECT list, or that the list reads."""


def drop_unread_windows(node: exp.Exists) -> None:
    """Replace each column with OVER in the SELECT list of ``node``'s query by its operands."""
    select = plain_select(node.this)
    if select is None or any(select.args.get(clause) for clause in _READ_BY):
        return
    group = select.args.get("group")
    grouped = () if group is None else tuple(group.expressions)
    items: list[exp.Expr] = []
    for item in select.expressions:
        windows = list(item.find_all(exp.Window))
        if windows and all(map(_is_known, windows)):
            read = list(_operands(item, grouped)) or [place_at(exp.Literal.number(1), offset_of(item))]
            items += [operand.copy() for operand in read]
        else:
            items.append(item)
    select.set("expressions", items)


def _is_known(window: exp.Window) -> bool:
    """Return True for a function that exists; the compilation of the block refuses any other function."""
    return window.this.name.upper() in OVER_FUNCTIONS


def _operands(node: exp.Expr, grouped: tuple[exp.Expr, ...]) -> Iterator[exp.Expr]:
    """Yield the columns, aggregates, sub-queries and GROUP BY expressions in ``node`` and in its windows."""
    call = node.this if isinstance(node, exp.Filter) else node
    is_group = is_aggregate(call) and not isinstance(node.parent, exp.Window)
    if is_group or isinstance(node, exp.Column | exp.Query) or node in grouped:
        yield node
        return
    for child in node.iter_expressions():
        yield from _operands(child, grouped)
