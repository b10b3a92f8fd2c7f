"""``hintplan state``: a command to read (:mod:`hintplan.runtime.inspect.read`), copy and compact state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hintplan.plans.checkpoint.record import absolute, is_local_path
from hintplan.plans.commands.options import allow_fact_edits_option, instant, read_plan, show_json
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.extras import require
from hintplan.plans.files.git import PREFIX
from hintplan.plans.model.config import TIME_ZONE, canonical_key
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.state import STATE_TTL
from hintplan.plans.text.counts import count
from hintplan.plans.text.links import link_to_nowhere
from hintplan.plans.text.terminal import print_data, print_message, wants_colour

if TYPE_CHECKING:
    from hintplan.runtime.inspect.report import Part


@click.command("state")
@click.argument("path", metavar="PLAN|CHECKPOINT")
@click.option("--checkpoint", metavar="DIR", help="The checkpoint of a run of PLAN; it is only read.")
@click.option("--entry", "entries", multiple=True, metavar="PATH", help="Only this operator or state; repeatable.")
@click.option("--if", "edits", multiple=True, metavar="PATH=TTL", help="Also count under another TTL; repeatable.")
@click.option("--show", "shown", type=click.IntRange(min=0), default=0, metavar="N", help="Print the N newest rows.")
@click.option(
    "--snapshot", metavar="DIR", help="Copy CHECKPOINT, as of its last committed batches, to a new directory."
)
@click.option("--evidence", metavar="FILE", help="Write the counters of all states to FILE, for reviews; no rows.")
@click.option("--compact", is_flag=True, help="Rewrite the state in CHECKPOINT without expired and replaced rows.")
@click.option("--at", metavar="TIME", help="Judge expiry at this time, ISO 8601 (default: now).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@allow_fact_edits_option
def state_command(**given: Any) -> None:
    """Show the contents of each state in a checkpoint: rows, keys, bytes, last writes, expiry. Or copy or compact it.

    Without --checkpoint, the argument is a checkpoint, and the plan is the plan that last ran on it.

    \b
    hintplan state DIR
    hintplan state plan.json --checkpoint DIR --if join_o_c.leftState.ttl=3d --if config.table.exec.state.ttl='2 h'
    hintplan state plan.json --checkpoint DIR --entry join_o_c.leftState --show 20
    hintplan state plan.json --checkpoint DIR --evidence evidence.json
    hintplan state DIR --snapshot COPY
    hintplan state DIR --compact
    """
    options = StateOptions(**given)
    if options.snapshot is not None and options.compact:
        raise click.UsageError("--snapshot and --compact are two things: make the snapshot first")
    if options.evidence is not None and (options.entries or options.edits or options.shown or options.as_json):
        raise click.UsageError("--evidence FILE has the counters of all states: it takes only --checkpoint and --at")
    require("state")
    if options.snapshot is not None:
        from hintplan.runtime.inspect.snapshot import take_snapshot
        from hintplan.runtime.inspect.upkeep_report import snapshot_json, snapshot_text

        snapshot = take_snapshot(_alone(options, "--snapshot DIR"), options.snapshot)
        _print(options, snapshot_json(snapshot), snapshot_text(snapshot))
    elif options.compact:
        from hintplan.runtime.inspect.compact import compact_state
        from hintplan.runtime.inspect.upkeep_report import compaction_json, compaction_text

        compacted = compact_state(_alone(options, "--compact"), at=instant(options.at, "UTC"))
        _print(options, compaction_json(compacted), compaction_text(compacted))
    elif options.evidence is not None:
        _write_evidence(options, options.evidence)
    else:
        _show_state(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """The options of ``hintplan state``; ``path`` is its argument."""

    path: str
    checkpoint: str | None
    entries: tuple[str, ...]
    edits: tuple[str, ...]
    shown: int
    snapshot: str | None
    evidence: str | None
    compact: bool
    at: str | None
    as_json: bool
    allow_fact_edits: bool


def _alone(options: StateOptions, wanted: str) -> str:
    """Return the checkpoint of a command that takes no plan; a usage error if there are other options."""
    if options.checkpoint is not None or _is_plan(options.path):
        checkpoint = options.checkpoint or "CHECKPOINT"
        raise click.UsageError(f"{wanted} goes by the checkpoint alone: hintplan state {checkpoint} {wanted}")
    shows = options.entries or options.edits or options.shown or options.evidence or options.allow_fact_edits
    if shows or (options.at is not None and not options.compact):
        raise click.UsageError(f"{wanted} covers a whole checkpoint: its only option is --json")
    _refuse_missing(options.path)
    return options.path


def _print(options: StateOptions, document: dict[str, Any], text: str) -> None:
    if options.as_json:
        show_json(document)
    else:
        print_data(text)


def _local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def _is_plan(path: str) -> bool:
    """Return True if the argument of the command is a plan, in a file or in git, and no checkpoint."""
    return path.startswith(PREFIX) or (is_local_path(path) and _local(path).is_file())


def _refuse_missing(checkpoint: str) -> None:
    if is_local_path(checkpoint) and not _local(checkpoint).is_dir():
        problem = link_to_nowhere(_local(checkpoint)) or f"there is no directory {checkpoint}"
        raise RunError(problem, hint="give the checkpoint directory of a run")


def _plan_and_checkpoint(options: StateOptions) -> tuple[Plan, str]:
    if options.checkpoint is not None:
        plan = read_plan(options.path, allow_fact_edits=options.allow_fact_edits)
        _refuse_missing(options.checkpoint)
        return plan, options.checkpoint
    if _is_plan(options.path):
        raise click.UsageError("Missing option '--checkpoint': where the plan keeps its state.")
    _refuse_missing(options.path)
    from hintplan.runtime.inspect.opening import last_plan

    return last_plan(options.path), options.path


def _show_state(options: StateOptions) -> None:
    from hintplan.runtime.inspect.read import read_state
    from hintplan.runtime.inspect.report import state_json, state_text

    plan, checkpoint = _plan_and_checkpoint(options)
    edited = _edited(plan, options.edits)
    now = instant(options.at, plan.config.get(TIME_ZONE, "UTC"))
    state = read_state(plan, absolute(checkpoint), at=now, edited=edited, entries=options.entries, show=options.shown)
    if options.as_json:
        show_json(state_json(state))
    elif wants_colour():
        print_data(state_text(state, paint=_painted), styled=True)
    else:
        print_data(state_text(state))
    if options.edits and not any(e.edited for query in state.queries for o in query.operators for e in o.entries):
        print_message("--if changes no TTL of the states that are shown")


def _write_evidence(options: StateOptions, file: str) -> None:
    from hintplan.plans.evidence.document import dumps
    from hintplan.plans.files.codec import write_plan_bytes
    from hintplan.runtime.inspect.evidence import read_evidence

    plan, checkpoint = _plan_and_checkpoint(options)
    now = instant(options.at, plan.config.get(TIME_ZONE, "UTC"))
    evidence = read_evidence(plan, absolute(checkpoint), at=now)
    write_plan_bytes(dumps(evidence), file)
    hits = sum(sum(period.hits) for state in evidence.states for period in state.periods)
    late = sum(sum(state.lateness or ()) for state in evidence.states)
    print_message(
        f"{file}: {count(len(evidence.states), 'state')}, {hits:,} hits{f', {late:,} late rows' if late else ''}"
    )


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
