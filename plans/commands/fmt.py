"""``hintplan fmt`` and ``hintplan flat``: a plan in its canonical layout, and as lines for diffs and searches."""

from __future__ import annotations

from difflib import unified_diff

import click

from hintplan.plans.errors import Diagnostic, PlanError, on_one_line
from hintplan.plans.files.codec import loads, plan_bytes, put_plan_bytes, write_plan_bytes
from hintplan.plans.files.fmt import canonical_text
from hintplan.plans.files.plan_source import read_bytes
from hintplan.plans.merge.conflict_text import sides_of, with_conflict_markers
from hintplan.plans.merge.flat import flat_lines
from hintplan.plans.text.redaction import without_json_literals
from hintplan.plans.text.terminal import print_data, print_message


@click.command("fmt")
@click.argument("paths", metavar="PLAN...", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Write nothing; exit with 2 if a plan has another layout.")
@click.option("--diff", "as_diff", is_flag=True, help="Write nothing; print what would change, and exit with 2.")
def fmt_command(paths: tuple[str, ...], check: bool, as_diff: bool) -> int:
    """Lay plans out in the one canonical way; '-' reads standard input and writes standard output.

    If a file is no plan, no file is changed.
    """
    problems: list[Diagnostic] = []
    changed: list[tuple[str, bytes, bytes]] = []
    for path in paths:
        try:
            data, file = plan_bytes(path)
            result = canonical_text(data, file=file)
        except PlanError as error:
            problems += error.diagnostics
            continue
        if path == "-" and not (check or as_diff):
            put_plan_bytes(result, None)
        elif result != data:
            changed.append((path, data, result))
    if problems:
        raise PlanError(diagnostics=tuple(problems))
    for path, data, result in changed:
        if as_diff:
            print_data(_difference(path, data, result))
        if check or as_diff:
            print_message(f"{on_one_line(path)}: would be reformatted")
        else:
            write_plan_bytes(result, path)
            print_message(f"{on_one_line(path)}: reformatted")
    return 2 if changed and (check or as_diff) else 0


def _difference(path: str, data: bytes, result: bytes) -> str:
    before, after = (without_json_literals(text.decode()).splitlines() for text in (data, result))
    return "\n".join(unified_diff(before, after, f"{path} (as it is)", f"{path} (canonical)", lineterm=""))


@click.command("flat")
@click.argument("path", metavar="PLAN")
@click.option("--lenient", is_flag=True, help="Print an invalid plan unchanged; for git's textconv.")
def flat_command(path: str, lenient: bool) -> None:
    """Print one line for each fact and setting of a plan, for diffs and searches."""
    data, _, file = read_bytes(path)
    try:
        print_data(_flat(data, file))
    except PlanError:
        if not lenient:
            raise
        text = _flat_conflict(data.decode("utf-8", "backslashreplace"))
        print_data(without_json_literals(text).rstrip("\n"))


def _flat(data: bytes | str, file: str | None = None) -> str:
    return "\n".join(flat_lines(loads(data, file=file, allow_fact_edits=True, check_meaning=False)))


def _flat_conflict(text: str) -> str:
    """Convert a plan with conflict markers to lines with conflict markers, and return any other text unchanged."""
    sides = sides_of(text)
    try:
        ours, theirs = (_flat(side).encode() + b"\n" for side in sides or ())
    except (ValueError, PlanError):
        return text
    return with_conflict_markers(ours, theirs, labels=("ours", "theirs")).decode()
