"""Sub-queries that are a plain block, whose rows depend on FROM, WHERE and the SELECT list only.

A plain block can refer to the outer block in its WHERE. Clauses that do not affect the reader, such as LIMIT 3 in
EXISTS, are removed from a sub-query. This may make it plain, and :func:`check_idle` still checks these clauses. Every
other sub-query is compiled as a whole, and decorrelated if it refers to the outer block.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.query import ordering
from hintplan.planner.query.cached_results import has_cached_hint
from hintplan.planner.query.clauses import clauses_of
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.from_clause import From, build_from
from hintplan.planner.query.hint_scope import BlockHints
from hintplan.planner.query.subquery_kinds import is_grouped, keeps_a_row, sub_queries_in
from hintplan.planner.query.window_functions import has_windows, over_windows
from hintplan.planner.relations import LogicalCalc, Relation
from hintplan.planner.syntax.dialect import select_offset
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope, levels

PLAIN = ("hint", "expressions", "from_", "joins", "where")
"""The clauses of a plain block."""


def is_plain(context: Context, select: exp.Select, *others: str, listed: bool = True) -> bool:
    """Return True for a plain block, which may have the clauses ``others`` as well.

    An aggregate in SELECT or HAVING without GROUP BY counts as the clause ``group``. If ``listed`` is False, the reader
    does not use the SELECT list, and so row numbers and sub-queries in it do not matter.
    """
    if not clauses_of(select) <= {*PLAIN, *others} or select.args.get("from_") is None:
        return False
    if is_grouped(select) and "group" not in others:
        return False
    if listed and (has_windows(select) or sub_queries_in(select.expressions)):
        return False
    return not has_cached_hint(context, select_offset(select))


def without_order(select: exp.Select) -> exp.Select:
    """Return ``select`` for a reader that accepts any row: without ORDER BY, and without a LIMIT that keeps a row."""
    if not ordering.is_ordered(select) or not keeps_a_row(select):
        return select
    return _without(select, *ordering.CLAUSES)


def without_idle_distinct(select: exp.Select) -> exp.Select:
    """Return ``select`` for a reader that ignores duplicates: without DISTINCT, unless LIMIT or OFFSET counts rows."""
    counts = select.args.get("limit") is not None or select.args.get("offset") is not None
    return select if counts or select.args.get("distinct") is None else _without(select, "distinct")


def _without(select: exp.Select, *clauses: str) -> exp.Select:
    reduced = select.copy()
    for clause in clauses:
        reduced.set(clause, None)
    return reduced


def refers_outwards(compiler: QueryCompiler, select: exp.Select, outer: Scope) -> bool:
    """Return True if WHERE of ``select`` names a column that exists only in ``outer``, the scope of the outer block."""
    where = select.args.get("where")
    return where is not None and not select.args.get("with_") and _name_outer(compiler, select, outer, [where])


def selects_outer(compiler: QueryCompiler, select: exp.Select, outer: Scope) -> bool:
    """Return True if the SELECT list or a clause after WHERE names a column that exists only in ``outer``."""
    clauses = (select.args.get(key) for key in ("group", "having", "order"))
    nodes = [*select.expressions, *(each for each in clauses if each is not None)]
    return _name_outer(compiler, select, outer, nodes)


def _name_outer(compiler: QueryCompiler, select: exp.Select, outer: Scope, nodes: list[exp.Expr]) -> bool:
    """Return True if ``nodes`` of ``select`` name a column that exists only in ``outer``."""
    columns = [
        column
        for node in nodes
        for column in node.walk(prune=lambda each: isinstance(each, exp.Query))
        if isinstance(column, exp.Column) and _knows(outer, column)
    ]
    if not columns or select.args.get("from_") is None:
        return False
    with compiler.context.on_trial():
        own = replace(build_from(compiler, select, BlockHints(), outer).scope, parent=None)
    return any(not _knows(own, column) for column in columns)


def _knows(scope: Scope, column: exp.Column) -> bool:
    first, *path = (part.name for part in column.parts)
    return any((path and level.find(first, path[0])) or level.find(None, first) for level in levels(scope))


def check_idle(compiler: QueryCompiler, select: exp.Select, from_clause: From, rows: Relation) -> None:
    """Check the SELECT list and ORDER BY of ``select`` by compiling them on trial; the reader needs neither."""
    context = compiler.context
    with context.on_trial():
        keys = ordering.order_by_keys(context, select)
        translator = clause_translator(context, from_clause.scope, "SELECT", aggregates=is_grouped(select))
        values = compiler.values(translator, sub_queries_in(select.expressions))
        translator = replace(translator, values={place: value.worth for place, value in values.items()})
        rows, translator = over_windows(context, select, keys, rows, translator)
        items, sorted_by = ordering.select_list_items(context, select, translator, keys)
        if ordering.is_ordered(select):
            listed = LogicalCalc(input=rows, filter=None, items=items, base=rows.base, block=compiler.block)
            ordering.over_select(context, select, listed, listed, keys, sorted_by)
