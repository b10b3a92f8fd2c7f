"""Describes settings and facts of a plan for people who merge: their path, their value, and its layer.

>>> from hintplan.plans.model.plan_setting import setting_of
>>> from hintplan.plans.settings.state import ttl_settings
>>> settings = ttl_settings(config="1 h", hint="1 d", edit="3 d")
>>> unit_text(setting_of("join_o_c", "state.leftState", "ttl", settings))
'3 d (edit over hint 1 d)'
"""

from __future__ import annotations

from hintplan.plans.connectors.check import shown_options
from hintplan.plans.frozen import frozen
from hintplan.plans.merge.decompose import GroupPart, Key
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import ABSENT, COMPILED, Digest, LayerValue, Marker, PlanSetting
from hintplan.plans.settings.setting import value_text


@frozen
class CarriedEdit:
    """An edit after a merge or rebase.

    ``before`` is the value that the edit overrode, ``after`` the value that it overrides now. ``note`` has more
    details, such as a changed path.
    """

    path: str
    value: str
    before: str
    after: str
    note: str = ""


REFUSED = "(refused)"


def refused_options(plan: Plan) -> frozenset[str]:
    """Return the paths of refused options, whose values are not printed because they may be literal secrets."""
    return frozenset(
        f"tables.{name}.options.{key}"
        for name, table in plan.tables.items()
        for key, shown in shown_options(name, table).items()
        if shown != table.options[key]
    )


def path_of(key: Key) -> str:
    """Return the path of a part as ``hintplan set`` takes it."""
    return ".".join(key[1:] if key[0] == "operators" else key)


def layer_value_text(value: LayerValue) -> str:
    """Return a value as text for a message."""
    if value is ABSENT or value is None:
        return "(none)"
    if isinstance(value, Digest):
        return "(another value)"
    return str(value) if isinstance(value, Marker) else value_text(value)


def top_layer_text(setting: PlanSetting) -> str:
    """Return the strongest layer and its value, such as ``hint 1 d``."""
    layer = "SQL" if setting.top_layer == COMPILED else setting.top_layer
    return f"{layer} {layer_value_text(setting.top)}" if setting.layers else "nothing"


def unit_text(unit: object) -> str:
    """Describe the value of a part on one side."""
    if unit is ABSENT:
        return "(none)"
    if isinstance(unit, PlanSetting):
        if not unit.edited:
            layer = "SQL" if unit.top_layer == COMPILED else unit.top_layer
            return f"{layer_value_text(unit.value)} ({layer})"
        return (
            f"{layer_value_text(unit.value)} (edit over {top_layer_text(unit)})"
            if unit.layers
            else layer_value_text(unit.value)
        )
    if isinstance(unit, GroupPart):
        if unit.settings is None:
            return "off (edit)" if unit.edited else "off"
        values = ((name, layer_value_text(setting.value)) for name, setting in unit.settings.items())
        text = ", ".join(f"{name} {value}" for name, value in values)
        return f"{text} (edit)" if unit.edited else text
    return "other facts" if isinstance(unit, dict) else layer_value_text(unit) if isinstance(unit, str) else str(unit)
