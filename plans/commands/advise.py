"""``hintplan advise``: the TTL that each state needs, according to the observations of a run."""

from __future__ import annotations

from typing import Any

import click

from hintplan.plans.commands.options import (
    allow_fact_edits_option,
    checkpoint_option,
    evidence_option,
    given_evidence,
    json_option,
    read_plan,
    show_json,
)
from hintplan.plans.text.counts import parse_share
from hintplan.plans.text.terminal import print_data


def _share(ctx: click.Context, parameter: click.Parameter, text: str) -> float:
    """Return a share such as ``99.9%`` or ``99.9`` as a number between 0 and 1."""
    try:
        return parse_share(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("advise")
@click.argument("path", metavar="PLAN")
@checkpoint_option
@evidence_option
@click.option(
    "--keep", default="99.9%", show_default=True, callback=_share, metavar="SHARE", help="The matches to keep."
)
@json_option
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@allow_fact_edits_option
def advise_command(
    path: str,
    checkpoint: str | None,
    evidence_file: str | None,
    keep: Any,
    as_json: bool,
    markdown: bool,
    allow_fact_edits: bool,
) -> None:
    """Show for each state when its rows were needed, the effect of other TTLs, and the TTL that keeps most matches.

    A run observes how old the rows of a state are when they are used. Nothing is changed: the report ends with the
    command that sets the proposed TTL.

    \b
    hintplan advise plan.json --checkpoint DIR
    hintplan advise plan.json --evidence plan.evidence.json --keep 99.99%
    """
    from hintplan.plans.evidence.advice_report import advice_json, advice_markdown, advice_text, advise

    if as_json and markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    plan = read_plan(path, allow_fact_edits=allow_fact_edits)
    if plan.mode == "batch":
        raise click.UsageError(f"{plan.name} is a batch plan: it keeps no state")
    evidence = given_evidence(plan, file=evidence_file, checkpoint=checkpoint)
    if evidence is None:
        raise click.UsageError("give the observations of a run: --checkpoint DIR or --evidence FILE")
    advices = advise(plan, evidence, keep)
    if as_json:
        show_json(advice_json(advices, evidence, keep))
    else:
        print_data(advice_markdown(advices, path) if markdown else advice_text(advices, path))
