"""ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) in a SELECT list: a column with the number of each row.

As in Flink's deduplication, rows are ordered by one time attribute: a column that a WATERMARK is for, or the processing
time, which is the order of arrival. A condition above, that the number is 1, says which row of each partition is kept
(:class:`planner.relations.RowNumber`). All other window functions are refused where they are translated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from planner.context import Context
from planner.expressions.typed import BOOLEAN, Expr, Field, Literal, Ref
from planner.properties.time_attributes import is_processing_time, is_row_time
from planner.properties.unique_keys import is_insert_only
from planner.relations import Calc, Item, Relation, RowNumber, identity
from planner.syntax.dialect import offset_of
from planner.translation.translator import Translator, only
from plans.declarations.types import parse_type
from plans.operators.sort import UNSORTABLE

_NUMBER = parse_type("BIGINT NOT NULL")
_EXAMPLE = "SELECT ... FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t DESC) AS rn FROM ...) WHERE rn = 1"


def number_rows(
    context: Context, select: exp.Select, relation: Relation, translator: Translator
) -> tuple[Relation, Translator]:
    """``relation`` with a column for each ROW_NUMBER() of the SELECT list, and a translator that knows what it is."""
    numbers: dict[int, Expr] = {}
    for window in _windows(select):
        relation, number = _numbered(context, window, relation, translator)
        numbers[offset_of(window)] = Ref(field=number)
    if not numbers:
        return relation, translator

    def number_of(t: Translator, node: exp.Expr) -> Expr:
        found = numbers.get(offset_of(node))
        # Without its handler, what is no ROW_NUMBER() is refused as it is everywhere.
        return found if found is not None else translator.expression(node)

    return relation, replace(translator, handlers={**translator.handlers, exp.Window: number_of})


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    """The ROW_NUMBER() calls of the SELECT list, without those of its sub-queries."""
    for item in select.expressions:
        for node in item.walk(prune=lambda each: isinstance(each, exp.Query)):
            if isinstance(node, exp.Window) and node.this.name.upper() == "ROW_NUMBER":
                yield node


def _numbered(
    context: Context, window: exp.Window, relation: Relation, translator: Translator
) -> tuple[Relation, Field]:
    """``relation`` with the number that ``window`` asks for, and the field that holds it."""
    source, offset = context.source, offset_of(window)
    if window.args.get("spec") is not None or window.this.expressions:
        what = "arguments" if window.this.expressions else "frame of rows"
        raise source.error(f"ROW_NUMBER() has no {what}", offset, f"write {_EXAMPLE}")
    only(source, window, "this", "partition_by", "order", "over")
    if not context.batch and not is_insert_only(relation):
        message = "ROW_NUMBER() over rows that are updated or deleted is not supported"
        raise source.error(message, offset, "number rows before they are aggregated, or joined with an outer join")
    ordered = _ordered(context, window)
    time = replace(translator, clause="ORDER BY").expression(ordered.this)
    partition = _partition(context, window, replace(translator, clause="PARTITION BY"))
    relation, (by, *keys) = _with_columns(context, relation, [time, *partition])
    return _by_time(context, ordered, relation, by, tuple(keys))


def _partition(context: Context, window: exp.Window, translator: Translator) -> list[Expr]:
    found = []
    for node in window.args.get("partition_by") or ():
        found.append(translator.expression(node))
        if found[-1].type.root in (*UNSORTABLE, "NULL"):
            message = f"PARTITION BY does not take {found[-1].type.as_nullable()}"
            raise context.source.error(message, offset_of(node), "partition by scalar columns")
    # Without PARTITION BY all rows are one partition.
    return found or [Literal(text="TRUE", type=BOOLEAN)]


def _ordered(context: Context, window: exp.Window) -> exp.Ordered:
    """The one column that the numbers go by."""
    order = window.args.get("order")
    if order is None or len(order.expressions) != 1:
        found = "none" if order is None else len(order.expressions)
        message = f"ROW_NUMBER() goes by one time attribute, found {found}"
        raise context.source.error(message, offset_of(order or window), f"write {_EXAMPLE}")
    ordered: exp.Ordered = order.expressions[0]
    only(context.source, ordered, "this", "desc", "nulls_first")
    if bool(ordered.args.get("nulls_first")) == bool(ordered.args.get("desc")):
        message = "NULLS FIRST and NULLS LAST are not supported here: NULL is before all times"
        raise context.source.error(message, offset_of(ordered), "remove it, and filter rows without a time")
    return ordered


def _with_columns(context: Context, relation: Relation, wanted: list[Expr]) -> tuple[Relation, list[Field]]:
    """``relation``, with columns for those of ``wanted`` that are none, and the fields of all."""
    added = [Item(field=context.field("", e.type), expr=e) for e in wanted if not isinstance(e, Ref)]
    fields = [e.field if isinstance(e, Ref) else next(i.field for i in added if i.expr is e) for e in wanted]
    if added:
        items = (*identity(relation.fields), *added)
        relation = Calc(input=relation, filter=None, items=items, base=relation.base, block=relation.block)
    return relation, fields


def _by_time(
    context: Context, ordered: exp.Ordered, relation: Relation, time: Field, partition: tuple[Field, ...]
) -> tuple[Relation, Field]:
    source, place = context.source, offset_of(ordered.this)
    arrival = is_processing_time(relation, time.id)
    if arrival and context.batch:
        message = "rows of a batch job have no order of arrival"
        raise source.error(message, place, "order by a column with a WATERMARK")
    if not arrival and not is_row_time(context, relation, time):
        message = "ROW_NUMBER() goes by a time attribute: a column with a WATERMARK, or the processing time"
        advice = "declare WATERMARK FOR t AS t in the table, or a column proc_time AS PROCTIME() to order by"
        raise source.error(message, place, advice)
    number = context.field("", _NUMBER)
    unlimited = "ROW_NUMBER() needs a condition that keeps its first row: other numbers are not supported"
    return RowNumber(
        input=relation,
        partition=tuple({field.id: field for field in partition}.values()),
        time=None if arrival else time,
        descending=bool(ordered.args.get("desc")),
        number=number,
        unlimited=source.error(unlimited, offset_of(ordered.find_ancestor(exp.Window) or ordered), f"write {_EXAMPLE}"),
        base=relation.base,
        block=relation.block,
    ), number
