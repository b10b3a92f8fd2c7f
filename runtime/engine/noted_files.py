"""The files that Spark has noted for a micro-batch, which must be what they were when it reads them.

Spark lists the files of a batch before it reads any, notes them in the logs of the query, and passes one over that has
gone since. What it noted stands in the offsets of the batch, by which entries of the logs of each source it has:

    offsets/7        v1 | {...} | {"logOffset": 3} | -
    sources/0/3      v1 | {"path": "file:///data/orders/9.json", "timestamp": 1795670399921, "batchId": 3}

A file of a batch may also be a link that was made since the run began: it must not lead where the run may not reach.
Knows local checkpoints and local files; of others nothing is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hintplan.plans.errors import RunError
from hintplan.plans.text.links import is_below

ALLOWED = "spark.hintplan.allowMissingFiles"
"""The setting of a session with which a run goes on without files that are gone, or with what they are now."""
REACHED = "spark.hintplan.allowedPaths"
"""The setting of a session with the paths, as a JSON array, that the files of its batches must be in."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NotedFile:
    """A file with the time of its last change, in ms."""

    path: str
    changed: int


def refuse_missing(files: Sequence[NotedFile], batch: int) -> None:
    """RunError if one of the ``files`` of a batch is gone, or was changed since it was noted."""
    wrong = [problem for file in files if (problem := _problem(file))]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise RunError(
            f"batch {batch} would lack rows: {'; '.join(wrong[:_SHOWN])}{more}",
            hint="put back what was there when the batch began; --allow-missing-files goes on with what is there now",
        )


def refuse_links_out(files: Sequence[NotedFile], paths: Sequence[str]) -> None:
    """RunError if one of ``files`` is none of the absolute ``paths`` nor below one, wherever symbolic links lead."""
    for file in files:
        if not any(is_below(file.path, path) for path in paths):
            raise RunError(
                f"the run may not reach {file.path}",
                hint=f"whoever starts the run can allow it: --allow-path {os.path.realpath(file.path)}",
            )


def noted_files(logs: Path, batch: int) -> Iterator[NotedFile]:
    """The local files of a batch, of all its sources."""
    before, until = _offsets(logs, batch - 1), _offsets(logs, batch)
    for source, last in enumerate(until):
        if last is None:
            continue
        had = before[source] if source < len(before) else None
        for number in range(0 if had is None else had + 1, last + 1):
            yield from _entries(logs / "sources" / str(source), number)


def _offsets(logs: Path, batch: int) -> list[int | None]:
    """The last entry of the log of each source that a batch has; None for a source of another kind, or without any."""
    try:
        lines = (logs / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
    except FileNotFoundError:
        return []
    return [found.get("logOffset") if isinstance(found := _parsed(line), dict) else None for line in lines]


def _entries(log: Path, number: int) -> Iterator[NotedFile]:
    for name in (str(number), f"{number}.compact"):
        try:
            lines = (log / name).read_text(encoding="utf-8").splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            entry: Any = _parsed(line)
            if isinstance(entry, dict) and entry.get("batchId") == number:
                split = urlsplit(entry["path"])
                if split.scheme in ("", "file"):
                    yield NotedFile(unquote(split.path), int(entry["timestamp"]))


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _problem(file: NotedFile) -> str | None:
    try:
        found = os.stat(file.path)
    except OSError:
        return f"{file.path} is gone"
    return None if found.st_mtime_ns // 1_000_000 == file.changed else f"{file.path} was changed"
