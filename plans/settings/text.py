"""Describes settings of operators: their values, the layer of each value, and the values of weaker layers.

>>> from hintplan.plans.settings.lookup import ASYNC
>>> setting_text(ASYNC.resolved({"config": {"capacity": 20}, "hint": {"capacity": 50}}), "capacity")
'capacity 50 (hint · config 20)'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hintplan.plans.settings.layers import Settings, layers_of, set_by
from hintplan.plans.settings.setting import readable_value


def layers_text(settings: Settings, name: str) -> str:
    """Return the layer of a setting, then the values of weaker layers, such as ``edit · hint 50 · config 20``."""
    by, spec = set_by(settings, name), settings.specs[name]
    values = reversed(layers_of(settings, name).items())
    return " · ".join([by, *(f"{layer} {readable_value(spec, value)}" for layer, value in values if layer != by)])


def with_layers_text(settings: Settings, name: str, text: str) -> str:
    """Return ``text`` followed by the layer of the setting in parentheses, except for a built-in default."""
    layers = layers_text(settings, name)
    return text if layers == "default" else f"{text} ({layers})"


def setting_text(settings: Settings, name: str, *, short: str | None = None) -> str:
    """Return the name of a setting, or ``short`` if given, with its value and layer."""
    return with_layers_text(
        settings, name, f"{short or name} {readable_value(settings.specs[name], settings.values[name])}"
    )


def settings_json(groups: Mapping[str, Settings]) -> list[dict[str, Any]]:
    """Return every setting with its value, its layer, and the value of each layer, as JSON values."""
    return [
        {
            "setting": f"{group}.{name}",
            "value": value,
            "set-by": set_by(settings, name),
            "origin": layers_of(settings, name),
        }
        for group, settings in groups.items()
        for name, value in settings.values.items()
    ]
