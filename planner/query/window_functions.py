"""Window functions (OVER) of a block: the first rows by ROW_NUMBER(), and all others.

Each function fills a column below the SELECT list, and the list reads this column. Functions over the same window share
an operator. In a stream, all functions of a block have the same window, as in Flink. References to names of the WINDOW
clause are expanded first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.casts import flink_cast
from hintplan.planner.expressions.coercion import common_data_type
from hintplan.planner.expressions.operands import mismatch
from hintplan.planner.expressions.typed import (
    BIGINT,
    DOUBLE,
    AggregateCallExpr,
    Expr,
    Field,
    FieldRef,
    replace_outermost,
)
from hintplan.planner.properties.stream_orders import stream_order
from hintplan.planner.query.ordering import SortKeys
from hintplan.planner.query.row_numbers import add_columns, add_row_number, partitioned, sort_items
from hintplan.planner.query.windows_in_streams import (
    check_in_stream,
    check_operator,
    orders_a_stream_by_time,
    other_window,
)
from hintplan.planner.relations import LogicalOver, OverItem, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.intervals import interval_milliseconds
from hintplan.planner.translation import aggregates
from hintplan.planner.translation.translator import Translator, only
from hintplan.plans.declarations.computations import VARIANCES
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.operators.over_aggregate import AGGREGATED, MOST, NUMBERS, OVER_FUNCTIONS, SHARES, SHIFTS, Frame


def over_windows(
    context: Context, select: exp.Select, sorted_by: SortKeys, relation: Relation, translator: Translator
) -> tuple[Relation, Translator]:
    """Add a column for each window function of the block; also return a translator that reads these columns."""
    results: dict[int, Expr] = {}
    named = _named_windows(context, select)
    for window in named.values():  # a window without a reader is checked, too
        _frame(context, window, partitioned(context, window, translator)[0], relation)
    windows = [_written_out(context, written, named) for written in _windows(select, sorted_by)]
    for window in windows:
        if isinstance(window.this, exp.Filter):
            message = "FILTER before OVER is not supported, by Flink neither"
            advice = "write SUM(CASE WHEN ... THEN v END) OVER (...)"
            raise context.source.error(message, offset_of(window), advice)
    together = [] if context.batch else _together(context, windows, translator)
    if together:
        relation, results = _computed_in_stream(context, together, relation, translator)
    for window in windows:
        name, place = _name(window), offset_of(window)
        if name == "ROW_NUMBER" and window not in together:
            relation, number = add_row_number(context, window, relation, translator)
            results[place] = FieldRef(field=number)
        elif context.batch:
            relation, results[place] = _computed(context, window, name, relation, translator)
    if not results:
        return relation, translator

    def result_of(t: Translator, node: exp.Expr) -> Expr:
        result = results.get(offset_of(node))
        # A function without a column stands where OVER is not allowed, so the outer translator refuses it.
        return result if result is not None else translator.expression(node)

    return relation, replace(translator, handlers={**translator.handlers, exp.Window: result_of})


def _name(window: exp.Window) -> str:
    return str(window.this.name).upper()


def _together(context: Context, windows: list[exp.Window], translator: Translator) -> list[exp.Window]:
    """Return the windows that one operator of a stream computes: all but first rows, whose order is another one."""
    others = [window for window in windows if _name(window) != "ROW_NUMBER"]
    if not others:
        return []
    order = partitioned(context, others[0], translator)
    return [
        window
        for window in windows
        if window in others or (not window.args.get("spec") and partitioned(context, window, translator) == order)
    ]


def _windows(select: exp.Select, sorted_by: SortKeys) -> Iterator[exp.Window]:
    """Yield the window functions of SELECT, QUALIFY and ORDER BY, except the ones in sub-queries."""
    clauses = filter(None, (*select.expressions, select.args.get("qualify"), *sorted_by.expressions))
    yield from _windows_in(clauses)


def _windows_in(clauses: Iterable[exp.Expr]) -> Iterator[exp.Window]:
    for item in clauses:
        for node in item.walk(prune=lambda each: isinstance(each, exp.Query)):
            if isinstance(node, exp.Window):
                yield node


def has_windows(select: exp.Select) -> bool:
    """Return True if the block has window functions in SELECT, QUALIFY or ORDER BY."""
    clauses = filter(None, (*select.expressions, select.args.get("qualify"), select.args.get("order")))
    return any(True for _ in _windows_in(clauses))


def _named_windows(context: Context, select: exp.Select) -> dict[str, exp.Window]:
    """Return the windows of the WINDOW clause by name, with references to each other expanded."""
    named: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or ():
        if window.name in named:
            advice = "give it another name"
            raise context.source.error(f"there are two windows '{window.name}'", offset_of(window.this), advice)
        named[window.name] = _written_out(context, window, named)
    return named


def _written_out(context: Context, window: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    """Return ``window`` with the parts of the window that it refers to."""
    alias = window.args.get("alias")
    if alias is None:
        return window
    if alias.name not in named:
        raise context.source.error(
            f"there is no window '{alias.name}'", offset_of(alias), "declare it: WINDOW w AS (PARTITION BY k)"
        )
    base, expanded = named[alias.name], window.copy()
    expanded.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        inherited = base.args.get(part)
        if inherited and window.args.get(part):
            message = f"window '{alias.name}' has its {part.replace('_', ' ')} already"
            raise context.source.error(message, offset_of(alias), "write the window out")
        if inherited:
            expanded.set(
                part, inherited.copy() if isinstance(inherited, exp.Expr) else [each.copy() for each in inherited]
            )
    return expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function with its arguments; ``shown`` computes the query's result from its result, if they differ."""

    name: str
    type: DataType
    argument: Expr | None = None
    count: int | None = None
    default: Expr | None = None
    shown: Expr | None = None
    call: AggregateCallExpr | None = None
    distinct: bool = False

    @property
    def operands(self) -> list[Expr]:
        return [each for each in (self.argument, self.default) if each is not None]


def _computed(
    context: Context, window: exp.Window, name: str, relation: Relation, translator: Translator
) -> tuple[Relation, Expr]:
    """Add the result of ``window`` to ``relation``; also return the expression that reads it."""
    only(context.source, window, "this", "partition_by", "order", "spec", "over")
    function = _function(context, window.this, name, translator)
    order, partition = partitioned(context, window, translator)
    frame = _checked_frame(context, window, name, order, relation)
    relation, fields = add_columns(context, relation, [*order, *partition, *function.operands])
    ordered, arguments = len(order), iter(fields[len(order) + len(partition) :])
    item = _item(context, window, function, arguments)
    by = {each.field.id: each for each in reversed(sort_items(window, fields[:ordered]))}
    keys = {field.id: field for field in fields[ordered : ordered + len(partition)]}
    over = LogicalOver(
        input=relation,
        partition=tuple(keys.values()),
        order=tuple(reversed(by.values())),
        frame=frame,
        calls=(item,),
        base=relation.base,
        block=relation.block,
    )
    return _with_those_of_its_window(over), _shown(function, item, offset_of(window))


def _computed_in_stream(
    context: Context, windows: list[exp.Window], relation: Relation, translator: Translator
) -> tuple[Relation, dict[int, Expr]]:
    """Add the results of ``windows`` in a stream, by one operator; also return the expressions that read them."""
    first, functions = windows[0], []
    order, partition = partitioned(context, first, translator)
    whole = add_columns(context, relation, [*order, *partition])
    frame = _frame(context, first, order, whole[0])
    for window in windows:
        name = _name(window)
        only(context.source, window, "this", "partition_by", "order", "spec", "over")
        check_in_stream(context, window, name, relation, translator)
        functions.append(_function(context, window.this, name, translator))
        its_order, its_partition = partitioned(context, window, translator)
        its_frame = _checked_frame(context, window, name, its_order, relation)
        if (its_order, its_partition, its_frame) != (order, partition, frame):
            raise other_window(context, window, first)
    relation, fields = add_columns(
        context, relation, [*order, *partition, *(each for function in functions for each in function.operands)]
    )
    (key,) = sort_items(first, fields[:1])
    kind = stream_order(context, offset_of(first.args["order"]), relation, key.field)
    arguments = iter(fields[1 + len(partition) :])
    items = [_item(context, window, each, arguments) for window, each in zip(windows, functions, strict=True)]
    over = LogicalOver(
        input=relation,
        partition=tuple({field.id: field for field in fields[1 : 1 + len(partition)]}.values()),
        order=() if kind == "arrival" else (key,),
        frame=frame,
        calls=tuple(items),
        in_stream=kind,
        base=relation.base,
        block=relation.block,
    )
    check_operator(context, over, windows)
    return over, {
        offset_of(window): _shown(function, item, offset_of(window))
        for window, function, item in zip(windows, functions, items, strict=True)
    }


def _item(context: Context, window: exp.Window, function: _Function, arguments: Iterator[Field]) -> OverItem:
    """Return the call of ``function``, whose operands are the next of ``arguments``."""
    alias = window.parent.alias if isinstance(window.parent, exp.Alias) and function.shown is None else ""
    return OverItem(
        field=context.field(alias, function.type),
        function=function.name,
        argument=None if function.argument is None else next(arguments),
        count=function.count,
        default=None if function.default is None else next(arguments),
        distinct=function.distinct,
    )


def _shown(function: _Function, item: OverItem, place: int) -> Expr:
    """Return the expression that reads the result of ``item``."""
    if function.shown is None:
        return FieldRef(field=item.field, offset=place)
    return replace_outermost(function.shown, lambda e: FieldRef(field=item.field) if e == function.call else None)


def _checked_frame(
    context: Context, window: exp.Window, name: str, order: list[Expr], relation: Relation
) -> Frame | None:
    """Return the frame of ``window`` for the function ``name``, which may need an order or refuse a frame."""
    has_frame = _plain(name) in AGGREGATED
    if not has_frame and not order:
        message = f"{name} needs an order"
        raise context.source.error(message, offset_of(window), f"write {name}(...) OVER (PARTITION BY k ORDER BY v)")
    frame = _frame(context, window, order, relation)
    if not has_frame and frame is not None:
        place = offset_of(window.args["spec"]) or offset_of(window)
        raise context.source.error(f"{name} has no frame of rows", place, "remove it")
    return frame


def _with_those_of_its_window(over: LogicalOver) -> LogicalOver:
    """Merge ``over`` into the operator below it if that has the same window, and ``over`` reads none of its results."""
    below = over.input
    if not isinstance(below, LogicalOver):
        return over
    own = {call.field.id for call in below.calls}
    same = (below.partition, below.order, below.frame) == (over.partition, over.order, over.frame)
    return over if not same or own & {f.id for f in over.reads} else replace(below, calls=(*below.calls, *over.calls))


def _function(context: Context, node: exp.Expr, name: str, translator: Translator) -> _Function:
    source, place, arguments = context.source, offset_of(node), node.expressions
    if name in (*NUMBERS, *SHARES):
        if arguments:
            raise source.error(f"{name} takes no argument", place, f"write {name}() OVER (...)")
        return _Function(name=name, type=parse_type("BIGINT NOT NULL") if name in NUMBERS else _not_null(DOUBLE))
    if name == "NTILE":
        return _Function(name=name, type=BIGINT, count=_whole(context, name, arguments, 0, least=1))
    if name in SHIFTS:
        return _shifted(context, node, name, translator)
    if not aggregates.is_aggregate(node) or _plain(name) not in AGGREGATED:
        functions = ", ".join(OVER_FUNCTIONS)
        raise source.error(f"{node.name} cannot be before OVER", place, f"there are {functions}")
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct) and context.batch:
        advice = "aggregate a sub-query with SELECT DISTINCT, and join it"
        raise source.error("DISTINCT before OVER is not supported, by Flink neither", place, advice)
    shown = aggregates.translate_aggregate(replace(translator, aggregates=True), node, None)
    call = next(each for each in _calls(shown))
    argument = call.arguments[0] if call.arguments else None
    if call.function in VARIANCES and argument is not None and argument.type.root not in ("FLOAT", "DOUBLE"):
        message = f"{name} before OVER does not take {argument.type.as_nullable()}, which Flink 2.3 divides as such"
        raise source.error(message, place, f"write {name}(CAST(x AS DOUBLE)) OVER (...)")
    return _Function(
        name=call.function,
        type=call.type,
        argument=argument,
        shown=None if shown == call else shown,
        call=call,
        distinct=call.distinct and call.function not in ("FIRST_VALUE", "LAST_VALUE"),
    )


def _plain(name: str) -> str:
    """Return the name of an aggregate function in plans."""
    return {"VARIANCE": "VAR_SAMP", "STDDEV": "STDDEV_SAMP"}.get(name, name)


def _calls(expression: Expr) -> Iterator[AggregateCallExpr]:
    if isinstance(expression, AggregateCallExpr):
        yield expression
    else:
        for each in getattr(expression, "args", ()):
            yield from _calls(each)


def _not_null(kind: DataType) -> DataType:
    return replace(kind, nullable=False)


def _shifted(context: Context, node: exp.Expr, name: str, translator: Translator) -> _Function:
    """Compile LAG or LEAD: the value, the distance in rows, and the default for a missing row."""
    source, place, arguments = context.source, offset_of(node), node.expressions
    if not 1 <= len(arguments) <= 3:
        raise source.error(f"{name} takes 1 to 3 arguments, found {len(arguments)}", place, f"write {name}(v, 1, 0)")
    inner = replace(translator, clause=f"{name}()")
    value = inner.expression(arguments[0])
    if value.type.root in ("NULL", "INTERVAL"):
        raise source.error(f"{name} does not take {value.type}", place, "convert the argument with CAST")
    count = _whole(context, name, arguments, 1, least=0) if len(arguments) > 1 else 1
    kind, default = value.type.as_nullable(), None
    if len(arguments) > 2:
        default = inner.expression(arguments[2])
        if common_data_type([value.type, default.type]) is None:
            raise mismatch(source, name, value.type, default.type, place)
        default = None if default.type.root == "NULL" else flink_cast(default, kind, place)
    return _Function(name=name, type=kind, argument=value, count=count, default=default)


def _whole(context: Context, name: str, given: list[exp.Expr], place: int, *, least: int) -> int:
    """Return the argument at ``place`` of function ``name``, which must be a whole number of at least ``least``."""
    node = given[place] if place < len(given) else None
    text = node.name if isinstance(node, exp.Literal) and not node.args["is_string"] else ""
    if len(given) <= place or not text.isdigit() or not least <= int(text) <= MOST:
        offset = offset_of(node) if node is not None else 0
        message = f"{name} takes a whole number from {least} as argument {place + 1}"
        raise context.source.error(message, offset, "write the number")
    return int(text)


def _frame(context: Context, window: exp.Window, order: list[Expr], relation: Relation) -> Frame | None:
    """Return the frame of ``window``, or None for the default frame."""
    spec = window.args.get("spec")
    if spec is None:
        return None
    source, place = context.source, offset_of(spec) or offset_of(window)
    only(source, spec, "kind", "start", "start_side", "end", "end_side")
    if not order:
        raise source.error("a frame of rows needs an order", place, "add ORDER BY")
    if (spec.args["start"], spec.args.get("start_side")) == ("UNBOUNDED", "FOLLOWING") or (
        spec.args.get("end"),
        spec.args.get("end_side"),
    ) == ("UNBOUNDED", "PRECEDING"):
        raise source.error("this frame begins behind its end", place, "write the earlier bound first")
    unit = spec.args["kind"].lower()
    by_time = unit == "range" and not context.batch and orders_a_stream_by_time(context, relation, order)

    def bound(which: str) -> int | None:
        written, side = spec.args[which], spec.args.get(f"{which}_side")
        if by_time and isinstance(written, exp.Expr):
            return _time_bound(context, written, side, place)
        return _bound(context, written, side, place, below_zero=unit == "range")

    start, end = bound("start"), 0 if spec.args.get("end") is None else bound("end")
    if start is not None and end is not None and start > end:
        raise source.error("this frame begins behind its end", place, "write the earlier bound first")
    if unit == "range" and (start or end) and not by_time and (len(order) > 1 or not order[0].type.is_integer):
        message = f"RANGE with distances takes the order of one integer column, found {order[0].type.as_nullable()}"
        raise source.error(message, place, "write ROWS, or order by a number, such as UNIX_TIMESTAMP")
    if (unit, start, end) == ("range", None, 0):
        return None
    return Frame(unit=unit, start=start, end=end)


def _time_bound(context: Context, bound: exp.Expr, side: str | None, place: int) -> int:
    """Return the distance of a bound from a time, in ms."""
    distance = interval_milliseconds(bound)
    if distance is None or distance != int(distance) or distance < 0:
        message = "RANGE by a time takes one INTERVAL in days, hours, minutes or seconds"
        raise context.source.error(
            message, offset_of(bound) or place, "write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
        )
    return -int(distance) if side == "PRECEDING" else int(distance)


def _bound(context: Context, bound: exp.Expr | str, side: str | None, place: int, *, below_zero: bool) -> int | None:
    if bound == "CURRENT ROW":
        return 0
    if bound == "UNBOUNDED":
        return None
    number = bound.this if isinstance(bound, exp.Neg) and below_zero else bound
    text = number.name if isinstance(number, exp.Literal) and not number.args["is_string"] else ""
    if not text.isdigit() or int(text) > MOST:
        at = offset_of(bound) if isinstance(bound, exp.Expr) else 0
        message = "a frame takes whole numbers, UNBOUNDED and CURRENT ROW"
        if isinstance(bound, exp.Neg) and not below_zero:
            message = "a frame of ROWS takes no number below 0, in Flink neither"
        raise context.source.error(message, at or place, "write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW")
    distance = int(text) if number is bound else -int(text)
    return -distance if side == "PRECEDING" else distance
