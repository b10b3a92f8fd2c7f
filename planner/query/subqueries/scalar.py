"""Scalar sub-queries: ``(SELECT MAX(x) FROM t WHERE t.k = o.k)``, and EXISTS anywhere but on its own in WHERE.

Such a sub-query becomes an aggregate by the columns that it compares with the outer block, which a LEFT JOIN brings to
the rows of that block; without such columns it has one row, for all. Without GROUP BY, its SELECT list and HAVING are
computed above the join, so that no rows are a group, too, in which COUNT is 0; with GROUP BY they are computed below. A
condition of WHERE that cannot be true without a partner makes the join an inner one.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparable
from hintplan.planner.expressions.typed import BOOLEAN, Expr, Ref, call
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query.clauses import read_clauses, refuse_clauses
from hintplan.planner.query.columns import filtered
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.subqueries.block import read_block
from hintplan.planner.query.subqueries.block_values import block_value, contains
from hintplan.planner.query.subqueries.empty_groups import group_of
from hintplan.planner.query.subqueries.plain_blocks import (
    PLAIN,
    beyond,
    is_plain,
    refers_outwards,
    without_duplicates_kept,
    without_order,
)
from hintplan.planner.query.subqueries.single_values import (
    asked_values,
    check_columns,
    group_rows,
    has_one_row,
    is_some,
    row_count,
    same_values,
    several_rows,
    value_of_group,
)
from hintplan.planner.query.subquery_kinds import check_looked_for, is_grouped, is_one_row, plain_select
from hintplan.planner.query.subquery_values import Value
from hintplan.planner.relations import UnnamedInput
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Translator


def compile_value(compiler: QueryCompiler, translator: Translator, node: exp.Expr) -> Value:
    """What a sub-query that is a value is worth; ``translator`` is that of the clause it stands in."""
    context = compiler.context
    query = node.args["query"] if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else node
    written, scope = plain_select(query), translator.scope
    select = None if written is None else _needed(compiler, node, written, scope)
    asked: tuple[Expr, ...] | None = None
    if isinstance(node, exp.In):
        check_looked_for(context.source, node.this)
        if not is_one_row(query):
            return _in(compiler, scope, node, translator.expression(node.this), select)
        asked = tuple(map(translator.expression, asked_values(node)))
    if written is None or select is None:
        return _apart(compiler, scope, query, node, asked)
    refuse_clauses(context, written)
    read_clauses(context, select, *PLAIN, "group", "having", "distinct")
    return block_value(read_block(compiler, scope, node, select, written), asked)


def _apart(
    compiler: QueryCompiler, scope: Scope, query: exp.Expr, node: exp.Expr, asked: tuple[Expr, ...] | None
) -> Value:
    """A query that is compiled by itself, as it cannot refer to the outer block, which has ``scope``."""
    context, relation = compiler.context, compiler.apart(query, beyond(compiler.context, query, scope))
    offset = offset_of(node)
    check_columns(context, node, len(relation.fields))
    group = group_of(relation)
    if group is not None:
        return value_of_group(context, node, group, (), asked)
    if isinstance(node, exp.Exists):
        count = row_count(context)
        counted = group_rows(relation, (), (count,), UnnamedInput, offset, compiler.block)
        return Value(relation=counted, on=(), worth=is_some(count, offset), offset=offset)
    if not has_one_row(context, relation, frozenset()):
        raise several_rows(context, offset)
    value = Ref(field=relation.fields[0], offset=offset)
    worth = value if asked is None else same_values(context, relation.fields, asked, offset)
    return Value(relation=relation, on=(), worth=worth, offset=offset)


def _in(compiler: QueryCompiler, scope: Scope, node: exp.In, asked: Expr, select: exp.Select | None) -> Value:
    """``x IN (SELECT y ...)`` where NULL is as good as false: whether there is a group of ``y`` that equals ``x``."""
    context, offset = compiler.context, offset_of(node)
    query = node.args["query"]
    if select is not None and not is_grouped(select):
        read_clauses(context, select, *PLAIN)
        return contains(read_block(compiler, scope, node, select, select), asked)
    relation = compiler.apart(query, beyond(context, query, scope))
    check_columns(context, node, len(relation.fields))
    key = Ref(field=relation.fields[0], offset=offset)
    pair = comparable(context.source, "IN", (key, asked), offset)
    if may_be_null(context, relation, key):
        known = call("IS NOT NULL", (key,), BOOLEAN, offset)
        relation = filtered(relation, (known,), compiler.block)
    keyed = group_rows(relation, (key.field,), (), UnnamedInput, offset, compiler.block)
    worth = call("IS NOT NULL", (key,), BOOLEAN, offset)
    return Value(relation=keyed, on=(compared("=", pair, offset),), worth=worth, offset=offset)


def _needed(compiler: QueryCompiler, node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Select | None:
    """``select`` without clauses that mean nothing here; None if it has to be compiled by itself, and can be."""
    context, exists = compiler.context, isinstance(node, exp.Exists)
    one_group, of_rows = is_one_row(select), not isinstance(node, exp.Query)
    clauses = ("group", "having", *(["distinct"] if one_group else []))
    listed = not exists or is_grouped(select)

    def plain(each: exp.Select) -> bool:
        return is_plain(context, each, *clauses, listed=listed)

    if plain(select):
        return select
    outwards = refers_outwards(compiler, select, scope)
    if context.batch and not outwards:
        return None
    needed = without_duplicates_kept(select) if of_rows and not is_grouped(select) else select
    if plain(needed):
        return needed
    if isinstance(node, exp.In) and not one_group:
        return None
    needed = without_duplicates_kept(without_order(select)) if of_rows else without_order(select)
    if not plain(needed):
        return None
    if outwards or one_group or exists:
        return needed
    # What has one row anyway needs no LIMIT. Other rows are cut to one, in an operator of its own.
    with context.on_trial():
        relation = compiler.query(needed)
    return needed if group_of(relation) or has_one_row(context, relation, frozenset()) else None
