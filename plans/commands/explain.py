"""``hintplan explain``: the operators of a plan as a tree."""

from __future__ import annotations

import click

from hintplan.plans.commands.options import allow_fact_edits_option, json_option, read_plan, show_json
from hintplan.plans.show.tree import show_tree


@click.command("explain")
@click.argument("path", metavar="PLAN")
@allow_fact_edits_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Print whole expressions, even if the lines are long.")
def explain_command(path: str, allow_fact_edits: bool, as_json: bool, verbose: bool) -> None:
    """Show the operators of a plan as a tree, with every state, its TTL, and who set it.

    Expressions are shown in Flink's words. On a terminal, lines are cut at its width. Elsewhere, a description is
    cut after 160 characters.
    """
    from hintplan.plans.show.explain import explain_json

    plan = read_plan(path, allow_fact_edits=allow_fact_edits, check_meaning=False)
    if as_json:
        show_json(explain_json(plan))
    else:
        show_tree(plan, whole=verbose)
