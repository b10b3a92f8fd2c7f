"""Describes settings of operators: their values, the layer of each value, and the values of weaker layers.

>>> from hintplan.plans.settings.lookup import ASYNC
>>> labelled(ASYNC.resolved({"config": {"capacity": 20}, "hint": {"capacity": 50}}), "capacity")
'capacity 50 (hint · config 20)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hintplan.plans.settings.layers import SETTING_LAYERS, Settings, set_by
from hintplan.plans.settings.setting import Value, shown


def who_set_setting(settings: Settings, name: str, *, spoken: Callable[[Value], str] = shown) -> str:
    """Return the layer of a setting, then the values of weaker layers, such as ``edit · hint 50 · config 20``."""
    by = set_by(settings, name)
    parts = [by]
    for layer in reversed(SETTING_LAYERS):
        if layer != by and name in settings.origin.get(layer, {}):
            parts.append(f"{layer} {spoken(settings.origin[layer][name])}")
    return " · ".join(parts)


def marked(settings: Settings, name: str, text: str) -> str:
    """Return ``text`` followed by the layer of the setting in parentheses, except for a built-in default."""
    layers = who_set_setting(settings, name)
    return text if layers == "default" else f"{text} ({layers})"


def labelled(settings: Settings, name: str, *, short: str | None = None) -> str:
    """Return the name of a setting, or ``short`` if given, with its value and layer."""
    return marked(settings, name, f"{short or name} {shown(settings.values[name])}")


def settings_json(groups: Mapping[str, Settings]) -> list[dict[str, Any]]:
    """Return every setting with its value, its layer, and the value of each layer, as JSON values."""
    return [
        {
            "setting": f"{group}.{name}",
            "value": value,
            "set-by": set_by(settings, name),
            "origin": {layer: values[name] for layer, values in settings.origin.items() if name in values},
        }
        for group, settings in groups.items()
        for name, value in settings.values.items()
    ]
