"""Values of sub-queries with at most one row per outer row: a group, a row with a key, or an existence check."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparison_operands
from hintplan.planner.expressions.typed import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    Expr,
    Field,
    FieldRef,
    call,
    conjunction,
    literal,
)
from hintplan.planner.properties.unique_keys import unique_keys
from hintplan.planner.query.subqueries.empty_groups import SingleGroup
from hintplan.planner.query.subquery_values import SubqueryValue
from hintplan.planner.relations import (
    AggregateItem,
    Item,
    LogicalAggregate,
    LogicalCalc,
    LogicalJoin,
    Relation,
    StateInput,
    identity,
)
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.aggregates import result_type
from hintplan.plans.text.counts import count


def left_operands(node: exp.Expr) -> list[exp.Expr]:
    """Return the expressions on the left side of IN."""
    return list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]


def same_values(context: Context, values: Iterable[Expr | Field], asked: tuple[Expr, ...], offset: int) -> Expr:
    """Return the condition that the ``asked`` expressions equal the ``values``."""
    refs = (e if not isinstance(e, Field) else FieldRef(field=e, offset=offset) for e in values)
    pairs = (comparison_operands(context.source, "IN", pair, offset) for pair in zip(asked, refs, strict=True))
    same = conjunction(tuple(compared("=", pair, offset) for pair in pairs))
    assert same is not None
    return same


def value_of_group(
    context: Context, node: exp.Expr, group: SingleGroup, on: tuple[Expr, ...], asked: tuple[Expr, ...] | None
) -> SubqueryValue:
    """Return the value of a sub-query that is a single group.

    It has a row even on empty input, unless HAVING is not true.
    """
    offset = offset_of(node)
    has_row = conjunction(group.conditions)
    if has_row is not None and not isinstance(node, exp.Query):
        has_row = call("coalesce", (has_row, literal("FALSE", BOOLEAN)), BOOLEAN, offset)
    if isinstance(node, exp.Exists):
        worth = literal("TRUE", BOOLEAN, offset) if has_row is None else has_row
        return SubqueryValue(relation=None if has_row is None else group.relation, on=on, worth=worth, offset=offset)
    worth = group.values[0]
    if asked is not None:
        worth = same_values(context, group.values, asked, offset)
        worth = worth if has_row is None else call("AND", (has_row, worth), BOOLEAN, offset)
    elif has_row is not None:
        worth = call("CASE", (has_row, worth, literal(None, worth.type)), worth.type, offset)
    return SubqueryValue(relation=group.relation, on=on, worth=worth, offset=offset)


def row_count(context: Context) -> AggregateItem:
    """Return COUNT(*)."""
    return AggregateItem(
        field=context.field("", BIGINT), function="COUNT", arguments=(), distinct=False, filter=None, separator=None
    )


def is_some(count: AggregateItem, offset: int) -> Expr:
    """Return the condition that ``count`` is above 0; it is FALSE if the group is missing."""
    some = call(">", (FieldRef(field=count.field), literal(0, INT)), BOOLEAN, offset)
    return call("coalesce", (some, literal("FALSE", BOOLEAN)), BOOLEAN, offset)


def group_rows(
    relation: Relation,
    keys: tuple[Field, ...],
    calls: tuple[AggregateItem, ...],
    state: StateInput,
    offset: int,
    block: str,
) -> LogicalAggregate:
    """Group ``relation`` by ``keys``."""
    return LogicalAggregate(
        input=relation, keys=keys, calls=calls, state=state, offset=offset, base=relation.base, block=block
    )


def check_column_count(context: Context, node: exp.Expr, width: int) -> None:
    """Refuse a value with several columns, and IN with the wrong number of columns; EXISTS takes any number."""
    wanted = len(left_operands(node)) if isinstance(node, exp.In) else 1
    if isinstance(node, exp.Exists) or width == wanted:
        return
    columns = count(width, "column")
    message = f"a scalar sub-query has one column, found {width}"
    if isinstance(node, exp.In):
        message = f"IN compares {'one value' if wanted == 1 else f'{wanted} values'} with {columns}"
    advice = "select one column" if wanted == 1 else f"select {wanted} columns"
    raise context.source.error(message, offset_of(node), advice)


def only_value(
    context: Context, relation: Relation, keys: tuple[Field, ...], column: Field, state: StateInput, offset: int
) -> tuple[Relation, Field]:
    """Return a relation with the single value of ``column`` per combination of ``keys``, and the value's field.

    The run fails when a batch computes several rows for a key, even if they are equal.
    """
    function = "MAX" if result_type("MAX", column.type) is not None else "FIRST_VALUE"
    kind = result_type(function, column.type)
    if kind is None:
        message = f"this scalar sub-query of type {column.type.as_nullable()} may have more than one row"
        raise context.source.error(message, offset, "convert its column with CAST, or join the tables")
    rows = row_count(context)
    value = AggregateItem(
        field=context.field("", kind), function=function, arguments=(column,), distinct=False, filter=None
    )
    grouped = group_rows(relation, keys, (rows, value), state, offset, relation.block)
    of_tables = ", ".join(dict.fromkeys(relation.base))
    fault = f"the scalar sub-query (SELECT {column.name or '...'} FROM {of_tables} ...) has more than one row"
    failure = call("raise_error", (literal(fault, STRING, offset),), STRING, offset)
    several = call(">", (FieldRef(field=rows.field), literal(1, INT)), BOOLEAN, offset)
    checked = call("CASE", (several, call("CAST", (failure,), kind, offset), FieldRef(field=value.field)), kind, offset)
    item = Item(field=context.field(column.name, kind), expr=checked)
    items = (*identity(keys), item)
    return LogicalCalc(input=grouped, filter=None, items=items, base=relation.base, block=relation.block), item.field


def is_unique_by(context: Context, relation: Relation, keys: frozenset[int]) -> bool:
    """Return True if ``relation`` has at most one row for each combination of ``keys``."""
    below = relation
    while isinstance(below, LogicalCalc):
        below = below.input
    if isinstance(below, LogicalJoin):  # later passes find its keys
        return False
    return any(key <= keys for key in unique_keys(relation, context.plan_tables()))
