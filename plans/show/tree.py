"""A plan as a tree on a terminal, in colours where they are wanted."""

from __future__ import annotations

import click

from hintplan.plans.model.plan import Plan
from hintplan.plans.show.explain import explain
from hintplan.plans.text.terminal import show, wants_colour


def show_tree(plan: Plan) -> None:
    """Print a plan as a tree, in colours on a terminal that wants them."""
    if wants_colour():
        show(explain(plan, paint=_painted), styled=True)
    else:
        show(explain(plan))


def _painted(text: str, part: str) -> str:
    return click.style(text, bold=part == "operator", fg="yellow" if part == "edit" else None)
