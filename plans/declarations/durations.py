"""Reads and prints durations as Flink's ``TimeUtils`` does, in milliseconds.

A duration is digits, optional blanks and a unit (any case), or ISO-8601. Unlike Flink, a duration that is not a whole
number of milliseconds is refused. Flink truncates it, and ``100 ns`` would become ``0 ms``, which never expires. Knows
nothing of the use of a duration.

>>> format_duration(parse_duration("36000s"))
'10 h'
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_MILLISECONDS = 2**63 - 1

_NANOS_PER_MILLI = 1_000_000
_UNITS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("DAYS", 86_400_000 * _NANOS_PER_MILLI, ("d", "day", "days")),
    ("HOURS", 3_600_000 * _NANOS_PER_MILLI, ("h", "hour", "hours")),
    ("MINUTES", 60_000 * _NANOS_PER_MILLI, ("min", "m", "minute", "minutes")),
    ("SECONDS", 1_000 * _NANOS_PER_MILLI, ("s", "sec", "secs", "second", "seconds")),
    ("MILLISECONDS", _NANOS_PER_MILLI, ("ms", "milli", "millis", "millisecond", "milliseconds")),
    ("MICROSECONDS", 1_000, ("µs", "micro", "micros", "microsecond", "microseconds")),
    ("NANOSECONDS", 1, ("ns", "nano", "nanos", "nanosecond", "nanoseconds")),
)
_NANOS = {label: nanos for _, nanos, labels in _UNITS for label in labels}
_RECOGNIZED = ", ".join(f"{name}: ({' | '.join(labels)})" for name, _, labels in _UNITS)
_INTENDED = {"mins": "min", "hr": "h", "hrs": "h", "dy": "d", "msec": "ms", "msecs": "ms"}
_FORMAT_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))

_NUMBER_AND_LABEL = re.compile(r"([0-9]+)(.*)", re.DOTALL)
_ISO = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?"
    r"(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_JAVA_BLANKS = "".join(map(chr, range(33)))
_MAX_DIGITS = 40


class DurationError(ValueError):
    """A text that is not a duration; ``hint`` is a remedy if one is known.

    The message is Flink's, with all its units; ``reason`` is a short form for one line of diagnostics.
    """

    def __init__(self, message: str, *, reason: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message
        self.hint = hint


@lru_cache(maxsize=4096)
def parse_duration(text: str, *, require_unit: bool = False) -> int:
    """Parse a duration to milliseconds; raise :class:`DurationError` (a ValueError) with Flink's text if it is invalid.

    A number without a unit is milliseconds, unless ``require_unit``. Source: ``org.apache.flink.util.TimeUtils``.
    """
    trimmed = text.strip(_JAVA_BLANKS)
    if not trimmed:
        raise DurationError("argument is an empty- or whitespace-only string", hint="write a duration such as '1 h'")
    match = _NUMBER_AND_LABEL.fullmatch(trimmed)
    if match is None:
        return _whole_milliseconds(_parse_iso(trimmed), trimmed, trimmed)
    number, label = match[1], match[2].strip(_JAVA_BLANKS).lower()
    if not label:
        if require_unit:
            raise DurationError(f"the duration '{trimmed}' has no unit", hint="write its unit: ms, s, min, h or d")
        label = "ms"
    if label not in _NANOS:
        raise DurationError(
            f"Time interval unit label '{label}' does not match any of the recognized units: {_RECOGNIZED}",
            reason=f"'{label[:40]}' is not a unit; the units are d, h, min, s, ms",
            hint=_unit_hint(number, label),
        )
    # Java's BigInteger takes any length; Python refuses int() of more than 4,300 digits, and both overflow long before.
    if len(number.lstrip("0")) > _MAX_DIGITS:
        raise _overflow(number)
    return _whole_milliseconds(int(number) * _NANOS[label], trimmed, number)


def format_duration(milliseconds: int) -> str:
    """Print milliseconds in the largest unit that divides them exactly, as Flink prints durations in a plan."""
    if milliseconds < 0:
        raise ValueError("negative duration is not supported")
    if milliseconds:
        for label, size in _FORMAT_UNITS:
            if milliseconds % size == 0:
                return f"{milliseconds // size} {label}"
    return f"{milliseconds} ms"


def same_duration(a: str, b: str) -> bool:
    """Return True if two durations are equally long, in any notation."""
    return a == b or parse_duration(a) == parse_duration(b)


def _whole_milliseconds(nanos: int, text: str, number: str) -> int:
    milliseconds, remainder = divmod(nanos, _NANOS_PER_MILLI)
    if milliseconds > MAX_MILLISECONDS:
        raise _overflow(number)
    if remainder:
        hint = f"write '{milliseconds + 1} ms'" if milliseconds + 1 <= MAX_MILLISECONDS else None
        raise DurationError(f"the duration '{text}' is not a whole number of milliseconds", hint=hint)
    return milliseconds


def _overflow(number: str) -> DurationError:
    shown = number if len(number) <= 60 else number[:60] + "..."
    return DurationError(f"The value '{shown}' cannot be represented as Duration (numeric overflow).")


def _unit_hint(number: str, label: str) -> str | None:
    if label in _INTENDED:
        return f"write '{number} {_INTENDED[label]}'"
    if label in ("w", "week", "weeks") and len(number) <= _MAX_DIGITS:
        return f"write '{int(number) * 7} d'"
    if label.startswith((".", ",")):
        return "write a whole number of a smaller unit, such as '90 min' for 1.5 h"
    if re.search(r"[0-9]", label):
        return "write one number and one unit, such as '26 h' for 1 d 2 h, or ISO-8601, such as 'P1DT2H'"
    return None


def _parse_iso(text: str) -> int:
    match = _ISO.fullmatch(text)
    parts = match.groupdict() if match else {}
    sections = [parts.get(name) for name in ("days", "hours", "minutes", "seconds")]
    # A bare T, as in P1DT, is as invalid as a P without any section.
    if not any(sections) or (parts["time"] or "").upper() == "T":
        advice = "write a number and a unit: '500 ms', '10 s', '15 min', '12 h', '1 d'"
        hint = "a duration cannot be negative" if re.match(r"-[0-9]", text) else advice
        raise DurationError(
            f"text does not start with a number, and is not a valid ISO-8601 duration format: {text[:100]}", hint=hint
        )
    if max(len(section or "") for section in sections) > _MAX_DIGITS:
        raise _overflow(text)
    days, hours, minutes, seconds = (int(section or 0) for section in sections)
    nanos = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 10**9
    fraction = int((parts["fraction"] or "0").ljust(9, "0"))
    nanos += -fraction if (parts["seconds"] or "").startswith("-") else fraction
    nanos = -nanos if parts["sign"] == "-" else nanos
    if nanos < 0:
        raise DurationError("negative duration is not supported", hint="write '0 ms' for a state that never expires")
    return nanos
