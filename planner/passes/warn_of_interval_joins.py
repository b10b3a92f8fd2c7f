"""Warns of joins that Flink executes as interval joins: ``a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts``.

In Flink, both columns have a WATERMARK, and event time limits how long the state keeps a row. hintplan has no interval
joins: the join is a regular join, and its state expires by TTL only. The pass inspects the conditions of a join before
other passes split them, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from hintplan.planner.context import Context
from hintplan.planner.expressions.typed import Call, Expr, Field, FieldRef, Literal
from hintplan.planner.properties.time_attributes import is_row_time
from hintplan.planner.properties.windows import joined_windows
from hintplan.planner.relations import LogicalJoin, Relation, inputs_of
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.settings.state import DEFAULT_STATE_TTL, STATE_TTL

_MS = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_MS |= {"MONTH": 31 * _MS["DAY"], "YEAR": 366 * _MS["DAY"]}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
Point = tuple[Field, int]
"""A time column, and the milliseconds added to it."""


def warn_of_interval_joins(context: Context, relation: Relation) -> Relation:
    """Warn of each join that Flink would execute as an interval join. Return ``relation`` unchanged."""
    if not context.batch:
        _visit(context, relation)
    return relation


def _visit(context: Context, relation: Relation) -> None:
    if isinstance(relation, LogicalJoin) and relation.join_type in ("inner", "left", "right", "full"):
        _check(context, relation)
    for below in inputs_of(relation):
        _visit(context, below)


def _check(context: Context, join: LogicalJoin) -> None:
    if joined_windows(join) is not None:  # the watermark removes its rows
        return
    lower: dict[tuple[int, int], int] = {}
    upper: dict[tuple[int, int], int] = {}
    times: dict[tuple[int, int], tuple[Field, Field]] = {}
    for operator, a, b in (comparison for part in join.on for comparison in _comparisons(part)):
        sides = [is_row_time(context, side, a[0]) for side in (join.left, join.right)]
        if sides == [False, True]:
            operator, a, b = _MIRRORED[operator], b, a
        elif sides != [True, False]:
            continue
        if not is_row_time(context, join.right, b[0]):
            continue
        key = a[0].id, b[0].id
        times[key] = a[0], b[0]
        if operator in ("<", "<=", "="):
            upper[key] = b[1] - a[1]
        if operator in (">", ">=", "="):
            lower[key] = b[1] - a[1]
    for key in lower.keys() & upper.keys():
        _warn(context, join, times[key], max(abs(lower[key]), abs(upper[key]), 1000))
        return


def _warn(context: Context, join: LogicalJoin, times: tuple[Field, Field], bound: int) -> None:
    if all(state.hint is not None for state in join.states):
        return
    config = context.config.get(STATE_TTL, DEFAULT_STATE_TTL)
    kept = "never expires" if config == DEFAULT_STATE_TTL else f"is kept for {config} of processing time"
    names = [state.name for state in join.states]
    ttl = format_duration(bound)
    hint = "put each side of the join into a sub-query with an alias, and give both a STATE_TTL"
    if None not in names:
        keys = ", ".join(f"'{name}' = '{ttl}'" for name in names)
        hint = f"write SELECT /*+ STATE_TTL({keys}) */, or longer times for rows that come late"
    context.report.warn(
        f"this join bounds the time between '{times[0].name}' and '{times[1].name}', but interval joins are not "
        f"supported: it is a regular join, and its state {kept}",
        join.offset,
        hint,
    )


def _comparisons(condition: Expr) -> Iterator[tuple[str, Point, Point]]:
    if not isinstance(condition, Call):
        return
    pairs: list[tuple[str, Expr, Expr]] = []
    if condition.function == "BETWEEN":
        value, low, high = condition.args
        pairs = [(">=", value, low), ("<=", value, high)]
    elif condition.function in _MIRRORED:
        pairs = [(condition.function, condition.args[0], condition.args[1])]
    for operator, left, right in pairs:
        a, b = _point(left), _point(right)
        if a is not None and b is not None:
            yield operator, a, b


def _point(expression: Expr) -> Point | None:
    if isinstance(expression, FieldRef):
        return expression.field, 0
    if not isinstance(expression, Call):
        return None
    if expression.function == "CAST" and expression.type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _point(expression.args[0])
    if expression.function not in "+-" or len(expression.args) != 2:
        return None
    below, shift = _point(expression.args[0]), expression.args[1]
    if below is None or not isinstance(shift, Literal) or shift.type.root != "INTERVAL" or shift.text is None:
        return None
    _, value, unit = shift.text.split()
    moved = int(Decimal(value.strip("'")) * _MS[unit])
    return below[0], below[1] + (moved if expression.function == "+" else -moved)
