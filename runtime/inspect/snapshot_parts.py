"""The parts of a snapshot of a checkpoint: the files that a run needs to continue after the last committed batches.

    metadata, offsets, commits, sources     of each query, up to its batch
    marks                                   of its sinks, the last marks up to its batch
    state                                   manifests in force after it, with their marks, and the segments they name

Files of uncommitted batches and the lock are not included. State files never change, so they may be hard links; Spark's
files are copied. The caller copies the record, because it must come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.runtime.checkpoint.parts import log_offset
from hintplan.runtime.checkpoint.sink_marks import MARKS
from hintplan.runtime.checkpoint.state_parts import STATE
from hintplan.runtime.inspect.batches import state_in_force
from hintplan.runtime.spark.ending import ending_batch
from hintplan.runtime.storage.files import Files, files_at
from hintplan.runtime.storage.names import MANIFEST, WRITTEN
from hintplan.runtime.storage.read import read_manifest_file


class SnapshotPart(NamedTuple):
    """A file, by its path below the checkpoint; ``link`` is true if a hard link is allowed."""

    path: str
    link: bool = False


def snapshot_parts(files: Files, record: CheckpointRecord, numbers: Mapping[str, int | None]) -> Iterator[SnapshotPart]:
    """Yield the files of each query after the batch in ``numbers``, Spark's files first.

    FileNotFoundError or RunError if files disappear in the meantime.
    """
    for query in record.queries:
        yield from _of_spark(files, query, numbers[query.id])
    for query in record.queries:
        last = numbers[query.id]
        if last is not None:
            yield from _of_sinks(files, query, last)
            yield from _of_states(files, query, last)


def _of_spark(files: Files, query: QueryRecord, last: int | None) -> Iterator[SnapshotPart]:
    here = query.logs
    names = files.names(here)
    yield from _with_checksums(here, names, [name for name in names if name == "metadata"])
    if last is None:
        return
    for log in ("commits", "offsets"):
        yield from _numbered(f"{here}/{log}", files.names(f"{here}/{log}"), last)
    lines = bytes(files.read(f"{here}/offsets/{last}")).decode(errors="replace").splitlines()[2:]
    ends = [log_offset(line) for line in lines]
    folders = [name for name in files.names(f"{here}/sources") if not name.startswith(".")]
    furthest = max((end for end in ends if end is not None), default=None)
    recorded_ends = {number: ends[position] for position, (_, number) in enumerate(query.order)} if query.order else {}
    for name in folders:
        # Without a recorded order, there may be more folders than sources, so the lines cannot be assigned.
        own = name.isdecimal() and (int(name) in recorded_ends or len(folders) == len(ends) > int(name))
        end = recorded_ends.get(int(name), ends[int(name)]) if own else furthest
        folder = f"{here}/sources/{name}"
        if not _ends_later(files, folder, query, last):
            yield from _numbered(folder, files.names(folder), end)


def _ends_later(files: Files, folder: str, query: QueryRecord, last: int) -> bool:
    """Return whether a source ends event time in a batch after ``last``, which would drain the copy."""
    if [name for name in files.names(folder) if not name.startswith(".")] != ["0"]:
        return False
    batch = ending_batch(bytes(files.read(f"{folder}/0")), query.id)
    return batch is not None and batch > last


def _of_sinks(files: Files, query: QueryRecord, last: int) -> Iterator[SnapshotPart]:
    """Yield the newest file of marks. It is not linked, because another file may later have its name."""
    folder = f"{query.id}/{MARKS}"
    numbers = [int(name) for name in files.names(folder) if name.isdecimal() and int(name) <= last]
    if numbers:
        yield SnapshotPart(f"{folder}/{max(numbers)}")


def _numbered(folder: str, names: Sequence[str], last: int | None) -> Iterator[SnapshotPart]:
    """Yield the entries of a log up to ``last`` (None for all), oldest first, since these may soon be removed."""

    def number(name: str) -> int:
        plain = name.removesuffix(".compact")
        return int(plain) if plain.isdecimal() else -1

    chosen = (name for name in names if not name.startswith(".") and (last is None or 0 <= number(name) <= last))
    yield from _with_checksums(folder, names, sorted(chosen, key=number))


def _with_checksums(folder: str, names: Sequence[str], chosen: Iterable[str]) -> Iterator[SnapshotPart]:
    there = set(names)
    for name in chosen:
        yield SnapshotPart(f"{folder}/{name}")
        if f".{name}.crc" in there:
            yield SnapshotPart(f"{folder}/.{name}.crc")


def _of_states(files: Files, query: QueryRecord, last: int) -> Iterator[SnapshotPart]:
    for state in query.states:
        above = f"{query.id}/{STATE}/{state.place}"
        here = files_at(f"{files.root}/{above}")
        in_force = state_in_force(files, query, here, last) if state.place else None
        wanted: dict[str, None] = {}
        for path in () if in_force is None else in_force.paths:
            folder, _, name = path.rpartition("/")
            mark = f"{name.removesuffix(MANIFEST)}{WRITTEN}"
            wanted[path] = None
            if mark in here.names(folder):
                wanted[f"{folder}/{mark}"] = None
            wanted |= dict.fromkeys(ref.file for ref in read_manifest_file(here, path).segments.values())
        yield from (SnapshotPart(f"{above}/{path}", link=True) for path in wanted)
