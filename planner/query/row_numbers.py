"""ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...), of which a condition keeps the first rows.

The condition above it limits the number of rows that each partition keeps
(:class:`hintplan.planner.relations.LogicalRowNumber`), as in Flink's Top-N. Ordering by processing time means the order
of arrival. :mod:`hintplan.planner.query.window_functions` compiles the other window functions of batch jobs.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import BOOLEAN, Expr, Field, FieldRef, Literal
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.properties.time_attributes import is_processing_time, is_row_time
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.relations import Item, LogicalCalc, LogicalRowNumber, Relation, SortItem, identity
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.translation.translator import Translator, only
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.operators.rank import NUMBER_TYPE
from hintplan.plans.operators.sort import UNSORTABLE

_NUMBER = parse_type(NUMBER_TYPE)
_EXAMPLE = "SELECT ... FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM ...) WHERE rn <= 3"


def add_row_number(
    context: Context, window: exp.Window, relation: Relation, translator: Translator
) -> tuple[Relation, Field]:
    """Add the number that ``window``, a ROW_NUMBER(), computes; return the relation and the field of the number."""
    source, offset = context.source, offset_of(window)
    if window.args.get("spec") is not None or window.this.expressions:
        what = "arguments" if window.this.expressions else "frame of rows"
        raise source.error(f"ROW_NUMBER() has no {what}", offset, f"write {_EXAMPLE}")
    only(source, window, "this", "partition_by", "order", "over")
    clause = window.args.get("order")
    if clause is None:
        message = "ROW_NUMBER() needs an order"
        raise source.error(message, offset, f"write {_EXAMPLE}")
    order, partition = partitioned(context, window, translator)
    # Without PARTITION BY all rows are one partition.
    relation, fields = add_columns(context, relation, [*order, *(partition or [Literal(text="TRUE", type=BOOLEAN)])])
    items = sort_items(window, fields)
    return _ordered(context, window, relation, items, fields[len(items) :])


def partitioned(context: Context, window: exp.Window, translator: Translator) -> tuple[list[Expr], list[Expr]]:
    """Return the sort keys and the partition keys of ``window``."""
    clause = window.args.get("order")
    nodes = () if clause is None else clause.expressions
    for node in nodes:
        only(context.source, node, "this", "desc", "nulls_first")
    in_order, in_partition = replace(translator, clause="ORDER BY"), replace(translator, clause="PARTITION BY")
    return (
        [_sortable(context, node.this, in_order) for node in nodes],
        [_comparable(context, node, in_partition) for node in window.args.get("partition_by") or ()],
    )


def sort_items(window: exp.Window, fields: list[Field]) -> list[SortItem]:
    """Return the order of ``window``, whose sort keys are the first of ``fields``."""
    clause = window.args.get("order")
    nodes = () if clause is None else clause.expressions
    return [_sort_item(node, field) for node, field in zip(nodes, fields, strict=False)]


def _sortable(context: Context, node: exp.Expr, translator: Translator) -> Expr:
    expression = translator.expression(node)
    if expression.type.root in (*UNSORTABLE, "NULL"):
        message = f"ORDER BY does not take {expression.type.as_nullable()}"
        raise context.source.error(message, offset_of(node), "order by scalar columns")
    return expression


def _comparable(context: Context, node: exp.Expr, translator: Translator) -> Expr:
    expression = translator.expression(node)
    if expression.type.root in ("NULL", "INTERVAL"):
        message = f"PARTITION BY does not take {expression.type.as_nullable()}"
        raise context.source.error(message, offset_of(node), "leave it out")
    return expression


def _sort_item(node: exp.Ordered, field: Field) -> SortItem:
    return SortItem(field=field, descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))


def add_columns(context: Context, relation: Relation, wanted: list[Expr]) -> tuple[Relation, list[Field]]:
    """Add a column to ``relation`` for each expression in ``wanted`` that is not a column; also return all fields."""
    own = {f.id for f in relation.fields}
    present = [e.field if isinstance(e, FieldRef) and e.field.id in own else None for e in wanted]
    added = [Item(field=context.field("", e.type), expr=e) for e, f in zip(wanted, present, strict=True) if f is None]
    fields = [f or next(i.field for i in added if i.expr is e) for e, f in zip(wanted, present, strict=True)]
    if added:
        items = (*identity(relation.fields), *added)
        relation = LogicalCalc(input=relation, filter=None, items=items, base=relation.base, block=relation.block)
    return relation, fields


def _ordered(
    context: Context, window: exp.Window, relation: Relation, items: list[SortItem], partition: list[Field]
) -> tuple[Relation, Field]:
    """Add the number of each row of ``relation`` by ``items``; return the relation and the field of the number."""
    source, place = context.source, offset_of(window)
    arrival = [is_processing_time(context, relation, item.field.id, materialized=context.batch) for item in items]
    if context.batch and any(arrival):
        message = "rows of a batch job have no order of arrival"
        raise source.error(message, offset_of(window.args["order"]), "order by a column")
    if any(arrival[:-1]):
        message = "ROW_NUMBER() takes the processing time alone, or last"
        hint = "rows with equal sort keys are in the order of arrival anyway: remove the processing time"
        raise source.error(message, offset_of(window.args["order"]), hint)
    order = dict[int, SortItem]()
    for item, is_arrival in zip(items, arrival, strict=True):
        if not is_arrival:
            order.setdefault(item.field.id, item)
    first, last = items[0], items[-1]
    # Rows of a micro-batch have one processing time, also where it is a plain time. So arrival decides among them.
    is_plain = is_insert_only(relation) and is_processing_time(context, relation, last.field.id, materialized=True)
    latest = last.descending and (arrival[-1] or is_plain)
    is_time = arrival[0] or (
        is_row_time(context, relation, first.field) and first.nulls_first != first.descending  # NULLs sort lowest
    )
    by_time = is_time and len(items) == 1 and (context.batch or is_insert_only(relation))
    # Flink emits the first row by rowtime when the watermark passes it.
    by_rowtime = by_time and not context.batch and not arrival[0] and not first.descending
    number = context.field(window.parent.alias if isinstance(window.parent, exp.Alias) else "", _NUMBER)
    return LogicalRowNumber(
        input=relation,
        partition=tuple({field.id: field for field in partition}.values()),
        order=tuple(order.values()),
        latest=latest,
        by_time=by_time,
        number=number,
        by_rowtime=by_rowtime and why_no_rowtime(context, relation, first.field) is None,
        unlimited=source.error(
            "ROW_NUMBER() needs a condition with the largest number that is kept",
            place,
            f"write {_EXAMPLE}, or rn <= k if k is in PARTITION BY, or rn <= v AND rn <= 100 with another column",
        ),
        unordered=None
        if is_insert_only(relation) or not latest
        else source.error(
            "the latest row by processing time needs insert-only rows, but these rows can change",
            place,
            "order by a column with the time of a row",
        ),
        view=context.view,
        place=place,
        base=relation.base,
        block=relation.block,
    ), number
