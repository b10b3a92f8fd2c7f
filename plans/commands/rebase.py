"""``hintplan rebase``, and its parts shared with ``hintplan compile --keep-edits``: options, report, atomic output.

>>> parse_map(("join_o_c=join_c_o",))
{'join_o_c': 'join_c_o'}
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from hintplan.plans.commands.options import json_report_option, one_on_stdout, plan_output_option, show_json
from hintplan.plans.files.codec import dumps, load, loads, plan_bytes, put_plan_bytes, read_document
from hintplan.plans.format.digest import changed_facts
from hintplan.plans.merge.moved import moves_for
from hintplan.plans.merge.rebase import rebase_plan
from hintplan.plans.merge.rebase_report import raise_obstacles, rebase_json, rebase_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.terminal import print_message


def rebase_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options for the old plan, and for edits whose operator is gone, to a command."""
    for option in (
        click.option("--allow-fact-edits", is_flag=True, help="Accept plans whose facts were changed by hand."),
        click.option("--drop-orphans", is_flag=True, help="Drop edits whose operator or setting no longer exists."),
        click.option(
            "--map", "moves", multiple=True, metavar="OLD=NEW", help="The new operator for the edits of an old one."
        ),
    ):
        function = option(function)
    return function


def parse_map(moves: tuple[str, ...]) -> dict[str, str]:
    """Return the values of ``--map``; raise UsageError for a wrong or contradictory one."""
    successors: dict[str, str] = {}
    for move in moves:
        old, equals, new = move.partition("=")
        if not equals or not old or not new:
            raise click.UsageError(f"expected --map OLD=NEW, found '{move}'")
        if successors.setdefault(old, new) != new:
            raise click.UsageError(f"--map gives '{old}' two successors")
    return successors


def write_rebased(
    new: Plan,
    old_file: str,
    output: str | None,
    *,
    moves: tuple[str, ...],
    drop_orphans: bool,
    allow_fact_edits: bool,
    as_json: bool,
) -> int:
    """Write ``new`` with the edits of the old plan to ``output``, or stdout.

    Write nothing if one of the edits cannot be applied.
    """
    one_on_stdout(output, as_json=as_json)
    data, old_file = plan_bytes(old_file)
    old = loads(data, file=old_file, allow_fact_edits=allow_fact_edits, check_meaning=False)
    # Edits of facts are not carried over, because facts come from the SQL.
    left = changed_facts(old, read_document(data)) if allow_fact_edits else []
    kept = moves_for(Path(output or "plan.json") if old_file == "<stdin>" else Path(old_file), old, new)
    rebased = rebase_plan(new, old, {**kept, **parse_map(moves)}, drop_orphans=drop_orphans)
    if as_json:
        show_json({**rebase_json(rebased, old_file), "facts-left-behind": left})
    elif rebased.plan is None:
        raise_obstacles(rebased, old_file)
    if rebased.plan is None:
        return 1
    put_plan_bytes(dumps(rebased.plan), output)
    if not as_json:
        print_message(rebase_text(rebased))
        if left:
            print_message(f"facts that were changed by hand are as the SQL has them: {', '.join(left)}")
    return 0


@click.command("rebase")
@click.argument("old", metavar="OLD")
@click.option("--onto", "new", required=True, metavar="NEW", help="The plan that was compiled from the new SQL.")
@plan_output_option
@json_report_option
@rebase_options
def rebase_command(
    old: str,
    new: str,
    output: str | None,
    allow_fact_edits: bool,
    as_json: bool,
    moves: tuple[str, ...],
    drop_orphans: bool,
) -> int:
    """Carry the edits of plan OLD over to plan NEW, which was compiled from newer SQL.

    \b
    hintplan compile job.sql -o new.json && hintplan rebase plan.json --onto new.json -o plan.json
    """
    return write_rebased(
        load(new, allow_fact_edits=allow_fact_edits),
        old,
        output,
        moves=moves,
        drop_orphans=drop_orphans,
        allow_fact_edits=allow_fact_edits,
        as_json=as_json,
    )
