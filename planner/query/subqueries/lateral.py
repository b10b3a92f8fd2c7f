"""LATERAL (SELECT ...): a query in FROM whose WHERE may refer to the inputs before it.

It becomes a join on the compared values. ORDER BY and LIMIT apply to each row of the left side. So the rows of the
query are numbered per compared value, which requires that all comparisons are equalities.
:mod:`hintplan.planner.query.subqueries.lateral_groups` compiles queries that aggregate or remove duplicates.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.expressions.typed import BOOLEAN, Call, Expr, call, referenced_fields
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query import ordering
from hintplan.planner.query.clauses import read_clauses, refuse_clauses
from hintplan.planner.query.columns import check_own, column_for, filtered
from hintplan.planner.query.compiler import Lateral, QueryCompiler
from hintplan.planner.query.from_clause import build_from
from hintplan.planner.query.hint_scope.block import block_hints
from hintplan.planner.query.ordering import SortKeys
from hintplan.planner.query.sources.inputs import alias_of
from hintplan.planner.query.subqueries.lateral_groups import LateralRows, grouped_rows
from hintplan.planner.query.subquery_kinds import is_grouped
from hintplan.planner.query.where_clause import filtered_block
from hintplan.planner.relations import Item, LogicalCalc, Relation, identity
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import only

_ALLOWED = ("hint", "expressions", "from_", "joins", "where", "group", "having", "distinct", *ordering.CLAUSES)


def compile_lateral(compiler: QueryCompiler, node: exp.Lateral, outer: Scope, called: str) -> Lateral:
    """Compile the query at ``node``: its rows, and the conditions that compare them with the names of ``outer``.

    Messages name the query as ``called``, since it may be a sub-query that is compiled like a LATERAL query.
    """
    context, select, alias = compiler.context, node.this.this, alias_of(node)
    refuse_clauses(context, select)
    only(context.source, node.this, "this")
    read_clauses(context, select, *_ALLOWED)
    inner = compiler.within(replace(compiler.environment, block=alias or compiler.block, set_operation=""))
    keys = ordering.order_by_keys(context, select)
    by_groups = is_grouped(select) or select.args.get("distinct") is not None
    source = (grouped_rows if by_groups else _plain_rows)(inner, node, select, keys, outer, called)
    names = _names(compiler, node, [item.field.name for item in source.items])
    shown = tuple(
        Item(field=context.field(name, item.expr.type), expr=item.expr)
        for name, item in zip(names, source.items, strict=True)
    )
    fields = tuple(item.field for item in shown)
    rows, one_group = source.relation, source.one_group
    if one_group is not None:
        one_group = replace(one_group, items=shown)
    else:
        if ordering.is_ordered(select):
            rows = _first(inner, select, source, keys, shown, called)
        rows = LogicalCalc(
            input=rows, filter=None, items=(*shown, *identity(rows.fields)), base=rows.base, block=inner.block
        )
    return Lateral(
        relation=replace(rows, base=(alias,) if alias else rows.base),
        input=Input(name=alias, kind="sub-query", fields=fields, offset=offset_of(node)),
        conditions=source.conditions,
        domain=source.domain,
        one_group=one_group,
    )


def _plain_rows(
    compiler: QueryCompiler, node: exp.Lateral, select: exp.Select, keys: SortKeys, outer: Scope, called: str
) -> LateralRows:
    """Return the rows of a query that does not aggregate."""
    context = compiler.context
    hints = block_hints(context, compiler.environment, select, aggregates=False)
    source = build_from(compiler, select, hints, outer)
    rows, conditions = filtered_block(compiler, source, select, hints, aggregates=False)
    items, sorted_by = ordering.select_list_items(
        context, select, clause_translator(context, source.scope, "SELECT"), keys
    )
    own = frozenset(f.id for f in rows.fields)
    for expression in (*(item.expr for item in items), *(e for e in sorted_by if e is not None)):
        check_own(context, expression, own, called)
    return LateralRows(relation=rows, items=items, sorted_by=sorted_by, conditions=conditions)


def _at(compiler: QueryCompiler, ordered: exp.Ordered, shown: tuple[Item, ...], position: int | None) -> Expr:
    fields = tuple(item.field for item in shown)
    chosen = ordering.at_position(compiler.context, ordered, position or 0, fields)
    return next(item.expr for item in shown if item.field == chosen)


def _names(compiler: QueryCompiler, node: exp.Lateral, names: list[str]) -> list[str]:
    alias = node.args.get("alias")
    columns = [c.name for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    if columns and len(columns) != len(names):
        message = f"{len(columns)} column names for {len(names)} columns"
        raise compiler.context.source.error(message, offset_of(node.args["alias"]), "name each column once")
    return columns or names


def _first(
    compiler: QueryCompiler,
    select: exp.Select,
    lateral: LateralRows,
    keys: SortKeys,
    shown: tuple[Item, ...],
    called: str,
) -> Relation:
    """Keep the first rows for each combination of the values that the conditions compare."""
    context, rows = compiler.context, lateral.relation
    sorted_by = [
        _at(compiler, node, shown, position) if e is None else e
        for node, position, e in zip(keys.nodes, keys.positions, lateral.sorted_by, strict=True)
    ]
    own = frozenset(f.id for f in rows.fields)
    compared = [_own_side(part, own) for part in lateral.conditions]
    if select.args.get("limit") is None:
        raise context.source.error("ORDER BY without LIMIT has no effect in LATERAL", offset_of(select), "add LIMIT")
    if None in compared:
        message = f"LIMIT in {called} that is compared by more than equality is not supported"
        raise context.source.error(message, offset_of(select.args["limit"]), "compare by equalities only")
    if context.batch and not sorted_by:
        message = "rows of a batch job have no order of arrival"
        raise context.source.error(message, offset_of(select.args["limit"]), "add ORDER BY")
    values = list(dict.fromkeys(e for e in compared if e is not None))
    nullable = [e for e in values if may_be_null(context, rows, e)]
    rows = filtered(rows, tuple(call("IS NOT NULL", (e,), BOOLEAN, 0) for e in nullable), compiler.block)
    computed: list[Item] = []
    partition, order = (tuple(column_for(context, e, computed) for e in part) for part in (values, sorted_by))
    if computed:
        items = (*identity(rows.fields), *computed)
        rows = LogicalCalc(input=rows, filter=None, items=items, base=rows.base, block=compiler.block)
    return ordering.first_of_each(context, select, rows, keys, order, partition, compiler.block)


def _own_side(condition: Expr, own: frozenset[int]) -> Expr | None:
    """Return the query's own side of an equality, or None if the condition is not an equality or mixes both sides."""
    if isinstance(condition, Call) and condition.function == "=":
        for mine, other in (condition.args, condition.args[::-1]):
            sides = [{f.id in own for f in referenced_fields(e)} for e in (mine, other)]
            if sides == [{True}, {False}]:
                return mine
    return None
