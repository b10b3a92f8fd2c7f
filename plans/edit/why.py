"""The explanation of a setting's value: the value of each layer and its position, the winner, and how to change it.

The plan records the values of the layers at compilation. The script, if there is one, provides the positions, and shows
whether the values are still current. This module knows no command line.

>>> from hintplan.plans.operators import Scan, Requesting
>>> plan = Plan(name="p", config={"parallelism.default": "4"})
>>> explain_setting(plan, "config.parallelism.default").verdict
'nothing else sets it'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hintplan.plans.errors import PlanError
from hintplan.plans.format.document import operator_document
from hintplan.plans.frozen import frozen
from hintplan.plans.model.config import KEYS
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import canonical_path, plan_settings, settings_by_name
from hintplan.plans.operators import Operator, Requesting
from hintplan.plans.settings.layers import EDIT, RANKS
from hintplan.plans.settings.lookup import RETRY
from hintplan.plans.settings.setting import Value, value_text
from hintplan.plans.text.names import did_you_mean

_STRONGER = {
    "config": "the configuration of the job is stronger than a built-in default",
    "table": "an option of the table is stronger than the configuration of the job",
    "hint": "a hint in the query overrides the value for the whole job or table",
    "statement": "CACHE TABLE names the result, and is stronger than a hint",
    EDIT: "an edit of the plan overrides the script",
}


@frozen
class ScriptLayers:
    """A script compiled now: its text, the resulting plan, and the positions of settings in it.

    ``init`` are the texts of its init files, by name.
    """

    file: str
    text: str
    plan: Plan
    places: Mapping[tuple[str, str, str], Any]
    init: Mapping[str, str] = field(default_factory=dict)


@frozen
class LayerSource:
    """The value of one layer. ``now`` is the script's current value if it differs; ``note`` is a remark.

    ``file`` is the init file that contains the line; None means the script.
    """

    layer: str
    value: str
    wins: bool
    line: int | None = None
    column: int | None = None
    text: str = ""
    now: str | None = None
    note: str = ""
    file: str | None = None


@frozen
class SettingExplanation:
    """The explanation. ``value`` is None for a group that is off; ``undo`` is the value that cancels an edit."""

    path: str
    value: str | None
    set_by: str
    steps: tuple[LayerSource, ...]
    verdict: str
    effect: str
    reason: str | None = None
    undo: str | None = None
    notes: tuple[str, ...] = ()


def explain_setting(plan: Plan, path: str, script: ScriptLayers | None = None) -> SettingExplanation:
    """Explain the setting at ``path``, in any spelling that ``set`` accepts; raise PlanError if there is none."""
    path = canonical_path(plan, path)
    setting = _find(plan, path)
    if setting is None:
        return _absent(plan, path)
    recorded = _outside(plan, setting, script) if setting.operator is None else dict(setting.layers)
    by = _outside_layer(plan, setting) if setting.operator is None else setting.set_by
    notes: list[str] = []
    steps = [_step(setting, layer, value, script, by) for layer, value in recorded.items()]
    if by == EDIT:
        steps.append(LayerSource(layer=EDIT, value=value_text(setting.value), wins=True, note="in the plan file"))
    if script is not None:
        notes += _changed_since(setting, recorded, script)
    undo = None
    if by == EDIT:
        undo = next((step.value for step in reversed(steps) if step.layer != EDIT), None)
    other_layers = [layer for layer in recorded if layer != by]
    verdict = _STRONGER.get(by, "no layer sets it") if other_layers else "nothing else sets it"
    return SettingExplanation(
        path=path,
        value=value_text(setting.value),
        set_by=by,
        steps=tuple(steps),
        verdict=verdict if by != "default" else "no layer sets it",
        effect=setting.effect.for_any or setting.effect.text,
        reason=plan.reasons.get(path),
        undo=undo,
        notes=tuple(notes),
    )


def settings_below(plan: Plan, path: str) -> list[PlanSetting]:
    """Return the settings of an operator, a table, ``config``, or a group; none if ``path`` refers to one setting."""
    path = path.removeprefix("operators.")
    head = path.partition(".")[0]
    operator = next((operator for operator in plan.operators if operator.id == head), None)
    settings = settings_by_name(operator).values() if operator is not None else plan_settings(plan)
    return [setting for setting in settings if setting.path.startswith(f"{path}.")]


def _find(plan: Plan, path: str) -> PlanSetting | None:
    head = path.partition(".")[0]
    operator = next((operator for operator in plan.operators if operator.id == head), None)
    settings = settings_by_name(operator).values() if operator is not None else plan_settings(plan)
    return next((setting for setting in settings if setting.path == path), None)


def _absent(plan: Plan, path: str) -> SettingExplanation:
    """Explain a setting that the plan does not have."""
    head, _, below = path.partition(".")
    operator = next((operator for operator in plan.operators if operator.id == head), None)
    if operator is not None and below.partition(".")[0] == RETRY.name and _could_retry(operator):
        taken = f"{head}.retry" in plan.compiled
        return SettingExplanation(
            path=f"{head}.retry",
            value=None,
            set_by=EDIT if taken else "default",
            steps=(),
            verdict="an edit removed the retry that a hint requests" if taken else "no hint requests a retry",
            effect=RETRY.settings["max-attempts"].effect.text,
            reason=plan.reasons.get(f"{head}.retry"),
            undo="<attempts> x <delay>" if taken else None,
        )
    key = path.removeprefix("config.")
    if path.startswith("config.") and key in KEYS and KEYS[key].in_config:
        return SettingExplanation(
            path=path,
            value=None,
            set_by="default",
            steps=(),
            verdict=f"nobody set it. {KEYS[key].description}",
            effect=KEYS[key].effect.text,
        )
    part = below.partition(".")[0]
    groups = {group.partition(".")[0] for group, _ in settings_by_name(operator)} if operator is not None else set()
    if operator is not None and part not in groups and part in operator_document(operator):
        message = f"'{part}' of an operator is a fact of the query, not a setting"
        raise PlanError(message, path=path, hint=f"hintplan why PLAN {head} lists the settings of '{head}'")
    if operator is not None:
        paths = [setting.path for setting in settings_by_name(operator).values()]
        hint = did_you_mean(path, paths, what=f"settings of '{head}'")
        raise PlanError(f"there is no setting '{path}'", path=path, hint=hint)
    ids = [operator.id for operator in plan.operators if operator.state or settings_by_name(operator)]
    paths = [setting.path for setting in plan_settings(plan)]
    near = did_you_mean(path, [*paths, *ids], what="settings and operators")
    raise PlanError(f"there is no setting or operator '{path}'", path=path, hint=near)


def _could_retry(operator: Operator) -> bool:
    """Return True if the operator does not retry, but can be set to."""
    return isinstance(operator, Requesting) and RETRY.name in operator.settable and RETRY.name not in operator.settings


def _outside_layer(plan: Plan, setting: PlanSetting) -> str:
    """Return the layer of a setting outside the operators: ``script`` unless the plan records another value."""
    return EDIT if plan.compiled and setting.edited else "script"


def _outside(plan: Plan, setting: PlanSetting, script: ScriptLayers | None) -> dict[str, Any]:
    """Return the script's value of a setting without layers: from the plan if it is unedited, else from the script."""
    if _outside_layer(plan, setting) == "script":
        return {"script": setting.value}
    current = _find(script.plan, setting.path) if script is not None else None
    return {} if current is None else {"script": current.value}


def _step(setting: PlanSetting, layer: str, value: Value, script: ScriptLayers | None, by: str) -> LayerSource:
    step = LayerSource(layer=layer, value=value_text(value), wins=layer == by)
    if script is None or layer == "default":
        return step
    operator = setting.operator or ""
    below = setting.path.removeprefix(f"{operator}.") if operator else setting.path
    layers = (layer,) if layer != "script" else ("config", "table")
    place = next((script.places[key] for name in layers if (key := (operator, below, name)) in script.places), None)
    now = _find(script.plan, setting.path)
    current = None
    if now is not None:
        current = now.value if layer == "script" else now.layers.get(layer)
    changed = None if current == value else "nothing" if current is None else value_text(current)
    if place is None:
        note = "not in the script" if layer in ("config", "script") and changed is None else ""
        if note:
            note += ": set with -c, or by default"
        return LayerSource(layer=layer, value=value_text(value), wins=layer == by, now=changed, note=note)
    text = script.text if place.file is None else script.init[place.file]
    line = text.split("\n")[place.line - 1]
    return LayerSource(
        layer=layer,
        value=value_text(value),
        wins=layer == by,
        line=place.line,
        column=place.column,
        text=line.strip(),
        now=changed,
        file=place.file,
    )


def _changed_since(setting: PlanSetting, recorded: Mapping[str, Any], script: ScriptLayers) -> list[str]:
    """Return notes on how the script differs from the values that the plan recorded for this setting."""
    if setting.operator is not None and not any(o.id == setting.operator for o in script.plan.operators):
        near = did_you_mean(setting.operator, [o.id for o in script.plan.operators], what="its operators")
        return [f"{script.file} no longer has an operator '{setting.operator}'; {near}"]
    now = _find(script.plan, setting.path)
    if now is None:
        return [f"{script.file} no longer gives this setting"]
    new = sorted(set(now.layers) - set(recorded), key=RANKS.index) if setting.operator is not None else []
    return [f"{script.file} now has a {layer} with {value_text(now.layers[layer])}; compile it again" for layer in new]
