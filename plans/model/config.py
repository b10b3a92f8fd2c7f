"""The configuration keys that a job knows: what they mean, their defaults, and how their values are written.

A value that is wrong is a ValueError that says what would be right. Where a key was set, and who wins, is the
planner's affair.

>>> normalise("table.exec.state.ttl", "3600s")
'1 h'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from plans.declarations.durations import format_duration, parse_duration
from plans.operators import KINDS
from plans.operators.correlate import CORRELATE
from plans.operators.kind import OperatorKind
from plans.settings.cached import CACHED
from plans.settings.calls import CALL_KINDS, CONFIG_SYNONYMS, call_groups
from plans.settings.effects import FOLLOWED, KEPT, Effect, restarts
from plans.settings.effects import TTL as TTL_EFFECT
from plans.settings.group import Group
from plans.settings.setting import Setting, parse_value, shown
from plans.settings.state import STATE_TTL, TTL
from plans.text.names import did_you_mean

__all__ = [
    "DML_SYNC",
    "EVENTS_DUPLICATE",
    "FORCE_RECOMPILE",
    "LENGTH_ENFORCER",
    "MODE",
    "NAME",
    "PARALLELISM",
    "TIME_ZONE",
    "UPSERT_MATERIALIZE",
    "ConfigKey",
    "canonical_key",
    "known_keys",
    "normalise",
]

MODE = "execution.runtime-mode"
NAME = "pipeline.name"
PARALLELISM = "parallelism.default"
TIME_ZONE = "table.local-time-zone"
EVENTS_DUPLICATE = "table.exec.source.cdc-events-duplicate"
UPSERT_MATERIALIZE = "table.exec.sink.upsert-materialize"
LENGTH_ENFORCER = "table.exec.sink.type-length-enforcer"
DML_SYNC = "table.dml-sync"
FORCE_RECOMPILE = "table.plan.force-recompile"

_MAX_PARALLELISM = 32768


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """A known key; ``plan_field`` names the top-level field of the plan that holds it instead of ``config``.

    A key of the ``session`` says what a SQL client does with plans, one of the ``compiler`` what operators it makes;
    they stand in no plan.
    """

    description: str
    parse: Callable[[str], str]
    effect: Effect
    schema: Mapping[str, Any]
    """What its value may be, for the JSON Schema."""
    setting: Setting | None = None
    """The setting of operators that it sets where nothing nearer does."""
    group: Group | None = None
    kind: OperatorKind | None = None
    """Of which group that is, in which kind of operators; None if of all."""
    whose: str = ""
    """What has the setting, as a message calls one of them."""
    plan_field: str | None = None
    session: bool = False
    compiler: bool = False

    @property
    def place(self) -> tuple[str, str, str]:
        """The kind of operators, the group and the name of the setting that it sets; empty if it sets none."""
        if self.kind is None or self.group is None or self.setting is None:
            return ("", "", "")
        return self.kind.op, self.group.name, self.setting.name

    @property
    def only_in(self) -> str | None:
        """The mode of plans in which the setting that it sets has an effect, if not in all."""
        return None if self.group is None else self.group.mode

    @property
    def in_plan(self) -> bool:
        """Whether plans say what the key is set to."""
        return not self.session and not self.compiler

    @property
    def in_config(self) -> bool:
        """Whether the key stands in the ``config`` of plans."""
        return self.plan_field is None and self.in_plan


def _duration(text: str) -> str:
    return format_duration(parse_duration(text))


def _mode(text: str) -> str:
    if text.strip().lower() not in ("streaming", "batch"):
        raise ValueError(f"execution mode '{text}' is not supported; write 'streaming' or 'batch'")
    return text.strip().lower()


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError("the name of a job cannot be blank")
    return text.strip()


def _parallelism(text: str) -> str:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9 and 1 <= int(digits) <= _MAX_PARALLELISM):
        raise ValueError(f"expected a whole number from 1 to {_MAX_PARALLELISM}, found '{text}'")
    return str(int(digits))


def _time_zone(text: str) -> str:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(text)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"'{text}' is not a time zone; write a name such as 'UTC' or 'Europe/Berlin'") from error
    return text


def _flag(text: str) -> str:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"expected true or false, found '{text}'")
    return word


def _word(*known: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        word = text.strip().upper()
        if word not in known:
            raise ValueError(f"expected {', '.join(known[:-1])} or {known[-1]}, found '{text}'")
        return word

    return parse


_AT_START = restarts("the compiler reads it")
_OTHER_TIMES = restarts("expressions on times may give other results from then on")
_TEXT: Mapping[str, Any] = {"type": "string"}

KEYS: dict[str, ConfigKey] = {
    MODE: ConfigKey(
        description="Whether the job streams, or reads what is there.",
        parse=_mode,
        effect=_AT_START,
        schema={"enum": ["streaming", "batch"]},
        plan_field="mode",
    ),
    PARALLELISM: ConfigKey(
        description="The number of partitions of every stateful operator.",
        parse=_parallelism,
        effect=Effect(
            level="none",
            text="state kept, a checkpoint keeps its partitions",
            because="state is routed by the number of partitions; only a new checkpoint takes another number",
        ),
        schema={"type": "string", "pattern": "^[1-9][0-9]*$", "examples": ["4"]},
    ),
    NAME: ConfigKey(
        description="The name of the job.",
        parse=_name,
        effect=restarts("the name is what Spark and reports call the job"),
        schema=_TEXT,
        plan_field="name",
    ),
    STATE_TTL: ConfigKey(
        description="How long an unwritten state row is kept where no hint says otherwise; 0 ms keeps it forever.",
        parse=_duration,
        effect=replace(
            TTL_EFFECT, because="it is the TTL of states for which no hint or edit says otherwise; those are listed"
        ),
        schema={"$ref": "#/$defs/duration"},
        setting=TTL,
    ),
    TIME_ZONE: ConfigKey(
        description="The session time zone; UTC if absent.",
        parse=_time_zone,
        effect=_OTHER_TIMES,
        schema={"type": "string", "examples": ["UTC", "Europe/Berlin"]},
    ),
    EVENTS_DUPLICATE: ConfigKey(
        description="Whether changes of a changelog with a primary key may come twice, so that they are normalized.",
        parse=_flag,
        effect=_AT_START,
        schema=_TEXT,
        compiler=True,
    ),
    UPSERT_MATERIALIZE: ConfigKey(
        description="When all rows for an upsert sink are kept by its key: AUTO where a query needs it, FORCE, NONE.",
        parse=_word("AUTO", "FORCE", "NONE"),
        effect=_AT_START,
        schema=_TEXT,
        compiler=True,
    ),
    LENGTH_ENFORCER: ConfigKey(
        description="Whether text gets the length of a sink's CHAR and VARCHAR: IGNORE as it is declared, TRIM_PAD.",
        parse=_word("IGNORE", "TRIM_PAD"),
        effect=_AT_START,
        schema=_TEXT,
        compiler=True,
    ),
    DML_SYNC: ConfigKey(
        description="Whether an INSERT of a SQL client takes what is there and ends, or goes on in the background.",
        parse=_flag,
        effect=_AT_START,
        schema=_TEXT,
        session=True,
    ),
    FORCE_RECOMPILE: ConfigKey(
        description="Whether COMPILE PLAN writes over a plan file that is there.",
        parse=_flag,
        effect=_AT_START,
        schema=_TEXT,
        session=True,
    ),
}


def _of_setting(setting: Setting, group: Group, kind: OperatorKind | None, whose: str) -> ConfigKey:
    """The key that sets ``setting`` of ``group`` for all operators that do not say otherwise."""
    default = "" if setting.default is None else f"; {shown(setting.default)} if absent"
    return ConfigKey(
        description=f"{setting.description} For {whose}s that do not say otherwise{default}.",
        parse=lambda text: shown(parse_value(setting, text)),
        effect=setting.effect if setting.config == setting.name or setting.effect is KEPT else FOLLOWED,
        schema=_config_schema(setting),
        setting=setting,
        group=group,
        kind=kind,
        whose=whose,
    )


def _config_schema(setting: Setting) -> Mapping[str, Any]:
    """What the key of a setting may be; one that stands in WITH, too, takes any spelling as there."""
    if setting.config == setting.name:
        return _TEXT
    match setting.kind:
        case "bool":
            return {"enum": ["true", "false"]}
        case "choice":
            return {"enum": list(setting.choices)}
        case "duration":
            return {"$ref": "#/$defs/duration"}
        case "int":
            pattern = "^[1-9][0-9]*$" if setting.minimum else "^[0-9]+$"
            return {"type": "string", "pattern": pattern, "examples": [shown(setting.default or setting.minimum)]}
        case "time" | "class":
            return _TEXT
        case _:
            assert_never(setting.kind)


KEYS |= {
    setting.config: _of_setting(setting, CACHED, None, "result")
    for setting in CACHED.settings.values()
    if setting.config is not None
}
KEYS |= {
    setting.config: _of_setting(setting, group, kind, kind.title)
    for kind in KINDS
    for group in kind.groups
    if group is not CACHED
    for setting in group.settings.values()
    if setting.config is not None
}
KEYS |= {
    setting.config: _of_setting(setting, group, CORRELATE, f"{words} function")
    for function, words in CALL_KINDS.items()
    for group in call_groups(function)
    for setting in group.settings.values()
    if setting.config is not None
}


def canonical_key(key: str) -> str:
    """The name by which a plan calls ``key``, which may be a synonym of Flink 2.3."""
    return CONFIG_SYNONYMS.get(key, key)


def known_keys() -> tuple[str, ...]:
    """All keys that a script may set, sorted."""
    return tuple(sorted(KEYS))


def normalise(key: str, value: str, *, require_unit: bool = False) -> str:
    """The canonical spelling of ``value`` for ``key``; ValueError if the key is unknown or the value is wrong.

    A duration without a unit is milliseconds, as in Flink, unless ``require_unit``, as in plans; zero needs none.
    """
    if key not in KEYS:
        raise ValueError(f"unknown configuration key '{key}'; {did_you_mean(key, known_keys(), what='known keys')}")
    found = KEYS[key].parse(value)
    if require_unit and value.strip().isdigit() and int(value) and not found.isdigit():
        parse_duration(value, require_unit=True)
    return found
