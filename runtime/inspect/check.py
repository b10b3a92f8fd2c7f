"""``hintplan check``: reports what a run on a checkpoint would do with each state, before anything starts."""

from __future__ import annotations

import click

from hintplan.plans.checkpoint.record import is_local_path
from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    evidence_option,
    instant,
    read_evidence_file,
    read_plan,
    show_json,
)
from hintplan.plans.commands.run_options import conf_option, debug_option, keep_state_option
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.text.terminal import print_data, wants_colour
from hintplan.runtime.inspect.checked import checked_by_spark, checked_here, with_evidence
from hintplan.runtime.run.command import opened_session
from hintplan.runtime.run.spark_options import SparkOptions, with_spark_options


@click.command("check")
@click.argument("path", metavar="PLAN")
@click.option("--checkpoint", required=True, metavar="DIR", help="The checkpoint that a run would continue.")
@evidence_option
@click.option("--at", metavar="TIME", help="Count expiring rows for a start at this time, ISO 8601 (default: now).")
@click.option("--exit-code", is_flag=True, help="Exit with 2 if some state would be dropped.")
@click.option("--master", metavar="URL", help="Spark master, if the checkpoint is behind a URL (default local[*]).")
@click.option("--remote", metavar="URL", help="Spark Connect server that a run would use.")
@conf_option
@keep_state_option
@allow_fact_edits_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@debug_option
@with_spark_options
def check_command(
    path: str,
    checkpoint: str,
    evidence_file: str | None,
    at: str | None,
    exit_code: bool,
    spark: SparkOptions,
    keep_state: tuple[str, ...],
    allow_fact_edits: bool,
    as_json: bool,
) -> int:
    """Report what a run on a checkpoint would do with each state: carry it over, start empty, or be refused.

    \b
    Exits with
      0   the run continues, with all state; without --exit-code also if it drops some
      1   the run would be refused, with any options
      2   with --exit-code: it continues only with --allow-state-drop, which drops some state
    """
    plan = read_plan(path, allow_fact_edits=allow_fact_edits)
    if plan.mode == "batch":
        raise click.UsageError(f"{plan.name} is a batch plan: it keeps no state, so it has no checkpoint")
    if is_local_path(checkpoint) and spark.remote is None:
        start = instant(at, plan.config.get(TIME_ZONE, "UTC"))
        result = checked_here(plan, checkpoint, spark.conf, keep=keep_state, at=start)
    elif at is not None:
        raise click.UsageError(
            "--at is for a checkpoint on this machine; rows behind a URL are counted by hintplan state"
        )
    else:
        with opened_session(spark, plan, checkpoint) as session:
            result = checked_by_spark(plan, checkpoint, session, keep=keep_state)
    if evidence_file is not None:
        result = with_evidence(result, read_evidence_file(evidence_file))
    if as_json:
        show_json(result.json())
    elif wants_colour():
        print_data(result.text(paint=_painted), styled=True)
    else:
        print_data(result.text())
    if result.verdict == "refused":
        return 1
    return 2 if exit_code and result.verdict == "drops" else 0


def _painted(text: str, part: str) -> str:
    colour = {"good": "green", "bad": "red"}.get(part)
    return click.style(text, fg=colour, dim=part == "note")
