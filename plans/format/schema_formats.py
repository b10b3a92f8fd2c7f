"""The formats of ``plan.schema.json`` that go beyond the standard: durations, column types and times of day.

>>> FORMATS["hintplan-duration"]("3 d") is None
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hintplan.plans.declarations.durations import DurationError, parse_duration
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.format.finding import described_json
from hintplan.plans.settings.setting import SettingError, parse_iso_time

Problem = tuple[str, str | None]
"""The problem of a text, and a hint."""


@lru_cache(maxsize=4096)
def _duration_problem(text: str) -> Problem | None:
    try:
        parse_duration(text, require_unit=True)
    except DurationError as error:
        return f"bad duration {described_json(text)}: {error.reason}", error.hint
    return None


@lru_cache(maxsize=4096)
def _type_problem(text: str) -> Problem | None:
    try:
        parse_type(text)
    except (ValueError, RecursionError) as error:
        return f"bad type {described_json(text)}: {error}", None
    return None


def _time_problem(text: str) -> Problem | None:
    try:
        parse_iso_time(text)
    except SettingError as error:
        return str(error), error.hint
    return None


FORMATS: dict[str, Callable[[str], Problem | None]] = {
    "hintplan-duration": _duration_problem,
    "hintplan-type": _type_problem,
    "hintplan-time": _time_problem,
}
