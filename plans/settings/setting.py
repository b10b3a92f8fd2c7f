"""The definition of one setting: its values, their notation, the layers that may set it, and the effect of a change.

Settings of operators, keys of the configuration and options of connectors are all of this class. Knows none of them:
they are listed in the groups of other modules here, in :mod:`hintplan.plans.model.config`, and by each connector.

>>> from hintplan.plans.settings.effects import IN_FLIGHT
>>> wait = Setting(name="timeout", kind="duration", description="How long a call may take.", effect=IN_FLIGHT)
>>> parse_value(wait, "600s")
'10 min'
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, TypedDict

from hintplan.plans.declarations.durations import DurationError, format_duration, parse_duration
from hintplan.plans.frozen import frozen
from hintplan.plans.settings.effects import Effect
from hintplan.plans.text.names import nearest

Kind = Literal["bool", "int", "duration", "choice", "time", "class", "text", "character"]

Value = str | int | bool
Layers = Mapping[str, Mapping[str, Value]]
"""The values of a group of settings by layer (default, config, table, hint, statement) and name."""

_MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class SettingError(ValueError):
    """An invalid text for a setting; ``hint`` is a remedy, ``expected`` a description of valid values."""

    def __init__(self, message: str, *, hint: str, expected: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.expected = expected


@frozen
class Setting:
    r"""One setting; ``default`` is its value if no layer sets it, and None if it is then absent.

    An ``int`` or ``duration`` is at least ``minimum`` (a duration in milliseconds). A ``choice`` ignores case; a
    ``text`` with choices does not. A ``character`` is one character, or ``\\t``. ``check`` normalises a value that is
    specific to one setting, or raises ValueError. ``effect`` is the effect of a change on a running job. ``loses``
    describes the loss if the value differs from its default; the linter reports it. ``zero`` is the word for a duration
    of zero, such as ``never``, and ``shortened`` the effect of a shorter duration if that has another effect.

    ``config`` is the key that sets it for the whole job, ``hint`` the option in a hint, ``option`` the option in WITH.
    A setting that only an option sets is ``verbatim``: its connector reads the text unchanged, blanks included. A
    ``secret`` must be written as ``${env:NAME}``. Such a reference is also allowed in an ``environment`` setting, whose
    value only goes to a server. Elsewhere, a plan could send, print or store any variable of the run.
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
    option: str | None = None
    required: bool = False
    secret: bool = False
    environment: bool = False
    check: Callable[[str], str] | None = None
    loses: str = ""
    zero: str = ""
    shortened: Effect | None = None
    examples: tuple[str, ...] = ()

    @property
    def verbatim(self) -> bool:
        """True if a connector reads the text of the value unchanged."""
        return self.option is not None and self.config is None

    @property
    def offered(self) -> tuple[str, ...]:
        """The possible values if they are few."""
        return ("true", "false") if self.kind == "bool" else self.choices


class SettingFacts(TypedDict, total=False):
    """The fields of a setting that functions which make settings pass on."""

    default: Value | None
    choices: tuple[str, ...]
    minimum: int
    maximum: int
    hint: str | None
    required: bool
    secret: bool
    environment: bool
    check: Callable[[str], str] | None
    loses: str
    examples: tuple[str, ...]


def parse_value(spec: Setting, text: str) -> Value:
    """Return the value that ``text`` denotes, in canonical form; raise SettingError if it is invalid."""
    if spec.check is not None:
        return spec.check(text)
    wanted = text if spec.verbatim else text.strip()
    match spec.kind:
        case "bool":
            if wanted.lower() in ("true", "false"):
                return wanted.lower() == "true"
            raise _wrong("true or false", text, "write 'true' or 'false'")
        case "int":
            return _whole(spec, text, wanted)
        case "duration":
            return _duration(spec, text)
        case "choice" | "text":
            return _chosen(spec, text, wanted) if spec.choices else text
        case "character":
            if wanted == "\\t" or len(wanted) == 1:
                return wanted
            raise _wrong("one character", text, "write one character, or \\t for a tab")
        case "time":
            return parse_iso_time(wanted)
        case "class":
            if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", wanted):
                return wanted
            raise _wrong("the dotted name of a Python class", text, "write it like 'package.module.Class'")


def value_text(value: Value) -> str:
    """Return a value as text for a hint, WITH or config."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def readable_value(spec: Setting, value: Value) -> str:
    """Return a value as text for people: the word of the setting for a duration of zero, if it has one."""
    text = value_text(value)
    return spec.zero if spec.zero and duration_of(text) == 0 else text


def duration_of(text: str) -> int | None:
    """Return the milliseconds of a duration, or None if ``text`` is not one."""
    try:
        return parse_duration(text)
    except DurationError:
        return None


def same_value(spec: Setting | None, a: Value | None, b: Value | None) -> bool:
    """Return True if two values of a setting are the same, in any notation of durations."""
    if a == b or spec is None or spec.kind != "duration" or a is None or b is None:
        return a == b
    duration = duration_of(str(a))
    return duration is not None and duration == duration_of(str(b))


def effect_between(spec: Setting, before: Value, after: Value) -> Effect:
    """Return the effect of another value of the setting; a duration of zero that has a word is the longest."""
    effect = spec.effect
    if spec.shortened is not None:
        was, now = (_length(spec, value) for value in (before, after))
        effect = effect if was is None or now is None or now >= was else spec.shortened
    if "{value}" not in effect.text:
        return effect
    return replace(effect, text=effect.text.format(value=readable_value(spec, after)))


def _length(spec: Setting, value: Value) -> float | None:
    milliseconds = duration_of(str(value))
    return math.inf if spec.zero and milliseconds == 0 else milliseconds


def _wrong(expected: str, text: str, hint: str) -> SettingError:
    return SettingError(f"expected {expected}, found '{text}'", hint=hint, expected=expected)


def _chosen(spec: Setting, text: str, wanted: str) -> str:
    for choice in spec.choices:
        if choice == wanted or (spec.kind == "choice" and choice.lower() == wanted.lower()):
            return choice
    # Flink's API calls allow_unordered UNORDERED, whose spelling is closer to "ordered".
    inside = (choice for choice in spec.choices if wanted and wanted.lower() in choice.lower())
    near = next(inside, None) or nearest(wanted, spec.choices) or spec.choices[0]
    expected = f"one of {', '.join(spec.choices)}" if len(spec.choices) > 1 else f"'{spec.choices[0]}'"
    raise _wrong(expected, text, f"write '{near}'")


def _whole(spec: Setting, text: str, digits: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,19}", digits) and spec.minimum <= int(digits) <= spec.maximum:
        return int(digits)
    if re.fullmatch(r"[0-9]{1,40}", digits) and int(digits) > spec.maximum:
        expected = f"at most {spec.maximum}"
        raise SettingError(f"expected {expected}, found {digits}", hint="write a smaller number", expected=expected)
    raise _wrong(f"a whole number of at least {spec.minimum}", text, f"write {spec.minimum} or more, in digits")


def _duration(spec: Setting, text: str) -> str:
    try:
        milliseconds = parse_duration(text, require_unit=spec.verbatim)
    except DurationError as error:
        advice = error.hint or "write a number and a unit: '500 ms', '10 s', '15 min', '12 h', '1 d'"
        raise SettingError(f"bad duration '{text}': {error.reason}", hint=advice) from error
    if milliseconds < spec.minimum:
        message = f"expected more than zero, found '{text}'"
        raise SettingError(message, hint="write it like '10 min'", expected="a duration longer than nothing")
    return format_duration(milliseconds)


def parse_iso_time(text: str) -> str:
    """Return ``text`` if it is a time of day in ISO-8601, with or without zone; raise SettingError otherwise."""
    # The pattern is Java's ISO_TIME; Python's parser alone would also accept '10' and '1015'.
    if re.fullmatch(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[-+]\d\d:\d\d)?", text):
        try:
            datetime.time.fromisoformat(text)
        except ValueError:
            pass
        else:
            return text
    raise _wrong("a time of day in ISO-8601", text, "write it like '10:15', '10:15Z' or '10:15+07:00'")
