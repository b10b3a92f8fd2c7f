"""One setting of a plan with its layers: its path, the value of each layer, the value in force, and who set it.

Differences, pictures, edits, merges, explanations and lint all describe settings by this class. A setting outside the
operators (name, config, options of tables) has one layer, ``compiled``: the value of the script, or only its digest if
an edit has replaced the value.

>>> from hintplan.plans.settings.state import TTL, ttl_settings
>>> ttl = setting_of("join_o_c", "state.leftState", "ttl", ttl_settings(config="1 h", hint="1 d", edit="3 d"))
>>> ttl.path, ttl.value, ttl.set_by, ttl.top_layer, ttl.top
('join_o_c.state.leftState.ttl', '3 d', 'edit', 'hint', '1 d')
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from hintplan.plans.frozen import frozen
from hintplan.plans.settings.effects import Effect
from hintplan.plans.settings.layers import EDIT, SETTING_LAYERS, Settings, layers_of, set_by
from hintplan.plans.settings.setting import Setting, Value, readable_value, value_text

COMPILED = "compiled"
ALL_LAYERS = (*SETTING_LAYERS, COMPILED)
"""All layers that may set a setting of any kind, weakest first."""
STATE_GROUP = "state."
"""The beginning of the group of a state, such as ``state.leftState``, whose only setting is the TTL."""


class Marker:
    """A value that no document can contain."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


ABSENT: Any = Marker("ABSENT")
"""The setting is missing."""
NO_EDIT: Any = Marker("NO_EDIT")
"""There is no edit: the value of the strongest layer is in force."""


@frozen
class Digest:
    """The digest of an unknown value."""

    text: str


LayerValue = Value | Digest | Marker | None
"""A value of a layer or an edit."""


@frozen
class PlanSetting:
    """One setting, with the value of each layer that sets it, weakest first, and the value of an edit.

    ``edit`` is ABSENT if an edit has removed the setting; only merges see such settings. ``operator`` is None for a
    setting outside the operators. ``effect`` is the effect of a change on a running job. ``setting`` defines the valid
    values; it is None for config and options, whose values are checked elsewhere.
    """

    path: str
    operator: str | None = None
    group: str
    name: str
    layers: Mapping[str, Any]
    edit: Any = NO_EDIT
    effect: Effect
    setting: Setting | None = None

    @property
    def edited(self) -> bool:
        """True if the value in force differs from the value of the strongest layer."""
        return self.edit is not NO_EDIT

    @property
    def top_layer(self) -> str:
        """The strongest layer that sets the value, or ``default``."""
        return [*self.layers][-1] if self.layers else "default"

    @property
    def top(self) -> LayerValue:
        """The value of the strongest layer, or ABSENT if no layer sets it."""
        value: LayerValue = self.layers[self.top_layer] if self.layers else ABSENT
        return value

    @property
    def value(self) -> Value:
        """The value in force."""
        value: Value = self.edit if self.edited else self.layers.get(self.top_layer, ABSENT)
        return value

    @property
    def set_by(self) -> str:
        """The layer of the value in force, or ``edit``; ``plan`` for a setting outside the operators."""
        if self.operator is None:
            return "plan"
        is_default = not self.layers and self.setting is not None and self.edit == self.setting.default
        return EDIT if self.edited and not is_default else self.top_layer

    @property
    def state(self) -> str | None:
        """The name of the state if the setting is its TTL."""
        return self.group.removeprefix(STATE_GROUP) if self.group.startswith(STATE_GROUP) else None

    def spoken(self, value: Value) -> str:
        """Return a value of this setting as text for people."""
        return value_text(value) if self.setting is None else readable_value(self.setting, value)


def setting_of(operator: str, group: str, name: str, settings: Settings) -> PlanSetting:
    """Return a setting of a group of ``operator``, also if only a layer has it."""
    layers, edit = layers_of(settings, name), NO_EDIT
    if name not in settings.values:
        edit = ABSENT
    elif not layers or set_by(settings, name) == EDIT:
        edit = settings.values[name]
    spec = settings.specs[name]
    return PlanSetting(
        path=f"{operator}.{group}.{name}",
        operator=operator,
        group=group,
        name=name,
        layers=layers,
        edit=edit,
        effect=spec.effect,
        setting=spec,
    )


def outside_setting(path: str, group: str, name: str, value: object, effect: Effect, digest: str | None) -> PlanSetting:
    """Return a setting outside the operators; the compiler's ``digest`` decides whether ``value`` is an edit.

    Without a digest, there is no layer, and the value counts as an edit.
    """
    layers: dict[str, object] = {} if digest is None else {COMPILED: Digest(text=digest)}
    if value is not ABSENT and digest_of(value) == digest:
        layers, value = {COMPILED: value}, NO_EDIT
    return PlanSetting(path=path, group=group, name=name, layers=layers, edit=value, effect=effect)


def digest_of(value: object) -> str:
    """Return the first 8 hex digits of sha256: of the text itself, or of other values as JSON with sorted keys."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
