"""Conversions between TIMESTAMP and text that never use the session time zone.

Some hours do not exist in that zone. Spark's ``date_format`` and ``try_to_timestamp`` would shift times in these hours.

>>> from hintplan.planner.expressions.typed import Field, FieldRef
>>> from hintplan.planner.expressions.spark_text import to_spark_sql
>>> ts = FieldRef(field=Field(id=1, name="ts", type=DataType(root="TIMESTAMP", precision=0)))
>>> to_spark_sql(format_wall_clock(ts, "yyyy-MM-dd HH:mm", 0), {1: "ts"})
'substring(CAST(ts AS STRING), 1, 16)'
>>> print(to_spark_sql(format_wall_clock(ts, "HH:mm dd/MM", 0), {1: "ts"}))
regexp_replace(CAST(ts AS STRING), '(....).(..).(..).(..).(..).(..).*', '$4:$5 $3/$2')
"""

from __future__ import annotations

import re
import zoneinfo

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import Builder, check_arguments, literal_text
from hintplan.planner.expressions.typed import BIGINT, BOOLEAN, INT, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

_SECONDS = DataType(root="TIMESTAMP", precision=0)
_MILLISECONDS = DataType(root="TIMESTAMP", precision=3)
_LTZ6 = DataType(root="TIMESTAMP_LTZ", precision=6)
_UNIT = DataType(root="INTERVAL")
_SHOWN = "yyyy-MM-dd HH:mm:ss.SSS"
_PARTS = ("yyyy", "MM", "dd", "HH", "mm", "ss", "SSS")
_GROUPS = "(....).(..).(..).(..).(..).(..).*"
_WITH_MILLISECONDS = "(....).(..).(..).(..).(..).(..).(...)"
_SECONDS_TEXT = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2} [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?![0-9])"
_NAME = r"\A(?!(UTC|UT|GMT)[+-])[A-Z][A-Za-z0-9_/+-]+\z"
_OFFSET = r"\AGMT[+-]([01]?[0-9]|2[0-3])(:?[0-5][0-9])?\z"
_OFFSETS = (
    ("^(GMT.)([0-9]{1,2})$", "$1$2:00"),
    ("^(GMT.)([0-9]{1,2})([0-9]{2})$", "$1$2:$3"),
    ("^(GMT.)([0-9]:)", "$10$2"),
)
"""Replacements that turn a short offset, one after the other, into the form ``GMT+08:00``."""
_ZONE = re.compile(r"UTC|GMT([+-][0-9]{2}:[0-9]{2})?|[A-Z][A-Za-z_]*(/[A-Z][A-Za-z_+-]*){1,2}")


def format_wall_clock(time: Expr, pattern: str, offset: int) -> Expr:
    """Compile DATE_FORMAT of a TIMESTAMP: its text, rearranged by ``pattern``, which DATE_FORMAT has accepted."""
    fine = "SSS" in pattern
    shown = cast(cast(time, _MILLISECONDS, offset), STRING, offset) if fine else call("CAST", (time,), STRING, offset)
    if pattern in _SHOWN:
        place = (literal(_SHOWN.index(pattern) + 1, INT), literal(len(pattern), INT))
        return call("substring", (shown, *place), STRING, offset)
    for number, part in enumerate(_PARTS, 1):
        pattern = pattern.replace(part, f"${number}")
    groups = literal(_WITH_MILLISECONDS if fine else _GROUPS, STRING)
    return call("regexp_replace", (shown, groups, literal(pattern.replace("'", ""), STRING)), STRING, offset)


def parse_wall_clock(text: Expr, pattern: str, offset: int) -> Expr:
    """Compile TO_TIMESTAMP: read ``text`` in UTC by ``pattern``, and add the time since 1970 to a TIMESTAMP."""
    in_utc = call("concat", (text, literal("Z", STRING)), STRING, offset)
    moment = call("try_to_timestamp", (in_utc, literal(pattern + "XXX", STRING)), _LTZ6, offset)
    passed = call("unix_micros", (moment,), BIGINT, offset)
    start = literal("1970-01-01 00:00:00", _SECONDS)
    return call("timestampadd", (literal("MICROSECOND", _UNIT), passed, start), _MILLISECONDS, offset)


def read_seconds(text: Expr, offset: int) -> Expr:
    """Return the TIMESTAMP(0) at the beginning of ``text``, as DATE_FORMAT and CONVERT_TZ read it, or NULL."""
    matched = call("regexp_extract", (text, literal(_SECONDS_TEXT, STRING), literal(0, INT)), STRING, offset)
    return call("TRY_CAST", (matched,), _SECONDS, offset)


def _convert_tz(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile CONVERT_TZ: convert the text of a time from one time zone to another.

    When clocks are set back, a time occurs twice; Flink means the second time, and Spark the first. So the time one
    hour later is converted, too, minus one hour. When clocks are set forward, a missing time moves forward by the gap.
    In all cases, the later of both results is right.
    """
    check_arguments(source, name, args, ("text", "text", "text"), offset)
    origin, target = (_zone(source, name, zone, offset) for zone in args[1:])
    utc = literal("UTC", STRING)

    def moved(time: Expr, begin: Expr, end: Expr) -> Expr:
        return time if begin == end else call("convert_timezone", (begin, end, time), _SECONDS, offset)

    def later(time: Expr, hours: int) -> Expr:
        return call("timestampadd", (literal("HOUR", _UNIT), literal(hours, INT), time), _SECONDS, offset)

    local = moment = read_seconds(args[0], offset)
    if origin != utc:
        both = (moved(local, origin, utc), later(moved(later(local, 1), origin, utc), -1))
        moment = call("greatest", both, _SECONDS, offset)
    return call("CAST", (moved(moment, utc, target),), STRING, offset)


def _zone(source: Source, name: str, zone: Expr, offset: int) -> Expr:
    text = literal_text(zone)
    if text is None and not isinstance(zone, Literal):
        return _found_zone(zone, offset)
    if not text:
        message = f"a time zone of {name} is NULL or empty; Flink has NULL, or takes it for UTC"
        raise source.error(message, zone.offset or offset, "write a name such as 'Europe/Berlin', 'UTC' or 'GMT+08:00'")
    is_known = _ZONE.fullmatch(text) is not None
    if is_known and not text.startswith("GMT"):
        try:
            zoneinfo.ZoneInfo(text)
        except (ValueError, OSError, KeyError):
            is_known = False
    if not is_known:
        message = f"'{text}' is no time zone that {name} knows, which Flink takes for UTC"
        raise source.error(message, zone.offset or offset, "write a name such as 'Europe/Berlin', 'UTC' or 'GMT+08:00'")
    return literal(text, STRING, zone.offset)


def _found_zone(zone: Expr, offset: int) -> Expr:
    """Return the time zone of a column, read like Java's ``TimeZone`` and spelled for Spark; an unknown name means UTC.

    A name is known if Spark can read a time with it.
    """
    sample = call("concat", (literal("2000-01-01 00:00:00 ", STRING), zone), STRING, offset)
    read = call("TRY_CAST", (sample,), _LTZ6, offset)
    named = call("regexp_like", (zone, literal(_NAME, STRING)), BOOLEAN, offset)
    is_known = call("AND", (named, call("IS NOT NULL", (read,), BOOLEAN, offset)), BOOLEAN, offset)
    is_offset = call("regexp_like", (zone, literal(_OFFSET, STRING)), BOOLEAN, offset)
    written_out = zone
    for short, long in _OFFSETS:
        texts = (literal(short, STRING), literal(long, STRING))
        written_out = call("regexp_replace", (written_out, *texts), STRING, offset)
    missing = call("IS NULL", (zone,), BOOLEAN, offset)
    parts = (missing, literal(None, STRING), is_offset, written_out, is_known, zone, literal("UTC", STRING))
    return call("CASE", parts, STRING, offset)


BUILDERS: dict[str, Builder] = {"CONVERT_TZ": _convert_tz}
