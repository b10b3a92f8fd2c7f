"""Scalar sub-queries: ``(SELECT MAX(x) FROM t WHERE t.k = o.k)``, and EXISTS anywhere but on its own in WHERE.

Such a sub-query becomes an aggregate by the columns that it compares with the outer block, which a LEFT JOIN brings to
the rows of that block; without such columns it has one row, for all. Without GROUP BY, its SELECT list and HAVING are
computed above the join, so that no rows are a group, too, in which COUNT is 0; with GROUP BY they are computed below. A
condition of WHERE that cannot be true without a partner makes the join an inner one.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparable
from hintplan.planner.expressions.typed import BOOLEAN, Expr, Ref, call
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query import ordering
from hintplan.planner.query.cached_results import has_cached_hint
from hintplan.planner.query.columns import filtered
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.refused_clauses import refuse_clauses
from hintplan.planner.query.subqueries.block import read_block
from hintplan.planner.query.subqueries.block_values import block_value, contains
from hintplan.planner.query.subqueries.empty_groups import group_of
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
from hintplan.planner.query.subquery_kinds import is_grouped, is_one_group, plain_select
from hintplan.planner.query.subquery_values import Value
from hintplan.planner.relations import UnnamedInput
from hintplan.planner.syntax.dialect import offset_of, select_offset
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Translator


def compile_value(compiler: QueryCompiler, translator: Translator, node: exp.Expr) -> Value:
    """What a sub-query that is a value is worth; ``translator`` is that of the clause it stands in."""
    context = compiler.context
    query = node.args["query"] if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else node
    select = plain_select(query)
    block = select is not None and _is_block(context, select)
    if block:
        assert select is not None
        refuse_clauses(context, select)
    asked: tuple[Expr, ...] | None = None
    if isinstance(node, exp.In):
        if not is_one_group(query):
            value = translator.expression(node.this)
            return _in(compiler, translator.scope, node, value, select if block else None)
        asked = tuple(map(translator.expression, asked_values(node)))
    if not block:
        return _apart(compiler, query, node, asked)
    assert select is not None
    return block_value(read_block(compiler, translator.scope, node, select), asked)


def _apart(compiler: QueryCompiler, query: exp.Expr, node: exp.Expr, asked: tuple[Expr, ...] | None) -> Value:
    """A query that is compiled by itself, as it cannot refer to the outer block."""
    context, relation = compiler.context, compiler.query(query)
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
    if select is not None and not is_grouped(select):
        return contains(read_block(compiler, scope, node, select), asked)
    relation = compiler.query(node.args["query"])
    check_columns(context, node, len(relation.fields))
    key = Ref(field=relation.fields[0], offset=offset)
    pair = comparable(context.source, "IN", (key, asked), offset)
    if may_be_null(context, relation, key):
        known = call("IS NOT NULL", (key,), BOOLEAN, offset)
        relation = filtered(relation, (known,), compiler.block)
    keyed = group_rows(relation, (key.field,), (), UnnamedInput, offset, compiler.block)
    worth = call("IS NOT NULL", (key,), BOOLEAN, offset)
    return Value(relation=keyed, on=(compared("=", pair, offset),), worth=worth, offset=offset)


def _is_block(context: Context, select: exp.Select) -> bool:
    """Whether the FROM and WHERE of ``select`` say all about which rows there are."""
    if select.args.get("with_") or has_cached_hint(context, select_offset(select)):
        return False
    distinct = select.args.get("distinct") and not is_one_group(select)
    return not (context.batch and (ordering.is_ordered(select) or distinct))
