"""A group of settings: those that an operator carries under one name, and who may ask for them.

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

from hintplan.plans.settings.layers import Settings, Specs, layered, parsed
from hintplan.plans.settings.setting import Layers, Setting, Value

Texts = Mapping[str, str]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """``name`` is its key in an operator of a plan, ``schema`` that of its definition in the JSON Schema.

    ``layers`` are who may ask for its settings, weakest first. ``absent`` says how a plan writes that an operator has
    no such group; ``never`` if it always has. ``required`` are the settings that are there in any case, all if empty.

    A group that is ``left out`` where nobody asked for it is optional: somebody asks by one of ``asking``, any of its
    settings if empty. It has an effect in plans of ``mode`` only, ``elsewhere`` says why. What config says is meant for
    ``shared`` operators only, those that are read more than once, if that is so.
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
        """Whether a plan has the group only where somebody asked for it."""
        return self.absent == "left out"

    def asked(self, config: Texts, options: Texts = _NOTHING, *, origin: Layers = _NOTHING) -> Layers:
        """What each layer says of the settings: config and the options of a table now, the others as in ``origin``.

        Wrong values, which are reported with the config and the table, say nothing.
        """
        settings = self.settings.values()
        now = {
            "config": _said(((setting, setting.config) for setting in settings), config),
            "table": _said(((setting, setting.option) for setting in settings), options),
        }
        return {layer: now.get(layer, origin.get(layer, {})) for layer in self.layers if layer != "default"}

    def resolved(self, said: Layers, defaults: Mapping[str, Value] | None = None) -> Settings:
        """What the layers amount to; see :func:`hintplan.plans.settings.layers.layered`."""
        return layered(self.settings, said, defaults)


def specs(*settings: Setting) -> Specs:
    """The settings by name."""
    return {setting.name: setting for setting in settings}


def _said(keys: Iterable[tuple[Setting, str | None]], texts: Texts) -> dict[str, Value]:
    found = ((setting.name, parsed(setting, texts[key])) for setting, key in keys if key is not None and key in texts)
    return {name: value for name, value in found if value is not None}
