"""Options that commands share: changed facts, JSON output, times, evidence, and the options of commands that compile.

>>> key_values(("a=1", "b = x=y"))
{'a': '1', 'b': 'x=y'}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from hintplan.plans.errors import PlanError
from hintplan.plans.files.codec import loads
from hintplan.plans.files.plan_source import read_bytes
from hintplan.plans.lazy import load
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.terminal import print_data

if TYPE_CHECKING:
    from hintplan.plans.compare.change import Change
    from hintplan.plans.evidence.document import Evidence

allow_fact_edits_option = click.option(
    "--allow-fact-edits", is_flag=True, help="Accept operators and tables that were changed by hand."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
json_report_option = click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
json_format_option = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")


def output_option(words: str) -> Callable[[Any], Any]:
    """Return the option ``-o FILE``; its value is None for standard output, without it or for ``-``."""

    def given(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
        return None if path == "-" else path

    kind = click.Path(dir_okay=False, allow_dash=True)
    return click.option("-o", "--output", type=kind, callback=given, help=words)


plan_output_option = output_option("Write the plan here, not to standard output.")


def read_plan(path: str, *, allow_fact_edits: bool, check_meaning: bool = True) -> Plan:
    """Return the plan at ``path``: a file, a file in git such as ``git:main:plan.json``, or stdin for ``-``."""
    data, _, file = read_bytes(path)
    return loads(data, file=file, allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)


def one_on_stdout(output: str | None, *, as_json: bool) -> None:
    """Raise UsageError if both the report and the plan would go to standard output."""
    if as_json and output is None:
        raise click.UsageError("--json needs -o: without it, the plan goes to standard output")


def show_json(value: object) -> None:
    """Print a JSON value for scripts, with non-ASCII characters as escapes, so that none reaches a terminal."""
    print_data(json.dumps(value, indent=2))


def key_values(given: Iterable[str]) -> dict[str, str]:
    """Return the values by key, with the last value of a repeated key; raise BadParameter without ``key=value``."""
    values: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected key=value, found '{text}'")
        values[key.strip()] = value.strip()
    return values


def key_value_option(*names: str, words: str) -> Callable[[Any], Any]:
    """Return a repeatable option that takes ``KEY=VALUE``, with ``words`` as its help."""

    def parsed(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
        return key_values(given)

    return click.option(*names, multiple=True, callback=parsed, metavar="KEY=VALUE", help=words)


config_option = key_value_option("-c", "--config", words="Override a SET of the script.")
allow_module_option = click.option(
    "--allow-module",
    "allow_modules",
    multiple=True,
    metavar="MODULE",
    help="A module from which the script's functions are loaded.",
)
init_option = click.option(
    "-i",
    "--init",
    metavar="FILE",
    multiple=True,
    help="Read this file with shared CREATE and SET statements first; repeatable.",
)


def instant(text: str | None, time_zone: str) -> int | None:
    """Return the ISO 8601 time of an option ``--at`` in ms since 1970; without an offset, it is in ``time_zone``.

    >>> instant("1970-01-01T01:00", "Europe/Paris")
    0
    """
    from datetime import datetime
    from zoneinfo import ZoneInfo

    if text is None:
        return None
    zone = ZoneInfo(time_zone)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}; write a time such as 2026-11-20T12:00:00Z") from error
    return int((time if time.tzinfo else time.replace(tzinfo=zone)).timestamp() * 1000)


evidence_option = click.option(
    "--evidence", "evidence_file", metavar="FILE", help="Read the observations of a run from this file."
)
checkpoint_option = click.option(
    "--checkpoint", metavar="DIR", help="Read the observations of the run with this checkpoint."
)


def read_evidence_file(path: str) -> Evidence:
    """Return the evidence in a file; raise PlanError if it cannot be read."""
    from hintplan.plans.evidence.document import loads
    from hintplan.plans.files.codec import read_plan_bytes

    return loads(read_plan_bytes(path), file=path)


def given_evidence(plan: Plan, *, file: str | None, checkpoint: str | None) -> Evidence | None:
    """Return the evidence in a file or in the checkpoint of a run of ``plan``; None without either."""
    if file is not None and checkpoint is not None:
        raise click.UsageError("--evidence and --checkpoint exclude each other")
    if file is not None:
        evidence = read_evidence_file(file)
        if evidence.plan != plan.name:
            hint = "give the evidence that hintplan state wrote for this plan"
            raise PlanError(
                f"the evidence is of the plan '{evidence.plan}', not of '{plan.name}'", file=file, hint=hint
            )
        return evidence
    if checkpoint is None:
        return None
    from hintplan.plans.checkpoint.record import absolute
    from hintplan.plans.extras import require

    require("state")
    read: Callable[[Plan, str], Evidence] = load("hintplan.runtime.inspect.evidence:read_evidence")
    return read(plan, absolute(checkpoint))


def changes_with_costs(changes: Sequence[Change], evidence: Evidence | None) -> Sequence[Change]:
    """Return the changes, each change of a TTL with its cost; unchanged without evidence."""
    if evidence is None:
        return changes
    from hintplan.plans.compare.costs import with_costs

    return with_costs(changes, evidence)
