"""The settings of a lookup join in their three groups, ``async``, ``retry`` and ``cache``, as data.

One name for each setting in plan, config, WITH and hints: Flink's (FLIP-221, FLIP-234), but for ``enabled``, which the
LOOKUP hint calls ``async``. Owns what values a setting takes and how they are written. Who may set it, and which
settings go together, is the affair of :mod:`plans.lookup_layers`.

>>> parse_value(SETTINGS["cache"]["lookup.partial-cache.expire-after-write"], "600s")
'10 min'
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from plans.durations import DurationError, format_duration, parse_duration
from plans.model import Value
from plans.names import nearest

__all__ = [
    "CACHE",
    "CONFIG_KEYS",
    "FULL",
    "GROUPS",
    "PARTIAL",
    "SETTINGS",
    "Group",
    "SettingError",
    "SettingSpec",
    "duration_of",
    "iso_time",
    "parse_value",
    "shown",
]

Group = Literal["async", "retry", "cache"]
GROUPS: tuple[Group, ...] = ("async", "retry", "cache")

CACHE = "lookup.cache"
PARTIAL = "lookup.partial-cache."
FULL = "lookup.full-cache."

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


class SettingError(ValueError):
    """A text that is no value of its setting; ``hint`` says what to write instead."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSpec:
    """One setting. ``default`` is what holds if nobody speaks; None if it then is absent.

    An ``int`` or ``duration`` is at least ``minimum`` (a duration in milliseconds). ``config`` is the key that sets it
    for the whole job, ``hint`` the option that sets it in a LOOKUP hint.
    """

    name: str
    kind: Literal["bool", "int", "duration", "choice", "time", "class"]
    default: Value | None = None
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = _MAX_INT
    config: str | None = None
    hint: str | None = None


def _cache(
    name: str, kind: Literal["bool", "int", "duration", "choice", "time", "class"], **more: object
) -> SettingSpec:
    return SettingSpec(name=name, kind=kind, config=name, **more)  # type: ignore[arg-type]


_ASYNC = (
    SettingSpec(name="enabled", kind="bool", hint="async"),
    SettingSpec(
        name="output-mode",
        kind="choice",
        choices=("ordered", "allow_unordered"),
        default="ordered",
        config="table.exec.async-lookup.output-mode",
        hint="output-mode",
    ),
    SettingSpec(
        name="capacity",
        kind="int",
        minimum=1,
        default=100,
        config="table.exec.async-lookup.buffer-capacity",
        hint="capacity",
    ),
    SettingSpec(
        name="timeout", kind="duration", default="5 min", config="table.exec.async-lookup.timeout", hint="timeout"
    ),
)

_RETRY = (
    SettingSpec(name="retry-predicate", kind="choice", choices=("lookup_miss",), hint="retry-predicate"),
    SettingSpec(name="retry-strategy", kind="choice", choices=("fixed_delay",), hint="retry-strategy"),
    SettingSpec(name="fixed-delay", kind="duration", hint="fixed-delay"),
    SettingSpec(name="max-attempts", kind="int", minimum=1, hint="max-attempts"),
    SettingSpec(name="mode", kind="choice", choices=("inline", "deferred")),
)

_CACHE = (
    _cache(CACHE, "choice", choices=("NONE", "PARTIAL", "FULL"), default="NONE"),
    _cache(f"{PARTIAL}max-rows", "int", maximum=_MAX_LONG),
    _cache(f"{PARTIAL}expire-after-access", "duration"),
    _cache(f"{PARTIAL}expire-after-write", "duration"),
    _cache(f"{PARTIAL}cache-missing-key", "bool", default=True),
    _cache(f"{PARTIAL}class", "class"),
    _cache(f"{FULL}reload-strategy", "choice", choices=("PERIODIC", "TIMED", "CUSTOM"), default="PERIODIC"),
    _cache(f"{FULL}periodic-reload.interval", "duration", minimum=1),
    _cache(
        f"{FULL}periodic-reload.schedule-mode", "choice", choices=("FIXED_DELAY", "FIXED_RATE"), default="FIXED_DELAY"
    ),
    _cache(f"{FULL}timed-reload.iso-time", "time"),
    _cache(f"{FULL}timed-reload.interval-in-days", "int", minimum=1, default=1),
    _cache(f"{FULL}custom-reload.class", "class"),
    _cache("lookup.max-retries", "int", default=3),
)

SETTINGS: Mapping[Group, Mapping[str, SettingSpec]] = {
    "async": {spec.name: spec for spec in _ASYNC},
    "retry": {spec.name: spec for spec in _RETRY},
    "cache": {spec.name: spec for spec in _CACHE},
}
"""The settings of each group by name, in the order in which a plan lists them."""

CONFIG_KEYS: Mapping[str, tuple[Group, SettingSpec]] = {
    spec.config: (group, spec) for group in GROUPS for spec in SETTINGS[group].values() if spec.config is not None
}
"""The configuration keys that set a setting for the whole job."""


def parse_value(spec: SettingSpec, text: str) -> Value:
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


def duration_of(value: Value) -> int:
    """The milliseconds of a duration value."""
    return parse_duration(str(value))


def shown(value: Value) -> str:
    """A value as it is written in a hint, in WITH and in config."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(spec: SettingSpec, text: str) -> int:
    digits = text.strip()
    if re.fullmatch(r"[0-9]{1,19}", digits) and spec.minimum <= int(digits) <= spec.maximum:
        return int(digits)
    if re.fullmatch(r"[0-9]{1,40}", digits) and int(digits) > spec.maximum:
        raise SettingError(f"expected at most {spec.maximum}, found {digits}", hint="write a smaller number")
    message = f"expected a whole number of at least {spec.minimum}, found '{text}'"
    raise SettingError(message, hint=f"write {max(spec.minimum, 1)} or more, in digits")


def _duration(spec: SettingSpec, text: str) -> str:
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
