"""A SELECT block, compiled in SQL's order: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY.

This module refuses every construct of a block that it does not compile.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import factored_conjuncts
from hintplan.planner.query import from_clause, grouping, ordering
from hintplan.planner.query.cached_results import cached_block
from hintplan.planner.query.clauses import read_clauses
from hintplan.planner.query.columns import check_comparable, distinct_fields, filtered, own_fields
from hintplan.planner.query.compiler import QueryCompiler
from hintplan.planner.query.hint_scope import BlockHints, block_hints, warn_of_unused
from hintplan.planner.query.subquery_kinds import (
    is_grouped,
    is_single_row_query,
    joined_sub_query,
    joins_in_where,
    sub_queries_in,
)
from hintplan.planner.query.subquery_values import join_values
from hintplan.planner.query.values import without_from
from hintplan.planner.query.where_clause import apply_where
from hintplan.planner.query.window_functions import has_windows, over_windows
from hintplan.planner.relations import LogicalAggregate, LogicalCalc, Relation, StateInput, UnnamedInput
from hintplan.planner.syntax.dialect import offset_of, select_offset
from hintplan.planner.syntax.grouped_windows import above_groups
from hintplan.planner.syntax.quantified_values import expand_quantified
from hintplan.planner.translation.aggregates import is_aggregate
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.translator import Translator, only

_CLAUSES = (
    "hint",
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "distinct",
    "with_",
    "windows",
)


def compile_select(compiler: QueryCompiler, select: exp.Select) -> Relation:
    """Compile one SELECT to a relation with the names of its SELECT list; raise FollowUp if it recorded errors."""
    with compiler.context.source.problems.whole():
        return _compiled(compiler, select)


def _compiled(compiler: QueryCompiler, select: exp.Select) -> Relation:
    context, environment, block = compiler.context, compiler.environment, compiler.block
    read_clauses(context, select, *_CLAUSES, *ordering.CLAUSES)
    select = _values_written_out(select)
    groups = is_grouped(select)
    if groups and has_windows(select):
        return compile_select(compiler, above_groups(select, is_aggregate))
    if groups and select.args.get("qualify") is not None:
        message, advice = "QUALIFY of groups is not supported", "group in a sub-query, and number its rows"
        raise context.source.error(message, offset_of(select.args["qualify"]), advice)
    if groups and select.args.get("windows"):
        message = "WINDOW of groups is not supported without OVER"
        raise context.source.error(message, offset_of(select.args["windows"][0]), "remove it")
    aggregated = groups or bool(select.args.get("distinct"))
    hints = BlockHints()
    with context.source.problems.going_on():
        hints = block_hints(context, environment, select, aggregates=aggregated)
    if select.args.get("from_") is None:
        source = without_from(compiler, select)
    else:
        source = from_clause.build_from(compiler, select, hints, compiler.outer)
    relation = source.relation
    with context.source.problems.going_on():
        relation = apply_where(compiler, source, select, hints, aggregates=aggregated)
    translator = clause_translator(context, source.scope, "SELECT")
    values = {} if groups else compiler.values(translator, sub_queries_in(select.expressions))
    of_joins = of_aggregate = UnnamedInput
    if aggregated:  # sub-queries become joins below or above the aggregate, which alone has the input's name
        of_aggregate = StateInput(name=source.name, hint=hints.of(source.name))
    elif values and not joins_in_where(select):
        of_joins = StateInput(name=source.name, hint=hints.of(source.name))
    warn_of_unused(context, hints, select)
    if values:
        relation = join_values(context, relation, values, of_joins, block)
    keys = ordering.order_by_keys(context, select)
    if groups:
        rows = grouping.GroupedInput(relation=relation, scope=source.scope, state=of_aggregate)
        relation, items, sorted_by = grouping.build_aggregate(compiler, select, rows, keys)
        of_aggregate = UnnamedInput
    else:
        translator = replace(translator, values={place: value.worth for place, value in values.items()})
        relation, translator = over_windows(context, select, keys, relation, translator)
        relation = _qualified(select, relation, translator, block)
        items, sorted_by = ordering.select_list_items(context, select, translator, keys)
    items = distinct_fields(context, own_fields(context, items, relation))
    listed = LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=block)
    relation = _distinct(context, select, listed, of_aggregate)
    if ordering.is_ordered(select):
        relation = ordering.over_select(context, select, listed, relation, keys, sorted_by)
    return cached_block(context, relation, select_offset(select))


def _values_written_out(select: exp.Select) -> exp.Select:
    """Rewrite IN, ANY and ALL of sub-queries as values where they would have to become joins but cannot."""
    compared = (child for child in select.find_all(exp.In, exp.Any, exp.All))
    if not any(child.args.get("query") or isinstance(child.this, exp.Query) for child in compared):
        return select

    def is_one(node: exp.Expr) -> bool:
        return (
            isinstance(node, exp.In) and node.args.get("query") is not None and is_single_row_query(node.args["query"])
        )

    def value(node: exp.Expr) -> exp.Expr:
        return expand_quantified(node, is_aggregate, is_one)

    def condition(node: exp.Expr, *, joins: bool) -> exp.Expr:
        """Rewrite ``node``, a part of WHERE; ``joins`` is False below OR."""
        if isinstance(node, exp.And | exp.Or | exp.Paren):
            rewritten = node.copy()
            for key in ("this", "expression"):
                if node.args.get(key) is not None:
                    rewritten.set(key, condition(node.args[key], joins=joins and not isinstance(node, exp.Or)))
            return rewritten
        if isinstance(node, exp.In) or (joins and joined_sub_query(node)):
            return looked_for(node)
        return value(node)

    def looked_for(node: exp.Expr) -> exp.Expr:
        """Rewrite only the left operand of ``node``, since the node itself is not a value."""
        if isinstance(node, exp.Exists) or not isinstance(node.this, exp.Expr) or node.this.find(exp.Query) is None:
            return node
        rewritten = node.copy()
        rewritten.set("this", looked_for(node.this) if isinstance(node, exp.Not | exp.Paren) else value(node.this))
        return rewritten

    rewritten = exp.Select(**select.args)
    rewritten.set("expressions", [value(child) for child in select.expressions])
    for key in ("where", "having"):
        clause = select.args.get(key)
        if clause is not None:
            new = condition(clause.this, joins=True) if key == "where" else value(clause.this)
            rewritten.set(key, type(clause)(this=new))
    return rewritten


def _qualified(select: exp.Select, relation: Relation, translator: Translator, block: str) -> Relation:
    """Return the rows for which QUALIFY is true. The condition can use aliases of window functions."""
    qualify = select.args.get("qualify")
    if qualify is None:
        return relation
    named = {e.alias: e.this for e in select.expressions if isinstance(e, exp.Alias) and e.find(exp.Window)}

    def meant(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.args.get("table") is not None or node.name not in named:
            return node
        if translator.scope.find(None, node.name):
            message = f"'{node.name}' in QUALIFY is a column and an alias"
            raise translator.source.error(message, offset_of(node), "give the number another alias")
        expression: exp.Expr = named[node.name].copy()
        return expression

    qualified = qualify.this.transform(meant)
    if qualified.find(exp.Window) is None:
        message = "QUALIFY needs a number for each row"
        raise translator.source.error(message, offset_of(qualify), "write WHERE, or ROW_NUMBER() OVER (...) <= 3")
    condition = replace(translator, clause="QUALIFY").condition(qualified)
    return filtered(relation, factored_conjuncts(condition), block)


def _distinct(context: Context, select: exp.Select, listed: LogicalCalc, state: StateInput) -> Relation:
    """Return the SELECT list, without duplicates if the block has DISTINCT."""
    distinct = select.args.get("distinct")
    if distinct is None:
        return listed
    only(context.source, distinct, "expressions")
    check_comparable(context, listed, "DISTINCT", select_offset(select))
    return LogicalAggregate(
        input=listed,
        keys=listed.fields,
        calls=(),
        state=state,
        offset=select_offset(select),
        base=listed.base,
        block=listed.block,
    )
