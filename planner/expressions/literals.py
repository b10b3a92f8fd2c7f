"""Constants: numbers, intervals, dates and times, from their spelling to typed literals.

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
"""The digits of a second that a time has."""
MILLISECONDS = 3
"""The digits of a second that a TIME has."""
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_MOMENT = re.compile(
    rf"{_DAY.pattern}(?:(?: +|T)(\d{{1,2}}):(\d{{1,2}}):(\d{{1,2}})(?:\.(?P<fraction>\d*))?)?", re.ASCII
)


def number_literal(source: Source, text: str, offset: int) -> Literal:
    """An INT, BIGINT, DECIMAL or DOUBLE, as the spelling of the number says; SqlError if it is too large."""
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
    """``INTERVAL 'value' unit``; SqlError for anything but one number and one unit."""
    name = unit.upper()
    if name not in ("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR") or not value.replace(".", "", 1).isdigit():
        raise source.error("this interval is not supported", offset, "write one number and unit: INTERVAL '5' SECOND")
    if "." in value and name != "SECOND":
        raise source.error(f"an interval in {name} needs a whole number", offset, "use a smaller unit")
    return Literal(text=f"INTERVAL '{value}' {name}", type=DataType(root="INTERVAL"), offset=offset)


def day_of_text(text: str) -> str | None:
    """Return the day that Flink casts ``text`` to, as ``2024-02-09``; None if there is no such day.

    Days of the year 0 are not among those that a literal can have.
    """
    year, month, day = (*map(int, re.findall(r"[0-9]+", text.split()[0])), 1, 1)[:3]
    try:
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        return None


def time_of_day(text: str) -> Literal | None:
    """The TIME that Flink casts ``text`` to, with as many digits of a second as it has, up to 3; None for none."""
    found = _CLOCK.fullmatch(text.strip(" "))
    if found is None:
        return None
    hour, minute, second = (int(found[part] or 0) for part in (1, 2, 3))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = (found[4] or "")[:MILLISECONDS]
    shown = f"{hour:02}:{minute:02}:{second:02}.{fraction.rstrip('0')}".removesuffix(".")
    return literal(shown, DataType(root="TIME", precision=len(fraction)))


def temporal_literal(source: Source, root: str, text: str, offset: int) -> Literal:
    """A DATE, TIME or TIMESTAMP literal in canonical spelling; SqlError if ``text`` is no such value.

    As in Flink, months, days and parts of a time may have one digit.
    """
    if root == "TIME":
        found_time = time_of_day(text)
        if found_time is None or text.count(":") < 2:
            raise source.error(f"'{text}' is not a TIME", offset, "write it like '23:59:59.999'")
        return replace(found_time, offset=offset)
    found = (_DAY if root == "DATE" else _MOMENT).fullmatch(text.strip())
    fraction = found["fraction"] or "" if found is not None and root != "DATE" else ""
    try:
        if found is None:
            raise ValueError("shape")
        value = datetime.datetime(*(int(part or 0) for part in found.groups()[:6]))  # type: ignore[arg-type]
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
