"""The commands that work on plan files: validate, schema, set, diff, explain.

They read, call one function each, and print; what they print is worded by that function. None of them starts Spark.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from plans.codec import load, loads
from plans.errors import Diagnostic, PlanError
from plans.jsontext import MAX_BYTES
from plans.model import Plan
from plans.states import state_of
from plans.terminal import say, show

__all__ = ["schema_command", "validate_command"]

_STDIN = "-"
_allow_fact_edits = click.option(
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
@_allow_fact_edits
@_as_json
def validate_command(paths: tuple[str, ...], allow_fact_edits: bool, as_json: bool) -> int:
    """Check plans without running them: text, schema, changed facts, and meaning."""
    problems: list[Diagnostic] = []
    for path in paths:
        try:
            plan = read_plan(path, allow_fact_edits=allow_fact_edits)
        except PlanError as error:
            problems += error.diagnostics
        else:
            stateful = sum(1 for operator in plan.operators if state_of(operator))
            if not as_json:
                say(f"{path}: valid · {len(plan.operators)} operators, {stateful} with state")
    if as_json:
        show_json({"valid": not problems, "diagnostics": [_diagnostic_json(problem) for problem in problems]})
    else:
        for problem in problems:
            say(str(problem))
    return 1 if problems else 0


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of plans, for editors and other tools."""
    from plans.schema import schema_text

    show(schema_text().rstrip("\n"))


def _diagnostic_json(problem: Diagnostic) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("file", "line", "column", "path", "message", "hint")}
