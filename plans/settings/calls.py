"""The settings of calls of asynchronous functions in their two groups, ``async`` and ``retry``, as data (FLIP-498).

Functions that return tables and functions that return one value have the same settings under keys of their own,
``table.exec.async-table.*`` and ``table.exec.async-scalar.*``. The names and defaults are the FLIP's; the names that
Flink 2.3 has for some of them are synonyms. A call is made up to ``1 + max-attempts`` times.

>>> CONFIG_SYNONYMS["table.exec.async-table.max-retries"]
'table.exec.async-table.max-attempts'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plans.declarations.tables import FunctionKind
from plans.settings.groups import Layers, Value
from plans.settings.layers import Settings, Specs, layered
from plans.settings.values import SettingError, SettingSpec, parse_value

__all__ = [
    "CALL_GROUPS",
    "CALL_SETTINGS",
    "CONFIG_KEYS",
    "CONFIG_SYNONYMS",
    "is_async",
    "layers_of",
    "resolved_call",
]

CALL_GROUPS = ("async", "retry")


def _specs(prefix: str) -> Mapping[str, Specs]:
    waits = (
        SettingSpec(name="buffer-capacity", kind="int", minimum=1, maximum=100_000, default=10),
        SettingSpec(name="timeout", kind="duration", default="30 s"),
    )
    retry = (
        SettingSpec(name="retry-strategy", kind="choice", choices=("fixed_delay", "no_retry"), default="fixed_delay"),
        SettingSpec(name="fixed-delay", kind="duration", default="10 s"),
        SettingSpec(name="max-attempts", kind="int", maximum=10_000, default=3),
    )
    return {"async": _keyed(prefix, waits), "retry": _keyed(prefix, retry)}


def _keyed(prefix: str, specs: tuple[SettingSpec, ...]) -> Specs:
    return {spec.name: replace(spec, config=f"{prefix}.{spec.name}") for spec in specs}


_PREFIXES: Mapping[FunctionKind, str] = {
    "async-table": "table.exec.async-table",
    "async-scalar": "table.exec.async-scalar",
}

CALL_SETTINGS: Mapping[FunctionKind, Mapping[str, Specs]] = {kind: _specs(prefix) for kind, prefix in _PREFIXES.items()}
"""The settings of calls of each kind of asynchronous function, by group, in the order in which a plan lists them."""

CONFIG_KEYS: Mapping[str, tuple[FunctionKind, str, SettingSpec]] = {
    spec.config: (kind, group, spec)
    for kind, groups in CALL_SETTINGS.items()
    for group, specs in groups.items()
    for spec in specs.values()
    if spec.config is not None
}
"""The configuration keys that set a setting for all calls of a kind."""

_RENAMED = {"max-concurrent-operations": "buffer-capacity", "retry-delay": "fixed-delay", "max-retries": "max-attempts"}

CONFIG_SYNONYMS: Mapping[str, str] = {
    f"{prefix}.{synonym}": f"{prefix}.{name}" for prefix in _PREFIXES.values() for synonym, name in _RENAMED.items()
}
"""The names of Flink 2.3 that differ from those of the FLIP, by what they stand for."""


def is_async(kind: FunctionKind) -> bool:
    """Whether calls of the kind wait for each other, and so have settings."""
    return kind in CALL_SETTINGS


def layers_of(kind: FunctionKind, config: Mapping[str, str]) -> dict[str, Layers]:
    """What the configuration of a job says of calls of the kind, by group; wrong values say nothing."""
    said: dict[str, dict[str, Value]] = {}
    for key, text in config.items():
        wanted, group, spec = CONFIG_KEYS.get(key, (None, "async", None))
        if wanted == kind and spec is not None:
            try:
                said.setdefault(group, {})[spec.name] = parse_value(spec, text)
            except SettingError:
                continue  # reported with the config
    return {group: {"config": values} for group, values in said.items()}


def resolved_call(kind: FunctionKind, config: Mapping[str, str]) -> dict[str, Settings]:
    """The settings that default and config amount to; none if the kind is synchronous."""
    asked = layers_of(kind, config)
    return {group: layered(specs, asked.get(group, {})) for group, specs in CALL_SETTINGS.get(kind, {}).items()}
