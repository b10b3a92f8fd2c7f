"""``hintplan init``: lets VS Code complete and check plans, by a schema file and an entry in the workspace's settings.

It merges with what is there: other settings and entries stay as they are, and a file with comments, which it could not
write back, is left alone with a word on what to add. Running it again changes nothing.

>>> merged({"editor.tabSize": 2}, ["plan.json"])["editor.tabSize"]
2
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hintplan.plans.errors import HintplanError, PlanError
from hintplan.plans.files.codec import write_plan_bytes
from hintplan.plans.format.editor_schema import editor_schema_text
from hintplan.plans.text.terminal import say

SCHEMA_FILE = "hintplan.schema.json"
URL = f"./.vscode/{SCHEMA_FILE}"
PATTERNS = ("plan.json", "*.plan.json", "plans/*.json")

_START = re.compile(rb'\s*\{\s*"format"\s*:\s*"1\.')


@click.command("init")
@click.argument("directory", metavar="[DIR]", type=click.Path(file_okay=False, exists=True), default=".")
@click.option(
    "--match", "patterns", metavar="PATTERN", multiple=True, help="Files that are plans, such as 'jobs/*.json'."
)
def init_command(directory: str, patterns: tuple[str, ...]) -> None:
    """Let VS Code complete and check plans in DIR, or here.

    Plans are the files that are called plan.json or something.plan.json, those in a folder plans, those that lie in DIR
    already, and those of --match.
    """
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


def merged(settings: dict[str, Any], patterns: Sequence[str]) -> dict[str, Any]:
    """The settings with an entry for plans; what an earlier run or a person added to the entry stays in it."""
    schemas = settings.get("json.schemas", [])
    if not isinstance(schemas, list):
        raise HintplanError("'json.schemas' is not a list")
    ours = next((entry for entry in schemas if isinstance(entry, dict) and entry.get("url") == URL), None)
    known = ours.get("fileMatch", []) if ours is not None else []
    known = [known] if isinstance(known, str) else list(known)
    entry = {**(ours or {}), "fileMatch": list(dict.fromkeys([*known, *patterns])), "url": URL}
    others = [entry if one is ours else one for one in schemas] if ours is not None else [*schemas, entry]
    return {**settings, "json.schemas": others}


def _settings_text(path: Path, before: bytes | None, patterns: Sequence[str]) -> bytes:
    """The new bytes of the settings, which are the old ones if nothing is missing in them."""
    text = before.decode("utf-8-sig", errors="replace") if before is not None else ""
    if not text.strip():
        return _printed(merged({}, patterns), "  ")
    try:
        settings = json.loads(text)
        if not isinstance(settings, dict):
            raise ValueError
        wanted = merged(settings, patterns)
    except (ValueError, HintplanError) as error:
        if before is not None and _has_entry(text, patterns):
            return before
        entry = json.dumps(merged({}, patterns)["json.schemas"][0])
        raise PlanError(
            "the settings have comments or are no plain JSON, and would lose something if they were written anew",
            file=str(path),
            hint=f'add this to "json.schemas": {entry}',
        ) from error
    if wanted == settings and before is not None:
        return before
    indent = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return _printed(wanted, indent[1] if indent else "  ")


def _has_entry(text: str, patterns: Sequence[str]) -> bool:
    """Whether a file with comments names the schema and all patterns, as someone added them by hand."""
    return all(json.dumps(name) in text for name in (URL, *patterns))


def _printed(settings: dict[str, Any], indent: str) -> bytes:
    return (json.dumps(settings, indent=indent, ensure_ascii=False) + "\n").encode()


def _plans_in(folder: Path) -> list[str]:
    """The plans that lie in ``folder`` itself under names of their own."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            with path.open("rb") as stream:
                start = stream.read(200)
        except OSError:
            continue  # what cannot be read is not a plan that anyone edits here
        if path.name != "plan.json" and not path.name.endswith(".plan.json") and _START.match(start):
            found.append(path.name)
    return found


def _write(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() == data:
        say(f"{path}: as it should be")
        return
    verb = "changed" if path.exists() else "written"
    write_plan_bytes(data, path)
    say(f"{path}: {verb}")
