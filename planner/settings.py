"""The configuration of a job: ``SET`` in the script, overridden by ``-c`` on the command line.

Which keys there are and what they take is data in :mod:`plans.configuration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planner.source import Source
from planner.statements import SetOption
from plans.configuration import KEYS, known_keys, normalise
from plans.errors import SqlError
from plans.names import did_you_mean

__all__ = ["Settings", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``config`` as it stands in the plan; ``mode`` and ``name`` have places of their own there."""

    config: Mapping[str, str]
    mode: Literal["streaming"]
    name: str | None


def read_settings(source: Source, statements: tuple[SetOption, ...], overrides: Mapping[str, str]) -> Settings:
    """Normalise all settings; SqlError for unknown keys and wrong values, with the place if it is in the script."""
    found: dict[str, str] = {}
    for statement in statements:
        if statement.key not in KEYS:
            advice = did_you_mean(statement.key, known_keys(), what="known keys")
            raise source.error(f"unknown configuration key '{statement.key}'", statement.offset, advice)
        try:
            found[statement.key] = normalise(statement.key, statement.value)
        except ValueError as error:
            advice = getattr(error, "hint", None) or f"see what '{statement.key}' takes"
            raise source.error(f"'{statement.key}': {error}", statement.value_offset, advice) from None
    for key, value in overrides.items():
        if key not in KEYS:
            raise SqlError(
                f"unknown configuration key '{key}'", hint=did_you_mean(key, known_keys(), what="known keys")
            )
        try:
            found[key] = normalise(key, value)
        except ValueError as error:
            raise SqlError(f"'{key}': {error}", hint=getattr(error, "hint", None)) from None
    fields = {KEYS[k].plan_field: v for k, v in found.items() if KEYS[k].plan_field}
    config = {k: found[k] for k in sorted(found) if not KEYS[k].plan_field}
    return Settings(config=config, mode="streaming", name=fields.get("name"))
