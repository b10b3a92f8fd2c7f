"""One setting as data: what values it takes, how they are written, who may set it, and what a change of it does.

Knows no operator: which settings there are is told by the groups of the other modules here.

>>> from plans.settings.effects import IN_FLIGHT
>>> wait = Setting(name="timeout", kind="duration", description="How long a call may take.", effect=IN_FLIGHT)
>>> parse_value(wait, "600s")
'10 min'
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from plans.declarations.durations import DurationError, format_duration, parse_duration
from plans.settings.effects import Effect
from plans.text.names import nearest

__all__ = ["MAX_LONG", "Kind", "Layers", "Setting", "SettingError", "Value", "iso_time", "parse_value", "shown"]

Kind = Literal["bool", "int", "duration", "choice", "time", "class"]

Value = str | int | bool
Layers = Mapping[str, Mapping[str, Value]]
"""What each layer (default, config, table, hint, statement) said of a group of settings: values by name."""

_MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class SettingError(ValueError):
    """A text that is no value of its setting; ``hint`` says what to write instead."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. ``default`` is what holds if nobody speaks; None if it then is absent.

    An ``int`` or ``duration`` is at least ``minimum`` (a duration in milliseconds). ``config`` is the key that sets it
    for the whole job; ``hint`` the option that
    sets it in a hint. ``effect`` is what another value does to a running job.
    """

    name: str
    kind: Kind
    default: Value | None = None
    description: str
    effect: Effect
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = _MAX_INT
    config: str | None = None
    hint: str | None = None


def parse_value(spec: Setting, text: str) -> Value:
    """The value that ``text`` writes, in canonical form; SettingError if it is none of this setting."""
    wanted = text.strip()
    match spec.kind:
        case "bool":
            if wanted.lower() in ("true", "false"):
                return wanted.lower() == "true"
            raise SettingError(f"expected true or false, found '{text}'", hint="write 'true' or 'false'")
        case "int":
            return _whole(spec, text)
        case "duration":
            return _duration(spec, text)
        case "choice":
            by_folded = {choice.lower(): choice for choice in spec.choices}
            if wanted.lower() in by_folded:
                return by_folded[wanted.lower()]
            # UNORDERED is what Flink's API calls allow_unordered, and looks more like its opposite.
            inside = (choice for choice in spec.choices if wanted and wanted.lower() in choice.lower())
            found = next(inside, None) or nearest(wanted, spec.choices) or spec.choices[0]
            expected = f"one of {', '.join(spec.choices)}" if len(spec.choices) > 1 else f"'{spec.choices[0]}'"
            raise SettingError(f"expected {expected}, found '{text}'", hint=f"write '{found}'")
        case "time":
            return iso_time(wanted)
        case "class":
            if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", wanted):
                return wanted
            message = f"expected the dotted name of a Python class, found '{text}'"
            raise SettingError(message, hint="write it like 'package.module.Class'")


def shown(value: Value) -> str:
    """A value as it is written in a hint, in WITH and in config."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(spec: Setting, text: str) -> int:
    digits = text.strip()
    if re.fullmatch(r"[0-9]{1,19}", digits) and spec.minimum <= int(digits) <= spec.maximum:
        return int(digits)
    if re.fullmatch(r"[0-9]{1,40}", digits) and int(digits) > spec.maximum:
        raise SettingError(f"expected at most {spec.maximum}, found {digits}", hint="write a smaller number")
    message = f"expected a whole number of at least {spec.minimum}, found '{text}'"
    raise SettingError(message, hint=f"write {spec.minimum} or more, in digits")


def _duration(spec: Setting, text: str) -> str:
    try:
        milliseconds = parse_duration(text)
    except DurationError as error:
        advice = error.hint or "write a number and a unit: '500 ms', '10 s', '15 min', '12 h', '1 d'"
        raise SettingError(f"bad duration '{text}': {error.reason}", hint=advice) from error
    if milliseconds < spec.minimum:
        raise SettingError(f"expected more than zero, found '{text}'", hint="write it like '10 min'")
    return format_duration(milliseconds)


def iso_time(text: str) -> str:
    """``text`` if it is a time of day in ISO-8601, with or without zone; SettingError if not."""
    # Java's ISO_TIME; Python's parser alone would also take '10' and '1015'.
    if re.fullmatch(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[-+]\d\d:\d\d)?", text):
        try:
            datetime.time.fromisoformat(text)
        except ValueError:
            pass
        else:
            return text
    message = f"expected a time of day in ISO-8601, found '{text}'"
    raise SettingError(message, hint="write it like '10:15', '10:15Z' or '10:15+07:00'")
