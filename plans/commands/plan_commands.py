"""The commands that work on plan files: validate, schema, set, explain.

They read, call one function each, and print; what they print is worded by that function. None of them starts Spark.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import islice
from typing import Any

import click

from plans.analysis.run_limits import check_sizes
from plans.errors import Diagnostic, PlanError
from plans.files.codec import fingerprint, load, loads, read_plan_bytes, write_plan_bytes
from plans.model.plan import Plan
from plans.show.explain import summary
from plans.text.jsontext import MAX_BYTES
from plans.text.terminal import say, show, wants_colour

__all__ = ["allow_fact_edits_option", "explain_command", "schema_command", "set_command", "validate_command"]

_STDIN = "-"
_ENOUGH = 100
allow_fact_edits_option = click.option(
    "--allow-fact-edits", is_flag=True, help="Accept operators and tables that were changed by hand."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def read_plan(path: str, *, allow_fact_edits: bool, check_meaning: bool = True) -> Plan:
    """The plan at ``path``, or on stdin if it is ``-``."""
    if path != _STDIN:
        return load(path, allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    return loads(data, file="<stdin>", allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)


def show_json(value: Any) -> None:
    """Print a JSON value for a script to read; non-ASCII characters as escapes, so that none reaches a terminal."""
    show(json.dumps(value, indent=2))


@click.command("validate")
@click.argument("paths", metavar="PLAN...", nargs=-1, required=True)
@allow_fact_edits_option
@_as_json
def validate_command(paths: tuple[str, ...], allow_fact_edits: bool, as_json: bool) -> int:
    """Check plans without running them: text, schema, changed facts, and meaning."""
    problems: list[Diagnostic] = []
    changed: list[str] = []
    digests: dict[str, str] = {}
    for path in paths:
        try:
            plan = read_plan(path, allow_fact_edits=allow_fact_edits)
        except PlanError as error:
            problems += error.diagnostics
            if not as_json:
                from plans.compare.restore import restoring

                changed.append(restoring(error))
        else:
            large = [replace(one, file=path) for one in islice(check_sizes(plan), _ENOUGH)]
            if large:
                problems += large
                continue
            digests[path] = fingerprint(plan)
            if not as_json:
                say(f"{path}: valid · {summary(plan)} · digest {digests[path]}")
    if as_json:
        found = [_diagnostic_json(problem) for problem in problems]
        show_json({"valid": not problems, "digests": digests, "diagnostics": found})
    else:
        for text in (*map(str, problems), *filter(None, changed)):
            say(text)
    return 1 if problems else 0


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of plans, for editors and other tools."""
    from plans.format.editor_schema import editor_schema_text

    show(editor_schema_text().rstrip("\n"))


@click.command("explain")
@click.argument("path", metavar="PLAN")
@allow_fact_edits_option
@_as_json
def explain_command(path: str, allow_fact_edits: bool, as_json: bool) -> None:
    """Show the operators of a plan as a tree, with every state, its TTL, and who set it."""
    from plans.show.explain import explain_json

    plan = read_plan(path, allow_fact_edits=allow_fact_edits, check_meaning=False)
    if as_json:
        show_json(explain_json(plan))
    else:
        show_tree(plan)


def show_tree(plan: Plan) -> None:
    """Print a plan as a tree, in colours on a terminal that wants them."""
    from plans.show.explain import explain

    if wants_colour():
        show(explain(plan, paint=_painted), styled=True)
    else:
        show(explain(plan))


def _painted(text: str, part: str) -> str:
    return click.style(text, bold=part == "operator", fg="yellow" if part == "edit" else None)


@click.command("set")
@click.argument("path", metavar="PLAN")
@click.argument("assignments", metavar="PATH=VALUE...", nargs=-1)
@click.option("--remove", "removals", multiple=True, metavar="PATH", help="Remove a config key or a table option.")
@click.option("--reason", metavar="TEXT", help="Keep this note beside the settings; '' takes the old one away.")
@allow_fact_edits_option
@_as_json
def set_command(
    path: str,
    assignments: tuple[str, ...],
    removals: tuple[str, ...],
    reason: str | None,
    allow_fact_edits: bool,
    as_json: bool,
) -> None:
    """Edit settings of a plan; nothing is written unless everything is right.

    \b
    hintplan set plan.json join_o_c.state.leftState.ttl='3 d' --reason 'late payments, see RFC 12'
    hintplan set plan.json '*.leftState.ttl'='3 d'
    hintplan set plan.json config.table.exec.state.ttl='2 h'
    hintplan set plan.json lookup_rates.async.capacity=50
    hintplan set plan.json lookup_rates.retry='3 x 10 s'
    hintplan set plan.json tables.orders.options.path=data/orders
    hintplan set plan.json --remove config.table.exec.state.ttl
    """
    from plans.analysis.repeated import one_sided_changes
    from plans.compare.diff import diff
    from plans.compare.json_report import report_json
    from plans.compare.report import report_text
    from plans.edit.edit import remove_value, set_value
    from plans.files.rewrite import rewrite
    from plans.model.settings import paths_like

    if not assignments and not removals:
        raise click.UsageError("nothing to do: give PATH=VALUE or --remove PATH")
    data = read_plan_bytes(path)
    # An edit may be what repairs the plan, so its meaning is checked afterwards.
    plan = edited = loads(data, file=path, allow_fact_edits=allow_fact_edits, check_meaning=False)
    problems: list[Diagnostic] = []
    for assignment in assignments:
        setting, equals, value = assignment.partition("=")
        if not equals:
            raise click.UsageError(f"expected PATH=VALUE, found '{assignment}'")
        try:
            for one in paths_like(edited, setting) if "*" in setting else (setting,):
                edited, _ = set_value(edited, one, value, reason=reason)
        except PlanError as error:
            problems += error.diagnostics
    for setting in removals:
        try:
            edited, _ = remove_value(edited, setting)
        except PlanError as error:
            problems += error.diagnostics
    if problems:
        raise PlanError(diagnostics=tuple(problems))
    written = rewrite(data, plan, edited)
    loads(written, file=path, allow_fact_edits=allow_fact_edits)
    if written != data:
        write_plan_bytes(written, path)
    changes = diff(plan, edited)
    if as_json:
        show_json(report_json(changes))
    else:
        say(report_text(changes))
    for found in one_sided_changes(plan, edited):
        say(f"note: {found.path}: {found.message}")


def _diagnostic_json(problem: Diagnostic) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("file", "line", "column", "path", "message", "hint")}
