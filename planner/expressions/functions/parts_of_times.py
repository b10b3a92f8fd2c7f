"""Parts of dates and times, in functions such as ``YEAR(x)`` and in EXTRACT.

Weeks follow ISO 8601. Days of the week count from Sunday as 1, and in ISODOW from Monday. Before 1970, too, a part
belongs to the day and hour that contain the time. Only parts of a TIMESTAMP_LTZ depend on the session time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import Builder, check_arguments
from hintplan.planner.expressions.typed import BIGINT, INT, STRING, Expr, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

EXTRACT = "EXTRACT"
"""The first word of the name of a form such as ``EXTRACT EPOCH``, which is not a function."""
PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "weekofyear",
    "DOY": "dayofyear",
    "DAYOFYEAR": "dayofyear",
    "DOW": "dayofweek",
    "DAYOFWEEK": "dayofweek",
    "DAY": "day",
    "DAYOFMONTH": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
_DATE = DataType(root="DATE")
_OF_A_DAY = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
_PLACES = {"HOUR": (1, 2), "MINUTE": (4, 2), "SECOND": (7, 2), "MILLISECOND": (10, 3)}
"""The position and length of each part in the text of a TIME."""
_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def _part(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    unit = name.removeprefix(f"{EXTRACT} ")
    if len(args) == 1 and args[0].type.root == "TIME":
        return _of_time(source, unit, args[0], offset)
    check_arguments(source, unit, args, ("time",), offset)
    if args[0].type.root == "DATE" and unit in _OF_A_DAY:
        raise source.error(f"a DATE has no {unit}", offset, "use a TIMESTAMP")
    if unit in MORE_PARTS:
        return MORE_PARTS[unit](args[0], offset)
    return _whole(PARTS[unit], args[0], offset)


def _of_time(source: Source, unit: str, time: Expr, offset: int) -> Expr:
    """Return a part of a TIME, cut from its text."""
    if unit not in _PLACES:
        raise source.error(f"a TIME has no {unit}", offset, f"it has {', '.join(_PLACES)}")
    start, length = _PLACES[unit]
    digits = call("substring", (time, literal(start, INT), literal(length, INT)), STRING, offset)
    if unit == "MILLISECOND":
        digits = call("rpad", (digits, literal(length, INT), literal("0", STRING)), STRING, offset)
    return cast(digits, BIGINT, offset)


def _whole(function: str, time: Expr, offset: int) -> Expr:
    return call("CAST", (call(function, (time,), INT, offset),), BIGINT, offset)


def _epoch(time: Expr, offset: int) -> Expr:
    """Return the seconds since 1970, with the time read as UTC, also for a TIMESTAMP_LTZ, as in Flink."""
    days = call("datediff", (cast(time, _DATE, offset), literal("1970-01-01", _DATE)), INT, offset)
    total = call("*", (cast(days, BIGINT, offset), literal(86400, BIGINT)), BIGINT, offset)
    for function, seconds in _SECONDS.items() if time.type.root != "DATE" else ():
        more = call("*", (_whole(function, time, offset), literal(seconds, BIGINT)), BIGINT, offset)
        total = call("+", (total, more), BIGINT, offset)
    return total


def _digits(pattern: str, factor: int = 1) -> Callable[[Expr, int], Expr]:
    """Return a builder of the fraction of a second: the digits of ``pattern`` as a number, times ``factor``."""

    def build(time: Expr, offset: int) -> Expr:
        text = call("date_format", (time, literal(pattern, STRING)), STRING, offset)
        number = cast(text, BIGINT, offset)
        return number if factor == 1 else call("*", (number, literal(factor, BIGINT)), BIGINT, offset)

    return build


def _days_since_monday(time: Expr, offset: int) -> Expr:
    shifted = call("+", (call("dayofweek", (time,), INT, offset), literal(5, INT)), INT, offset)
    return call("%", (shifted, literal(7, INT)), INT, offset)


def _iso_day(time: Expr, offset: int) -> Expr:
    return cast(call("+", (_days_since_monday(time, offset), literal(1, INT)), INT, offset), BIGINT, offset)


def _iso_year(time: Expr, offset: int) -> Expr:
    """Return the year of the Thursday in the same week."""
    to_thursday = call("-", (literal(3, INT), _days_since_monday(time, offset)), INT, offset)
    return _whole("year", call("date_add", (cast(time, _DATE, offset), to_thursday), _DATE, offset), offset)


def _years(length: int, started: int) -> Callable[[Expr, int], Expr]:
    """Return a builder of the number of a period of ``length`` years.

    ``started`` is added to the year, so that a period counts from its first year on.
    """

    def build(time: Expr, offset: int) -> Expr:
        year = _whole("year", time, offset)
        counted = call("+", (year, literal(started, BIGINT)), BIGINT, offset) if started else year
        return call("div", (counted, literal(length, BIGINT)), BIGINT, offset)

    return build


MORE_PARTS: Mapping[str, Callable[[Expr, int], Expr]] = {
    "EPOCH": _epoch,
    "MILLISECOND": _digits("SSS"),
    "MICROSECOND": _digits("SSSSSS"),
    "NANOSECOND": _digits("SSSSSS", 1000),
    "ISODOW": _iso_day,
    "ISOYEAR": _iso_year,
    "DECADE": _years(10, 0),
    "CENTURY": _years(100, 99),
    "MILLENNIUM": _years(1000, 999),
}
"""The parts that only EXTRACT supports."""
BUILDERS: Mapping[str, Builder] = {
    **dict.fromkeys(PARTS, _part),
    **dict.fromkeys((f"{EXTRACT} {unit}" for unit in MORE_PARTS), _part),
}
