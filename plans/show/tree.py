"""A plan as a tree on a terminal, in its width, and in colours unless they are turned off."""

from __future__ import annotations

import sys

import click

from hintplan.plans.model.plan import Plan
from hintplan.plans.show.explain import plan_tree
from hintplan.plans.text.terminal import print_data, wants_colour


def show_tree(plan: Plan, *, whole: bool = False) -> None:
    """Print a plan as a tree; lines are cut at the width of the terminal, unless ``whole`` is set."""
    width = None
    if sys.stdout.isatty() and not whole:
        import shutil  # a pipe has no columns

        width = shutil.get_terminal_size().columns
    if wants_colour():
        print_data(plan_tree(plan, paint=_painted, width=width, whole=whole), styled=True)
    else:
        print_data(plan_tree(plan, width=width, whole=whole))


def _painted(text: str, part: str) -> str:
    return click.style(text, bold=part == "operator", fg="yellow" if part == "edit" else None)
