"""``hintplan git-setup``: configure git to diff and merge plans, and show the configuration."""

from __future__ import annotations

import click

from hintplan.plans.files.git_setup import Setup, apply_setup, planned
from hintplan.plans.text.terminal import print_message

_SHOWN = 80


@click.command("git-setup")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user, not only this one.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
def git_setup_command(patterns: tuple[str, ...], everywhere: bool, dry_run: bool) -> None:
    """Let git diff and merge the plans that match PATTERN (plans/*.json if none is given) by meaning.

    Writes lines to .gitattributes, which you must commit, and commands to the git config of this clone.
    """
    setup = planned(patterns or ("plans/*.json",), everywhere=everywhere)
    if not dry_run:
        apply_setup(setup)
    for line in _lines(setup, "would " if dry_run else "", None if dry_run else _SHOWN):
        print_message(line)


def _lines(setup: Setup, would: str, most: int | None) -> list[str]:
    """Return the steps as lines; long shell commands are cut to ``most`` characters."""
    lines = [
        f"{would}set {key} = {_cut(value, most)}" + (f" (it was {_cut(old, most)})" if old is not None else "")
        for key, value, old in setup.settings
    ]
    lines += [f"{would}write {setup.attributes}"] if setup.changed else []
    if not lines:
        return ["nothing to do: git is set up for plans already"]
    undo = f"git config {setup.scope} --remove-section"
    lines.append(f"to undo it: {undo} merge.hintplan; {undo} diff.hintplan; take the lines out of {setup.attributes}")
    return lines


def _cut(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[:most]}…"
