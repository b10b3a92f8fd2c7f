"""``hintplan validate`` checks plans without running them; ``hintplan schema`` prints their JSON Schema."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import click

from hintplan.plans.analysis.run_limits import check_sizes
from hintplan.plans.commands.options import allow_fact_edits_option, json_option, read_plan, show_json
from hintplan.plans.errors import Diagnostic, PlanError, on_one_line
from hintplan.plans.files.codec import fingerprint
from hintplan.plans.show.explain import plan_summary
from hintplan.plans.text.terminal import print_data, print_message

_ENOUGH = 100


@click.command("validate")
@click.argument("paths", metavar="PLAN...", nargs=-1, required=True)
@allow_fact_edits_option
@json_option
def validate_command(paths: tuple[str, ...], allow_fact_edits: bool, as_json: bool) -> int:
    """Check plans without running them: text, schema, changed facts, and meaning."""
    problems: list[Diagnostic] = []
    advice: list[str] = []
    digests: dict[str, str] = {}
    for path in paths:
        try:
            plan = read_plan(path, allow_fact_edits=allow_fact_edits)
        except PlanError as error:
            problems += error.diagnostics
            if not as_json:
                from hintplan.plans.files.restore import restoring

                advice.append(restoring(error))
        else:
            large = [replace(finding, file=path) for finding in islice(check_sizes(plan), _ENOUGH)]
            if large:
                problems += large
                continue
            digests[path] = fingerprint(plan)
            if not as_json:
                print_data(f"{on_one_line(path)}: valid · {plan_summary(plan)} · digest {digests[path]}")
    if as_json:
        diagnostics = [_diagnostic_json(problem) for problem in problems]
        show_json({"valid": not problems, "digests": digests, "diagnostics": diagnostics})
    else:
        for text in (*map(str, problems), *filter(None, advice)):
            print_message(text)
    return 1 if problems else 0


def _diagnostic_json(problem: Diagnostic) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("file", "line", "column", "path", "message", "hint")}


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of plans, for editors and other tools."""
    from hintplan.plans.format.editor_schema import editor_schema_text

    print_data(editor_schema_text().rstrip("\n"))
