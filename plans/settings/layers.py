"""A group of settings and the layers that set it: default < config < table (WITH) < hint < statement < plan edit.

Every operator with settings holds them in groups such as ``async`` and ``retry``. A group records what runs and what
each layer asked for; a value that differs from the strongest layer that spoke is a plan edit. Which groups an operator
has, its kind says (:mod:`hintplan.plans.operators`).

>>> from hintplan.plans.settings.lookup import ASYNC
>>> waits = layered(ASYNC.settings, {"config": {"timeout": "1 min"}})
>>> waits.values["timeout"], set_by(waits, "timeout")
('1 min', 'config')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hintplan.plans.declarations.durations import DurationError, parse_duration
from hintplan.plans.settings.setting import Layers, Setting, SettingError, Value, parse_value
from hintplan.plans.text.read_only import read_only

Specs = Mapping[str, Setting]
"""The settings of a group by name, in the order in which a plan lists them."""

SETTING_LAYERS = ("default", "config", "table", "hint", "statement")
"""Who may set a setting of an operator, weakest first: a table's WITH is nearer to its lookup than the config."""

EDIT = "edit"
RANKS = (*SETTING_LAYERS, EDIT)
"""All who can decide what runs, weakest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One group of settings: what can be set, what runs, by name in that order, and what each layer said."""

    specs: Specs = field(compare=False, repr=False)
    values: Mapping[str, Value]
    origin: Layers

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "origin", read_only({layer: read_only(said) for layer, said in self.origin.items()}))


def ordered(specs: Specs, values: Mapping[str, Value]) -> dict[str, Value]:
    """``values`` in the order of ``specs``."""
    return {name: values[name] for name in specs if name in values}


def layered(specs: Specs, said: Layers, defaults: Mapping[str, Value] | None = None) -> Settings:
    """What the layers amount to; the layer ``edit`` may come on top, and leaves no trace in the origin.

    ``defaults`` go before those of ``specs``; a setting without either is there only if a layer spoke of it.
    """
    given = defaults or {}
    built_in = {name: value for name in specs if (value := given.get(name, specs[name].default)) is not None}
    values = dict(built_in)
    for layer in RANKS:
        values |= said.get(layer, {})
    layers = [layer for layer in SETTING_LAYERS if said.get(layer)]
    silent = {name: value for name, value in built_in.items() if not any(name in said[layer] for layer in layers)}
    origin = {"default": ordered(specs, silent)} if silent else {}
    origin |= {layer: ordered(specs, said[layer]) for layer in layers}
    return Settings(specs=specs, values=ordered(specs, values), origin=origin)


def top_layer(settings: Settings, name: str) -> str | None:
    """The strongest layer that spoke of the setting; None if none did."""
    return next((layer for layer in reversed(SETTING_LAYERS) if name in settings.origin.get(layer, {})), None)


def top_value(settings: Settings, name: str) -> Value | None:
    """What the strongest layer that spoke says of the setting, or else its default, if it has one."""
    layer = top_layer(settings, name)
    return settings.specs[name].default if layer is None else settings.origin[layer][name]


def set_by(settings: Settings, name: str) -> str:
    """Who set the value that runs: the strongest layer that spoke, or ``edit`` if the value differs from it."""
    if not same_value(settings.specs[name], settings.values[name], top_value(settings, name)):
        return EDIT
    return top_layer(settings, name) or "default"


def same_value(setting: Setting, a: Value | None, b: Value | None) -> bool:
    """Whether two values of a setting are the same, however durations are written."""
    if a == b or setting.kind != "duration" or a is None or b is None:
        return a == b
    try:
        return parse_duration(str(a)) == parse_duration(str(b))
    except DurationError:
        return False


def parsed(setting: Setting, text: str) -> Value | None:
    """The value that ``text`` writes; None if it is none of the setting."""
    try:
        return parse_value(setting, text)
    except SettingError:
        return None


def edits_of(settings: Settings) -> dict[str, Value]:
    """The values that plan edits have set."""
    return {name: value for name, value in settings.values.items() if set_by(settings, name) == EDIT}


def group_document(settings: Settings) -> dict[str, Any]:
    """The group as a plan writes it: the values, then ``origin``."""
    origin = settings.origin
    layers = {layer: ordered(settings.specs, origin[layer]) for layer in SETTING_LAYERS if layer in origin}
    return {**settings.values, "origin": layers}


def read_group(specs: Specs, document: Mapping[str, Any]) -> Settings:
    """The group from well-formed JSON values; durations are normalised."""

    def canonical(values: Mapping[str, Value]) -> dict[str, Value]:
        found = {k: parse_value(specs[k], str(v)) if specs[k].kind == "duration" else v for k, v in values.items()}
        return ordered(specs, found)

    origin = document["origin"]
    return Settings(
        specs=specs,
        values=canonical({name: value for name, value in document.items() if name != "origin"}),
        origin={layer: canonical(origin[layer]) for layer in SETTING_LAYERS if layer in origin},
    )
