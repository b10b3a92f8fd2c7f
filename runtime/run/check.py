"""``hintplan check``: what a run of a plan on a checkpoint would do with each state, before anything starts.

The record of a local checkpoint is a small text file, read here. Of a checkpoint behind a URL Spark reads it.
"""

from __future__ import annotations

import glob
import os
from importlib.metadata import PackageNotFoundError, version

import click

from plans.checkpoint.continuation import continuation
from plans.checkpoint.record import CheckpointRecord, is_local_path
from plans.checkpoint.report import check_json, check_text
from plans.commands.options import allow_fact_edits_option, read_plan, show_json
from plans.commands.run_options import conf_option, debug_option
from plans.text.names import nearest
from plans.text.terminal import show, wants_colour
from runtime.checkpoint.parts import undamaged_record
from runtime.run.command import absolute, opened_session
from runtime.run.spark_options import SparkOptions, with_spark_options

__all__ = ["check_command"]


@click.command("check")
@click.argument("path", metavar="PLAN")
@click.option("--checkpoint", required=True, metavar="DIR", help="The checkpoint that a run would continue.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 if some state would be dropped.")
@click.option("--master", metavar="URL", help="Spark master, if the checkpoint is behind a URL (default local[*]).")
@click.option("--remote", metavar="URL", help="Spark Connect server that a run would use.")
@conf_option
@allow_fact_edits_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@debug_option
@with_spark_options
def check_command(
    path: str, checkpoint: str, exit_code: bool, spark: SparkOptions, allow_fact_edits: bool, as_json: bool
) -> int:
    """Tell what a run on a checkpoint would do with each state: carry it over, start empty, or be refused.

    \b
    Exits with
      0   the run goes on, with all state; without --exit-code also if it drops some
      1   the run would be refused, whatever it is told
      2   with --exit-code: it goes on only without some state, and with --allow-state-drop
    """
    plan = read_plan(path, allow_fact_edits=allow_fact_edits)
    if plan.mode == "batch":
        raise click.UsageError(f"{plan.name} is a batch plan: it keeps no state, so it has no checkpoint")
    spark_version: str | None
    if is_local_path(checkpoint) and spark.remote is None:
        record, spark_version = undamaged_record(absolute(checkpoint) or checkpoint, spark.conf), _installed_spark()
    else:
        record, spark_version = _through_spark(checkpoint, spark)
    found = continuation(record, plan, share=spark.remote is None)
    missing = _missing(checkpoint)
    if as_json:
        show_json(check_json(found, record, plan, checkpoint, spark=spark_version, missing=missing))
    elif wants_colour():
        show(check_text(found, record, plan, spark=spark_version, missing=missing, paint=_painted), styled=True)
    else:
        show(check_text(found, record, plan, spark=spark_version, missing=missing))
    if found.refused:
        return 1
    return 2 if exit_code and found.loses else 0


def _through_spark(checkpoint: str, options: SparkOptions) -> tuple[CheckpointRecord | None, str]:
    with opened_session(options) as spark:
        from runtime.checkpoint.record import read_undamaged

        return read_undamaged(spark, absolute(checkpoint) or checkpoint), str(spark.version)


def _missing(checkpoint: str) -> str:
    """That there is no directory ``checkpoint``, and which checkpoint beside it may be meant."""
    if "://" in checkpoint or os.path.isdir(path := absolute(checkpoint) or checkpoint):
        return ""
    above, name = os.path.split(path.rstrip("/"))
    found = glob.glob(os.path.join(glob.escape(above), "*", "hintplan"))
    close = nearest(name, [os.path.basename(os.path.dirname(one)) for one in found])
    meant = f"; did you mean {os.path.join(os.path.dirname(checkpoint.rstrip('/')), close)}?" if close else ""
    return f"there is no directory {checkpoint} yet: a run would make it{meant}"


def _installed_spark() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def _painted(text: str, part: str) -> str:
    colour = {"good": "green", "bad": "red"}.get(part)
    return click.style(text, fg=colour, dim=part == "note")
