"""The configuration of a session: ``SET`` and ``RESET``, overridden by ``-c`` on the command line.

:mod:`hintplan.plans.model.config` lists the keys and their values.

>>> configuration = Configuration.of({"parallelism.default": "4"})
>>> configuration.settings().config
{'parallelism.default': '4'}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hintplan.planner.statements.model import ResetOption, SetOption
from hintplan.planner.syntax.source import Source
from hintplan.plans.errors import SqlError
from hintplan.plans.model.config import KEYS, canonical_key, known_keys, normalise
from hintplan.plans.model.plan import Mode
from hintplan.plans.settings.emit import EMIT, LATE_ENABLED, LATENESS
from hintplan.plans.settings.flink_keys import replacement_hint
from hintplan.plans.settings.state import STATE_TTL
from hintplan.plans.text.names import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """The settings of a plan: ``config`` and the separate fields ``mode`` and ``name``. The plan omits ``compiler``.

    ``offsets`` has the offset of the SET for each key that the script set.
    """

    config: Mapping[str, str]
    compiler: Mapping[str, str]
    mode: Mode
    name: str | None
    offsets: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Configuration:
    """The current settings, under canonical names and with normalised values. ``overrides`` come from outside and win.

    ``spelled`` has the name that set each key. A key with two names accepts only one of them at a time.
    """

    overrides: Mapping[str, str]
    script_options: dict[str, str] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, overrides: Mapping[str, str]) -> Configuration:
        """Return a configuration with overrides only. Raise SqlError for an unknown or wrong override."""
        normalised: dict[str, str] = {}
        for name, value in overrides.items():
            key = canonical_key(name)
            if key not in KEYS:
                raise SqlError(f"unknown configuration key '{key}'", hint=_meant(key))
            if key in normalised:
                other = next(n for n in overrides if n != name and canonical_key(n) == key)
                raise SqlError(_two_names(other, name), hint="keep one of them")
            try:
                normalised[key] = normalise(key, value)
            except ValueError as error:
                raise SqlError(f"'{name}': {error}", hint=getattr(error, "hint", None)) from None
        return cls(overrides=normalised)

    @property
    def values(self) -> dict[str, str]:
        """Return all current settings, sorted by key."""
        current = {**self.script_options, **self.overrides}
        return {key: current[key] for key in sorted(current)}

    def set(self, source: Source, statement: SetOption) -> None:
        """Apply a SET. Raise SqlError, with its position, for an unknown key or a wrong value."""
        key = _known_key(source, statement.key, statement.offset)
        other = self.spelled.get(key, statement.key)
        if other != statement.key:
            message = _two_names(other, statement.key)
            raise source.error(message, statement.offset, f"keep one of them, or RESET '{other}' first")
        try:
            self.script_options[key] = normalise(key, statement.value)
        except ValueError as error:
            advice = getattr(error, "hint", None) or f"see what '{statement.key}' takes"
            raise source.error(f"'{statement.key}': {error}", statement.value_offset, advice) from None
        self.spelled[key] = statement.key
        self.offsets[key] = statement.offset

    def reset(self, source: Source, statement: ResetOption) -> None:
        """Apply a RESET of one key or of all. Raise SqlError, with its position, for an unknown key."""
        if statement.key is None:
            self.script_options.clear()
            self.spelled.clear()
            self.offsets.clear()
            return
        key = _known_key(source, statement.key, statement.offset)
        self.script_options.pop(key, None)
        self.spelled.pop(key, None)
        self.offsets.pop(key, None)

    def is_on(self, key: str, *, default: bool) -> bool:
        """Return the value of a boolean key."""
        value = self.values.get(key)
        return default if value is None else value == "true"

    def settings(self) -> PlanSettings:
        """Return the settings for a plan that is compiled now."""
        values = self.values
        fields = {KEYS[k].plan_field: v for k, v in values.items() if KEYS[k].plan_field}
        config = {k: v for k, v in values.items() if KEYS[k].in_config}
        compiler = {k: v for k, v in values.items() if KEYS[k].compiler}
        lateness = EMIT.settings[LATENESS].config or ""
        if compiler.get(LATE_ENABLED) == "true" and lateness not in config and STATE_TTL in config:
            config[lateness] = config[STATE_TTL]  # as in Flink
        offsets = {key: offset for key, offset in self.offsets.items() if key not in self.overrides}
        mode: Mode = "batch" if fields.get("mode") == "batch" else "streaming"
        return PlanSettings(config=config, compiler=compiler, mode=mode, name=fields.get("name"), offsets=offsets)


def _known_key(source: Source, name: str, offset: int) -> str:
    """Return the canonical key of ``name``. Raise SqlError if it is unknown."""
    key = canonical_key(name)
    if key not in KEYS:
        raise source.error(f"unknown configuration key '{key}'", offset, _meant(key))
    return key


def _meant(key: str) -> str:
    if (instead := replacement_hint(key)) is not None:
        return instead
    close = nearest(key, known_keys())
    return f"did you mean '{close}'?" if close else "docs/plan-format/settings.md lists the keys"


def _two_names(one: str, other: str) -> str:
    return f"'{one}' and '{other}' are two names of one setting"
