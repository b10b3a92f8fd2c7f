"""Marks in a checkpoint that record the version of each sink after a batch, to detect a sink that lost later batches.

    <checkpoint>/<query id>/marks/<n>    a line of JSON: all sinks of the query after batch n

The connector defines the version ``had``, such as a batch number, a table version or topic offsets. Sinks that count
every batch need no marks. A batch that changes nothing writes no mark. A mark is written after the sink has received
the batch and before the batch ends, so the marks up to the last ended batch hold. If a mark is lost, an older sink goes
undetected, but no sink is refused wrongly.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles, Damage
from hintplan.runtime.storage.manifest import RESTORE

MARKS = "marks"
VERSION = 1
_LINE = re.compile(rb'(.*), "checksum": "([0-9a-f]{16})"\}\n', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMark:
    """The version of a sink after ``batch``: ``had`` contains it.

    ``place`` identifies the table, for a sink whose table has changed.
    """

    batch: int
    place: str
    had: Mapping[str, Any]


def place_digest(table: Table) -> str:
    """Return a digest of the options of ``table``, which changes if the sink writes to a different table."""
    return _digest(json.dumps(sorted(table.options.items())).encode())


def newest_mark(files: CheckpointFiles, query: str, ended: int) -> str | None:
    """Return the path of the newest mark file of ``query`` up to batch ``ended``, or None if there is none."""
    numbers = [number for number in files.numbers(f"{query}/{MARKS}") if number <= ended]
    return f"{query}/{MARKS}/{numbers[-1]}" if numbers else None


def read_marks(files: CheckpointFiles, query: str, ended: int) -> Mapping[str, SinkMark]:
    """Return the marks of the sinks of ``query`` after batch ``ended``; RunError if they cannot be read."""
    path = newest_mark(files, query, ended)
    if path is None:
        return {}
    content = files.read([path])[path]
    if (damage := mark_damage(path, content)) is not None:
        raise RunError(f"the checkpoint is damaged: {damage}", hint=RESTORE)
    return parsed_marks(content)


def mark_damage(path: str, content: bytes) -> Damage | None:
    """Return the damage of the mark file at ``path``, or None; RunError if a later version of hintplan wrote it."""
    match = _LINE.fullmatch(content)
    if match is None or _digest(match[1] + b"}") != match[2].decode():
        return Damage(part=path, what="was not written by hintplan")
    content_fields = json.loads(match[1] + b"}")
    if content_fields["version"] != VERSION:
        raise RunError(
            f"{path} has marks of version {content_fields['version']}, and this version of hintplan reads {VERSION}",
            hint="continue with the version of hintplan that wrote the checkpoint",
        )
    if content_fields["batch"] != int(path.rpartition("/")[2]):
        return Damage(part=path, what=f"belongs to batch {content_fields['batch']}")
    return None


def parsed_marks(content: bytes) -> dict[str, SinkMark]:
    """Parse the marks in an undamaged file."""
    return {name: SinkMark(**mark) for name, mark in json.loads(content)["sinks"].items()}


def marks_line(batch: int, marks: Mapping[str, SinkMark]) -> bytes:
    """Return the content of the file of ``marks`` after ``batch``."""
    sinks = {name: {"batch": m.batch, "place": m.place, "had": dict(m.had)} for name, m in sorted(marks.items())}
    text = json.dumps({"version": VERSION, "batch": batch, "sinks": sinks})
    return f'{text[:-1]}, "checksum": "{_digest(text.encode())}"}}\n'.encode()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
