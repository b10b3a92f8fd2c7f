"""Scalar sub-queries, such as ``(SELECT MAX(x) FROM t WHERE t.k = o.k)``, and EXISTS below other operators.

Such a sub-query becomes an aggregate, grouped by the columns that it compares with the outer block. A LEFT JOIN brings
it to the rows of that block. Without such columns, it has one row for all of them.

Without GROUP BY, its SELECT list and HAVING are computed above the join. So empty input has a row, too, in which COUNT
is 0. With GROUP BY, they are computed below the join. If a condition of WHERE is never true without a match, the join
becomes an inner join.

Every other sub-query is compiled as a whole and decorrelated (:mod:`hintplan.planner.query.decorrelation`).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparison_operands
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, Expr, FieldRef, call, literal
from hintplan.planner.properties.nullability import may_be_null
from hintplan.planner.query import ordering
from hintplan.planner.query.clauses import read_clauses, refuse_clauses
from hintplan.planner.query.columns import filtered
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.decorrelation import decorrelated
from hintplan.planner.query.subqueries.block import read_block
from hintplan.planner.query.subqueries.block_values import block_value, contains, groups_by_keys, has_one_row_each
from hintplan.planner.query.subqueries.empty_groups import group_of, zero_if_absent
from hintplan.planner.query.subqueries.plain_blocks import (
    PLAIN,
    is_plain,
    refers_outwards,
    selects_outer,
    without_idle_distinct,
    without_order,
)
from hintplan.planner.query.subqueries.single_values import (
    check_column_count,
    group_rows,
    is_some,
    is_unique_by,
    left_operands,
    only_value,
    row_count,
    same_values,
    value_of_group,
)
from hintplan.planner.query.subquery_kinds import has_grouping_sets, is_grouped, is_single_row_query, plain_select
from hintplan.planner.query.subquery_values import SubqueryValue
from hintplan.planner.relations import LogicalAggregate, UnnamedInput
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.quantified_values import is_answered
from hintplan.planner.translation.scope import Scope
from hintplan.planner.translation.translator import Translator


def compile_subquery_value(compiler: QueryCompiler, translator: Translator, node: exp.Expr) -> SubqueryValue:
    """Compile a sub-query that stands for a value; ``translator`` belongs to the clause that it stands in."""
    context = compiler.context
    query = node.args["query"] if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else node
    written, scope = plain_select(query), translator.scope
    select = None if written is None else _needed(compiler, node, written, scope)
    operands: tuple[Expr, ...] | None = None
    if isinstance(node, exp.In):
        if is_answered(node) and not is_single_row_query(query):
            return _answered(compiler, scope, node, translator.expression(node.this))
        if not is_single_row_query(query):
            return _in(compiler, scope, node, translator.expression(node.this), select)
        operands = tuple(map(translator.expression, left_operands(node)))
    if written is None or select is None or _is_whole(compiler, node, select, written, scope):
        return _apart(compiler, scope, query, node, operands)
    refuse_clauses(context, written)
    read_clauses(context, select, *PLAIN, "group", "having", "distinct")
    return block_value(read_block(compiler, scope, node, select, written), operands)


def _is_whole(compiler: QueryCompiler, node: exp.Expr, select: exp.Select, written: exp.Select, scope: Scope) -> bool:
    """Return True if ``select``, originally ``written``, does more than refer to the outer block in its WHERE."""
    one_group = is_grouped(select) and select.args.get("group") is None
    is_exists = isinstance(node, exp.Exists)
    if not one_group and (select.args.get("distinct") or (is_exists and is_grouped(select))):
        return True
    if (not is_exists or is_grouped(select)) and selects_outer(compiler, select, scope):
        return True
    if has_grouping_sets(select):
        return True
    is_cut = not is_exists and not is_grouped(select) and ordering.is_ordered(written)
    if not is_cut and select.args.get("group") is None:
        return False
    with compiler.context.on_trial():
        block = read_block(compiler, scope, node, select, written)
        return not (has_one_row_each(block) if is_cut else groups_by_keys(block))


def _apart(
    compiler: QueryCompiler, scope: Scope, query: exp.Expr, node: exp.Expr, asked: tuple[Expr, ...] | None
) -> SubqueryValue:
    """Return the value of a query that is compiled as a whole, in a block with the names of ``scope``."""
    context, relation, offset = compiler.context, compiler.seeing(scope).query(query), offset_of(node)
    check_column_count(context, node, len(relation.fields))
    group = group_of(relation)
    if group is not None:
        below = decorrelated(context, group.relation, compiler.block, offset, group=True)
        assert isinstance(below.relation, LogicalAggregate)
        value = value_of_group(context, node, replace(group, relation=below.relation), below.on, asked)
        return replace(value, domain=None if value.relation is None else below.domain)
    whole = decorrelated(context, relation, compiler.block, offset)
    if isinstance(node, exp.Exists):
        count = row_count(context)
        counted = group_rows(whole.relation, whole.keys, (count,), UnnamedInput, offset, compiler.block)
        worth = is_some(count, offset)
        return SubqueryValue(relation=counted, on=whole.on, worth=worth, offset=offset, domain=whole.domain)
    rows, column = whole.relation, relation.fields[0]
    is_one = is_unique_by(context, relation, frozenset()) or is_unique_by(
        context, rows, frozenset(f.id for f in whole.keys)
    )
    if not is_one:
        rows, column = only_value(context, rows, whole.keys, column, UnnamedInput, offset)
    value_of_row = FieldRef(field=column, offset=offset)
    worth = value_of_row if asked is None else same_values(context, relation.fields, asked, offset)
    return SubqueryValue(relation=rows, on=whole.on, worth=worth, offset=offset, domain=whole.domain)


def _in(compiler: QueryCompiler, scope: Scope, node: exp.In, asked: Expr, select: exp.Select | None) -> SubqueryValue:
    """Compile ``x IN (SELECT y ...)`` where NULL has the effect of FALSE: check whether a group has ``y = x``."""
    context, offset = compiler.context, offset_of(node)
    query = node.args["query"]
    if select is not None and not is_grouped(select) and not selects_outer(compiler, select, scope):
        read_clauses(context, select, *PLAIN)
        return contains(read_block(compiler, scope, node, select, select), asked)
    whole = compiler.seeing(scope).query(query)
    check_column_count(context, node, len(whole.fields))
    below = decorrelated(context, whole, compiler.block, offset)
    relation = below.relation
    key = FieldRef(field=whole.fields[0], offset=offset)
    pair = comparison_operands(context.source, "IN", (asked, key), offset)[::-1]
    if may_be_null(context, relation, key):
        not_null = call("IS NOT NULL", (key,), BOOLEAN, offset)
        relation = filtered(relation, (not_null,), compiler.block)
    keyed = group_rows(relation, (*below.keys, key.field), (), UnnamedInput, offset, compiler.block)
    worth = call("IS NOT NULL", (key,), BOOLEAN, offset)
    on = (compared("=", pair, offset), *below.on)
    return SubqueryValue(relation=keyed, on=on, worth=worth, offset=offset, domain=below.domain)


def _answered(compiler: QueryCompiler, scope: Scope, node: exp.In, asked: Expr) -> SubqueryValue:
    """Compile ``x IN (SELECT y ...)``: TRUE if a row matches, else NULL if ``x`` or a row is NULL, else FALSE."""
    context, offset = compiler.context, offset_of(node)
    match = _in(compiler, scope, node, asked, None)
    whole = compiler.seeing(scope).query(node.args["query"])
    rows = decorrelated(context, whole, compiler.block, offset)
    total, present = row_count(context), replace(row_count(context), arguments=whole.fields)
    counted = group_rows(rows.relation, rows.keys, (total, present), UnnamedInput, offset, compiler.block)
    counts = SubqueryValue(relation=counted, on=rows.on, worth=match.worth, offset=offset, domain=rows.domain)
    all_rows, not_null = (zero_if_absent(FieldRef(field=each.field)) for each in (total, present))
    unknown = call("IS NULL", (asked,), BOOLEAN, offset)
    least = call("CASE", (unknown, literal(0, BIGINT), not_null), BIGINT, offset)
    is_null = call(">", (all_rows, least), BOOLEAN, offset)
    answers = (match.worth, literal("TRUE", BOOLEAN), is_null, literal(None, BOOLEAN), literal("FALSE", BOOLEAN))
    return replace(match, before=(counts,), worth=call("CASE", answers, BOOLEAN, offset))


def _needed(compiler: QueryCompiler, node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Select | None:
    """Return ``select`` without clauses that have no effect here, or None if it must be compiled as a whole."""
    context, exists = compiler.context, isinstance(node, exp.Exists)
    one_group, of_rows = is_single_row_query(select), not isinstance(node, exp.Query)
    clauses = ("group", "having", *(["distinct"] if one_group else []))
    listed = not exists or is_grouped(select)

    def plain(each: exp.Select) -> bool:
        return is_plain(context, each, *clauses, listed=listed)

    if plain(select):
        return select
    outwards = refers_outwards(compiler, select, scope)
    if context.batch and not outwards:
        return None
    needed = without_idle_distinct(select) if of_rows and not is_grouped(select) else select
    if plain(needed):
        return needed
    if isinstance(node, exp.In) and not one_group:
        return None
    needed = without_idle_distinct(without_order(select)) if of_rows else without_order(select)
    if not plain(needed):
        return None
    if outwards or one_group or exists:
        return needed
    # A query with one row needs no LIMIT. A query with more rows needs an operator that limits them.
    with context.on_trial():
        relation = compiler.query(needed)
    return needed if group_of(relation) or is_unique_by(context, relation, frozenset()) else None
