"""Generations of Spark's logs, for a query that continues with different sources.

    <query>/metadata, offsets/, commits/, sources/            the first generation
    <query>/logs.2/metadata, offsets/, commits/, sources/     another one

A new generation copies everything of the previous one, including a batch that began and was not committed. Each entry
of its offset log has one line for each source that the query has now, ``-`` for a new source. A source that the query
still reads continues under its new number. The generation takes effect when the record names it. The previous one is
removed when the query has started. This module reads Spark's logs as text, without Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.compare.sources import continued_sources
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.checkpoint.parts import last_batches, log_offset
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import RESTORE

_LOGS = re.compile(r"(?:logs\.\d+/)?(?:metadata|(?:offsets|commits|sources/\d+)/[^/]+)")
_NOTHING = "-"
_HEAD_LINES = 2
"""The lines of an offset log entry before its sources: the version, then the metadata of the batch."""


def begin_generation(files: Files, there: CheckpointFiles, old: QueryRecord, new: QueryRecord) -> None:
    """Write to ``files`` the logs of ``new``, the query that continues ``old``.

    ``there`` are the current files of the checkpoint. RunError if the old logs do not match the recorded sources, or if
    one source is to continue several sources that have not read the same.
    """
    for path in there.sizes:
        if path.startswith(f"{new.logs}/"):
            files.remove(path)  # left by a run that died before it was recorded
    began, ended = last_batches(there, old.logs)
    paths = [path for path in there.sizes if path.startswith(f"{old.logs}/offsets/")]
    offsets = {path: text.decode().split("\n") for path, text in there.read(paths).items()}
    lines_of = {operator: number for number, (operator, _) in enumerate(old.order)}
    for path, lines in offsets.items():
        if len(lines) != _HEAD_LINES + len(old.order):
            raise RunError(f"the checkpoint is damaged: {path} is not of the sources that were recorded", hint=RESTORE)
    latest = [offsets[path] for n in sorted({began, ended}) if (path := f"{old.logs}/offsets/{n}") in offsets]
    origins = continued_sources(old.sources, new.sources).origins
    numbers: dict[int, str] = {}
    for operator, number in new.order:
        origin = origins.get(operator)
        if origin in lines_of:
            _refuse_apart(there, old, origin, latest)
            numbers.setdefault(number, origin)
    for number, origin in numbers.items():
        source = f"{old.logs}/sources/{dict(old.order)[origin]}"
        for name in there.names(source):
            files.publish(f"{new.logs}/sources/{number}/{name}", _content(there, f"{source}/{name}"))
    for path, lines in offsets.items():
        positions = [lines_of.get(origins.get(operator, "")) for operator, _ in new.order]
        continued = [_NOTHING if position is None else lines[_HEAD_LINES + position] for position in positions]
        name = path.rpartition("/")[2]
        files.publish(f"{new.logs}/offsets/{name}", "\n".join([*lines[:_HEAD_LINES], *continued]).encode())
    for name in there.names(f"{old.logs}/commits"):
        files.publish(f"{new.logs}/commits/{name}", _content(there, f"{old.logs}/commits/{name}"))
    files.publish(f"{new.logs}/metadata", _content(there, f"{old.logs}/metadata"))
    for folder in (*(["/sources"] if numbers else []), "/offsets", "/commits", ""):
        files.settle(f"{new.logs}{folder}")


def end_generations(files: Files, there: CheckpointFiles, record: CheckpointRecord) -> None:
    """Remove the logs of all generations except the one in ``record``; ``there`` are the files of the checkpoint."""
    for path in list(old_logs(there, record)):
        folder, _, name = path.rpartition("/")
        files.remove(path)
        files.remove(f"{folder}/.{name}.crc")


def old_logs(there: CheckpointFiles, record: CheckpointRecord) -> Iterator[str]:
    """Yield the log files of a checkpoint that belong to other generations than the one in ``record``."""
    for query in record.queries:
        for path in there.sizes:
            query_id, _, below = path.partition("/")
            if query_id == query.id and _LOGS.fullmatch(below) and not _is_of(path, query):
                yield path


def _is_of(path: str, query: QueryRecord) -> bool:
    below = path.removeprefix(f"{query.logs}/")
    return below != path and not below.startswith("logs.")


def _refuse_apart(there: CheckpointFiles, query: QueryRecord, operator: str, latest: Sequence[list[str]]) -> None:
    """Raise RunError if Spark reads ``operator`` as several sources that have not found the same files."""
    positions = [(position, number) for position, (scan, number) in enumerate(query.order) if scan == operator]
    if len({number for _, number in positions}) < 2:
        return
    for lines in latest:
        progress = {_reached(there, query, number, lines[_HEAD_LINES + position]) for position, number in positions}
        if len(progress) > 1:
            raise RunError(
                f"{operator} is read in several places of {query.id}, which have read different files so far, so a "
                f"query with other sources could not continue for all of them",
                hint="run the plan that wrote the checkpoint until there is nothing new, with --once, then this one",
            )


def _reached(there: CheckpointFiles, query: QueryRecord, number: int, line: str) -> frozenset[str] | str:
    """Return the progress of a source: the files that it has found, or its offset if it has no file log."""
    end = log_offset(line)
    if end is None:
        return line
    folder = f"{query.logs}/sources/{number}"
    entries = [name for name in there.names(folder) if int(name.removesuffix(".compact")) <= end]
    contents = there.read([f"{folder}/{name}" for name in entries])
    return frozenset(
        str(json.loads(line)["path"]) for text in contents.values() for line in text.decode().splitlines()[1:]
    )


def _content(there: CheckpointFiles, path: str) -> bytes:
    return there.read([path])[path]
