"""``hintplan diff``: read two plans from any source, and print their differences in the requested format."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    allow_module_option,
    changes_with_costs,
    checkpoint_option,
    config_option,
    evidence_option,
    given_evidence,
    init_option,
    json_format_option,
)
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import of_level
from hintplan.plans.files.codec import is_script
from hintplan.plans.files.plan_source import PlanSource, read_source
from hintplan.plans.settings.effects import LEVELS, Level
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.terminal import print_data, wants_colour

_WITH_SQL = ("text", "markdown", "json")
_SAME_SQL = "the scripts are the same"

FORMATS = ("text", "markdown", "json", "html", "github", "sarif", "junit")
FAIL_ON = ("incompatible", "drop", "expire", "rebuild", "ttl", "restart", "any")


@click.command("diff")
@click.argument("before")
@click.argument("after")
@click.option("--format", "layout", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--concise", is_flag=True, help="Print one line per operator, and only changes with an effect.")
@click.option("--full", is_flag=True, help="Print every change, with the reason of its effect and all layers.")
@evidence_option
@checkpoint_option
@click.option("--sql", "with_sql", is_flag=True, help="Also compare the scripts of the plans.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 if there are differences.")
@click.option(
    "--fail-on", type=click.Choice(FAIL_ON), help="Exit with 1 if a change has this effect on a running job, or worse."
)
@config_option
@allow_module_option
@init_option
@allow_fact_edits_option
@json_format_option
def diff_command(
    before: str,
    after: str,
    layout: str,
    concise: bool,
    full: bool,
    evidence_file: str | None,
    checkpoint: str | None,
    with_sql: bool,
    exit_code: bool,
    fail_on: str | None,
    config: dict[str, str],
    allow_modules: tuple[str, ...],
    init: tuple[str, ...],
    allow_fact_edits: bool,
    as_json: bool,
) -> int:
    """Compare two plans by meaning: settings and who set them, operators, and the effect on running state.

    \b
    BEFORE and AFTER are each
      plan.json               a plan file, or - for standard input
      git:main:plan.json      the file at a revision; git::plan.json is the index
      job.sql                 a script, which is compiled
    """
    if concise and full:
        raise click.UsageError("--concise and --full exclude each other")
    if before == after == "-":
        raise click.UsageError("only one of the plans can come from standard input")
    layout = "json" if as_json else layout
    if with_sql and layout not in _WITH_SQL:
        raise click.UsageError(f"--sql is for --format {', '.join(_WITH_SQL)}")
    if config and not (is_script(before) or is_script(after)):
        raise click.UsageError("--config is for scripts, and neither side is one (they end in .sql)")
    if init and not (is_script(before) or is_script(after)):
        raise click.UsageError("--init is for scripts, and neither side is one (they end in .sql)")
    sources = [
        read_source(name, config=config, allow_modules=allow_modules, init=init, allow_fact_edits=allow_fact_edits)
        for name in (before, after)
    ]
    old, new = (source.plan for source in sources)
    if any(source.places is not None for source in sources):
        # The names of scripts are arguments of the call, so they are no differences.
        old = replace(old, source=new.source, init=new.init)
    evidence = given_evidence(old, file=evidence_file, checkpoint=checkpoint)
    changes = changes_with_costs(compare_plans(old, new), evidence)
    sql = _sql_difference(*sources) if with_sql else None
    text = rendered_diff(sources[0], sources[1], changes, layout, concise=concise, full=full, fail_on=fail_on, sql=sql)
    if text or layout != "github":
        print_data(text, styled=layout == "text" and wants_colour())
    if has_failing_change(changes, fail_on):
        return 1
    return 2 if exit_code and changes else 0


def _sql_difference(before: PlanSource, after: PlanSource) -> str:
    from hintplan.plans.review.diff_sql import plan_script, sql_difference

    return sql_difference(plan_script(before), plan_script(after))


def has_failing_change(changes: Sequence[Change], fail_on: str | None) -> bool:
    """Return True if one of ``changes`` has an effect at least as severe as ``fail_on``."""
    least = least_level(fail_on)
    return least is not None and bool(of_level(changes, least))


def least_level(fail_on: str | None) -> Level | None:
    """Return the mildest effect that ``fail_on`` covers."""
    return next((level for level in LEVELS if level == fail_on), LEVELS[0]) if fail_on is not None else None


def rendered_diff(
    before: PlanSource,
    after: PlanSource,
    changes: Sequence[Change],
    layout: str,
    *,
    concise: bool = False,
    full: bool = False,
    fail_on: str | None = None,
    sql: str | None = None,
) -> str:
    """Return the changes in one of ``FORMATS``; ``sql`` is the difference of the scripts, if requested."""
    from hintplan.plans.compare.report import WIDTH, Detail, changes_text

    detail: Detail = "concise" if concise else "full" if full else "normal"
    if layout == "text":
        width = _columns(WIDTH) if sys.stdout.isatty() else WIDTH
        painted = {"paint": _painted} if wants_colour() else {}
        report = changes_text(changes, detail=detail, width=width, **painted)
        return report if sql is None else f"{report}\n\n{clean(sql) or _SAME_SQL}"
    if layout == "markdown":
        from hintplan.plans.review.diff_markdown import LIMIT, mermaid_of, report_markdown
        from hintplan.plans.text.markdown import fence

        report = report_markdown(changes, detail=detail, graph=mermaid_of(before.plan, after.plan, changes))
        if sql is None:
            return report
        shown = fence(sql, "diff") if sql else _SAME_SQL
        return (
            f"{report}\n\n{shown}"
            if len(report) + len(shown) < LIMIT
            else f"{report}\n\nThe scripts differ too much to show."
        )
    if layout == "json":
        from hintplan.plans.compare.json_report import changes_json

        return json.dumps({**changes_json(changes), **({} if sql is None else {"sql": sql})}, indent=2)
    if layout == "html":
        from hintplan.plans.review.diff_html import drawing_of, report_html

        drawing = drawing_of(before.plan, after.plan, changes)
        return report_html(changes, title=f"{before.name} → {after.name}", detail=detail, drawing=drawing)
    from hintplan.plans.review.annotations import DIFF_RULES, remarks_of_changes
    from hintplan.plans.review.locations import locate

    remarks = remarks_of_changes(changes, locate(after, changes), fail_on=least_level(fail_on))
    if not full:
        remarks = [remark for remark in remarks if remark.rule != "diff-none" or remark.level == "error"]
    if layout == "github":
        from hintplan.plans.review.github import github

        return github(remarks)
    if layout == "sarif":
        from hintplan.plans.review.sarif import sarif

        return json.dumps(sarif(remarks, DIFF_RULES), indent=2)
    from hintplan.plans.review.junit import junit

    return junit(remarks, suite="diff").rstrip("\n")


def _columns(otherwise: int) -> int:
    import shutil  # a pipe has no columns

    return shutil.get_terminal_size((otherwise, 0)).columns


def _painted(text: str, part: str) -> str:
    colour = {"~": "yellow", "+": "green", "-": "red", "-/+": "magenta", "incompatible": "red"}.get(part)
    return click.style(text, fg=colour, dim=part == "note")
