"""Sub-queries that are a plain block, whose FROM, WHERE and SELECT list say all about their rows.

A plain block can refer, in its WHERE, to the block around it. Clauses that change nothing for whoever asks, such as
LIMIT 3 in EXISTS, are left out of a sub-query, which may make it plain; :func:`check_idle` reads them nevertheless. Any
other sub-query is compiled as a whole, and decorrelated if it refers to the block around it.
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
from hintplan.planner.query.hint_scope.state_ttl import BlockHints
from hintplan.planner.query.subquery_kinds import is_grouped, keeps_a_row, sub_queries_in
from hintplan.planner.query.window_functions import has_windows, over_windows
from hintplan.planner.relations import Calc, Relation
from hintplan.planner.syntax.dialect import select_offset
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope, levels

PLAIN = ("hint", "expressions", "from_", "joins", "where")
"""The clauses of a plain block."""


def is_plain(context: Context, select: exp.Select, *others: str, listed: bool = True) -> bool:
    """True for a plain block; it may have the ``others`` among its clauses as well.

    Without GROUP BY, an aggregate in SELECT or HAVING is a clause of its own, which is called ``group`` here, too. If
    the SELECT list is not ``listed``, its reader asks for rows only, and their numbers and the like mean nothing.
    """
    if not clauses_of(select) <= {*PLAIN, *others} or select.args.get("from_") is None:
        return False
    if is_grouped(select) and "group" not in others:
        return False
    if listed and (has_windows(select) or sub_queries_in(select.expressions)):
        return False
    return not has_cached_hint(context, select_offset(select))


def without_order(select: exp.Select) -> exp.Select:
    """``select`` for a reader that asks for any row: without an order, and without a LIMIT that leaves a row."""
    if not ordering.is_ordered(select) or not keeps_a_row(select):
        return select
    return _without(select, *ordering.CLAUSES)


def without_duplicates_kept(select: exp.Select) -> exp.Select:
    """``select`` for a reader to whom duplicates mean nothing: without DISTINCT, unless LIMIT or OFFSET counts rows."""
    counts = select.args.get("limit") is not None or select.args.get("offset") is not None
    return select if counts or select.args.get("distinct") is None else _without(select, "distinct")


def _without(select: exp.Select, *clauses: str) -> exp.Select:
    found = select.copy()
    for clause in clauses:
        found.set(clause, None)
    return found


def refers_outwards(compiler: QueryCompiler, select: exp.Select, outer: Scope) -> bool:
    """True if WHERE of ``select`` names a column that only ``outer``, the block around, has."""
    where = select.args.get("where")
    return where is not None and not select.args.get("with_") and _name_outer(compiler, select, outer, [where])


def selects_outer(compiler: QueryCompiler, select: exp.Select, outer: Scope) -> bool:
    """True if a clause of ``select`` behind WHERE, or its SELECT list, names a column that only ``outer`` has."""
    clauses = (select.args.get(key) for key in ("group", "having", "order"))
    nodes = [*select.expressions, *(each for each in clauses if each is not None)]
    return _name_outer(compiler, select, outer, nodes)


def _name_outer(compiler: QueryCompiler, select: exp.Select, outer: Scope, nodes: list[exp.Expr]) -> bool:
    """True if ``nodes`` of ``select`` name a column that only ``outer`` has."""
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
    first, *others = (part.name for part in column.parts)
    return any((others and level.find(first, others[0])) or level.find(None, first) for level in levels(scope))


def check_idle(compiler: QueryCompiler, select: exp.Select, found: From, rows: Relation) -> None:
    """Compile the SELECT list and ORDER BY of ``select`` only to see that they are right: its reader needs neither."""
    context = compiler.context
    with context.on_trial():
        keys = ordering.sort_keys(context, select)
        translator = clause_translator(context, found.scope, "SELECT", aggregates=is_grouped(select))
        values = compiler.values(translator, sub_queries_in(select.expressions))
        translator = replace(translator, values={place: value.worth for place, value in values.items()})
        rows, translator = over_windows(context, select, keys, rows, translator)
        items, sorted_by = ordering.listed(context, select, translator, keys)
        if ordering.is_ordered(select):
            listed = Calc(input=rows, filter=None, items=items, base=rows.base, block=compiler.block)
            ordering.over_select(context, select, listed, listed, keys, sorted_by)
