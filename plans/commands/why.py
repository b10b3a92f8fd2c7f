"""``hintplan why``: finds the script of a plan, and prints why a setting has its value."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    allow_module_option,
    config_option,
    init_option,
    json_option,
    show_json,
)
from hintplan.plans.edit.why import ScriptSays, Step, Why, settings_below, why
from hintplan.plans.errors import HintplanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import is_script
from hintplan.plans.files.named_script import init_of, is_plain_name, named_script
from hintplan.plans.files.plan_source import PlanSource, compile_text, init_texts, read_bytes, read_source
from hintplan.plans.format.paths import find
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import PlanSetting
from hintplan.plans.settings.setting import shown
from hintplan.plans.text.jsontext import JsonText
from hintplan.plans.text.terminal import say, show, wants_colour
from hintplan.plans.text.text_file import script_text
from hintplan.plans.text.unprintable import clean


@click.command("why")
@click.argument("name", metavar="PLAN")
@click.argument("path", metavar="SETTING")
@click.option("--sql", metavar="SCRIPT", help="The script, if it is not found beside the plan.")
@config_option
@allow_module_option
@init_option
@allow_fact_edits_option
@json_option
def why_command(
    name: str,
    path: str,
    sql: str | None,
    config: dict[str, str],
    allow_modules: tuple[str, ...],
    init: tuple[str, ...],
    allow_fact_edits: bool,
    as_json: bool,
) -> None:
    """Show why a setting has its value: every layer, the line of SQL that set it, what wins, how to change it.

    \b
    hintplan why plan.json join_o_c.state.leftState.ttl
    hintplan why plan.json lookup_r.cache.lookup.partial-cache.max-rows --sql job.sql
    hintplan why plan.json config.table.exec.state.ttl
    hintplan why plan.json join_o_c
    """
    source = read_source(name, config=config, allow_modules=allow_modules, init=init, allow_fact_edits=allow_fact_edits)
    below = settings_below(source.plan, path)
    if below:
        if as_json:
            show_json([_listed_json(setting, source.plan) for setting in below])
        else:
            show(_listed(below, source.plan))
        return
    why(source.plan, path)  # a wrong path is an error before a script is looked for
    script = _script(source, sql, config, allow_modules, init)
    found = why(source.plan, path, script)
    edit_place = _place_in_plan(source, found.path) if source.places is None else None
    if as_json:
        show_json(_json(found, script, source, edit_place))
        return
    show(_text(found, script, source, edit_place), styled=False)
    if script is None and not is_script(name):
        say("the script was not found, so no lines are shown; give it with --sql SCRIPT")


def _script(
    source: PlanSource, sql: str | None, config: Mapping[str, str], allow_modules: Sequence[str], init: Sequence[str]
) -> ScriptSays | None:
    """The given script, or the one that the plan names if it lies beside it; None if there is none."""
    if source.places is not None and sql is None:
        return ScriptSays(
            file=source.file or source.name,
            text=source.data.decode(),
            plan=source.plan,
            places=source.places,
            init=source.init,
        )
    name = sql if sql is not None else _beside(source)
    if name is None:
        return None
    data, file, shown_as = read_bytes(name)
    try:
        text = script_text(data, shown_as)
        texts = init_texts(init_of(name, source.plan.init, init))
        done = compile_text(text, file or shown_as, config, allow_modules, texts)
    except HintplanError as error:
        if sql is not None:
            raise
        say(f"{shown_as} does not compile, so no lines are shown: {error.diagnostics[0]}")
        return None
    return ScriptSays(file=file or shown_as, text=text, plan=done.plan, places=done.positions, init=texts)


def _beside(source: PlanSource) -> str | None:
    script = source.plan.source
    if source.file is None or script is None or not is_plain_name(script):
        return None
    if source.name.startswith(git.PREFIX):
        where = git.parse(source.name)
        folder = os.path.dirname(where.path)
        beside = git.GitPath(where.revision, f"{folder}/{script}" if folder else script)
        return f"{git.PREFIX}{beside.revision}:{beside.path}" if git.exists(beside) else None
    return named_script(script, os.path.dirname(source.file))


def _place_in_plan(source: PlanSource, path: str) -> tuple[int, int] | None:
    """Line and column of the setting in the plan file."""
    text = JsonText(source.data)
    outside = path == "name" or path.startswith(("config.", "tables."))
    found = find(path if outside else f"operators.{path}", text.value)
    return text.line_column(text.spans({found})[found][1]) if found else None


def _text(found: Why, script: ScriptSays | None, source: PlanSource, edit_place: tuple[int, int] | None) -> str:
    head = f"{found.path} is {found.value if found.value is not None else 'off'}"
    rows = [(step, _cells(step, script, source, edit_place)) for step in found.steps]
    widths = [max((len(cells[i]) for _, cells in rows), default=0) for i in range(3)]
    lines = [clean(head), ""]
    for step, (layer, value, place, text) in rows:
        cells = f"{layer:<{widths[0]}}   {value:<{widths[1]}}   {place:<{widths[2]}}   {text}".rstrip()
        line = clean(f"{'>' if step.wins else ' '} {cells}")
        lines.append(click.style(line, bold=True) if step.wins and wants_colour() else line)
        if step.now is not None and script is not None:
            lines.append(clean(f"    {script.file} now says {step.now}: the plan was compiled from something else"))
    if rows:
        lines.append("")
    lines.append(clean(f"{found.set_by} wins: {found.verdict}" if rows else found.verdict))
    lines += [clean(f"reason: {found.reason}")] if found.reason else []
    lines += [clean(f"note: {note}") for note in found.notes]
    lines.append(f"another value: {found.effect}")
    lines += [clean(line) for line in _advice(found, script, source)]
    return "\n".join(lines)


def _cells(
    step: Step, script: ScriptSays | None, source: PlanSource, edit_place: tuple[int, int] | None
) -> tuple[str, str, str, str]:
    file, line, column = _place(step, script, source, edit_place)
    place = f"{file}:{line}:{column}" if file is not None else ""
    text = "" if step.layer == "edit" and place else step.text or step.note
    return step.layer, step.value, place, text


def _place(
    step: Step, script: ScriptSays | None, source: PlanSource, edit_place: tuple[int, int] | None
) -> tuple[str | None, int | None, int | None]:
    """File, line and column of what a layer says: in the script, or of an edit in the plan."""
    if step.layer == "edit" and edit_place is not None:
        return source.file, *edit_place
    return (step.file or script.file if script and step.line else None), step.line, step.column


def _advice(found: Why, script: ScriptSays | None, source: PlanSource) -> list[str]:
    """The commands that change it or take an edit back."""
    plan = source.file if source.places is None and not source.name.startswith(git.PREFIX) else None
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


def _listed(settings: list[PlanSetting], plan: Plan) -> str:
    rows: list[tuple[str, str, str]] = []
    for setting in settings:
        if setting.group == "cached" and setting.set_by == "default":
            continue
        weaker = [f"{layer} {shown(said)}" for layer, said in setting.layers.items() if layer != setting.set_by]
        by = setting.set_by if setting.set_by != "plan" else ""
        rows.append((setting.path, shown(setting.value), " · ".join([by, *reversed(weaker)] if by else [])))
    widths = [min(max((len(clean(row[i])) for row in rows), default=0), 70) for i in (0, 1)]
    lines = []
    for path, value, who in rows:
        lines.append(f"{clean(path):<{widths[0]}}   {clean(value):<{widths[1]}}   {clean(who)}".rstrip())
        if path in plan.reasons:
            lines.append(clean(f"  reason: {plan.reasons[path]}"))
    return "\n".join(lines)


def _listed_json(setting: PlanSetting, plan: Plan) -> dict[str, Any]:
    return {
        "path": setting.path,
        "value": setting.value,
        "set-by": setting.set_by,
        "layers": dict(setting.layers),
        "reason": plan.reasons.get(setting.path),
    }


def _json(
    found: Why, script: ScriptSays | None, source: PlanSource, edit_place: tuple[int, int] | None
) -> dict[str, Any]:
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
