"""The configuration keys of a job: their meaning, their defaults, and the notation of their values.

An invalid value is a ValueError that describes valid ones. The planner handles where a key was set, and which value
wins.

>>> normalise("table.exec.state.ttl", "3600s")
'1 h'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Unpack

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.frozen import frozen
from hintplan.plans.operators import KINDS, Correlate, Operator
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.calls import CALL_KINDS, CONFIG_SYNONYMS, call_groups
from hintplan.plans.settings.effects import FOLLOWED, KEPT, Effect, restarts
from hintplan.plans.settings.emit import EARLY_ENABLED, LATE_ENABLED
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.restart_strategy import RESTART_SETTINGS
from hintplan.plans.settings.restart_strategy import SYNONYMS as _STRATEGY
from hintplan.plans.settings.setting import Kind, Setting, SettingFacts, parse_value, value_text
from hintplan.plans.settings.state import STATE_TTL, TTL
from hintplan.plans.text.names import did_you_mean

MODE = "execution.runtime-mode"
NAME = "pipeline.name"
PARALLELISM = "parallelism.default"
TIME_ZONE = "table.local-time-zone"
EVENTS_DUPLICATE = "table.exec.source.cdc-events-duplicate"
UPSERT_MATERIALIZE = "table.exec.sink.upsert-materialize"
DYNAMIC_OPTIONS = "table.dynamic-table-options.enabled"
SHARED_VIEWS = "table.optimizer.shared-views.enabled"
NOT_NULL_ENFORCER = "table.exec.sink.not-null-enforcer"
LENGTH_ENFORCER = "table.exec.sink.type-length-enforcer"
DML_SYNC = "table.dml-sync"
FORCE_RECOMPILE = "table.plan.force-recompile"

_MAX_PARALLELISM = 32768


@frozen
class ConfigKey(Setting):
    """A setting of the job, or the default of a setting of operators, under the key that sets it.

    The default applies to operators of the kinds ``owners``, or of any kind if there are none; messages call them
    ``whose``. The key sets the settings ``sets`` of their ``group``. ``plan_field`` is the top-level field of the plan
    that holds the key instead of ``config``. A ``session`` key controls how a SQL client treats plans, and a
    ``compiler`` key controls which operators are compiled. No plan contains such keys.
    """

    group: Group | None = None
    sets: tuple[str, ...] = ()
    owners: tuple[type[Operator], ...] = ()
    whose: str = ""
    plan_field: str | None = None
    session: bool = False
    compiler: bool = False

    @property
    def places(self) -> set[tuple[str, str, str]]:
        """The kind of operators, the group and the name of each setting that it sets; empty if it is for any kind."""
        group = self.group
        return set() if group is None else {(kind.op, group.name, name) for kind in self.owners for name in self.sets}

    @property
    def in_plan(self) -> bool:
        """True if plans record the value of the key."""
        return not self.session and not self.compiler

    @property
    def in_config(self) -> bool:
        """True if the key belongs to the ``config`` of plans."""
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


def _word(*known: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        word = text.strip().upper()
        if word not in known:
            raise ValueError(f"expected {', '.join(known[:-1])} or {known[-1]}, found '{text}'")
        return word

    return parse


_AT_START = restarts("the compiler reads it")


class _KeyFacts(SettingFacts, total=False):
    description: str
    effect: Effect
    group: Group | None
    sets: tuple[str, ...]
    owners: tuple[type[Operator], ...]
    whose: str
    plan_field: str | None
    session: bool
    compiler: bool


def _key(name: str, kind: Kind = "text", **facts: Unpack[_KeyFacts]) -> ConfigKey:
    defaults: _KeyFacts = {"effect": _AT_START}
    return ConfigKey(name=name, config=name, kind=kind, **defaults | facts)


_OF_JOB = (
    _key(
        MODE,
        description="The mode of the job: a stream, or a batch over the existing rows.",
        check=_mode,
        plan_field="mode",
    ),
    _key(
        PARALLELISM,
        "int",
        description="The number of partitions of every stateful operator.",
        minimum=1,
        check=_parallelism,
        effect=Effect(
            level="restart",
            text="state kept, redistributed when the run starts",
            because="each partition owns a range of hashes, and starts with its part of the existing state",
        ),
        examples=("4",),
    ),
    _key(
        NAME,
        description="The name of the job.",
        check=_name,
        effect=restarts("Spark and reports use the name for the job"),
        plan_field="name",
    ),
    _key(
        STATE_TTL,
        "duration",
        description="The time for which a state row is kept after its last write, without a hint; 0 ms keeps it "
        "forever.",
        default=TTL.default,
        check=_duration,
        effect=replace(
            TTL.effect, because="it is the TTL of states without a hint or an edit; these states are listed", for_any=""
        ),
    ),
    _key(
        TIME_ZONE,
        description="The session time zone; UTC if absent.",
        check=_time_zone,
        effect=restarts("expressions on times may give other results from then on"),
        examples=("UTC", "Europe/Berlin"),
    ),
    _key(
        EVENTS_DUPLICATE,
        "bool",
        description="true: changes of a changelog with a primary key may come twice, so they are normalized.",
        compiler=True,
    ),
    _key(
        UPSERT_MATERIALIZE,
        description="The materialization of all rows of an upsert sink by its key: AUTO where a query needs it, "
        "FORCE, NONE.",
        check=_word("AUTO", "FORCE", "NONE"),
        compiler=True,
    ),
    _key(
        SHARED_VIEWS,
        "bool",
        description="true: a view with state that is read several times is computed and kept once for all readers.",
        compiler=True,
    ),
    _key(
        DYNAMIC_OPTIONS,
        "bool",
        description="true: a table in a query may have an OPTIONS hint.",
        compiler=True,
    ),
    _key(
        NOT_NULL_ENFORCER,
        description="The treatment of rows with NULL in a NOT NULL column of a sink: ERROR ends the run, DROP drops "
        "the row.",
        check=_word("ERROR", "DROP"),
        compiler=True,
    ),
    _key(
        LENGTH_ENFORCER,
        description="The length of text in CHAR and VARCHAR columns of a sink: IGNORE leaves it, TRIM_PAD trims or "
        "pads it.",
        check=_word("IGNORE", "TRIM_PAD"),
        compiler=True,
    ),
    _key(
        EARLY_ENABLED,
        "bool",
        description="true: a window in GROUP BY also emits results before it closes.",
        compiler=True,
    ),
    _key(
        LATE_ENABLED,
        "bool",
        description="true: a window in GROUP BY also emits results for late rows, after it has closed.",
        compiler=True,
    ),
    _key(
        DML_SYNC,
        "bool",
        description="true: an INSERT in a SQL client processes the existing rows and ends; false: it continues in "
        "the background.",
        session=True,
    ),
    _key(FORCE_RECOMPILE, "bool", description="true: COMPILE PLAN overwrites an existing plan file.", session=True),
)


def group_keys(group: Group, kinds: tuple[type[Operator], ...], whose: str) -> Iterator[ConfigKey]:
    """Yield the keys that set defaults for the settings of ``group``."""
    for key in dict.fromkeys(setting.config for setting in group.settings.values() if setting.config is not None):
        settings = [setting for setting in group.settings.values() if setting.config == key]
        first = settings[0]
        default = "" if first.default is None else f"; {value_text(first.default)} if absent"
        about = first.description if len(settings) == 1 else group.description
        facts = {field.name: getattr(first, field.name) for field in fields(Setting)} | {
            "name": key,
            "description": f"{about} For {whose}s without a value of their own{default}.",
            "effect": first.effect if key == first.name or first.effect is KEPT else FOLLOWED,
        }
        sets = tuple(setting.name for setting in settings)
        yield ConfigKey(**facts, group=group, sets=sets, owners=kinds, whose=whose)


_KINDS_OF_GROUPS: dict[Group, tuple[type[Operator], ...]] = {}
for _kind in KINDS:
    for _group in _kind.groups:
        _KINDS_OF_GROUPS[_group] = (*_KINDS_OF_GROUPS.get(_group, ()), _kind)
_OF_OPERATORS: tuple[tuple[Group, tuple[type[Operator], ...], str], ...] = (
    (CACHED, (), "result"),
    *((group, kinds, kinds[0].title) for group, kinds in _KINDS_OF_GROUPS.items() if group is not CACHED),
    *((group, (Correlate,), f"{words} function") for kind, words in CALL_KINDS.items() for group in call_groups(kind)),
)
_OF_RESTARTS = tuple(
    ConfigKey(**{field.name: getattr(setting, field.name) for field in fields(Setting)}) for setting in RESTART_SETTINGS
)
KEYS: Mapping[str, ConfigKey] = {
    key.name: key for key in (*_OF_JOB, *_OF_RESTARTS, *(key for owner in _OF_OPERATORS for key in group_keys(*owner)))
}


SYNONYMS: Mapping[str, str] = {**CONFIG_SYNONYMS, **_STRATEGY}
"""Maps other names of keys in Flink 2.3 to their names in a plan."""


def canonical_key(key: str) -> str:
    """Return the name in plans for ``key``, which may be a synonym of Flink 2.3."""
    return SYNONYMS.get(key, key)


def known_keys() -> tuple[str, ...]:
    """Return all keys that a script may set, sorted."""
    return tuple(sorted(KEYS))


def normalise(key: str, value: str, *, require_unit: bool = False) -> str:
    """Return the canonical form of ``value`` for ``key``; raise ValueError for an unknown key or invalid value.

    A duration without a unit is milliseconds, as in Flink, unless ``require_unit``, as in plans; zero needs no unit.
    """
    if key not in KEYS:
        raise ValueError(f"unknown configuration key '{key}'; {did_you_mean(key, known_keys(), what='known keys')}")
    canonical = value_text(parse_value(KEYS[key], value))
    if require_unit and KEYS[key].kind == "duration" and value.strip().isdigit() and int(value):
        parse_duration(value, require_unit=True)
    return canonical
