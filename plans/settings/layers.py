"""A group of settings and its layers: default < config < table (WITH) < hint < statement < plan edit.

Every operator with settings holds them in groups such as ``async`` and ``retry``. A group records the values in force
and the value of each layer. A value that differs from the strongest layer that sets it is a plan edit. The kind of an
operator decides which groups it has (:mod:`hintplan.plans.operators`).

>>> from hintplan.plans.settings.lookup import ASYNC
>>> waits = layered(ASYNC.settings, {"config": {"timeout": "1 min"}})
>>> waits.values["timeout"], set_by(waits, "timeout")
('1 min', 'config')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.setting import Layers, Setting, SettingError, Value, parse_value, same_value
from hintplan.plans.text.read_only import read_only

Specs = Mapping[str, Setting]
"""The settings of a group by name, in the order in which a plan lists them."""

SETTING_LAYERS = ("default", "config", "table", "hint", "statement")
"""The layers that may set a setting, weakest first; the WITH of a table is more specific than the config."""

EDIT = "edit"
RANKS = (*SETTING_LAYERS, EDIT)
"""All layers that can decide the value in force, weakest first."""


@frozen
class Settings:
    """One group of settings: its specifications, the values in force in this order, and the values of each layer."""

    specs: Specs = field(compare=False, repr=False)
    values: Mapping[str, Value]
    origin: Layers

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "origin", read_only({layer: read_only(said) for layer, said in self.origin.items()}))


def ordered(specs: Specs, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return ``values`` in the order of ``specs``."""
    return {name: values[name] for name in specs if name in values}


def layered(specs: Specs, said: Layers, defaults: Mapping[str, Value] | None = None) -> Settings:
    """Return the result of the layers; the layer ``edit`` may be among them, and leaves no trace in the origin.

    ``defaults`` override the defaults of ``specs``. A setting without either is present only if a layer sets it.
    """
    overriding = defaults or {}
    built_in = {name: value for name in specs if (value := overriding.get(name, specs[name].default)) is not None}
    values = dict(built_in)
    for layer in RANKS:
        values |= said.get(layer, {})
    layers = [layer for layer in SETTING_LAYERS if said.get(layer)]
    silent = {name: value for name, value in built_in.items() if not any(name in said[layer] for layer in layers)}
    origin = {"default": ordered(specs, silent)} if silent else {}
    origin |= {layer: ordered(specs, said[layer]) for layer in layers}
    return Settings(specs=specs, values=ordered(specs, values), origin=origin)


def top_layer(settings: Settings, name: str) -> str | None:
    """Return the strongest layer that sets the setting, or None if none does."""
    return next((layer for layer in reversed(SETTING_LAYERS) if name in settings.origin.get(layer, {})), None)


def top_value(settings: Settings, name: str) -> Value | None:
    """Return the value from the strongest layer that sets the setting, or else its default, if any."""
    layer = top_layer(settings, name)
    return settings.specs[name].default if layer is None else settings.origin[layer][name]


def set_by(settings: Settings, name: str) -> str:
    """Return the layer of the value in force: the strongest that sets it, or ``edit`` if the value differs."""
    if not same_value(settings.specs[name], settings.values[name], top_value(settings, name)):
        return EDIT
    return top_layer(settings, name) or "default"


def valid_value(setting: Setting, text: str) -> Value | None:
    """Return the value that ``text`` denotes, or None if it is invalid for the setting."""
    try:
        return parse_value(setting, text)
    except SettingError:
        return None


def layers_of(settings: Settings, name: str) -> dict[str, Value]:
    """Return the value of the setting in each layer that sets it, weakest first."""
    origin = settings.origin
    return {layer: origin[layer][name] for layer in SETTING_LAYERS if name in origin.get(layer, {})}


def edits_of(settings: Settings) -> dict[str, Value]:
    """Return the values that plan edits have set."""
    return {name: value for name, value in settings.values.items() if set_by(settings, name) == EDIT}


def group_document(settings: Settings) -> dict[str, Any]:
    """Return the group as JSON values of a plan: the settings, then ``origin``."""
    origin = settings.origin
    layers = {layer: ordered(settings.specs, origin[layer]) for layer in SETTING_LAYERS if layer in origin}
    return {**settings.values, "origin": layers}


def read_group(specs: Specs, document: Mapping[str, Any]) -> Settings:
    """Return the group from well-formed JSON values; durations are normalised."""

    def canonical(values: Mapping[str, Value]) -> dict[str, Value]:
        parsed_values = {
            k: parse_value(specs[k], str(v)) if specs[k].kind == "duration" else v for k, v in values.items()
        }
        return ordered(specs, parsed_values)

    origin = document["origin"]
    return Settings(
        specs=specs,
        values=canonical({name: value for name, value in document.items() if name != "origin"}),
        origin={layer: canonical(origin[layer]) for layer in SETTING_LAYERS if layer in origin},
    )
