"""Values of at most one row for each row of the block around: a group, a row with a key, whether there is any row."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.comparisons import compared
from hintplan.planner.expressions.operands import comparable
from hintplan.planner.expressions.typed import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    Expr,
    Field,
    Ref,
    call,
    conjunction,
    literal,
)
from hintplan.planner.properties.unique_keys import unique_keys
from hintplan.planner.query.subqueries.empty_groups import Group
from hintplan.planner.query.subquery_values import Value
from hintplan.planner.relations import Aggregate, AggregateItem, Calc, Item, Join, Relation, StateInput, identity
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.aggregates import result_type
from hintplan.plans.text.counts import count


def asked_values(node: exp.Expr) -> list[exp.Expr]:
    """What stands before IN."""
    return list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]


def same_values(context: Context, values: Iterable[Expr | Field], asked: tuple[Expr, ...], offset: int) -> Expr:
    """Whether all that is ``asked`` equals the ``values``."""
    found = (e if not isinstance(e, Field) else Ref(field=e, offset=offset) for e in values)
    pairs = (comparable(context.source, "IN", pair, offset) for pair in zip(asked, found, strict=True))
    same = conjunction(tuple(compared("=", pair, offset) for pair in pairs))
    assert same is not None
    return same


def value_of_group(
    context: Context, node: exp.Expr, group: Group, on: tuple[Expr, ...], asked: tuple[Expr, ...] | None
) -> Value:
    """The value of a sub-query that is one group: it has its row even of no rows, unless its HAVING is not true."""
    offset = offset_of(node)
    there = conjunction(group.conditions)
    if there is not None and not isinstance(node, exp.Query):
        there = call("coalesce", (there, literal("FALSE", BOOLEAN)), BOOLEAN, offset)
    if isinstance(node, exp.Exists):
        worth = literal("TRUE", BOOLEAN, offset) if there is None else there
        return Value(relation=None if there is None else group.relation, on=on, worth=worth, offset=offset)
    worth = group.values[0]
    if asked is not None:
        worth = same_values(context, group.values, asked, offset)
        worth = worth if there is None else call("AND", (there, worth), BOOLEAN, offset)
    elif there is not None:
        worth = call("CASE", (there, worth, literal(None, worth.type)), worth.type, offset)
    return Value(relation=group.relation, on=on, worth=worth, offset=offset)


def row_count(context: Context) -> AggregateItem:
    """COUNT(*)."""
    return AggregateItem(
        field=context.field("", BIGINT), function="COUNT", arguments=(), distinct=False, filter=None, separator=None
    )


def is_some(count: AggregateItem, offset: int) -> Expr:
    """Whether ``count`` is not 0, which it is as well where there is no group."""
    some = call(">", (Ref(field=count.field), literal(0, INT)), BOOLEAN, offset)
    return call("coalesce", (some, literal("FALSE", BOOLEAN)), BOOLEAN, offset)


def group_rows(
    relation: Relation,
    keys: tuple[Field, ...],
    calls: tuple[AggregateItem, ...],
    state: StateInput,
    offset: int,
    block: str,
) -> Aggregate:
    """``relation`` grouped by ``keys``."""
    return Aggregate(
        input=relation, keys=keys, calls=calls, state=state, offset=offset, base=relation.base, block=block
    )


def check_columns(context: Context, node: exp.Expr, found: int) -> None:
    """Refuse a value of several columns, and IN of more or fewer than it asks for; EXISTS takes any."""
    wanted = len(asked_values(node)) if isinstance(node, exp.In) else 1
    if isinstance(node, exp.Exists) or found == wanted:
        return
    columns = count(found, "column")
    message = f"a scalar sub-query has one column, found {found}"
    if isinstance(node, exp.In):
        message = f"IN compares {'one value' if wanted == 1 else f'{wanted} values'} with {columns}"
    advice = "select one column" if wanted == 1 else f"select {wanted} columns"
    raise context.source.error(message, offset_of(node), advice)


def only_value(
    context: Context, relation: Relation, keys: tuple[Field, ...], column: Field, state: StateInput, offset: int
) -> tuple[Relation, Field]:
    """The one value that ``column`` has for each of the ``keys``, and the field that holds it.

    A run fails where there are several rows, even if they are equal, once a batch has computed them.
    """
    function = "MAX" if result_type("MAX", column.type) is not None else "FIRST_VALUE"
    found = result_type(function, column.type)
    if found is None:
        message = f"this scalar sub-query of type {column.type.as_nullable()} may have more than one row"
        raise context.source.error(message, offset, "convert its column with CAST, or join the tables")
    rows = row_count(context)
    value = AggregateItem(
        field=context.field("", found), function=function, arguments=(column,), distinct=False, filter=None
    )
    grouped = group_rows(relation, keys, (rows, value), state, offset, relation.block)
    of_tables = ", ".join(dict.fromkeys(relation.base))
    fault = f"the scalar sub-query (SELECT {column.name or '...'} FROM {of_tables} ...) has more than one row"
    failure = call("raise_error", (literal(fault, STRING, offset),), STRING, offset)
    several = call(">", (Ref(field=rows.field), literal(1, INT)), BOOLEAN, offset)
    one = call("CASE", (several, call("CAST", (failure,), found, offset), Ref(field=value.field)), found, offset)
    item = Item(field=context.field(column.name, found), expr=one)
    items = (*identity(keys), item)
    return Calc(input=grouped, filter=None, items=items, base=relation.base, block=relation.block), item.field


def has_one_row(context: Context, relation: Relation, keys: frozenset[int]) -> bool:
    """Whether at most one row of ``relation`` has given values of ``keys``."""
    below = relation
    while isinstance(below, Calc):
        below = below.input
    if isinstance(below, Join):  # what is a key of it is known only later
        return False
    return any(key <= keys for key in unique_keys(relation, context.plan_tables()))
