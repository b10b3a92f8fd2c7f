"""``hintplan.why``: the origin of a setting's value in a plan, layer by layer.

>>> why(Plan(name="p", config={"parallelism.default": "4"}), "config.parallelism.default").value
'4'
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.edit.why import LayerSource, ScriptLayers, SettingExplanation, settings_below
from hintplan.plans.edit.why import explain_setting as reasons_of
from hintplan.plans.files import git
from hintplan.plans.files.plan_source import PlanSource
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.settings.setting import value_text
from hintplan.plans.text.aligned import aligned_rows
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.printed import Printed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Origin(Printed):
    """The origin of a setting's value: ``why``; or the settings ``below`` a path that leads to several."""

    plan: Plan
    why: SettingExplanation | None
    below: tuple[PlanSetting, ...] = ()

    @property
    def value(self) -> str | None:
        """The effective value, in the notation of edits; None if there is none."""
        return None if self.why is None or self.why.value is None else str(self.why.value)

    def text(self) -> str:
        """Return the output of ``hintplan why`` without the script."""
        return listed_text(self.below, self.plan) if self.why is None else why_text(self.why)

    def json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the output of ``hintplan why --json`` without the script, as JSON values."""
        if self.why is None:
            return [listed_json(setting, self.plan) for setting in self.below]
        return why_json(self.why)


def why(plan: PlanLike, path: str) -> Origin:
    """Return the values that default, configuration, hints and edits give the setting at ``path``, and the winner.

    The path of an operator, or of a group of its settings, stands for all settings below it. Raise PlanError if there
    is none.
    """
    target = plan_of(plan)
    below = tuple(settings_below(target, path))
    return Origin(plan=target, why=None if below else reasons_of(target, path), below=below)


def why_text(
    found: SettingExplanation,
    script: ScriptLayers | None = None,
    source: PlanSource | None = None,
    edit_place: tuple[int, int] | None = None,
    *,
    paint: Callable[[str], str] = str,
) -> str:
    """Return the value of each layer as ``hintplan why`` prints it; ``paint`` may colour the winning line.

    ``source`` is the file of the plan, and ``edit_place`` the line and column of the setting in it. ``script`` is the
    script of the plan.
    """
    head = f"{found.path} is {found.value if found.value is not None else 'off'}"
    rows = [(step, _cells(step, script, source, edit_place)) for step in found.steps]
    lines = [clean(head), ""]
    for (step, _), cells in zip(rows, aligned_rows([cells for _, cells in rows]), strict=True):
        line = clean(f"{'>' if step.wins else ' '} {cells}")
        lines.append(paint(line) if step.wins else line)
        if step.now is not None and script is not None:
            lines.append(clean(f"    {script.file} now has {step.now}: the plan was compiled from other values"))
    if rows:
        lines.append("")
    lines.append(clean(f"{found.set_by} wins: {found.verdict}" if rows else found.verdict))
    lines += [clean(f"reason: {found.reason}")] if found.reason else []
    lines += [clean(f"note: {note}") for note in found.notes]
    lines.append(f"another value: {found.effect}")
    lines += [clean(line) for line in _advice(found, script, source)]
    return "\n".join(lines)


def _cells(
    step: LayerSource, script: ScriptLayers | None, source: PlanSource | None, edit_place: tuple[int, int] | None
) -> tuple[str, str, str, str]:
    file, line, column = _place(step, script, source, edit_place)
    place = f"{file}:{line}:{column}" if file is not None else ""
    text = "" if step.layer == "edit" and place else step.text or step.note
    return step.layer, step.value, place, text


def _place(
    step: LayerSource, script: ScriptLayers | None, source: PlanSource | None, edit_place: tuple[int, int] | None
) -> tuple[str | None, int | None, int | None]:
    """Return file, line and column of the value of a layer: in the plan for an edit, else in the script."""
    if step.layer == "edit" and edit_place is not None and source is not None:
        return source.file, *edit_place
    return (step.file or script.file if script and step.line else None), step.line, step.column


def _advice(found: SettingExplanation, script: ScriptLayers | None, source: PlanSource | None) -> list[str]:
    """Return the commands that change the setting or undo its edit."""
    in_file = source is not None and source.places is None and not source.name.startswith(git.PREFIX)
    plan = source.file if source is not None and in_file else None
    name = shlex.quote(plan or "plan.json")
    lines = []
    if found.undo is not None:
        lines.append(f"take the edit back: hintplan set {name} {shlex.quote(found.path)}={shlex.quote(found.undo)}")
    elif found.set_by != "edit":
        lines.append(f"change it: hintplan set {name} {shlex.quote(found.path)}=... --reason '...'")
    winner = next((step for step in found.steps if step.wins), None)
    if winner is not None and winner.line is not None and script is not None:
        lines.append(f"or for good: change {winner.file or script.file}:{winner.line} and compile again")
    return lines


def listed_text(settings: Sequence[PlanSetting], plan: Plan) -> str:
    """Return the ``settings`` below a path, with their values and origins, as text."""
    rows: list[tuple[str, str, str]] = []
    for setting in settings:
        if setting.group == "cached" and setting.set_by == "default":
            continue
        weaker = [
            f"{layer} {value_text(overridden)}"
            for layer, overridden in setting.layers.items()
            if layer != setting.set_by
        ]
        by = setting.set_by if setting.set_by != "plan" else ""
        rows.append((setting.path, value_text(setting.value), " · ".join([by, *reversed(weaker)] if by else [])))
    lines = []
    for (path, _, _), line in zip(rows, aligned_rows([list(map(clean, row)) for row in rows], most=70), strict=True):
        lines.append(line)
        if path in plan.reasons:
            lines.append(clean(f"  reason: {plan.reasons[path]}"))
    return "\n".join(lines)


def listed_json(setting: PlanSetting, plan: Plan) -> dict[str, Any]:
    """Return one of the settings below a path as JSON values."""
    return {
        "path": setting.path,
        "value": setting.value,
        "set-by": setting.set_by,
        "layers": {} if setting.operator is None else dict(setting.layers),
        "reason": plan.reasons.get(setting.path),
    }


def why_json(
    found: SettingExplanation,
    script: ScriptLayers | None = None,
    source: PlanSource | None = None,
    edit_place: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Return the value of each layer as JSON values."""
    steps = []
    for step in found.steps:
        file, line, column = _place(step, script, source, edit_place)
        steps.append(
            {
                "layer": step.layer,
                "value": step.value,
                "wins": step.wins,
                "file": file,
                "line": line,
                "column": column,
                "text": step.text or None,
                "script-says-now": step.now,
            }
        )
    return {
        "path": found.path,
        "value": found.value,
        "set-by": found.set_by,
        "verdict": found.verdict,
        "layers": steps,
        "reason": found.reason,
        "undo": found.undo,
        "effect": found.effect,
        "script": script.file if script else None,
        "notes": list(found.notes),
    }
