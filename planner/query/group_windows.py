"""Group windows, Flink's older syntax for windows: ``GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)``.

HOP and SESSION are the others. The functions TUMBLE_START, TUMBLE_END, TUMBLE_ROWTIME and TUMBLE_PROCTIME take the same
arguments as the window, and may stand where results of aggregates may. A group window becomes a window function below
the aggregate, whose start and end are grouping columns. :mod:`hintplan.planner.passes.plan_windows` makes one operator
of both, as of the newer syntax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from hintplan.planner.context import Context
from hintplan.planner.expressions import scalars
from hintplan.planner.expressions.typed import UNKNOWN, AggregateCallExpr, Expr, Field, FieldRef, referenced_fields
from hintplan.planner.properties.fire import group_window_fire
from hintplan.planner.properties.time_attributes import is_processing_time
from hintplan.planner.query.sources.windows import check_time, interval_ms, window_over, zone_of
from hintplan.planner.relations import LogicalWindow, Relation
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.group_windows import GROUP_WINDOWS, parts_of, window_calls
from hintplan.planner.translation.expressions import clause_translator
from hintplan.planner.translation.scope import Scope
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.declarations.windows import Window, WindowType

_EXAMPLES = {
    "TUMBLE": "TUMBLE(ts, INTERVAL '5' MINUTE)",
    "HOP": "HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR), the slide before the size",
    "SESSION": "SESSION(ts, INTERVAL '5' MINUTE)",
}
_TYPES: Mapping[str, WindowType] = {"TUMBLE": "tumble", "HOP": "hop", "SESSION": "session"}
_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWindow:
    """The window ``node`` in GROUP BY, and the rows that are grouped, in their windows.

    ``values`` are the values of the functions of the window, by their offsets.
    """

    node: exp.Expr
    rows: LogicalWindow
    values: Mapping[int, Expr]

    @property
    def key(self) -> Expr:
        """Return the grouping column that stands for the window in GROUP BY."""
        return FieldRef(field=self.rows.start, offset=offset_of(self.node))

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields that the window adds to its rows."""
        return (self.rows.start, self.rows.end, self.rows.window_time)

    @property
    def keys(self) -> tuple[Field, ...]:
        """Return the grouping columns that the window needs in addition to :attr:`key`."""
        reads_time = any(self.rows.window_time in referenced_fields(value) for value in self.values.values())
        return (self.rows.end, self.rows.window_time) if reads_time else (self.rows.end,)

    def over(self, relation: Relation, keys: tuple[Field, ...]) -> LogicalWindow:
        """Return ``relation`` in the windows; a session belongs to the grouping columns ``keys``."""
        own = tuple(f for f in keys if f not in self.fields) if self.rows.is_session else ()
        return replace(self.rows, input=relation, keys=own)


def group_window(
    context: Context, select: exp.Select, relation: Relation, scope: Scope, block: str
) -> GroupWindow | None:
    """Return the group window of a block over ``relation``, or None if GROUP BY has none."""
    group = select.args.get("group")
    calls = list(window_calls([group])) if isinstance(group, exp.Expr) else []
    if not isinstance(group, exp.Expr) or not calls:
        return None
    node = calls[0]
    function = parts_of(node)[0]
    _check_place(context, group, calls)
    time, window = _window(context, node, relation, scope)
    check_time(context, function, relation, time, offset_of(node.expressions[0]))
    fire = group_window_fire(context, window, offset_of(node))
    rows = window_over(context, relation, time, window, (), offset_of(node), block, fire)
    fields = {"START": rows.start, "END": rows.end, "ROWTIME": rows.window_time}
    values: dict[int, Expr] = {}
    for call in window_calls(_clauses(select), auxiliary=True):
        place, (of_function, part) = offset_of(call), parts_of(call)
        if of_function != function or _window(context, call, relation, scope) != (time, window):
            message = f"{of_function}_{part} belongs to no window in GROUP BY: its arguments are others"
            advice = f"give it the arguments of {function} in GROUP BY"
            raise context.source.error(message, place, advice)
        if part == "ROWTIME" and window.processing_time:
            message = f"a window of processing time has no rowtime, but this is {of_function}_ROWTIME"
            raise context.source.error(message, place, f"write {of_function}_PROCTIME")
        if part == "PROCTIME":
            values[place] = scalars.compile_function_call(context.source, "PROCTIME", (), place)
        else:
            values[place] = FieldRef(field=fields[part], offset=place)
    return GroupWindow(node=node, rows=rows, values=values)


def check_arguments(context: Context, window: GroupWindow, calls: tuple[AggregateCallExpr, ...]) -> None:
    """Raise SqlError if an aggregate reads the window of its group."""
    for call in calls:
        parts = (*call.arguments, *([] if call.filter is None else [call.filter]))
        if any(f in window.fields for part in parts for f in referenced_fields(part)):
            message = f"{call.function} reads the window of its group, which is the same for all of its rows"
            raise context.source.error(
                message, call.offset, "write the function of the window outside of the aggregate"
            )


def _clauses(select: exp.Select) -> list[exp.Expr]:
    nodes = [*select.expressions, select.args.get("having"), select.args.get("order")]
    return [node for node in nodes if isinstance(node, exp.Expr)]


def _check_place(context: Context, group: exp.Expr, calls: list[exp.Expr]) -> None:
    """Raise SqlError unless GROUP BY has one window, which is neither in a grouping set nor in an expression."""
    source, (function, _) = context.source, parts_of(calls[0])
    sets = next((node for node in group.expressions if isinstance(node, _SETS)), None)
    if sets is not None:
        message = f"GROUPING SETS, CUBE and ROLLUP with {function} in GROUP BY are not supported, by Flink neither"
        advice = f"write FROM TABLE({function}(TABLE t, DESCRIPTOR(ts), ...)), and group by window_start, window_end"
        raise source.error(message, offset_of(calls[0]), advice)
    if len(calls) > 1:
        advice = "aggregate the rows of one window, and then its results by TUMBLE_ROWTIME(...)"
        raise source.error("GROUP BY takes one window only", offset_of(calls[1]), advice)
    if all(node is not calls[0] for node in group.expressions):
        message = f"{function} stands alone in GROUP BY, not in an expression"
        raise source.error(message, offset_of(calls[0]), f"write GROUP BY {_EXAMPLES[function]}")


def _window(context: Context, call: exp.Expr, relation: Relation, scope: Scope) -> tuple[Field, Window]:
    """Return the time and the window that the arguments of ``call`` describe; raise SqlError if they describe none."""
    source, (function, _) = context.source, parts_of(call)
    names, place = GROUP_WINDOWS[function], offset_of(call)
    arguments = call.expressions
    if len(arguments) != len(names) + 1:
        message = (
            f"{call.name.upper()} takes a time and the {' and the '.join(names)}, found {len(arguments)} arguments"
        )
        raise source.error(message, place, f"write {_EXAMPLES[function]}")
    time = clause_translator(context, scope, "GROUP BY").expression(arguments[0])
    if time is UNKNOWN:
        raise source.error(f"{function} has no time", place, f"write {_EXAMPLES[function]}")
    if not isinstance(time, FieldRef) or time.field not in relation.fields:
        message = f"the time of {function} is a column: the rowtime of its table, or PROCTIME()"
        raise source.error(message, offset_of(arguments[0]), f"write {_EXAMPLES[function]}")
    durations: dict[str, str] = {}
    for name, value in zip(names, arguments[1:], strict=True):
        milliseconds = interval_ms(context, function, name, value, offset_of(value))
        if milliseconds <= 0:
            message = f"the {name} of {function} is more than zero"
            raise source.error(message, offset_of(value), "write it like INTERVAL '5' SECOND")
        durations[name.lower()] = format_duration(milliseconds)
    window = Window(
        type=_TYPES[function],
        size=durations.get("size"),
        slide=durations.get("slide"),
        gap=durations.get("gap"),
        zone=zone_of(context, time.field),
        processing_time=is_processing_time(context, relation, time.field.id),
    )
    return time.field, window
