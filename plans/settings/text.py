"""Settings of operators in words: their values, who set them, and what the weaker layers said.

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
    """Who set a setting, then what the weaker layers said, such as ``edit · hint 50 · config 20``."""
    by = set_by(settings, name)
    parts = [by]
    for layer in reversed(SETTING_LAYERS):
        if layer != by and name in settings.origin.get(layer, {}):
            parts.append(f"{layer} {spoken(settings.origin[layer][name])}")
    return " · ".join(parts)


def marked(settings: Settings, name: str, text: str) -> str:
    """``text``, then who set the setting, in parentheses; nothing for a built-in default."""
    who = who_set_setting(settings, name)
    return text if who == "default" else f"{text} ({who})"


def labelled(settings: Settings, name: str, *, short: str | None = None) -> str:
    """The name of a setting, under which it is ``short`` if given, its value, and who set it."""
    return marked(settings, name, f"{short or name} {shown(settings.values[name])}")


def settings_json(groups: Mapping[str, Settings]) -> list[dict[str, Any]]:
    """Every setting with its value, who set it, and what each layer said, as JSON values."""
    return [
        {
            "setting": f"{group}.{name}",
            "value": value,
            "set-by": set_by(settings, name),
            "origin": {layer: said[name] for layer, said in settings.origin.items() if name in said},
        }
        for group, settings in groups.items()
        for name, value in settings.values.items()
    ]
