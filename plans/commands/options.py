"""Options that commands share: facts that may have changed, JSON instead of text, and those of commands that compile.

>>> key_values(("a=1", "b = x=y"))
{'a': '1', 'b': 'x=y'}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from plans.files.codec import load, loads
from plans.model.plan import Plan
from plans.text.jsontext import MAX_BYTES
from plans.text.terminal import show

__all__ = [
    "allow_fact_edits_option",
    "allow_module_option",
    "config_option",
    "json_option",
    "key_values",
    "read_plan",
    "show_json",
]

_STDIN = "-"
allow_fact_edits_option = click.option(
    "--allow-fact-edits", is_flag=True, help="Accept operators and tables that were changed by hand."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def read_plan(path: str, *, allow_fact_edits: bool, check_meaning: bool = True) -> Plan:
    """The plan at ``path``, or on stdin if it is ``-``."""
    if path != _STDIN:
        return load(path, allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    return loads(data, file="<stdin>", allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)


def show_json(value: Any) -> None:
    """Print a JSON value for a script to read; non-ASCII characters as escapes, so that none reaches a terminal."""
    show(json.dumps(value, indent=2))


def key_values(given: Iterable[str]) -> dict[str, str]:
    """The values by key, of several for one key the last; wrong usage for what is not ``key=value``."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected key=value, found '{text}'")
        found[key.strip()] = value.strip()
    return found


config_option = click.option(
    "-c",
    "--config",
    multiple=True,
    callback=lambda ctx, parameter, given: key_values(given),
    metavar="KEY=VALUE",
    help="Override a SET of the script.",
)

allow_module_option = click.option(
    "--allow-module",
    "allow_modules",
    multiple=True,
    metavar="MODULE",
    help="Where the script's functions may be; their code is loaded.",
)
