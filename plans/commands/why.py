"""``hintplan why``: find the script of a plan, and print the origin of a setting's value."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

import click

from hintplan.plans.api.origins import listed_json, listed_text, why_json, why_text
from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    allow_module_option,
    config_option,
    init_option,
    json_option,
    show_json,
)
from hintplan.plans.edit.why import ScriptLayers, explain_setting, settings_below
from hintplan.plans.errors import HintplanError
from hintplan.plans.files import git
from hintplan.plans.files.codec import is_script
from hintplan.plans.files.named_script import init_of, is_plain_name, named_script
from hintplan.plans.files.plan_source import PlanSource, compile_text, init_texts, read_bytes, read_source
from hintplan.plans.format.paths import find
from hintplan.plans.text.jsontext import JsonText
from hintplan.plans.text.terminal import print_data, print_message, wants_colour
from hintplan.plans.text.text_file import script_text


@click.command("why")
@click.argument("name", metavar="PLAN")
@click.argument("path", metavar="SETTING")
@click.option("--sql", metavar="SCRIPT", help="The script, if it is not next to the plan.")
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
            show_json([listed_json(setting, source.plan) for setting in below])
        else:
            print_data(listed_text(below, source.plan))
        return
    explain_setting(source.plan, path)  # raise for a wrong path before searching for a script
    script = _script(source, sql, config, allow_modules, init)
    origin = explain_setting(source.plan, path, script)
    edit_place = _place_in_plan(source, origin.path) if source.places is None else None
    if as_json:
        show_json(why_json(origin, script, source, edit_place))
        return
    paint = partial(click.style, bold=True) if wants_colour() else str
    print_data(why_text(origin, script, source, edit_place, paint=paint), styled=False)
    if script is None and not is_script(name):
        print_message("the script was not found, so no lines are shown; give it with --sql SCRIPT")


def _script(
    source: PlanSource, sql: str | None, config: Mapping[str, str], allow_modules: Sequence[str], init: Sequence[str]
) -> ScriptLayers | None:
    """Return the given script, or else the script named by the plan if it is next to it; None if there is none."""
    if source.places is not None and sql is None:
        return ScriptLayers(
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
        compiled = compile_text(text, file or shown_as, config, allow_modules, texts)
    except HintplanError as error:
        if sql is not None:
            raise
        print_message(f"{shown_as} does not compile, so no lines are shown: {error.diagnostics[0]}")
        return None
    return ScriptLayers(file=file or shown_as, text=text, plan=compiled.plan, places=compiled.positions, init=texts)


def _beside(source: PlanSource) -> str | None:
    script = source.plan.source
    if source.file is None or script is None or not is_plain_name(script):
        return None
    if source.name.startswith(git.PREFIX):
        plan_path = git.parse(source.name)
        folder = os.path.dirname(plan_path.path)
        script_path = git.GitPath(plan_path.revision, f"{folder}/{script}" if folder else script)
        return f"{git.PREFIX}{script_path.revision}:{script_path.path}" if git.exists(script_path) else None
    return named_script(script, os.path.dirname(source.file))


def _place_in_plan(source: PlanSource, path: str) -> tuple[int, int] | None:
    """Return line and column of the setting in the plan file."""
    text = JsonText(source.data)
    outside = path == "name" or path.startswith(("config.", "tables."))
    position = find(path if outside else f"operators.{path}", text.value)
    return text.line_column(text.spans({position})[position][1]) if position else None
