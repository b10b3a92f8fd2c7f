"""Spark's logs of a query written anew for other sources: what is read on goes on under its new number.

    <query>/metadata, offsets/, commits/, sources/            the first generation
    <query>/logs.2/metadata, offsets/, commits/, sources/     another one

A generation has all that the one before it has, the batch that was begun and not committed too, with a line in each
entry for each source as it stands in the query now: ``-`` for one that begins. It counts once the record names it, and
the one before it goes when the query has started. Knows Spark's logs by their text, and no Spark.
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
"""In an entry of the offset log before those of the sources: its version, and what holds of the batch."""


def begin_generation(files: Files, there: CheckpointFiles, old: QueryRecord, new: QueryRecord) -> None:
    """Write the logs of ``new``, which goes on for ``old``, into ``files``; ``there`` is what the checkpoint has.

    RunError if the old logs are of other sources than was recorded, or if one source goes on for several that have not
    read the same.
    """
    for path in there.sizes:
        if path.startswith(f"{new.logs}/"):
            files.remove(path)  # of a run that died before it was recorded
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
        places = [lines_of.get(origins.get(operator, "")) for operator, _ in new.order]
        found = [_NOTHING if place is None else lines[_HEAD_LINES + place] for place in places]
        name = path.rpartition("/")[2]
        files.publish(f"{new.logs}/offsets/{name}", "\n".join([*lines[:_HEAD_LINES], *found]).encode())
    for name in there.names(f"{old.logs}/commits"):
        files.publish(f"{new.logs}/commits/{name}", _content(there, f"{old.logs}/commits/{name}"))
    files.publish(f"{new.logs}/metadata", _content(there, f"{old.logs}/metadata"))
    for folder in (*(["/sources"] if numbers else []), "/offsets", "/commits", ""):
        files.settle(f"{new.logs}{folder}")


def end_generations(files: Files, there: CheckpointFiles, record: CheckpointRecord) -> None:
    """Remove the logs of other generations than those of ``record``; ``there`` is what the checkpoint had."""
    for path in list(old_logs(there, record)):
        folder, _, name = path.rpartition("/")
        files.remove(path)
        files.remove(f"{folder}/.{name}.crc")


def old_logs(there: CheckpointFiles, record: CheckpointRecord) -> Iterator[str]:
    """The files of a checkpoint that are logs of other generations than those of ``record``."""
    for query in record.queries:
        for path in there.sizes:
            query_id, _, below = path.partition("/")
            if query_id == query.id and _LOGS.fullmatch(below) and not _is_of(path, query):
                yield path


def _is_of(path: str, query: QueryRecord) -> bool:
    below = path.removeprefix(f"{query.logs}/")
    return below != path and not below.startswith("logs.")


def _refuse_apart(there: CheckpointFiles, query: QueryRecord, operator: str, latest: Sequence[list[str]]) -> None:
    """RunError if what ``operator`` reads is several sources to Spark, and one of them has found more than another."""
    places = [(place, number) for place, (each, number) in enumerate(query.order) if each == operator]
    if len({number for _, number in places}) < 2:
        return
    for lines in latest:
        found = {_reached(there, query, number, lines[_HEAD_LINES + place]) for place, number in places}
        if len(found) > 1:
            raise RunError(
                f"{operator} is read in several places of {query.id}, which have not found the same files so far, so "
                "that a query with other sources could not go on for all of them",
                hint="run the plan that wrote the checkpoint until there is nothing new, with --once, then this one",
            )


def _reached(there: CheckpointFiles, query: QueryRecord, number: int, line: str) -> frozenset[str] | str:
    """What says how far a source is: the files that it has found, or else its offset."""
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
