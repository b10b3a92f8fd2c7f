"""The settings of a lookup join in their three groups, ``async``, ``retry`` and ``cache``, as data.

One name for each setting in plan, config, WITH and hints: Flink's (FLIP-221, FLIP-234), but for ``enabled``, which the
LOOKUP hint calls ``async``. Who may set it, and which settings go together, is the affair of
:mod:`plans.settings.lookup_layers`.

>>> SETTINGS["async"]["capacity"].default
100
"""

from __future__ import annotations

from collections.abc import Mapping

from plans.settings.values import MAX_LONG, Kind, SettingSpec

__all__ = [
    "CACHE",
    "CONFIG_KEYS",
    "FULL",
    "GROUPS",
    "PARTIAL",
    "SETTINGS",
    "Group",
]

Group = str
GROUPS: tuple[Group, ...] = ("async", "retry", "cache")

CACHE = "lookup.cache"
PARTIAL = "lookup.partial-cache."
FULL = "lookup.full-cache."


def _cache(name: str, kind: Kind, **more: object) -> SettingSpec:
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
        maximum=100_000,
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
    SettingSpec(name="max-attempts", kind="int", minimum=1, maximum=10_000, hint="max-attempts"),
    SettingSpec(name="mode", kind="choice", choices=("inline", "deferred")),
)

_CACHE = (
    _cache(CACHE, "choice", choices=("NONE", "PARTIAL", "FULL"), default="NONE"),
    _cache(f"{PARTIAL}max-rows", "int", maximum=MAX_LONG),
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
    _cache("lookup.max-retries", "int", maximum=1_000, default=3),
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
