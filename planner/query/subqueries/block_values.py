"""The value of a sub-query that is one SELECT: the existence of rows, its only row, or its aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparison_operands
from hintplan.planner.expressions.typed import (
    BOOLEAN,
    AggregateCallExpr,
    Expr,
    Field,
    FieldRef,
    call,
    factored_conjuncts,
    replace_outermost,
    walk,
)
from hintplan.planner.query.columns import filtered
from hintplan.planner.query.subqueries.block import SubQueryBlock, block_columns, joined_on, selected_columns
from hintplan.planner.query.subqueries.empty_groups import SingleGroup, group_of, may_hold_for_nothing, zero_if_absent
from hintplan.planner.query.subqueries.single_values import (
    group_rows,
    is_some,
    is_unique_by,
    only_value,
    row_count,
    value_of_group,
)
from hintplan.planner.query.subquery_values import SubqueryValue
from hintplan.planner.relations import AggregateItem, Item, LogicalCalc, Relation, identity
from hintplan.planner.syntax.dialect import select_offset
from hintplan.planner.translation.aggregates import check_retractions
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.translator import Translator


def block_value(block: SubQueryBlock, asked: tuple[Expr, ...] | None) -> SubqueryValue:
    """Compile the sub-query to its value, to a comparison of it with ``asked`` (for IN), or to an existence check."""
    if block.exists and not block.grouped:
        return _exists(block)
    scope = block.scope
    translator = clause_translator(block.context, scope, "SELECT")
    if not block.grouped:
        return _one_row(block, translator)
    return _aggregated(block, clause_translator(block.context, scope, "SELECT", aggregates=True), asked)


def contains(block: SubQueryBlock, asked: Expr) -> SubqueryValue:
    """Compile the condition that the only column of the sub-query contains the value ``asked``."""
    (selected,) = selected_columns(block, clause_translator(block.context, block.scope, "SELECT"))
    outer, inner = comparison_operands(block.context.source, "IN", (asked, selected), block.offset)
    same = compared("=", (inner, outer), block.offset)
    return _exists(replace(block, equalities=((inner, outer, same), *block.equalities)))


def _exists(block: SubQueryBlock) -> SubqueryValue:
    if not block.keys:
        count = row_count(block.context)
        grouped = group_rows(block.rows, (), (count,), block.state, block.offset, block.name)
        return SubqueryValue(relation=grouped, on=(), worth=is_some(count, block.offset), offset=block.offset)
    relation, keys, _ = block_columns(block, [])
    if block.domain is not None:  # values of a domain may be NULL, so a count marks the match
        count = row_count(block.context)
        grouped = group_rows(relation, keys, (count,), block.state, block.offset, block.name)
        return _value(block, grouped, keys, is_some(count, block.offset))
    grouped = group_rows(relation, keys, (), block.state, block.offset, block.name)
    has_row = call("IS NOT NULL", (FieldRef(field=keys[0]),), BOOLEAN, block.offset)
    return _value(block, grouped, keys, has_row)


def _one_row(block: SubQueryBlock, translator: Translator) -> SubqueryValue:
    """Return a column of rows that are unique by the expressions that the outer block is compared with."""
    (selected,) = selected_columns(block, translator)
    relation, keys, (column,) = block_columns(block, [selected])
    if not keys:
        items = (Item(field=block.context.field_for(selected, ""), expr=selected),)
        shown = LogicalCalc(input=block.rows, filter=None, items=items, base=block.rows.base, block=block.name)
        group = group_of(shown)
        if group is not None:
            return value_of_group(block.context, block.node, group, (), None)
    if not (block.unique or is_unique_by(block.context, relation, frozenset(f.id for f in keys))):
        relation, column = only_value(block.context, relation, keys, column, block.state, block.offset)
    return _value(block, relation, keys, FieldRef(field=column))


def _aggregated(block: SubQueryBlock, translator: Translator, asked: tuple[Expr, ...] | None) -> SubqueryValue:
    selected = selected_columns(block, translator)
    having = block.select.args.get("having")
    conditions: tuple[Expr, ...] = ()
    if having is not None:
        conditions = factored_conjuncts(translator.condition(having.this))
    groups = _groups(block, translator)
    calls = tuple(
        dict.fromkeys(e for root in (*selected, *conditions) for e in walk(root) if isinstance(e, AggregateCallExpr))
    )
    check_retractions(block.context, calls, block.rows, changing=block.domain is not None)
    wanted = [e for c in calls for e in (*c.arguments, c.filter) if e is not None]
    relation, keys, columns = block_columns(block, wanted)
    columns_of = dict(zip(wanted, columns, strict=True))
    items = tuple(
        AggregateItem(
            field=block.context.field("", c.type),
            function=c.function,
            distinct=c.distinct,
            arguments=tuple(columns_of[a] for a in c.arguments),
            filter=None if c.filter is None else columns_of[c.filter],
            separator=c.separator,
        )
        for c in calls
    )
    grouped = group_rows(relation, keys, items, block.state, select_offset(block.select), block.name)
    results: dict[Expr, Expr] = {k: FieldRef(field=f) for k, f in zip(block.keys, keys, strict=True) if k in groups}
    results |= {c: FieldRef(field=item.field) for c, item in zip(calls, items, strict=True)}
    below = tuple(_over(block, condition, results) for condition in conditions)
    values = tuple(_over(block, e, results) for e in selected)
    if block.select.args.get("group") is not None or (
        isinstance(block.node, exp.Query) and not all(map(may_hold_for_nothing, conditions))
    ):
        return _of_groups(block, filtered(grouped, below, block.name), keys, values[0])
    counts = {FieldRef(field=item.field) for item in items if item.function == "COUNT"}

    def absent(e: Expr) -> Expr | None:
        return zero_if_absent(e) if e in counts else None

    group = SingleGroup(
        relation=grouped,
        values=tuple(replace_outermost(e, absent) for e in values),
        conditions=tuple(replace_outermost(condition, absent) for condition in below),
    )
    value = value_of_group(block.context, block.node, group, joined_on(block, keys), asked)
    return replace(value, domain=block.domain)


def _of_groups(block: SubQueryBlock, relation: Relation, keys: tuple[Field, ...], value: Expr) -> SubqueryValue:
    """Return a value that is NULL without a group, whichever expression it has."""
    if not isinstance(value, FieldRef):
        item = Item(field=block.context.field("", value.type), expr=value)
        relation = LogicalCalc(
            input=relation, filter=None, items=(*identity(keys), item), base=relation.base, block=block.name
        )
        value = FieldRef(field=item.field, offset=block.offset)
    return _value(block, relation, keys, value)


def _value(block: SubQueryBlock, relation: Relation, keys: tuple[Field, ...], worth: Expr) -> SubqueryValue:
    on = joined_on(block, keys)
    return SubqueryValue(relation=relation, on=on, worth=worth, offset=block.offset, domain=block.domain)


def has_one_row_each(block: SubQueryBlock) -> bool:
    """Return True if the rows of the sub-query, which does not aggregate, are unique by their keys."""
    relation, keys, _ = block_columns(block, [])
    return block.unique or is_unique_by(block.context, relation, frozenset(f.id for f in keys))


def groups_by_keys(block: SubQueryBlock) -> bool:
    """Return True if the sub-query groups only by keys of the comparison with the outer block, and so has one row."""
    translator = clause_translator(block.context, block.scope, "SELECT", aggregates=True)
    return block.domain is None and set(_groups(block, translator)) <= set(block.keys)


def _groups(block: SubQueryBlock, translator: Translator) -> tuple[Expr, ...]:
    """Return the GROUP BY expressions of the sub-query itself."""
    group = block.select.args.get("group")
    return () if group is None else tuple(translator.expression(node) for node in group.expressions)


def _over(block: SubQueryBlock, expression: Expr, results: Mapping[Expr, Expr]) -> Expr:
    rewritten = replace_outermost(expression, results.get)
    for e in walk(rewritten):
        if isinstance(e, FieldRef) and e.field.id in block.own and e not in results.values():
            raise block.context.source.error(
                f"column '{e.field.name}' is neither grouped nor aggregated",
                e.offset,
                f"aggregate it, such as MAX({e.field.name})",
            )
    return rewritten
