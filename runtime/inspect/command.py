"""``hintplan state``: options around :func:`runtime.inspect.read.read_state`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from plans.checkpoint.record import absolute, is_local_path
from plans.commands.options import allow_fact_edits_option, read_plan, show_json
from plans.commands.run_options import conf_option, debug_option, master_option, remote_option
from plans.edit.edit import set_value
from plans.errors import PlanError, RunError
from plans.model.config import TIME_ZONE, canonical_key
from plans.model.plan import Plan
from plans.settings.state import STATE_TTL
from plans.text.terminal import say, show, wants_colour
from runtime.checkpoint.parts import undamaged_record
from runtime.inspect.report import Part, state_json, state_text
from runtime.run.command import opened_session
from runtime.run.spark_options import SparkOptions, with_spark_options


@click.command("state")
@click.argument("path", metavar="PLAN")
@click.option("--checkpoint", required=True, metavar="DIR", help="The checkpoint of a run; it is only read.")
@click.option("--entry", "entries", multiple=True, metavar="PATH", help="Only this operator or state; repeatable.")
@click.option("--if", "edits", multiple=True, metavar="PATH=TTL", help="Also count under another TTL; repeatable.")
@click.option("--show", "shown", type=click.IntRange(min=0), default=0, metavar="N", help="Print the N newest rows.")
@click.option("--at", metavar="TIME", help="Judge expiry at this time, ISO 8601 (default: now).")
@master_option
@remote_option
@conf_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@allow_fact_edits_option
@debug_option
@with_spark_options
def state_command(**given: Any) -> None:
    """Show what a checkpoint holds, per state: rows, keys, bytes, last writes, what expires.

    \b
    hintplan state plan.json --checkpoint DIR
    hintplan state plan.json --checkpoint DIR --if join_o_c.leftState.ttl=3d --if config.table.exec.state.ttl='2 h'
    hintplan state plan.json --checkpoint DIR --entry join_o_c.leftState --show 20
    """
    _show_state(StateOptions(**given))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """The options of ``hintplan state``; ``path`` is its argument."""

    path: str
    checkpoint: str
    entries: tuple[str, ...]
    edits: tuple[str, ...]
    shown: int
    at: str | None
    spark: SparkOptions
    as_json: bool
    allow_fact_edits: bool


def _show_state(options: StateOptions) -> None:
    plan, checkpoint = read_plan(options.path, allow_fact_edits=options.allow_fact_edits), options.checkpoint
    edited = _edited(plan, options.edits)
    now = _time(options.at, plan)
    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        raise RunError(f"there is no directory {checkpoint}", hint="give the checkpoint directory of a run")
    if is_local_path(checkpoint) and options.spark.remote is None:
        undamaged_record(absolute(checkpoint), options.spark.conf)
    with opened_session(options.spark) as spark:
        from runtime.inspect.read import read_state

        found = read_state(
            plan,
            absolute(checkpoint),
            spark,
            at=now,
            edited=edited,
            entries=options.entries,
            show=options.shown,
        )
    if options.as_json:
        show_json(state_json(found))
    elif wants_colour():
        show(state_text(found, paint=_painted), styled=True)
    else:
        show(state_text(found))
    if options.edits and not any(e.edited for query in found.queries for o in query.operators for e in o.entries):
        say("--if changes no TTL of what is shown")


def _painted(text: str, part: Part) -> str:
    return click.style(text, bold=part == "operator", dim=part == "heading", fg="yellow" if part == "edit" else None)


def _edited(plan: Plan, edits: tuple[str, ...]) -> Plan | None:
    edited = plan
    for edit in edits:
        setting, equals, value = edit.partition("=")
        if not equals:
            raise click.UsageError(f"expected --if PATH=TTL, found '{edit}'")
        if not setting.endswith(".ttl") or (
            setting.startswith("config.") and canonical_key(setting.removeprefix("config.")) != STATE_TTL
        ):
            hint = f"write e.g. --if join_o_c.leftState.ttl='3 d' or --if config.{STATE_TTL}='3 d'"
            raise PlanError(f"'{setting}' is no TTL of a state", path=setting, hint=hint)
        edited, _ = set_value(edited, setting, value)
    return edited if edits else None


def _time(text: str | None, plan: Plan) -> int | None:
    if text is None:
        return None
    zone = ZoneInfo(plan.config.get(TIME_ZONE, "UTC"))
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}; write a time such as 2026-11-20T12:00:00Z") from error
    return int((found if found.tzinfo else found.replace(tzinfo=zone)).timestamp() * 1000)
