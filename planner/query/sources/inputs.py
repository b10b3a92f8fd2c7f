"""The inputs of a query block, read from the FROM clause in the syntax tree before compilation.

This module resolves names in FROM (as a CTE, a view or a table, in this order), and refuses everything in FROM that is
not supported. :mod:`hintplan.planner.query.from_clause` compiles the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from hintplan.planner.context import Context, Cte, QueryEnvironment, TableEntry
from hintplan.planner.query.clauses import read_clauses
from hintplan.planner.query.sources.scans import check_name
from hintplan.planner.query.sources.windows import check_windowed
from hintplan.planner.statements.model import CreateView
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.syntax.windowed_tables import window_call
from hintplan.planner.translation.scope import Input
from hintplan.plans.text.names import did_you_mean

_CATALOG = ("default_catalog", "default_database")
_LATERAL = "write FROM t, LATERAL TABLE(f(x)) AS T(a): a function is called for the rows of the tables before it"
_REFUSED: dict[type, tuple[str, str]] = {
    exp.TableFromRows: ("a function without LATERAL is not supported here", _LATERAL),
    exp.Anonymous: ("a function without LATERAL is not supported here", _LATERAL),
}


def sources_of(select: exp.Select) -> tuple[exp.Expr, ...]:
    """Return the first source in FROM, then the source that each join adds."""
    first = select.args.get("from_")
    joins = select.args.get("joins") or []
    return (*([first.this] if first is not None else []), *(j.this for j in joins))


def alias_of(node: exp.Expr) -> str | None:
    """Return the alias of a table or sub-query, or None."""
    alias = node.args.get("alias")
    return alias.name if isinstance(alias, exp.TableAlias) and alias.name else None


def is_lateral_query(node: exp.Expr) -> bool:
    """Return True if ``node`` is ``LATERAL (SELECT ...)``, unless its FROM is the call of a function."""
    if not isinstance(node, exp.Lateral) or not isinstance(node.this, exp.Subquery):
        return False
    select = node.this.this
    if not isinstance(select, exp.Select) or select.args.get("from_") is None:
        return False
    table = select.args["from_"].this
    return not (isinstance(table, exp.Table) and isinstance(table.this, exp.Anonymous))


def find_table(context: Context, environment: QueryEnvironment, node: exp.Table) -> TableEntry | CreateView | Cte:
    """Resolve the name of ``node``; raise SqlError if it is unknown."""
    offset = offset_of(node)
    call = window_call(node)
    if call is not None:
        check_windowed(context, call)
        offset = offset_of(node.this)
    refused = _REFUSED.get(type(node.this))
    if refused is not None or not isinstance(node.this, exp.Identifier):
        message, advice = refused or ("this is not supported in FROM", "use a table, a view or a sub-query")
        raise context.source.error(message, offset, advice)
    if node.args.get("sample"):
        raise context.source.error("TABLESAMPLE is not supported", offset, "filter the rows with WHERE")
    if node.args.get("pivots"):
        raise context.source.error(
            "PIVOT is not supported", offset, "aggregate with FILTER (WHERE ...) for each column"
        )
    read_clauses(context, node, "this", "db", "catalog", "alias", "joins", "version")
    name, path = node.name, _path(node)
    if len(path) == 1 and name in environment.ctes:
        return environment.ctes[name]
    if path[:-1] == _CATALOG[3 - len(path) :][: len(path) - 1]:
        if name in context.catalog.views:
            return context.catalog.views[name]
        entry = context.catalog.tables.get(name)
        if entry is not None:
            check_name(context, name, offset)
            return entry
        if name in context.catalog.failed:
            raise FollowUp
    declared = (*environment.ctes, *context.catalog.names())
    raise context.source.error(
        f"unknown table '{'.'.join(path)}'", offset, did_you_mean(name, declared, what="declared")
    )


def _is_temporal(context: Context, environment: QueryEnvironment, node: exp.Table) -> bool:
    """Return True if FOR SYSTEM_TIME AS OF of ``node`` names a column with a WATERMARK of a table in its FROM."""
    column, select = node.args["version"].args.get("expression"), node.find_ancestor(exp.Select)
    if not isinstance(column, exp.Column) or select is None:
        return False
    begin = select.args.get("from_")  # without FROM, the SELECT is refused later
    sources = (source.this for source in (begin, *(select.args.get("joins") or ())) if source is not None)
    for source in sources:
        qualifier = column.args.get("table")
        if not isinstance(source, exp.Table) or (qualifier and qualifier.name != (alias_of(source) or source.name)):
            continue
        entry = None if source.name in environment.ctes else context.catalog.tables.get(source.name)
        if entry is not None and entry.table.watermark is not None and entry.table.watermark.column == column.name:
            return True
    return False


def _path(node: exp.Table) -> tuple[str, ...]:
    parts = (node.args.get("catalog"), node.args.get("db"), node.this)
    return tuple(p.name for p in parts if isinstance(p, exp.Expr))


def inputs_of_source(context: Context, environment: QueryEnvironment, node: exp.Expr) -> Iterator[Input]:
    """Yield the inputs of one source in FROM, without their fields; a join in parentheses has several."""
    offset, alias = offset_of(node), alias_of(node)
    if isinstance(node, exp.Table):
        target = find_table(context, environment, node)
        kind = {Cte: "CTE", CreateView: "view"}.get(type(target), "table")
        path = () if alias else (node.name,) if kind == "CTE" else (*_CATALOG, node.name)
        yield Input(
            name=alias or node.name,
            kind=f"{kind} {node.name}",
            fields=(),
            offset=offset,
            path=path,
            looked_up=bool(node.args.get("version")) and not _is_temporal(context, environment, node),
        )
        for join in node.args.get("joins") or []:
            yield from inputs_of_source(context, environment, join.this)
    elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not isinstance(node.this, exp.Table):
        yield Input(name=alias, kind="sub-query", fields=(), offset=offset)
        for join in node.args.get("joins") or []:
            yield from inputs_of_source(context, environment, join.this)
    elif isinstance(node, exp.Subquery):
        yield from inputs_of_source(context, environment, node.this)
        for join in node.args.get("joins") or []:
            yield from inputs_of_source(context, environment, join.this)
    elif is_lateral_query(node):
        yield Input(name=alias, kind="sub-query", fields=(), offset=offset)
    elif isinstance(node, exp.Lateral):
        yield Input(name=alias, kind="function", fields=(), offset=offset, called=True)
    elif isinstance(node, exp.Unnest):
        yield Input(name=alias, kind="UNNEST", fields=(), offset=offset, called=True)
    else:
        message, advice = _REFUSED.get(
            type(node), ("this is not supported in FROM", "use a table, a view or a sub-query")
        )
        raise context.source.error(message, offset, advice)


def names_elsewhere(context: Context, environment: QueryEnvironment, select: exp.Select) -> dict[str, str]:
    """Return advice for names that are not inputs of ``select``, but inputs of an inner or outer block."""
    advice: dict[str, str] = {}
    for nested in select.find_all(exp.Select):
        if nested is select:
            continue
        for node in sources_of(nested):
            name = alias_of(node) or (node.name if isinstance(node, exp.Table) else None)
            if name:
                place = context.source.where(offset_of(nested))
                advice.setdefault(
                    name, f"'{name}' is an input of the inner query at {place}: put the hint after its SELECT"
                )
    for node in sources_of(select):
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            _names_inside(context, environment, node, advice)
    parent = select.parent_select
    while parent is not None:
        for node in sources_of(parent) if isinstance(parent, exp.Select) else ():
            name = alias_of(node) or (node.name if isinstance(node, exp.Table) else None)
            if name:
                place = context.source.where(offset_of(parent))
                advice.setdefault(
                    name, f"'{name}' is an input of the outer query at {place}: put the hint after its SELECT"
                )
        parent = parent.parent_select
    return advice


def _names_inside(context: Context, environment: QueryEnvironment, node: exp.Table, advice: dict[str, str]) -> None:
    """Add advice to ``advice`` for names that exist only inside the CTE or view that ``node`` refers to."""
    target = find_table(context, environment, node)
    if isinstance(target, Cte):
        for table in target.query.find_all(exp.Table):
            name = alias_of(table) or table.name
            advice.setdefault(
                name, f"'{name}' is an input inside CTE '{node.name}': put the hint after the SELECT there"
            )
    elif isinstance(target, CreateView):
        for token in target.query:
            if token.text in context.catalog.names():
                advice.setdefault(
                    token.text,
                    f"'{token.text}' is an input inside view '{node.name}': put the hint after the SELECT there",
                )
