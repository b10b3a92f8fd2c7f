"""Window functions in FROM: ``TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND))``, HOP, CUMULATE, SESSION.

Checks the arguments as Flink does, and adds the columns ``window_start``, ``window_end`` and ``window_time``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Field
from hintplan.planner.properties.rowtimes import why_no_rowtime
from hintplan.planner.properties.time_attributes import is_processing_time
from hintplan.planner.properties.unique_keys import is_insert_only
from hintplan.planner.relations import Fire, LogicalWindow, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.intervals import interval_milliseconds
from hintplan.planner.syntax.windowed_tables import WindowArgument, WindowCall
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.declarations.types import DataType
from hintplan.plans.declarations.windows import Window, WindowType
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.operators.contract.timed import MOST_PRECISION
from hintplan.plans.text.names import did_you_mean

COLUMNS = ("window_start", "window_end", "window_time")
"""The columns that a window function adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A window function: the names of its durations after the table and the time, the last of which may be absent."""

    type: WindowType
    durations: tuple[str, ...]
    example: str

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("DATA", "TIMECOL", *self.durations)


_FUNCTIONS = {
    "TUMBLE": _Function(
        type="tumble",
        durations=("SIZE", "OFFSET"),
        example="TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
    ),
    "HOP": _Function(
        type="hop",
        durations=("SLIDE", "SIZE", "OFFSET"),
        example="HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '1' HOUR), the slide before the size",
    ),
    "CUMULATE": _Function(
        type="cumulate",
        durations=("STEP", "SIZE", "OFFSET"),
        example="CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '1' HOUR), the step before the size",
    ),
    "SESSION": _Function(
        type="session",
        durations=("GAP",),
        example="SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE)",
    ),
}


def check_windowed(context: Context, call: WindowCall) -> None:
    """Raise SqlError unless the call names a table that it can read."""
    if call.of_query is not None:
        message = f"{call.function} takes the name of a table or view, found a query"
        advice = "name the query: WITH q AS (SELECT ...), or CREATE VIEW; then write TABLE q"
        raise context.source.error(message, call.of_query, advice)
    if all(argument.kind != "table" for argument in call.arguments):
        message = f"{call.function} has no table"
        raise context.source.error(message, call.offset, f"write {_FUNCTIONS[call.function].example}")
    if call.ordered is not None:
        message = f"ORDER BY in {call.function} is not supported, by Flink neither"
        raise context.source.error(message, call.ordered, "remove it")


def windowed(context: Context, call: WindowCall, relation: Relation, block: str) -> LogicalWindow:
    """Return the rows of ``relation`` in their windows. Raise SqlError for a wrong argument."""
    function = _FUNCTIONS[call.function]
    arguments = _bound(context, call, function)
    time = _time(context, call, relation, arguments["TIMECOL"])
    keys = _keys(context, call, function, relation, arguments["DATA"])
    window = replace(
        _window(context, call, function, arguments, zone_of(context, time)),
        processing_time=is_processing_time(context, relation, time.id),
    )
    for name in COLUMNS:
        if any(f.name == name for f in relation.fields):
            message = f"{call.function} adds a column '{name}', which its table has already"
            raise context.source.error(
                message, call.offset, f"name the table's column otherwise: {name} AS first_{name}"
            )
    return window_over(context, relation, time, window, keys, call.offset, block)


def zone_of(context: Context, time: Field) -> str | None:
    """Return the zone of windows over ``time``: over a TIMESTAMP_LTZ, they follow the wall clock of the session."""
    return context.config.get(TIME_ZONE, "UTC") if time.type.root == "TIMESTAMP_LTZ" else None


def window_over(
    context: Context,
    relation: Relation,
    time: Field,
    window: Window,
    keys: tuple[Field, ...],
    offset: int,
    block: str,
    fire: Fire | None = None,
) -> LogicalWindow:
    """Return the rows of ``relation`` in windows over ``time``; a window in GROUP BY has ``fire``."""
    if window.type == "session" and not is_insert_only(relation):
        message = "SESSION over rows that can change is not supported: a session does not depend only on the rows left"
        raise context.source.error(message, offset, "use TUMBLE or HOP, or read the rows before they change")
    start, end = (context.field(name, DataType(root="TIMESTAMP", precision=3)) for name in COLUMNS[:2])
    return LogicalWindow(
        input=relation,
        time=time,
        window=window,
        keys=keys,
        start=start,
        end=end,
        window_time=context.field(COLUMNS[2], DataType(root=time.type.root, precision=3)),
        fire=fire,
        offset=offset,
        base=relation.base,
        block=block,
    )


def _bound(context: Context, call: WindowCall, function: _Function) -> Mapping[str, WindowArgument]:
    """Return the arguments by the names of their parameters."""
    source, parameters = context.source, function.parameters
    advice = f"write {function.example}"
    named = [argument for argument in call.arguments if argument.name is not None]
    if named and len(named) < len(call.arguments):
        other = next(argument for argument in call.arguments if argument.name is None)
        raise source.error(f"{call.function} takes either all arguments by name or none", other.offset, advice)
    bound: dict[str, WindowArgument] = {}
    if len(call.arguments) > len(parameters):
        found = call.arguments[len(parameters)].offset
        raise source.error(f"{call.function} takes at most {len(parameters)} arguments", found, advice)
    for parameter, argument in zip(parameters, call.arguments, strict=False):
        name = argument.name or parameter
        if name not in parameters:
            listed = ", ".join(parameters)
            raise source.error(f"{call.function} has no argument {name}; it has {listed}", argument.offset, advice)
        if name in bound:
            raise source.error(f"{call.function} has its argument {name} twice", argument.offset, advice)
        bound[name] = argument
    for name in parameters:
        if name not in bound and name != "OFFSET":
            raise source.error(f"{call.function} needs the argument {name}", call.offset, advice)
    for name, argument in bound.items():
        kind = {"DATA": "table", "TIMECOL": "descriptor"}.get(name, "value")
        if argument.kind != kind:
            what = {"table": "TABLE t", "descriptor": "DESCRIPTOR(ts)"}.get(kind, "INTERVAL '5' SECOND")
            message = f"the {name} of {call.function} is written {what}"
            raise source.error(message, argument.offset, advice)
    return bound


def _time(context: Context, call: WindowCall, relation: Relation, argument: WindowArgument) -> Field:
    """Return the rowtime or processing time that the descriptor names."""
    if len(argument.columns) != 1:
        message = f"{call.function} goes by one time, found {len(argument.columns)} columns"
        raise context.source.error(message, argument.offset, "write DESCRIPTOR(ts)")
    field = _column(context, relation, argument.columns[0])
    check_time(context, call.function, relation, field, offset_of(argument.columns[0]))
    return field


def check_time(context: Context, function: str, relation: Relation, field: Field, place: int) -> None:
    """Raise SqlError unless windows can go by ``field`` of ``relation``, which the query names at ``place``."""
    source = context.source
    if is_processing_time(context, relation, field.id):
        _check_processing_time(context, function, relation, field, place)
        return
    if is_processing_time(context, relation, field.id, materialized=True):
        message = (
            f"{function} needs a rowtime or PROCTIME(), but '{field.name}' is neither: it has passed a join, whose "
            "rows may come later"
        )
        raise source.error(
            message, place, "write PROCTIME() in a query above the join, or put the window below the join"
        )
    lost = why_no_rowtime(context, relation, field)
    if lost is not None:
        message = f"{function} needs a rowtime, but '{field.name}' is none: {lost.reason}"
        raise source.error(message, place, lost.advice)
    kind = field.type
    if (kind.precision or 0) > MOST_PRECISION:
        message = (
            f"a rowtime has at most {MOST_PRECISION} digits of a second, but '{field.name}' is {kind.as_nullable()}"
        )
        raise source.error(message, place, f"declare it as {kind.root}({MOST_PRECISION})")


def _check_processing_time(context: Context, function: str, relation: Relation, field: Field, place: int) -> None:
    """Raise SqlError unless the rows can be in windows of processing time."""
    advice = "declare a column with the time of a row, and a WATERMARK for it"
    if context.batch:
        message = f"a batch job has no windows of processing time, and '{field.name}' is PROCTIME()"
        raise context.source.error(message, place, advice)
    if not is_insert_only(relation):
        message = (
            f"{function} of processing time over rows that can change is not supported: a change would count in "
            "another window than its row"
        )
        raise context.source.error(message, place, advice)


def _column(context: Context, relation: Relation, name: exp.Identifier) -> Field:
    field = next((f for f in relation.fields if f.name == name.name), None)
    if field is None:
        names = [f.name for f in relation.fields]
        advice = did_you_mean(name.name, names, what="columns")
        raise context.source.error(f"unknown column '{name.name}'", offset_of(name), advice)
    return field


def _keys(
    context: Context, call: WindowCall, function: _Function, relation: Relation, argument: WindowArgument
) -> tuple[Field, ...]:
    """Return the columns of PARTITION BY, which only sessions have."""
    if argument.columns and function.type != "session":
        message = f"{call.function} takes no PARTITION BY: its windows are the same for all keys"
        raise context.source.error(message, offset_of(argument.columns[0]), "remove it; GROUP BY has the keys")
    fields = (_column(context, relation, name) for name in argument.columns)
    return tuple({field.id: field for field in fields}.values())


def _window(
    context: Context,
    call: WindowCall,
    function: _Function,
    arguments: Mapping[str, WindowArgument],
    zone: str | None,
) -> Window:
    """Return the windows of the call. Raise SqlError for durations that do not fit."""
    source = context.source
    durations = {
        name: interval_ms(context, call.function, name, arguments[name].value, arguments[name].offset)
        for name in function.durations
        if name in arguments
    }
    offset = durations.pop("OFFSET", 0)
    for name, milliseconds in durations.items():
        if milliseconds <= 0:
            message = f"the {name} of {call.function} is more than zero"
            raise source.error(message, arguments[name].offset, "write it like INTERVAL '5' SECOND")
    step_name = function.durations[0]
    size, step = durations.get("SIZE", 0), durations[step_name]
    if size and size % step:
        message = (
            f"the size of {call.function} is a multiple of its {step_name.lower()}, but {format_duration(size)} is "
            f"none of {format_duration(step)}"
        )
        raise source.error(message, arguments["SIZE"].offset, f"write {function.example}")
    if abs(offset) >= step:
        message = f"an OFFSET is less than the {step_name} of the window, {format_duration(step)}"
        raise source.error(message, arguments["OFFSET"].offset, "leave whole windows out of it")
    texts = {name.lower(): format_duration(milliseconds) for name, milliseconds in durations.items()}
    sign = "-" if offset < 0 else ""
    return Window(
        type=function.type,
        size=texts.get("size"),
        slide=texts.get("slide"),
        step=texts.get("step"),
        gap=texts.get("gap"),
        offset=f"{sign}{format_duration(abs(offset))}" if offset else None,
        zone=zone,
    )


def interval_ms(context: Context, function: str, name: str, interval: exp.Expr | None, offset: int) -> int:
    """Return the milliseconds of an INTERVAL of days, hours, minutes or seconds, the argument ``name`` of a window."""
    milliseconds = interval_milliseconds(interval)
    if milliseconds is None:
        message = f"the {name} of {function} is one INTERVAL in days, hours, minutes or seconds"
        raise context.source.error(message, offset, "write it like INTERVAL '5' SECOND")
    if milliseconds != int(milliseconds):
        message = f"the {name} of {function} is a whole number of milliseconds"
        raise context.source.error(message, offset, "write it like INTERVAL '0.5' SECOND")
    return int(milliseconds)
