"""``hintplan init``: let VS Code complete and check plans, by a schema file and an entry in the workspace settings.

The command keeps other settings and entries. It does not change a file with comments, because it would lose them, and
prints the entry to add instead. Running it again changes nothing.

>>> with_schema_entry({"editor.tabSize": 2}, ["plan.json"])["editor.tabSize"]
2
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hintplan.plans.errors import HintplanError, PlanError
from hintplan.plans.files.codec import write_plan_bytes
from hintplan.plans.format.editor_schema import editor_schema_text
from hintplan.plans.text.terminal import print_message

SCHEMA_FILE = "hintplan.schema.json"
URL = f"./.vscode/{SCHEMA_FILE}"
PATTERNS = ("plan.json", "*.plan.json", "plans/*.json")

_START = re.compile(rb'\s*\{\s*"format"\s*:\s*"1\.')


@click.command("init")
@click.argument("directory", metavar="[DIR]", type=click.Path(file_okay=False, exists=True), default=".")
@click.option(
    "--match", "patterns", metavar="PATTERN", multiple=True, help="Files that are plans, such as 'jobs/*.json'."
)
@click.option(
    "--test", "tested", metavar="PLAN", type=click.Path(dir_okay=False), help="Only write a first test of this plan."
)
def init_command(directory: str, patterns: tuple[str, ...], tested: str | None) -> None:
    """Let VS Code complete and check plans in DIR, or here; with --test, write a first test of a plan.

    Plans are files that are called plan.json or something.plan.json, files in a folder plans, plans that are in DIR
    already, and files that match --match.
    """
    if tested is not None:
        _write_test(tested)
        return
    folder = Path(directory)
    settings = folder / ".vscode" / "settings.json"
    wanted = [*PATTERNS, *_plans_in(folder), *patterns]
    try:
        (folder / ".vscode").mkdir(exist_ok=True)
        before = settings.read_bytes() if settings.exists() else None
    except OSError as error:
        raise PlanError(f"cannot be written: {error.strerror}", file=str(error.filename)) from error
    after = _settings_text(settings, before, wanted)
    _write(folder / ".vscode" / SCHEMA_FILE, editor_schema_text().encode())
    _write(settings, after)


def _write_test(plan_file: str) -> None:
    """Write a test next to the plan, with one row for each source; PlanError if there is one already."""
    from hintplan.plans.commands.options import read_plan
    from hintplan.plans.rehearsal.first_test import first_test_text

    path = Path(plan_file).with_suffix(".test.yaml")
    text = first_test_text(read_plan(plan_file, allow_fact_edits=False), plan_file)
    if os.path.lexists(path):
        raise PlanError("is there already", file=str(path), hint=f"run it: hintplan test {path}")
    write_plan_bytes(text.encode(), path)
    print_message(f"{path}: written; hintplan test {path} --update fills in the rows that come")


def with_schema_entry(settings: dict[str, Any], patterns: Sequence[str]) -> dict[str, Any]:
    """Return the settings with an entry for plans, keeping additions of earlier runs and of users to that entry."""
    schemas = settings.get("json.schemas", [])
    if not isinstance(schemas, list):
        raise HintplanError("'json.schemas' is not a list")
    ours = next((entry for entry in schemas if isinstance(entry, dict) and entry.get("url") == URL), None)
    matched = ours.get("fileMatch", []) if ours is not None else []
    matched = [matched] if isinstance(matched, str) else list(matched)
    entry = {**(ours or {}), "fileMatch": list(dict.fromkeys([*matched, *patterns])), "url": URL}
    entries = [entry if other is ours else other for other in schemas] if ours is not None else [*schemas, entry]
    return {**settings, "json.schemas": entries}


def _settings_text(path: Path, before: bytes | None, patterns: Sequence[str]) -> bytes:
    """Return the new bytes of the settings file; they equal the old ones if nothing is missing."""
    text = before.decode("utf-8-sig", errors="replace") if before is not None else ""
    if not text.strip():
        return _printed(with_schema_entry({}, patterns), "  ")
    try:
        settings = json.loads(text)
        if not isinstance(settings, dict):
            raise ValueError
        wanted = with_schema_entry(settings, patterns)
    except (ValueError, HintplanError) as error:
        if before is not None and _has_entry(text, patterns):
            return before
        entry = json.dumps(with_schema_entry({}, patterns)["json.schemas"][0])
        raise PlanError(
            "the settings have comments or are not plain JSON, and would lose something if they were rewritten",
            file=str(path),
            hint=f'add this to "json.schemas": {entry}',
        ) from error
    if wanted == settings and before is not None:
        return before
    indent = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return _printed(wanted, indent[1] if indent else "  ")


def _has_entry(text: str, patterns: Sequence[str]) -> bool:
    """Return True if a file with comments contains the schema and all patterns, added by hand."""
    return all(json.dumps(name) in text for name in (URL, *patterns))


def _printed(settings: dict[str, Any], indent: str) -> bytes:
    return (json.dumps(settings, indent=indent, ensure_ascii=False) + "\n").encode()


def _plans_in(folder: Path) -> list[str]:
    """Return the plans directly in ``folder`` whose names the default patterns do not cover."""
    plans = []
    for path in sorted(folder.glob("*.json")):
        try:
            with path.open("rb") as stream:
                start = stream.read(200)
        except OSError:
            continue  # an unreadable file cannot be edited as a plan
        if path.name != "plan.json" and not path.name.endswith(".plan.json") and _START.match(start):
            plans.append(path.name)
    return plans


def _write(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() == data:
        print_message(f"{path}: as it should be")
        return
    verb = "changed" if path.exists() else "written"
    write_plan_bytes(data, path)
    print_message(f"{path}: {verb}")
