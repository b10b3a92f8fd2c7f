"""Adds a watermark to each table whose rows a window function or an operator that goes by time reads.

The watermark is right above the scan and its computed columns, below all filters, because rows that a filter drops move
it, too. For the same reason, it is below operators that replace rows: the normalisation of upserts, and the last row of
each key. Tables without a reader that goes by time get none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from hintplan.planner.context import Context, TableEntry
from hintplan.planner.expressions.typed import (
    UNKNOWN,
    Call,
    Expr,
    Field,
    FieldRef,
    Literal,
    calls_user_code,
    referenced_fields,
    replace_outermost,
    substitute,
)
from hintplan.planner.hints.lookup import OPTIONS, watermark_options
from hintplan.planner.hints.options import option_value
from hintplan.planner.properties.rowtimes import is_last_by_time
from hintplan.planner.relations import (
    Item,
    LogicalCache,
    LogicalCalc,
    LogicalCorrelate,
    LogicalExpand,
    LogicalJoin,
    LogicalLookupJoin,
    LogicalOver,
    LogicalRowNumber,
    LogicalScan,
    LogicalSort,
    LogicalUnion,
    LogicalUnnest,
    LogicalWatermark,
    LogicalWindow,
    LogicalWindowAggregate,
    Relation,
    identity,
    map_inputs,
)
from hintplan.planner.syntax.dialect import parse_expression, tokenize
from hintplan.planner.syntax.problems import FollowUp
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Input, Scope
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.settings.setting import Layers, Value
from hintplan.plans.settings.watermark import DELAY, WATERMARK

Hinted = tuple[tuple[int, str], ...]
"""The offsets of hint options, with the settings of a watermark that they set."""
_UNITS = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}


def assign_watermarks(context: Context, relation: Relation) -> Relation:
    """Add watermarks below each window function, and below each relation that goes by time."""
    relation = map_inputs(relation, lambda below: assign_watermarks(context, below))
    is_function = isinstance(relation, LogicalWindow) and not relation.window.processing_time
    if not (_goes_by_time(relation) or is_function):
        return relation
    return map_inputs(relation, lambda below: _marked(context, below))


def _goes_by_time(relation: Relation) -> bool:
    match relation:
        case LogicalWindowAggregate():
            return not relation.window.processing_time
        case LogicalRowNumber():
            return relation.attached is not None or relation.is_at_watermark
        case LogicalJoin():
            if relation.interval is not None:
                return not relation.interval.processing_time
            return (relation.windows, relation.as_of) != (None, None)
        case LogicalWindow():
            return relation.is_session and not relation.window.processing_time
        case LogicalSort():
            return relation.is_at_watermark
        case LogicalOver():
            return relation.in_stream == "rowtime"
        case _:
            return False


def _marked(context: Context, relation: Relation) -> Relation:
    """Return ``relation`` with a watermark at each of its tables."""
    if _goes_by_time(relation):
        return relation  # it sends its own watermark
    match relation:
        case LogicalScan():
            return _assigned(context, relation, None)
        case LogicalCalc() if isinstance(relation.input, LogicalScan):
            return _assigned(context, relation.input, relation)
        case LogicalRowNumber() if not is_last_by_time(relation):
            return relation
        case LogicalOver() if relation.in_stream == "column":
            return relation
        case (
            LogicalCalc()
            | LogicalRowNumber()
            | LogicalLookupJoin()
            | LogicalCorrelate()
            | LogicalUnnest()
            | LogicalExpand()
            | LogicalUnion()
            | LogicalCache()
            | LogicalOver()
            | LogicalWindow()
        ):
            return map_inputs(relation, lambda below: _marked(context, below))
        case _:
            return relation


class _Columns:
    """The columns of a table as expressions over a scan, which gets the columns that it lacks."""

    def __init__(self, context: Context, entry: TableEntry, scan: LogicalScan) -> None:
        self.context = context
        self.scan = scan
        self._entry = entry
        self._computed = {column.name: column.expr for column in entry.computed}

    def value(self, name: str) -> Expr:
        """Return the value of the column ``name``."""
        if name in self._computed:
            return self.over_scan(self._computed[name])
        field = next((f for f in self.scan.fields if f.name == name), None)
        if field is None:
            declared = next(f for f in self._entry.fields if f.name == name)
            field = self.context.field(name, declared.type)
            self.scan = replace(self.scan, fields=(*self.scan.fields, field))
        return FieldRef(field=field)

    def over_scan(self, expression: Expr) -> Expr:
        """Return ``expression``, which reads the declared columns, over the scan."""
        return substitute(expression, {f.id: self.value(f.name) for f in referenced_fields(expression)})


def _assigned(context: Context, scan: LogicalScan, calc: LogicalCalc | None) -> Relation:
    """Return the rows of ``scan``, below ``calc``, with the watermark of their table."""
    entry = context.table(scan.table)
    watermark = entry.table.watermark
    if watermark is None:
        return scan if calc is None else calc
    expression, names = _declared_watermark(context, entry, scan)
    columns = _Columns(context, entry, scan)
    time = columns.value(watermark.column)
    is_computed = not isinstance(time, FieldRef)
    column = time.field if isinstance(time, FieldRef) else context.field(watermark.column, time.type)
    values = {
        field.id: FieldRef(field=column) if name == watermark.column else columns.value(name)
        for field, name in names.items()
        if field in referenced_fields(expression)
    }
    highest, delay = _without_delay(substitute(expression, values))
    below: Relation = columns.scan
    if is_computed:
        items = (*identity(columns.scan.fields), Item(field=column, expr=time))
        below = LogicalCalc(input=columns.scan, filter=None, items=items, base=scan.base, block=scan.block)
    layers, hinted = _layers(context, scan, delay)
    marked = LogicalWatermark(
        input=below,
        column=column,
        highest=highest,
        layers=layers,
        hinted=hinted,
        base=scan.base,
        block=scan.block,
    )
    if calc is None:
        return marked if marked.fields == scan.fields else _projected(marked, scan.fields)

    def over_column(value: Expr) -> Expr:
        return replace_outermost(value, lambda e: FieldRef(field=column) if is_computed and e == time else None)

    return replace(
        calc,
        input=marked,
        filter=None if calc.filter is None else over_column(calc.filter),
        items=tuple(replace(item, expr=over_column(item.expr)) for item in calc.items),
    )


def _projected(relation: Relation, fields: tuple[Field, ...]) -> LogicalCalc:
    return LogicalCalc(input=relation, filter=None, items=identity(fields), base=relation.base, block=relation.block)


def _declared_watermark(context: Context, entry: TableEntry, scan: LogicalScan) -> tuple[Expr, Mapping[Field, str]]:
    """Return the expression of the table's WATERMARK, and the names of the columns that its fields stand for."""
    assert entry.table.watermark is not None
    text = entry.table.watermark.expression
    offset = scan.offset
    if entry.declaration is not None and entry.declaration.watermark is not None:
        offset = entry.declaration.watermark[2]
    place = context.text.find(text, offset)
    found = place >= 0
    types = {f.name: f.type for f in entry.fields} | {c.name: c.expr.type for c in entry.computed}
    fields = {context.field(name, data_type): name for name, data_type in types.items()}
    scope = Scope(inputs=(Input(name=scan.declared, kind="table", fields=tuple(fields), offset=offset),))
    tokens = tokenize(text, place if found else 0)
    node = parse_expression(context.source, context.text if found else text, tokens)
    expression = clause_translator(context, scope, "WATERMARK").expression(node)
    if expression is UNKNOWN:
        raise FollowUp
    if calls_user_code(expression):
        message = "a function of your own cannot be part of a WATERMARK"
        raise context.source.error(message, offset, "call it in a computed column, and give that the WATERMARK")
    if expression.type.root not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        message = f"a WATERMARK is a time, found {expression.type.as_nullable()}"
        raise context.source.error(message, offset, "write WATERMARK FOR ts AS ts - INTERVAL '5' SECOND")
    return expression, fields


def _without_delay(expression: Expr) -> tuple[Expr, int | None]:
    """Split ``time - INTERVAL`` into the time and the milliseconds of the interval; return None for other expressions.

    A month has no fixed length.
    """
    if not isinstance(expression, Call) or expression.function != "-" or len(expression.args) != 2:
        return expression, None
    time, interval = expression.args
    if not isinstance(interval, Literal) or interval.type.root != "INTERVAL" or interval.text is None:
        return expression, None
    _, value, unit = interval.text.split()
    delay = Decimal(value.strip("'")) * _UNITS.get(unit, 0)
    if unit not in _UNITS or delay != int(delay):
        return expression, None
    return time, int(delay)


def _layers(context: Context, scan: LogicalScan, delay: int | None) -> tuple[Layers, Hinted]:
    """Return the settings of the watermark by layer, and the settings of a hint, with their offsets.

    The plan adds the layers that follow from its configuration and from the options of its tables.
    """
    layers: dict[str, Mapping[str, Value]] = {}
    if delay is not None:
        layers["table"] = {DELAY: format_duration(delay)}
    options = {} if scan.options is None else watermark_options(scan.options)
    if options:
        layers["hint"] = {
            name: option_value(context.report, OPTIONS, WATERMARK.settings[name], option)
            for name, option in options.items()
        }
    return layers, tuple((option.offset, name) for name, option in options.items())
