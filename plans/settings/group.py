"""A group of settings: the settings that an operator holds under one name, and the layers that may set them.

>>> from hintplan.plans.settings.effects import IN_FLIGHT
>>> wait = Setting(name="timeout", kind="duration", default="30 s", description="How long it waits.", effect=IN_FLIGHT)
>>> waits = Group(name="async", schema="waits", description="How it waits.", settings=specs(wait), layers=("default",))
>>> waits.resolved({}).values
{'timeout': '30 s'}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from hintplan.plans.settings.layers import Settings, Specs, layered, valid_value
from hintplan.plans.settings.setting import Layers, Setting, Value

Texts = Mapping[str, str]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """A group of settings; ``name`` is its key in an operator of a plan, ``schema`` its definition in the JSON Schema.

    ``layers`` lists the layers that may set its settings, weakest first. ``absent`` is the notation in a plan for an
    operator without the group, and ``never`` if it always has the group. ``required`` lists the settings that are
    always present; empty means all.

    A group that is ``left out`` unless a layer sets it is optional. A layer brings it into a plan by setting one of
    ``asking``; empty means any of its settings. It has an effect only in plans of ``mode``; ``elsewhere`` is the
    reason. If ``shared`` is true, values from config apply only to operators that are read more than once.
    """

    name: str
    schema: str
    description: str
    settings: Specs
    layers: tuple[str, ...]
    absent: Literal["never", "null", "left out"] = "never"
    required: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    mode: Literal["streaming", "batch"] | None = None
    elsewhere: str = ""
    shared: bool = False

    @property
    def optional(self) -> bool:
        """True if a plan contains the group only after a layer has set it."""
        return self.absent == "left out"

    def asked(self, config: Texts, options: Texts = _NOTHING, *, origin: Layers = _NOTHING) -> Layers:
        """Return the values that each layer sets.

        Config and the options of a table are read as they are now, and everything else from ``origin``: other layers,
        and settings that a table sets without an option. Invalid values are left out, because the checks of config and
        tables report them.
        """
        settings = self.settings.values()
        declared = {setting.name for setting in settings if setting.option is None}
        table = {name: value for name, value in origin.get("table", {}).items() if name in declared}
        now = {
            "config": _said(((setting, setting.config) for setting in settings), config),
            "table": table | _said(((setting, setting.option) for setting in settings), options),
        }
        return {layer: now.get(layer, origin.get(layer, {})) for layer in self.layers if layer != "default"}

    def resolved(self, said: Layers, defaults: Mapping[str, Value] | None = None) -> Settings:
        """Return the result of the layers; see :func:`hintplan.plans.settings.layers.layered`."""
        return layered(self.settings, said, defaults)


def specs(*settings: Setting) -> Specs:
    """Return the settings by name."""
    return {setting.name: setting for setting in settings}


def _said(keys: Iterable[tuple[Setting, str | None]], texts: Texts) -> dict[str, Value]:
    values = (
        (setting.name, valid_value(setting, texts[key])) for setting, key in keys if key is not None and key in texts
    )
    return {name: value for name, value in values if value is not None}
