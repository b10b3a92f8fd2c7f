"""Typed literals from the text of constants: numbers, intervals, dates and times.

>>> str(number_literal(Source(text=""), "12.50", 0).type)
'DECIMAL(4, 2)'
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import replace

from hintplan.planner.expressions.typed import BIGINT, DOUBLE, INT, Literal, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

MICROSECONDS = 6
"""The largest number of fraction digits in the seconds of a timestamp."""
MILLISECONDS = 3
"""The largest number of fraction digits in the seconds of a TIME."""
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_MOMENT = re.compile(
    rf"{_DAY.pattern}(?:(?: +|T)(\d{{1,2}}):(\d{{1,2}}):(\d{{1,2}})(?:\.(?P<fraction>\d*))?)?", re.ASCII
)


def number_literal(source: Source, text: str, offset: int) -> Literal:
    """Return an INT, BIGINT, DECIMAL or DOUBLE, depending on the spelling; raise SqlError for a number out of range."""
    text = text.lower()
    if text.isdigit():
        if int(text) >= 2**63:
            raise source.error(f"{text} does not fit into BIGINT", offset, f"write CAST('{text}' AS DECIMAL(38, 0))")
        return literal(str(int(text)), INT if int(text) < 2**31 else BIGINT, offset)
    if text.endswith("e"):
        raise source.error(f"{text} is no number: its exponent is missing", offset, f"write {text}0")
    if "e" in text:
        digits, value = text.partition("e")[0].strip("0."), float(text)
        if math.isinf(value) or (digits and not value):
            raise source.error(f"{text} does not fit into DOUBLE", offset, "its numbers go from 4.9E-324 to 1.8E308")
        return literal(text.upper(), DOUBLE, offset)
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0")
    precision = max(len(whole) + len(fraction), 1)
    if precision > 38:
        raise source.error("a decimal has at most 38 digits", offset, "shorten it")
    data_type = DataType(root="DECIMAL", precision=precision, scale=len(fraction))
    return literal(f"{whole or '0'}.{fraction}" if fraction else whole or "0", data_type, offset)


def interval_literal(source: Source, value: str, unit: str, offset: int) -> Literal:
    """Return ``INTERVAL 'value' unit``; raise SqlError unless it has exactly one number and one unit."""
    name = unit.upper()
    if name not in ("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR") or not value.replace(".", "", 1).isdigit():
        raise source.error("this interval is not supported", offset, "write one number and unit: INTERVAL '5' SECOND")
    if "." in value and name != "SECOND":
        raise source.error(f"an interval in {name} needs a whole number", offset, "use a smaller unit")
    return Literal(text=f"INTERVAL '{value}' {name}", type=DataType(root="INTERVAL"), offset=offset)


def day_of_text(text: str) -> str | None:
    """Return the date to which Flink casts ``text``, as ``2024-02-09``, or None if there is no such date.

    A date of the year 0 gives None, because no literal can have it.
    """
    year, month, day = (*map(int, re.findall(r"[0-9]+", text.split()[0])), 1, 1)[:3]
    try:
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        return None


def time_of_day(text: str) -> Literal | None:
    """Return the TIME to which Flink casts ``text``, with up to 3 digits of a second, or None if it is not a time."""
    match = _CLOCK.fullmatch(text.strip(" "))
    if match is None:
        return None
    hour, minute, second = (int(match[part] or 0) for part in (1, 2, 3))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (match[4] or "")[:MILLISECONDS]
    shown = f"{hour:02}:{minute:02}:{second:02}.{fraction.rstrip('0')}".removesuffix(".")
    return literal(shown, DataType(root="TIME", precision=len(fraction)))


def temporal_literal(source: Source, root: str, text: str, offset: int) -> Literal:
    """Return a DATE, TIME or TIMESTAMP literal in canonical spelling; raise SqlError if ``text`` is no such value.

    As in Flink, months, days and parts of a time may have one digit.
    """
    if root == "TIME":
        time = time_of_day(text)
        if time is None or text.count(":") < 2:
            raise source.error(f"'{text}' is not a TIME", offset, "write it like '23:59:59.999'")
        return replace(time, offset=offset)
    match = (_DAY if root == "DATE" else _MOMENT).fullmatch(text.strip())
    fraction = match["fraction"] or "" if match is not None and root != "DATE" else ""
    try:
        if match is None:
            raise ValueError("shape")
        value = datetime.datetime(*(int(part or 0) for part in match.groups()[:6]))  # type: ignore[arg-type]
    except ValueError:
        example = "2024-12-31" if root == "DATE" else "2024-12-31 23:59:59.999"
        raise source.error(f"'{text}' is not a {root}", offset, f"write it like '{example}'") from None
    if len(fraction) > MICROSECONDS:
        message = f"a {root} has at most {MICROSECONDS} digits of a second here, found {len(fraction)} in '{text}'"
        raise source.error(message, offset, f"write '.{fraction[:MICROSECONDS]}' for '.{fraction}'")
    day = f"{value.year:04}-{value.month:02}-{value.day:02}"
    if root == "DATE":
        return literal(day, DataType(root="DATE"), offset)
    shown = f"{day} {value:%H:%M:%S}"
    return literal(f"{shown}.{fraction}" if fraction else shown, DataType(root=root, precision=len(fraction)), offset)
