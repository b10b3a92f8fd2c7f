"""Cached results: whether the output of an operator is kept for later readers, where, and who said so (FLIP-205).

Layers, weakest first: default, config, hint, statement (``CACHE TABLE``); a value that differs from the last of them
that spoke is a plan edit. Any operator but a sink can be cached, in batch plans only. Knows neither SQL nor files;
edits and checks are in :mod:`plans.edit.cached_edit`.

>>> layered({"hint": {"enabled": True}}).storage_level
'MEMORY_AND_DISK'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plans.model.plan import Plan
from plans.operators import Operator, Scan, Sink
from plans.settings.groups import CachedSettings, Layers, Value
from plans.settings.values import SettingSpec, shown

__all__ = [
    "CACHED_LAYERS",
    "CONFIG_ENABLED",
    "CONFIG_STORAGE_LEVEL",
    "ENABLED",
    "SETTINGS",
    "STORAGE_LEVEL",
    "STORAGE_LEVELS",
    "cached_document",
    "cached_of",
    "cached_values",
    "config_layer",
    "layered",
    "read_cached",
    "set_by",
    "shared_operators",
    "simplified",
    "top_value",
    "who_set_cached",
    "with_config_layer",
]

CACHED_LAYERS = ("default", "config", "hint", "statement")
"""Who may ask for a cached result, weakest first."""

ENABLED = "enabled"
STORAGE_LEVEL = "storage-level"
CONFIG_ENABLED = "table.exec.cached-results.enabled"
CONFIG_STORAGE_LEVEL = "table.exec.cached-results.storage-level"

STORAGE_LEVELS = (
    "DISK_ONLY",
    "DISK_ONLY_2",
    "DISK_ONLY_3",
    "MEMORY_ONLY",
    "MEMORY_ONLY_2",
    "MEMORY_ONLY_SER",
    "MEMORY_ONLY_SER_2",
    "MEMORY_AND_DISK",
    "MEMORY_AND_DISK_2",
    "MEMORY_AND_DISK_SER",
    "MEMORY_AND_DISK_SER_2",
    "OFF_HEAP",
)
"""Spark's storage levels by name, but for NONE: what is not kept is not cached."""

SETTINGS: Mapping[str, SettingSpec] = {
    ENABLED: SettingSpec(name=ENABLED, kind="bool", default=False, config=CONFIG_ENABLED),
    STORAGE_LEVEL: SettingSpec(
        name=STORAGE_LEVEL,
        kind="choice",
        choices=STORAGE_LEVELS,
        default="MEMORY_AND_DISK",
        config=CONFIG_STORAGE_LEVEL,
    ),
}

_DEFAULTS: Mapping[str, Value] = {name: spec.default for name, spec in SETTINGS.items() if spec.default is not None}


def cached_of(operator: Operator) -> CachedSettings | None:
    """The settings of the operator's cached result; None if no layer spoke, and of a sink."""
    return None if isinstance(operator, Sink) else operator.cached


def cached_values(settings: CachedSettings) -> dict[str, Value]:
    """The settings that run, by name."""
    return {ENABLED: settings.enabled, STORAGE_LEVEL: settings.storage_level}


def layered(asked: Layers, edits: Mapping[str, Value] | None = None) -> CachedSettings:
    """What the layers amount to, with ``edits`` on top, which leave no trace in the origin.

    The layer ``default`` is recorded for what no other layer spoke of.
    """
    said = {layer: dict(asked[layer]) for layer in CACHED_LAYERS[1:] if asked.get(layer)}
    silent = {name: value for name, value in _DEFAULTS.items() if not any(name in found for found in said.values())}
    origin: dict[str, Mapping[str, Value]] = {"default": silent} if silent else {}
    origin |= {layer: {name: found[name] for name in SETTINGS if name in found} for layer, found in said.items()}
    values = dict(_DEFAULTS)
    for found in (*said.values(), edits or {}):
        values |= found
    return CachedSettings(enabled=values[ENABLED] is True, storage_level=str(values[STORAGE_LEVEL]), origin=origin)


def top_value(settings: CachedSettings, name: str) -> Value:
    """What the strongest layer that spoke says of the setting, or else its default."""
    said = (settings.origin[layer] for layer in reversed(CACHED_LAYERS) if name in settings.origin.get(layer, {}))
    return next((found[name] for found in said), _DEFAULTS[name])


def set_by(settings: CachedSettings, name: str) -> str:
    """Who set the value that runs: the strongest layer that spoke, or ``edit`` if the value differs from it."""
    if cached_values(settings)[name] != top_value(settings, name):
        return "edit"
    spoke = (layer for layer in reversed(CACHED_LAYERS) if name in settings.origin.get(layer, {}))
    return next(spoke, "default")


def who_set_cached(settings: CachedSettings, name: str) -> str:
    """Who set the value, then what the weaker layers said, such as ``edit · hint DISK_ONLY``."""
    by = set_by(settings, name)
    parts = [by]
    for layer in reversed(CACHED_LAYERS):
        if layer not in (by, "default") and name in settings.origin.get(layer, {}):
            parts.append(f"{layer} {shown(settings.origin[layer][name])}")
    return " · ".join(parts)


def shared_operators(plan: Plan) -> frozenset[str]:
    """The ids of the operators that ``table.exec.cached-results.enabled`` means: read more than once, and computed.

    A scan is not among them: reading a table twice costs less than keeping a copy of it.
    """
    readers: dict[str, int] = {}
    for operator in plan.operators:
        for name in operator.inputs:
            readers[name] = readers.get(name, 0) + 1
    return frozenset(o.id for o in plan.operators if readers.get(o.id, 0) > 1 and not isinstance(o, (Scan, Sink)))


def config_layer(plan: Plan, operator: Operator, shared: frozenset[str]) -> dict[str, Value]:
    """What the configuration of ``plan`` says of the operator's cached result; ``shared`` are the shared operators."""
    said: dict[str, Value] = {}
    if plan.mode == "batch" and operator.id in shared and plan.config.get(CONFIG_ENABLED) == "true":
        said[ENABLED] = True
    if CONFIG_STORAGE_LEVEL in plan.config and (said or cached_of(operator) is not None):
        said[STORAGE_LEVEL] = plan.config[CONFIG_STORAGE_LEVEL]
    return said


def with_config_layer(plan: Plan) -> Plan:
    """The plan with the layer ``config`` of every cached result as its configuration says; edits stay edits."""
    shared = shared_operators(plan)
    return replace(plan, operators=tuple(_with_config_layer(plan, operator, shared) for operator in plan.operators))


def _with_config_layer(plan: Plan, operator: Operator, shared: frozenset[str]) -> Operator:
    if isinstance(operator, Sink):
        return operator
    old = operator.cached
    said = config_layer(plan, operator, shared)
    if old is None and not said:
        return operator
    asked = {layer: found for layer, found in old.origin.items() if layer != "config"} if old else {}
    values = cached_values(old) if old else {}
    edits = {name: value for name, value in values.items() if old and set_by(old, name) == "edit"}
    return replace(operator, cached=simplified(layered({**asked, "config": said}, edits)))


def simplified(settings: CachedSettings) -> CachedSettings | None:
    """None for settings that say nothing: no layer above the defaults asks for a result, and no edit differs."""
    asked = any(ENABLED in said for layer, said in settings.origin.items() if layer != "default")
    edited = any(set_by(settings, name) == "edit" for name in SETTINGS)
    return settings if asked or edited else None


def cached_document(settings: CachedSettings) -> dict[str, Any]:
    """The settings as JSON values in canonical order."""
    said = {layer: settings.origin[layer] for layer in CACHED_LAYERS if layer in settings.origin}
    origin = {layer: {name: found[name] for name in SETTINGS if name in found} for layer, found in said.items()}
    return {**cached_values(settings), "origin": origin}


def read_cached(document: dict[str, Any] | None) -> CachedSettings | None:
    """The settings from well-formed JSON values; None if there are none."""
    if document is None:
        return None
    return CachedSettings(
        enabled=document[ENABLED],
        storage_level=document[STORAGE_LEVEL],
        origin={layer: dict(document["origin"][layer]) for layer in CACHED_LAYERS if layer in document["origin"]},
    )
