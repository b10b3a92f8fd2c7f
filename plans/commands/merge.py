"""``hintplan merge``: merge two versions of a plan and their base, by hand or as git's merge driver.

The driver must leave a file that people can resolve: the merged plan with git's markers around conflicts. For versions
that are no plans, git merges the lines; the result counts as merged only if it is a valid plan.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from hintplan.plans.commands.options import json_report_option, one_on_stdout, plan_output_option, show_json
from hintplan.plans.compare.report import changes_text
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.files.codec import dumps, loads, put_plan_bytes, read_plan_bytes, write_plan_bytes
from hintplan.plans.files.git import git as git_says
from hintplan.plans.merge.conflict_text import with_conflict_markers
from hintplan.plans.merge.merge import MergedPlan, conflict_sides, merge_plans
from hintplan.plans.merge.merge_text import path_of, unit_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.terminal import print_message

_FAILED = 70
_HINT = (
    "choose a value; if the SQL was merged too, compile each version with its own --keep-edits, then merge the three"
)


@click.command("merge")
@click.argument("base", metavar="BASE")
@click.argument("ours", metavar="OURS")
@click.argument("theirs", metavar="THEIRS")
@plan_output_option
@click.option(
    "--git",
    is_flag=True,
    help="Work as git's merge driver: the result goes to OURS, with conflict markers if necessary.",
)
@click.option("--path", "name", metavar="FILE", help="With --git: the plan's name, for messages.")
@click.option("--marker-size", type=click.IntRange(1, 100), default=7, show_default=True, help="With --git.")
@json_report_option
def merge_command(
    base: str,
    ours: str,
    theirs: str,
    output: str | None,
    git: bool,
    name: str | None,
    marker_size: int,
    as_json: bool,
) -> int:
    """Merge two versions of a plan, OURS and THEIRS, that both come from BASE.

    \b
    hintplan merge base.json ours.json theirs.json -o plan.json
    """
    if git:
        try:
            return _drive(base, ours, theirs, name or ours, marker_size)
        except Exception as error:  # noqa: BLE001
            # For git, 1 means a conflict with markers in the file; any other code makes git merge the lines.
            print_message(f"{name or ours}: {type(error).__name__}: {error}")
            return _FAILED
    one_on_stdout(output, as_json=as_json)
    versions = [_read(file) for file in (base, ours, theirs)]
    if versions[1] is None or versions[2] is None:
        raise PlanError("the file is empty", file=ours if versions[1] is None else theirs)
    merged = merge_plans(versions[0], versions[1], versions[2])
    if as_json:
        show_json(_report(merged))
    if merged.plan is None:
        if not as_json:
            raise PlanError(diagnostics=tuple(_diagnostics(merged, output or ours)))
        return 1
    put_plan_bytes(dumps(merged.plan), output)
    if not as_json:
        print_message(changes_text(merged.changed))
        for edit in merged.underneath:
            print_message(f"{edit.path}: {edit.value} is kept over {edit.after}; it was over {edit.before}")
    return 0


def _drive(base: str, ours: str, theirs: str, name: str, marker_size: int) -> int:
    """Write the merge to ``ours``, as git expects of a driver; return 0 if it is whole, and 1 if it has conflicts."""
    try:
        files = {"base": base, "ours": ours, "theirs": theirs}
        before, first, second = (_read(file, f"{name} ({side})") for side, file in files.items())
        if first is None or second is None:
            raise PlanError("the file is empty", file=name)
        merged = merge_plans(before, first, second)
    except PlanError as error:
        return _merge_lines(base, ours, theirs, marker_size, name, error)
    if merged.plan is not None:
        write_plan_bytes(dumps(merged.plan), ours)
        for edit in merged.underneath:
            print_message(f"{name}: {edit.path}: {edit.value} is kept over {edit.after}; it was over {edit.before}")
        return 0
    sides = conflict_sides(before, first, second)
    shown = sides["base"] if _wants_base() and before is not None else None
    labels = ("ours", "theirs")
    text = with_conflict_markers(sides["ours"], sides["theirs"], labels=labels, base=shown, marker_size=marker_size)
    write_plan_bytes(text, ours)
    for diagnostic in _diagnostics(merged, name):
        print_message(str(diagnostic))
    return 1


def _merge_lines(base: str, ours: str, theirs: str, marker_size: int, name: str, error: PlanError) -> int:
    """Let git merge the lines of files that are no plans.

    If one of them was meant to be a plan, the result must be a valid plan; otherwise it is a conflict.
    """
    meant = any(_looks_like_a_plan(read_plan_bytes(file)) for file in (base, ours, theirs))
    command = ["git", "merge-file", f"--marker-size={marker_size}", "-L", "ours", "-L", "base", "-L", "theirs"]
    conflict = subprocess.run([*command, ours, base, theirs], check=False).returncode != 0
    if not meant:
        return 1 if conflict else 0
    try:
        _read(ours, name)
    except PlanError:
        print_message(f"{name}: not merged by meaning, because one version is no valid plan; git has merged its lines")
        print_message(str(error))
        return 1
    return 1 if conflict else 0


def _looks_like_a_plan(data: bytes) -> bool:
    return b'"operators"' in data and b'"format"' in data


def _wants_base() -> bool:
    _, style, _ = git_says("config", "--get", "merge.conflictstyle")
    return style.strip() in ("diff3", "zdiff3")


def _read(file: str, shown: str | None = None) -> Plan | None:
    """Return the plan in ``file``, or None if it is empty: git has no base for a file that both sides added."""
    data = read_plan_bytes(file)
    return loads(data, file=shown or file) if data else None


def _diagnostics(merged: MergedPlan, file: str) -> Iterator[Diagnostic]:
    for conflict in merged.conflicts:
        sides = f"ours {unit_text(conflict.ours)}, theirs {unit_text(conflict.theirs)}, base {unit_text(conflict.base)}"
        message = f"both sides changed it: {sides}"
        if isinstance(conflict.ours, dict) and isinstance(conflict.theirs, dict):
            differ = [k for k in {**conflict.ours, **conflict.theirs} if conflict.ours.get(k) != conflict.theirs.get(k)]
            message = f"both sides changed its facts: {', '.join(differ)}"
        yield Diagnostic(message=message, path=path_of(conflict.key), file=file, hint=_HINT)
    for problem in merged.problems:
        message = f"the changes of both sides do not go together: {problem.message}"
        yield Diagnostic(message=message, path=problem.path, file=file, hint=problem.hint or _HINT)


def _report(merged: MergedPlan) -> dict[str, Any]:
    return {
        "done": merged.plan is not None,
        "changed": [{"path": c.path, "before": c.before, "after": c.after, "note": c.note} for c in merged.changed],
        "changed-underneath": [asdict(edit) for edit in merged.underneath],
        "conflicts": [
            {"path": path_of(conflict.key)}
            | {side: unit_text(getattr(conflict, side)) for side in ("base", "ours", "theirs")}
            for conflict in merged.conflicts
        ],
        "problems": [asdict(problem) for problem in merged.problems],
    }
