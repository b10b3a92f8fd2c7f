"""ORDER BY, LIMIT, OFFSET and FETCH of a block, of a query in parentheses, and of a set operation.

A stream compiles them to row numbers with an upper limit (Flink's SortLimit and Limit). Without LIMIT, it sorts by a
rowtime only, as the watermark passes the rows. Below the top of a query, a stream drops an order without a limit.

A sort key is a position in the output, the name or alias of an output column, or an expression. An output name hides a
column of FROM. As in Flink, NULLs sort below all other values unless NULLS FIRST or LAST is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import BOOLEAN, Expr, Field, FieldRef, literal
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.properties.time_attributes import is_row_time
from hintplan.planner.query.clauses import UNSORTED, is_top
from hintplan.planner.query.columns import filtered, projections
from hintplan.planner.relations import Item, LogicalCalc, LogicalRowNumber, LogicalSort, Relation, SortItem, identity
from hintplan.planner.syntax.dialect import offset_of, starts_at
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.planner.translation.translator import Translator, only
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.operators.rank import NUMBER_TYPE
from hintplan.plans.operators.sort import MOST_ROWS, UNSORTABLE

CLAUSES = ("order", "limit", "offset")
"""The parts of a query's syntax tree that this module reads."""

_UNSORTABLE = (*UNSORTABLE, "NULL", "INTERVAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKeys:
    """The keys of ORDER BY, with their ``nodes``: for each a position in the SELECT list, or an expression.

    In the expressions, names from the SELECT list are replaced by the expressions that they stand for.
    """

    nodes: tuple[exp.Ordered, ...]
    positions: tuple[int | None, ...]
    expressions: tuple[exp.Expr | None, ...]


def select_list_items(
    context: Context, select: exp.Select, translator: Translator, keys: SortKeys
) -> tuple[tuple[Item, ...], tuple[Expr | None, ...]]:
    """Return the items of the SELECT list of a block that does not group, and its sort keys."""
    items = tuple(Item(field=context.field_for(e, n), expr=e) for n, e in projections(context, select, translator))
    in_order = replace(translator, clause="ORDER BY")
    return items, tuple(None if node is None else in_order.expression(node) for node in keys.expressions)


def is_ordered(node: exp.Expr) -> bool:
    """Return True if ORDER BY, LIMIT, OFFSET or FETCH stands at the end of ``node``."""
    return any(node.args.get(key) for key in CLAUSES)


def order_by_keys(context: Context, node: exp.Expr) -> SortKeys:
    """Return the sort keys of ``node``: positions in its SELECT list, or expressions with all aliases replaced."""
    clause = node.args.get("order")
    if clause is None:
        return SortKeys(nodes=(), positions=(), expressions=())
    only(context.source, clause, "expressions")
    aliases = list(_aliases(node)) if isinstance(node, exp.Select) else []
    nodes: list[exp.Ordered] = []
    positions: list[int | None] = []
    expressions: list[exp.Expr | None] = []
    for ordered in clause.expressions:
        only(context.source, ordered, "this", "desc", "nulls_first")
        key = ordered.this
        position = None
        if isinstance(key, exp.Literal) and not key.args["is_string"] and key.name.isdigit():
            position = int(key.name) - 1
        elif isinstance(key, exp.Literal):
            raise context.source.error("ORDER BY a constant has no effect", offset_of(key), "name a column")
        nodes.append(ordered)
        positions.append(position)
        expressions.append(None if position is not None else _without_aliases(context, key, aliases))
    return SortKeys(nodes=tuple(nodes), positions=tuple(positions), expressions=tuple(expressions))


def _aliases(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the names of the SELECT list that are spelled out, with their expressions; ``*`` yields nothing."""
    for node in select.expressions:
        if isinstance(node, exp.Alias):
            yield node.alias, node.this
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            yield node.name, node


def _without_aliases(context: Context, key: exp.Expr, aliases: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
    def meant(node: exp.Column) -> exp.Expr:
        if node.args.get("table") is not None:
            return node
        candidates = list(dict.fromkeys(expression for name, expression in aliases if name == node.name))
        if len(candidates) > 1:
            message = f"'{node.name}' in ORDER BY is ambiguous: {len(candidates)} columns of the query are called so"
            raise context.source.error(message, offset_of(node), "give them different aliases")
        return candidates[0].copy() if candidates else node

    # Only names in the key itself are replaced, never names inside a replacement.
    copied = key.copy()
    for column in list(copied.find_all(exp.Column)):
        replacement = meant(column)
        if replacement is not column:
            if column is copied:
                return replacement
            column.replace(replacement)
    return copied


def over_select(
    context: Context,
    node: exp.Select,
    listed: LogicalCalc,
    relation: Relation,
    keys: SortKeys,
    expressions: Sequence[Expr | None],
) -> Relation:
    """Sort and limit ``relation``, which is ``listed``, the SELECT list of ``node``, or its distinct rows.

    ``expressions`` are the translated sort keys. A sort key that is not selected becomes a hidden column, which is
    dropped after the sort.
    """
    hidden: list[Item] = []
    fields = []
    for ordered, position, expression in zip(keys.nodes, keys.positions, expressions, strict=True):
        if position is not None or expression is None:
            fields.append(at_position(context, ordered, position or 0, relation.fields))
            continue
        item = next((i for i in (*listed.items, *hidden) if i.expr == expression), None)
        if item is None and relation is not listed:
            message = "with SELECT DISTINCT, ORDER BY takes selected columns only"
            raise context.source.error(message, offset_of(ordered), "select it as well, or order by a selected column")
        if item is None:
            name = expression.field.name if isinstance(expression, FieldRef) else ""
            item = Item(field=context.field(name, expression.type), expr=expression)
            hidden.append(item)
        fields.append(item.field)
    below = replace(listed, items=(*listed.items, *hidden)) if hidden else relation
    block = listed.block
    return _without(hidden, relation.fields, _sorted(context, node, below, keys, fields, block), block)


def over_output(context: Context, node: exp.Expr, relation: Relation, block: str) -> Relation:
    """Sort the result of ``node``, such as a UNION, by its own columns, and limit it."""
    if not is_ordered(node):
        return relation
    keys = order_by_keys(context, node)
    scope = Scope(inputs=(Input(name=None, kind="query", fields=relation.fields, offset=offset_of(node)),))
    translator = clause_translator(context, scope, "ORDER BY")
    hidden: list[Item] = []
    fields = []
    for ordered, position, key in zip(keys.nodes, keys.positions, keys.expressions, strict=True):
        if position is not None or key is None:
            fields.append(at_position(context, ordered, position or 0, relation.fields))
            continue
        expression = translator.expression(key)
        if not isinstance(expression, FieldRef):
            hidden.append(Item(field=context.field("", expression.type), expr=expression))
        fields.append(expression.field if isinstance(expression, FieldRef) else hidden[-1].field)
    below = relation
    if hidden:
        items = (*identity(relation.fields), *hidden)
        below = LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=block)
    return _without(hidden, relation.fields, _sorted(context, node, below, keys, fields, block), block)


def at_position(context: Context, ordered: exp.Ordered, position: int, fields: tuple[Field, ...]) -> Field:
    """Return the column that ORDER BY selects by ``position``, counted from 0; raise SqlError if there is none."""
    if 0 <= position < len(fields):
        return fields[position]
    message = f"ORDER BY {position + 1} names no column: the query has {len(fields)}"
    raise context.source.error(message, offset_of(ordered), "count from 1, or name the column")


def _sorted(
    context: Context, node: exp.Expr, relation: Relation, keys: SortKeys, fields: Sequence[Field], block: str
) -> Relation:
    order = _order(context, keys, fields)
    if not context.batch and node.args.get("limit") is not None:
        return first_of_each(context, node, relation, keys, fields, (), block)
    changing = None
    if not context.batch and node.args.get("offset") is None:
        if not is_top(node):
            return relation  # readers of a stream get its rows in the order of arrival
        changing = _sortable_in_stream(context, node, relation, order)
    offset, limit = _rows(context, node)
    return LogicalSort(
        input=relation,
        order=order,
        offset=offset,
        limit=limit,
        place=starts_at(node, *CLAUSES),
        changing=changing,
        base=relation.base,
        block=block,
    )


def _sortable_in_stream(context: Context, node: exp.Expr, relation: Relation, order: Sequence[SortItem]) -> SqlError:
    """Return the error to raise if the rows can change. Raise SqlError if ``order`` does not begin with a rowtime."""
    place, first = offset_of(node.args["order"]) or offset_of(node), order[0]
    message, advice = UNSORTED
    lost = why_no_rowtime(context, relation, first.field)
    if lost is not None:
        if is_row_time(context, relation, first.field):
            message, advice = f"{message}: '{first.field.name}' is no rowtime here: {lost.reason}", lost.advice
        raise context.source.error(message, place, advice)
    if first.descending:
        message = f"{message} by descending time, by Flink neither: the last row may always come later"
        raise context.source.error(message, place, f"write ORDER BY {first.field.name}, or add LIMIT")
    message = f"ORDER BY {first.field.name} takes rows that are only added, but these rows can change"
    return context.source.error(message, place, "sort the rows before they are aggregated or joined, or add LIMIT")


def _order(context: Context, keys: SortKeys, fields: Sequence[Field]) -> tuple[SortItem, ...]:
    order: dict[int, SortItem] = {}
    for ordered, field in zip(keys.nodes, fields, strict=True):
        if field.type.root in _UNSORTABLE:
            message = f"ORDER BY does not take {field.type.as_nullable()}"
            raise context.source.error(message, offset_of(ordered), "order by scalar columns")
        item = SortItem(
            field=field,
            descending=bool(ordered.args.get("desc")),
            nulls_first=bool(ordered.args.get("nulls_first")),
        )
        # Listing a column a second time does not change the order.
        order.setdefault(field.id, item)
    return tuple(order.values())


def first_of_each(
    context: Context,
    node: exp.Expr,
    relation: Relation,
    keys: SortKeys,
    fields: Sequence[Field],
    partition: tuple[Field, ...],
    block: str,
) -> Relation:
    """Return the rows of each ``partition`` that LIMIT and OFFSET of ``node`` keep, ordered by ``fields``.

    ``keys`` give the direction of each field.
    """
    offset, limit = _rows(context, node)
    assert limit is not None
    order = _order(context, keys, fields)
    if limit == 0:  # no row is kept, so no state is needed
        return filtered(relation, (literal("FALSE", BOOLEAN),), block)
    return LogicalRowNumber(
        input=relation,
        partition=partition,
        order=order,
        latest=False,
        by_time=False,
        number=context.field("", parse_type(NUMBER_TYPE)),
        is_shown=False,
        first=offset + 1,
        last=offset + limit,
        view=context.view,
        base=relation.base,
        block=block,
    )


def _without(hidden: Sequence[Item], fields: tuple[Field, ...], relation: Relation, block: str) -> Relation:
    if not hidden:
        return relation
    return LogicalCalc(input=relation, filter=None, items=identity(fields), base=relation.base, block=block)


def _rows(context: Context, node: exp.Expr) -> tuple[int, int | None]:
    """Return the number of rows to skip, and the number of rows to keep, or None for all."""
    skipped, kept = node.args.get("offset"), node.args.get("limit")
    offset, limit = 0, None
    if skipped is not None:
        if starts_at(skipped) is None:
            message = "LIMIT start, count is not supported"
            raise context.source.error(message, offset_of(kept or node), "write LIMIT count OFFSET start")
        only(context.source, skipped, "expression")
        offset = _number(context, "OFFSET", skipped.expression, offset_of(skipped))
    if isinstance(kept, exp.Fetch):
        options = kept.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            what = "PERCENT" if options.args.get("percent") else "WITH TIES"
            raise context.source.error(f"FETCH ... {what} is not supported", offset_of(kept), "write ROWS ONLY")
        count = kept.args.get("count")
        limit = 1 if count is None else _number(context, "FETCH", count, offset_of(kept))
    elif kept is not None:
        only(context.source, kept, "expression", "offset")
        limit = _number(context, "LIMIT", kept.expression, offset_of(kept))
    return offset, limit


def _number(context: Context, what: str, node: exp.Expr, place: int) -> int:
    if not isinstance(node, exp.Literal) or node.args["is_string"] or not node.name.isdigit():
        raise context.source.error(f"{what} takes a whole number", offset_of(node) or place, f"write {what} 10")
    if int(node.name) > MOST_ROWS:
        raise context.source.error(f"{what} takes at most {MOST_ROWS}", offset_of(node) or place, "write less")
    return int(node.name)
