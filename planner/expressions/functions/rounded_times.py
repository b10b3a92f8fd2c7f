"""FLOOR and CEIL of a time to a unit, and the months between two times, as in Flink.

Weeks begin on Sunday. CEIL to a week or to a longer unit ignores the time of day. A TIMESTAMP is never converted to the
session time zone, where some hours do not exist. For units within a day, its text is cut.
"""

from __future__ import annotations

from dataclasses import replace

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import Builder, check_arguments, choose
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

_DATE = DataType(root="DATE")
_UNIT = DataType(root="INTERVAL")
_OF_A_DAY = {"MILLISECOND": (23, ""), "SECOND": (19, ""), "MINUTE": (16, ":00"), "HOUR": (13, ":00:00")}
"""For each unit, the length of ``2024-02-29 13:14:15.167`` up to the unit, and the suffix that completes a time."""
_OF_A_CLOCK = {"MILLISECOND": (0, ""), "SECOND": (8, ""), "MINUTE": (5, ":00"), "HOUR": (2, ":00:00")}
"""For each unit, the length of a TIME's text up to the unit (0 for all of it), and the suffix that completes a TIME."""
_OF_DAYS = ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
MONTH_UNITS = tuple(_MONTHS)


def _rounded(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile ``FLOOR(time TO unit)`` and ``CEIL(time TO unit)``, whose first argument here is the unit.

    The result has the type of the time.
    """
    unit, *values = args
    units = (*_OF_A_DAY, *_OF_DAYS)
    word = unit.text if isinstance(unit, Literal) else None
    if word not in units:
        raise source.error(f"{name} {word} is not supported", unit.offset or offset, f"units are {', '.join(units)}")
    if len(values) == 1 and values[0].type.root == "TIME":
        return _rounded_time_of_day(source, name, word, values[0], offset)
    check_arguments(source, name, tuple(values), ("time",), offset)
    (time,) = values
    if time.type.root == "DATE" and word in _OF_A_DAY:
        raise source.error(f"a DATE has no {word}", unit.offset or offset, "convert it with CAST(... AS TIMESTAMP(3))")
    start = _start(time, word, offset)
    if name == "FLOOR TO":
        return start
    if time.type.root == "DATE" and word == "DAY":
        raise source.error("CEIL of a DATE TO DAY is not supported: Flink gives the next day", offset, "leave it out")
    if (time.type.precision or 0) > 3:
        advice = "write CAST(... AS TIMESTAMP(3))"
        raise source.error("CEIL does not take digits behind milliseconds, which Flink leaves out", offset, advice)
    begin = time if word in (*_OF_A_DAY, "DAY") else _start(time, "DAY", offset)
    whole = call("=", (start, begin), BOOLEAN, offset)
    return choose(whole, begin, _later(start, word, offset))


def _rounded_time_of_day(source: Source, name: str, unit: str, time: Expr, offset: int) -> Expr:
    if name != "FLOOR TO":
        message = "CEIL of a TIME is not supported: in Flink it may be 24:00:00, which is no time of a day"
        raise source.error(message, offset, "write FLOOR(x TO ...), and add an interval")
    if unit not in _OF_A_CLOCK:
        raise source.error(f"a TIME has no {unit}", offset, f"units are {', '.join(_OF_A_CLOCK)}")
    length, suffix = _OF_A_CLOCK[unit]
    if not length:
        return time
    begin = call("substring", (time, literal(1, INT), literal(length, INT)), STRING, offset)
    return replace(call("concat", (begin, literal(suffix, STRING)), STRING, offset), type=time.type.as_nullable())


def _start(time: Expr, unit: str, offset: int) -> Expr:
    kind = time.type.as_nullable()
    if kind.root == "DATE" and unit == "WEEK":
        monday = call("trunc", (call("date_add", (time, literal(1, INT)), _DATE, offset), literal(unit, STRING)),
                      _DATE, offset)  # fmt: skip
        return call("date_sub", (monday, literal(1, INT)), _DATE, offset)
    if kind.root == "DATE":
        return time if unit == "DAY" else call("trunc", (time, literal(unit, STRING)), _DATE, offset)
    if kind.root == "TIMESTAMP_LTZ" and unit != "WEEK":
        return call("date_trunc", (literal(unit, STRING), time), kind, offset)
    day = call("CAST", (time,), _DATE, offset)
    if unit in _OF_DAYS:
        return cast(_start(day, unit, offset), kind, offset)
    begin, suffix = _OF_A_DAY[unit]
    shown = call("CAST", (time,), STRING, offset)
    text: Expr = call("substring", (shown, literal(1, INT), literal(begin, INT)), STRING, offset)
    if suffix:
        text = call("concat", (text, literal(suffix, STRING)), STRING, offset)
    return call("CAST", (text,), kind, offset)


def _later(start: Expr, unit: str, offset: int) -> Expr:
    """Return the beginning of the next unit."""
    if start.type.root != "DATE":
        return call("timestampadd", (_word(unit), literal(1, INT), start), start.type, offset)
    if unit in _MONTHS:
        return call("add_months", (start, literal(_MONTHS[unit], INT)), _DATE, offset)
    return call("date_add", (start, literal(7 if unit == "WEEK" else 1, INT)), _DATE, offset)


def _word(unit: str) -> Literal:
    return literal(unit, _UNIT)


def months_between(source: Source, unit: str, first: Expr, second: Expr, offset: int) -> Expr:
    """Return the whole months, quarters or years from ``first`` to ``second``.

    A month is complete on the same day of the month, or on the last day of a month without that day. On this day, the
    time of day of ``second`` must not be before the time of day of ``first``. As in Flink, this applies in both
    directions.
    """
    for time in (first, second):
        if time.type.root == "TIMESTAMP_LTZ":
            advice = "convert both with CAST(... AS TIMESTAMP(3))"
            raise source.error(f"TIMESTAMPDIFF({unit}, ...) does not take TIMESTAMP_LTZ", time.offset or offset, advice)
    a, b = (cast(time, _DATE, offset) for time in (first, second))

    def part(name: str, day: Expr) -> Expr:
        return call(name, (day,), INT, offset)

    def number(operator: str, left: Expr, right: Expr) -> Expr:
        return call(operator, (left, right), INT, offset)

    def holds(operator: str, left: Expr, right: Expr) -> Expr:
        return call(operator, (left, right), BOOLEAN, offset)

    def reached(early: Expr, late: Expr) -> Expr:
        last = part("day", call("last_day", (late,), _DATE, offset))
        return call("least", (part("day", early), last), INT, offset)

    years = number("*", number("-", part("year", b), part("year", a)), literal(12, INT))
    months = number("-", number("+", years, part("month", b)), part("month", a))
    short = holds("AND", holds("<=", a, b), holds("<", part("day", b), reached(a, b)))
    long = holds("AND", holds(">", a, b), holds("<", part("day", a), reached(b, a)))
    cases: list[Expr] = [short, literal(1, INT), long, literal(-1, INT)]
    if "TIMESTAMP" in (first.type.root, second.type.root):
        same_day = holds("=", part("day", b), reached(a, b))
        cases += [holds("AND", same_day, holds("<", _of_the_day(second, b, offset), _of_the_day(first, a, offset)))]
        cases += [literal(1, INT)]
    whole = number("-", months, call("CASE", (*cases, literal(0, INT)), INT, offset))
    if _MONTHS[unit] == 1:
        return whole
    return call("CAST", (call("div", (whole, literal(_MONTHS[unit], INT)), BIGINT, offset),), INT, offset)


def _of_the_day(time: Expr, day: Expr, offset: int) -> Expr:
    """Return the time of day in milliseconds."""
    if time.type.root == "DATE":
        return literal(0, BIGINT)
    midnight = cast(day, time.type, offset)
    return call("timestampdiff", (_word("MILLISECOND"), midnight, time), BIGINT, offset)


BUILDERS: dict[str, Builder] = {"CEIL TO": _rounded, "FLOOR TO": _rounded}
