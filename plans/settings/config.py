"""The configuration keys that a job knows: what they mean, their defaults, and how their values are written.

A value that is wrong is a ValueError that says what would be right. Where a key was set, and who wins, is the
planner's affair.

>>> normalise("table.exec.state.ttl", "3600s")
'1 h'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plans.declarations.durations import format_duration, parse_duration
from plans.settings.cached import CONFIG_ENABLED, CONFIG_STORAGE_LEVEL, ENABLED, STORAGE_LEVEL
from plans.settings.cached import SETTINGS as CACHED
from plans.settings.calls import CONFIG_KEYS as CALL_KEYS
from plans.settings.calls import CONFIG_SYNONYMS
from plans.settings.lookup import CONFIG_KEYS as LOOKUP_KEYS
from plans.settings.phases import CONFIG_KEY as PHASE_STRATEGY
from plans.settings.phases import SPECS as PHASES
from plans.settings.phases import STRATEGY
from plans.settings.values import SettingSpec, parse_value, shown
from plans.text.names import did_you_mean

__all__ = [
    "DEFAULT_STATE_TTL",
    "DML_SYNC",
    "EVENTS_DUPLICATE",
    "FORCE_RECOMPILE",
    "LENGTH_ENFORCER",
    "MODE",
    "NAME",
    "PARALLELISM",
    "STATE_TTL",
    "TIME_ZONE",
    "UPSERT_MATERIALIZE",
    "ConfigKey",
    "canonical_key",
    "known_keys",
    "normalise",
]

STATE_TTL = "table.exec.state.ttl"
MODE = "execution.runtime-mode"
NAME = "pipeline.name"
PARALLELISM = "parallelism.default"
TIME_ZONE = "table.local-time-zone"
EVENTS_DUPLICATE = "table.exec.source.cdc-events-duplicate"
UPSERT_MATERIALIZE = "table.exec.sink.upsert-materialize"
LENGTH_ENFORCER = "table.exec.sink.type-length-enforcer"
DML_SYNC = "table.dml-sync"
FORCE_RECOMPILE = "table.plan.force-recompile"

DEFAULT_STATE_TTL = "0 ms"
_MAX_PARALLELISM = 32768


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """A known key; ``plan_field`` names the top-level field of the plan that holds it instead of ``config``.

    A key of the ``session`` says what a SQL client does with plans, one of the ``compiler`` what operators it makes;
    they stand in no plan.
    """

    description: str
    parse: Callable[[str], str]
    plan_field: str | None = None
    session: bool = False
    compiler: bool = False

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


def _setting(spec: SettingSpec) -> Callable[[str], str]:
    return lambda text: shown(parse_value(spec, text))


_CALLS = {"async-table": "asynchronous table functions", "async-scalar": "asynchronous scalar functions"}

KEYS: dict[str, ConfigKey] = {
    MODE: ConfigKey(description="Whether the job streams, or reads what is there.", parse=_mode, plan_field="mode"),
    PARALLELISM: ConfigKey(description="The number of partitions of every stateful operator.", parse=_parallelism),
    NAME: ConfigKey(description="The name of the job.", parse=_name, plan_field="name"),
    STATE_TTL: ConfigKey(
        description="How long an unwritten state row is kept where no hint says otherwise; 0 ms keeps it forever.",
        parse=_duration,
    ),
    CONFIG_ENABLED: ConfigKey(
        description="Whether every computed result that is read more than once is cached. Batch only.",
        parse=_setting(CACHED[ENABLED]),
    ),
    CONFIG_STORAGE_LEVEL: ConfigKey(
        description="Where cached results are kept if nothing else says; MEMORY_AND_DISK if absent.",
        parse=_setting(CACHED[STORAGE_LEVEL]),
    ),
    PHASE_STRATEGY: ConfigKey(
        description="Whether aggregates sum up a micro-batch before they shuffle it; AUTO if absent. Streaming only.",
        parse=_setting(PHASES[STRATEGY]),
    ),
    TIME_ZONE: ConfigKey(description="The session time zone; UTC if absent.", parse=_time_zone),
    EVENTS_DUPLICATE: ConfigKey(
        description="Whether changes of a changelog with a primary key may come twice, so that they are normalized.",
        parse=_flag,
        compiler=True,
    ),
    UPSERT_MATERIALIZE: ConfigKey(
        description="When all rows for an upsert sink are kept by its key: AUTO where a query needs it, FORCE, NONE.",
        parse=_word("AUTO", "FORCE", "NONE"),
        compiler=True,
    ),
    LENGTH_ENFORCER: ConfigKey(
        description="Whether text gets the length of a sink's CHAR and VARCHAR: IGNORE as it is declared, TRIM_PAD.",
        parse=_word("IGNORE", "TRIM_PAD"),
        compiler=True,
    ),
    DML_SYNC: ConfigKey(
        description="Whether an INSERT of a SQL client takes what is there and ends, or goes on in the background.",
        parse=_flag,
        session=True,
    ),
    FORCE_RECOMPILE: ConfigKey(
        description="Whether COMPILE PLAN writes over a plan file that is there.", parse=_flag, session=True
    ),
} | {
    key: ConfigKey(description=f"The {spec.name} of lookups that do not say otherwise.", parse=_setting(spec))
    for key, (_, spec) in LOOKUP_KEYS.items()
}
KEYS |= {
    key: ConfigKey(description=f"The {spec.name} of calls of {_CALLS[kind]}.", parse=_setting(spec))
    for key, (kind, _, spec) in CALL_KEYS.items()
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
