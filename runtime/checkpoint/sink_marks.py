"""Marks in a checkpoint that say what a sink had after a batch had changed it, so that an older sink is noticed.

    <checkpoint>/<query id>/marks/<n>    a line of JSON: all sinks of the query as they were after batch n

Sinks that count every batch need none. A batch that changes nothing leaves no mark. A mark is written when the sink has
the batch, and before the batch has ended; so the marks up to the last batch that ended hold, and a lost mark lets an
older sink pass, but refuses no other. What ``had`` says is the connector's business.
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
    """What a sink ``had`` after ``batch``; ``place`` tells tables apart that a sink was given one after the other."""

    batch: int
    place: str
    had: Mapping[str, Any]


def place_of(table: Table) -> str:
    """Return what tells ``table`` from the one that the sink wrote to before its options were changed."""
    return _digest(json.dumps(sorted(table.options.items())).encode())


def newest_mark(files: CheckpointFiles, query: str, ended: int) -> str | None:
    """Return the path of the file of marks of ``query`` that hold after batch ``ended``; None if there is none."""
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
    """Return what is wrong with the file of marks at ``path``; RunError if a later version has written it."""
    found = _LINE.fullmatch(content)
    if found is None or _digest(found[1] + b"}") != found[2].decode():
        return Damage(part=path, what="is not what hintplan writes there")
    told = json.loads(found[1] + b"}")
    if told["version"] != VERSION:
        raise RunError(
            f"{path} has marks of version {told['version']}, and this version of hintplan reads {VERSION}",
            hint="go on with the version of hintplan that wrote the checkpoint",
        )
    if told["batch"] != int(path.rpartition("/")[2]):
        return Damage(part=path, what=f"is that of batch {told['batch']}")
    return None


def parsed_marks(content: bytes) -> dict[str, SinkMark]:
    """Return the marks in a file that is not damaged."""
    return {name: SinkMark(**mark) for name, mark in json.loads(content)["sinks"].items()}


def marks_line(batch: int, marks: Mapping[str, SinkMark]) -> bytes:
    """Return the file of ``marks`` after ``batch``."""
    sinks = {name: {"batch": m.batch, "place": m.place, "had": dict(m.had)} for name, m in sorted(marks.items())}
    text = json.dumps({"version": VERSION, "batch": batch, "sinks": sinks})
    return f'{text[:-1]}, "checksum": "{_digest(text.encode())}"}}\n'.encode()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
