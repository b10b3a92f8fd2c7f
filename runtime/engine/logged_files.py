"""The files that Spark has logged for a micro-batch, which must be unchanged when it reads them.

Spark lists the files of a batch before it reads any, and logs them in the checkpoint of the query. It skips a file
that has been deleted since. The offsets of a batch refer to entries of the log of each source:

    offsets/7        v1 | {...} | {"logOffset": 3} | -
    sources/0/3      v1 | {"path": "file:///data/orders/9.json", "timestamp": 1795670399921, "batchId": 3}

A file of a batch may also be a link that was created after the run began. It must not lead where the run may not read.
This module checks only local checkpoints and local files. The file that ends event time is no input.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hintplan.plans.errors import RunError
from hintplan.plans.text.links import is_inside
from hintplan.runtime.spark.ending import ending_path

ALLOWED = "spark.hintplan.allowMissingFiles"
"""The session setting with which a run continues without missing files, and with changed files as they are now."""
REACHED = "spark.hintplan.allowedPaths"
"""The session setting with the paths that must contain the files of all batches, as a JSON array."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file with the time of its last change, in ms."""

    path: str
    changed: int


def refuse_missing(files: Sequence[LoggedFile], batch: int) -> None:
    """Raise RunError if one of the ``files`` of a batch is missing, or has changed since Spark logged it."""
    wrong = [problem for file in files if (problem := _problem(file))]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise RunError(
            f"batch {batch} would lack rows: {'; '.join(wrong[:_SHOWN])}{more}",
            hint="restore the files that existed when the batch began; --allow-missing-files continues with the "
            "files that exist now",
        )


def refuse_links_out(files: Sequence[LoggedFile], paths: Sequence[str]) -> None:
    """Raise RunError if one of ``files`` is neither one of the absolute ``paths`` nor below one.

    Symbolic links are resolved.
    """
    for file in files:
        if not any(is_inside(file.path, path) for path in paths):
            raise RunError(
                f"the run may not reach {file.path}",
                hint=f"whoever starts the run can allow it: --allow-path {os.path.realpath(file.path)}",
            )


def logged_files(logs: Path, batch: int) -> Iterator[LoggedFile]:
    """Yield the local files of all sources of a batch."""
    before, until, ending = _offsets(logs, batch - 1), _offsets(logs, batch), ending_path(logs, batch)
    for source, last in enumerate(until):
        if last is None:
            continue
        had = before[source] if source < len(before) else None
        for number in range(0 if had is None else had + 1, last + 1):
            entries = _entries(logs / "sources" / str(source), number)
            yield from (file for file in entries if file.path != ending)


def _offsets(logs: Path, batch: int) -> list[int | None]:
    """Return the last log entry of each source in a batch.

    It is None for a source of another kind, or a source without any entry.
    """
    try:
        lines = (logs / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
    except FileNotFoundError:
        return []
    return [offset.get("logOffset") if isinstance(offset := _parsed(line), dict) else None for line in lines]


def _entries(log: Path, number: int) -> Iterator[LoggedFile]:
    for name in (str(number), f"{number}.compact"):
        try:
            lines = (log / name).read_text(encoding="utf-8").splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            entry = _parsed(line)
            if isinstance(entry, dict) and entry.get("batchId") == number:
                split = urlsplit(entry["path"])
                if split.scheme in ("", "file"):
                    yield LoggedFile(unquote(split.path), int(entry["timestamp"]))


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _problem(file: LoggedFile) -> str | None:
    try:
        status = os.stat(file.path)
    except OSError:
        return f"{file.path} is gone"
    return None if status.st_mtime_ns // 1_000_000 == file.changed else f"{file.path} was changed"
