"""Functions of dates and times. Weeks follow ISO 8601; days of the week count from Sunday as 1."""

from __future__ import annotations

import re

from hintplan.planner.expressions.casts import flink_cast
from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import (
    Builder,
    Signature,
    check_arguments,
    choose,
    integer_or_none,
    literal_text,
)
from hintplan.planner.expressions.functions.numbers import BUILDERS as ROUNDED
from hintplan.planner.expressions.functions.parts_of_times import BUILDERS as PART_BUILDERS
from hintplan.planner.expressions.functions.rounded_times import MONTH_UNITS, months_between
from hintplan.planner.expressions.functions.time_patterns import PatternError, format_timestamp, pattern_parts
from hintplan.planner.expressions.functions.wall_clocks import format_wall_clock, parse_wall_clock, read_seconds
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

SIGNATURES: dict[str, Signature] = {}
UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
UNIT_FUNCTIONS = ("TIMESTAMPADD", "TIMESTAMPDIFF")
"""Functions whose first argument is the bare name of a unit."""
_TIMESTAMP3 = DataType(root="TIMESTAMP", precision=3)
_LTZ3 = DataType(root="TIMESTAMP_LTZ", precision=3)
_LTZ6 = DataType(root="TIMESTAMP_LTZ", precision=6)
_DATE = DataType(root="DATE")
_UNIT = DataType(root="INTERVAL")
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799
"""The first second of the year 1 and the last second of the year 9999, counted from 1970."""
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_PATTERN = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|SSS|'T'|[-/:. ])*")
_SUBSTRINGS = {"yyyy", "MM", "dd", "HH", "mm", "ss", "SSS"}
"""The runs of letters that stand for a substring of a time's text."""
_TO_SECONDS = "yyyy-MM-dd HH:mm:ss"


def unit_literal(name: str, offset: int) -> Literal:
    """Return the unit ``name`` as an argument that is printed without quotes."""
    return literal(name, _UNIT, offset)


def _now(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, (), offset)
    now = call("current_timestamp", (), DataType(root="TIMESTAMP_LTZ", precision=6), offset)
    return cast(now, _LTZ3, offset)


def _today(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, (), offset)
    now = call("current_timestamp", (), DataType(root="TIMESTAMP_LTZ", precision=6), offset)
    return call("CAST", (now,), DataType(root="DATE"), offset)


def _time_of_day(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, (), offset)
    now = call("current_timestamp", (), DataType(root="TIMESTAMP_LTZ", precision=6), offset)
    return cast(now, DataType(root="TIME", precision=0), offset)


def _from_epoch(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile TO_TIMESTAMP_LTZ of a number: NULL outside the years 1 to 9999.

    Fractions of a unit are cut off; a FLOAT or DOUBLE is rounded down.
    """
    check_arguments(source, name, args, ("number", "integer?"), offset)
    precision = args[1].text if len(args) == 2 and isinstance(args[1], Literal) else "3" if len(args) == 1 else None
    if precision not in ("0", "3"):
        raise source.error(
            f"the precision of {name} must be 0 (seconds) or 3 (milliseconds)", offset, f"write {name}(x, 3)"
        )
    number = args[0]
    if precision == "0" and number.type.root in ("FLOAT", "DOUBLE"):
        message = f"{name} with precision 0 does not take {number.type.as_nullable()}, of which Flink keeps parts"
        raise source.error(message, offset, f"write {name}(x * 1000, 3)")
    if number.type.root in ("FLOAT", "DOUBLE"):
        number = ROUNDED["FLOOR"](source, "FLOOR", (number,), offset)
    if not number.type.is_integer:
        number = flink_cast(number, BIGINT, offset)
    function, per_second = ("timestamp_seconds", 1) if precision == "0" else ("timestamp_millis", 1000)
    moment = call(function, (number,), _LTZ3, offset)
    if number.type.root != "BIGINT":
        return moment
    ends = (literal(_FIRST_SECOND * per_second, BIGINT), literal((_LAST_SECOND + 1) * per_second - 1, BIGINT))
    return choose(call("BETWEEN", (number, *ends), BOOLEAN, offset), moment, literal(None, _LTZ3))


def _local_now(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    return cast(_now(source, name, args, offset), _TIMESTAMP3, offset)


def _unit(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> tuple[str, tuple[Expr, ...]]:
    """Return the unit, which is the first of ``args``, and the other arguments."""
    unit = args[0].text if args and isinstance(args[0], Literal) and args[0].type == _UNIT else None
    if unit is None or len(args) != 3:
        raise source.error(f"{name} takes a unit and two values", offset, f"such as {name}(HOUR, ...)")
    return unit, args[1:]


def _timestamp_add(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    unit, values = _unit(source, name, args, offset)
    if values[1].type.root == "TIME":
        if unit in _MONTHS:
            raise source.error(f"a TIME has no {unit}", offset, "convert it with CAST(... AS TIMESTAMP(3))")
        check_arguments(source, name, values[:1], ("integer",), offset)
        moved = call("timestampadd", (args[0], values[0], cast(values[1], _TIMESTAMP3, offset)), _TIMESTAMP3, offset)
        return cast(moved, values[1].type, offset)
    check_arguments(source, name, values, ("integer", "time"), offset)
    count, time = values
    if time.type.root != "DATE":
        return call("timestampadd", (args[0], count, time), time.type, offset)
    if unit in _MONTHS:
        return call("add_months", (time, _times(count, _MONTHS[unit], offset)), _DATE, offset)
    if unit in ("DAY", "WEEK"):
        return call("date_add", (time, _times(count, 7 if unit == "WEEK" else 1, offset)), _DATE, offset)
    raise source.error(f"a DATE has no {unit}", offset, "convert it with CAST(... AS TIMESTAMP(3))")


def _times(count: Expr, factor: int, offset: int) -> Expr:
    number = integer_or_none(count)
    if number is not None:
        return literal(number * factor, INT, offset)
    count = cast(count, INT, offset)
    return count if factor == 1 else call("*", (count, literal(factor, INT)), INT, offset)


def _timestamp_diff(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile TIMESTAMPDIFF: the whole units from the first time to the second."""
    unit, values = _unit(source, name, args, offset)
    if all(v.type.root == "TIME" for v in values) and unit not in MONTH_UNITS:
        values = tuple(cast(v, _TIMESTAMP3, offset) for v in values)
    check_arguments(source, name, values, ("time", "time"), offset)
    if unit in MONTH_UNITS:
        return months_between(source, unit, values[0], values[1], offset)
    roots = {v.type.root for v in values}
    if len(roots - {"DATE"}) > 1:
        raise source.error(f"{name} does not take TIMESTAMP and TIMESTAMP_LTZ", offset, "convert one with CAST")
    times = tuple(cast(v, _TIMESTAMP3, offset) if v.type.root == "DATE" else v for v in values)
    return flink_cast(call("timestampdiff", (args[0], *times), BIGINT, offset), INT, offset)


def _format(source: Source, name: str, pattern: Expr, offset: int) -> None:
    text = literal_text(pattern)
    if not text or not _PATTERN.fullmatch(text):
        raise source.error(
            f"the pattern of {name} must be a literal of yyyy, MM, dd, HH, mm, ss, SSS, 'T' and - / : . blank",
            pattern.offset or offset,
            "such as 'yyyy-MM-dd HH:mm'",
        )


def _date_format(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile DATE_FORMAT, with Spark's ``date_format`` where the session time zone does not matter."""
    is_text = bool(args) and args[0].type.is_text
    check_arguments(source, name, args, ("text" if is_text else "time", "text"), offset)
    pattern = literal_text(args[1])
    if not pattern:
        message = f"the pattern of {name} must be a literal that is not empty"
        raise source.error(message, args[1].offset or offset, "such as 'yyyy-MM-dd HH:mm'")
    if not _is_of_substrings(pattern):
        return _by_pieces(source, args[0], pattern, args[1].offset or offset, offset)
    if is_text:
        return format_wall_clock(read_seconds(args[0], offset), pattern, offset)
    if args[0].type.root == "TIMESTAMP" and ("HH" in pattern or "mm" in pattern):
        return format_wall_clock(args[0], pattern, offset)
    return call("date_format", args, STRING, offset)


def _is_of_substrings(pattern: str) -> bool:
    """Return True if all parts in ``pattern`` are substrings of a time's text, between signs, digits and ``'T'``."""
    unquoted = pattern.replace("'T'", ":")
    runs = {match[0] for match in re.finditer(r"([A-Za-z])\1*", unquoted)}
    return runs <= _SUBSTRINGS and re.fullmatch("[-/:. 0-9A-Za-z]*", unquoted) is not None


def _by_pieces(source: Source, time: Expr, pattern: str, place: int, offset: int) -> Expr:
    """Compile DATE_FORMAT with letters that Spark's ``date_format`` lacks or reads differently."""
    is_text = time.type.is_text
    try:
        parts = pattern_parts(pattern, of_text=is_text)
    except PatternError as error:
        raise source.error(str(error), place, error.hint) from None
    moment = read_seconds(time, offset) if is_text else time
    if moment.type.root != "TIMESTAMP":
        moment = cast(moment, DataType(root="TIMESTAMP", precision=moment.type.precision or 0), offset)
    return format_timestamp(moment, parts, offset)


def _parsed(source: Source, name: str, args: tuple[Expr, ...], default: str, offset: int) -> Expr:
    """Return the TIMESTAMP_LTZ of a text in the session time zone, or NULL for text that is not a time."""
    check_arguments(source, name, args, ("text", "text?"), offset)
    pattern = args[1] if len(args) == 2 else literal(default, STRING)
    _format(source, name, pattern, offset)
    return call("try_to_timestamp", (args[0], pattern), _LTZ6, offset)


def _to_date(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    if len(args) == 1:
        check_arguments(source, name, args, ("text",), offset)
        return cast(args[0], _DATE, offset, function="TRY_CAST")
    return cast(_parsed(source, name, args, "yyyy-MM-dd", offset), _DATE, offset)


def _to_timestamp(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    if len(args) == 1:
        check_arguments(source, name, args, ("text",), offset)
        return cast(args[0], _TIMESTAMP3, offset, function="TRY_CAST")
    check_arguments(source, name, args, ("text", "text"), offset)
    _format(source, name, args[1], offset)
    return parse_wall_clock(args[0], literal_text(args[1]) or "", offset)


def _from_unixtime(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("integer", "text?"), offset)
    pattern = args[1] if len(args) == 2 else literal(_TO_SECONDS, STRING)
    _format(source, name, pattern, offset)
    return call("from_unixtime", (args[0], pattern), STRING, offset)


def _unix_timestamp(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile UNIX_TIMESTAMP: seconds since 1970, of the current time if there are no arguments.

    Text that is not a time gives the smallest BIGINT, as in Flink.
    """
    if not args:
        return call("unix_seconds", (call("current_timestamp", (), _LTZ6, offset),), BIGINT, offset)
    seconds = call("unix_seconds", (_parsed(source, name, args, _TO_SECONDS, offset),), BIGINT, offset)
    least = cast(literal("-9223372036854775808", STRING), BIGINT, offset)
    unreadable = call("coalesce", (seconds, least), BIGINT, offset)
    missing = call("IS NULL", (args[0],), DataType(root="BOOLEAN"), offset)
    return call("CASE", (missing, literal(None, BIGINT), unreadable), BIGINT, offset)


BUILDERS: dict[str, Builder] = {
    **PART_BUILDERS,
    "CURRENT_DATE": _today,
    "CURRENT_TIME": _time_of_day,
    "CURRENT_TIMESTAMP": _now,
    "DATE_FORMAT": _date_format,
    "FROM_UNIXTIME": _from_unixtime,
    "LOCALTIME": _time_of_day,
    "LOCALTIMESTAMP": _local_now,
    "NOW": _now,
    "PROCTIME": _now,
    "TIMESTAMPADD": _timestamp_add,
    "TIMESTAMPDIFF": _timestamp_diff,
    "TO_DATE": _to_date,
    "TO_TIMESTAMP": _to_timestamp,
    "TO_TIMESTAMP_LTZ": _from_epoch,
    "UNIX_TIMESTAMP": _unix_timestamp,
}
