"""Reads the record of a checkpoint and the last committed batch of each query, before any state is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hintplan.plans.checkpoint.record import CheckpointRecord, is_local_path, local_record, parse_record, record_path
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles, local_files, reaching
from hintplan.runtime.checkpoint.parts import KEPT_BATCHES, refuse_damaged
from hintplan.runtime.checkpoint.run_lock import is_held
from hintplan.runtime.storage.committed import InForce, manifests_in_force
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import DamagedFile
from hintplan.runtime.storage.place import Scale

RECORD = "hintplan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The last committed batch of a query. ``started`` is its start in ms, which is also ``now`` for its operators."""

    number: int
    started: int


def record_at(checkpoint: str, files: Files) -> CheckpointRecord | None:
    """Return the record of ``checkpoint``, whose files are ``files``, or None if it has none.

    RunError if it cannot be read. For a checkpoint on this machine without an active run, also if the files of the last
    batch are damaged. An active run changes its files all the time, and has checked them when it started.
    """
    if not is_local_path(checkpoint):
        return parsed_record(record_files(files), checkpoint)
    directory = Path(files.root)
    record = local_record(str(directory))
    if not is_held(directory):
        there = local_files(directory)
        refuse_damaged(there, record, checkpoint, kept=entries_kept(there, record))
    return record


def record_files(files: Files) -> dict[str, bytes]:
    """Return the contents of the record files of a checkpoint, by path."""
    with reaching(files.root):
        names = sorted(name for name in files.names(RECORD) if not name.startswith(("_", ".")))
    contents = {}
    for path in (f"{RECORD}/{name}" for name in names):
        files.distrust(path)  # a run may have appended lines
        contents[path] = bytes(files.read(path))
    return contents


def parsed_record(texts: Mapping[str, bytes], checkpoint: str) -> CheckpointRecord | None:
    """Parse the result of :func:`record_files`; None if there is no record. RunError if it cannot be read."""
    return parse_record(
        [line for text in texts.values() for line in _decoded(text, checkpoint).splitlines()], checkpoint
    )


def entries_kept(there: CheckpointFiles, record: CheckpointRecord | None) -> int:
    """Return the number of entries that Spark keeps in its logs, estimated from the logs.

    It is a setting of the run, which is unknown here.
    """
    kept = KEPT_BATCHES
    for query in record.queries if record else ():
        offsets, commits = (there.numbers(f"{query.logs}/{log}") for log in ("offsets", "commits"))
        if offsets and commits and min(offsets[0], commits[0]) > 0:
            kept = min(kept, max(1, commits[-1] - max(offsets[0], commits[0]) + 1))
    return kept


def last_numbers(files: Files, queries: Iterable[QueryRecord]) -> dict[str, int | None]:
    """Return the number of the last committed batch of each of ``queries``, or None for a query without one."""
    commits = {
        query.id: [int(name) for name in files.names(f"{query.logs}/commits") if name.isdecimal()] for query in queries
    }
    return {query: max(numbers, default=None) for query, numbers in commits.items()}


def committed_batches(
    files: Files, queries: Iterable[QueryRecord], numbers: Mapping[str, int | None]
) -> dict[str, Batch | None]:
    """Return the batch of each query in ``numbers``; FileNotFoundError if the log no longer has it."""
    return {
        query.id: None if (number := numbers[query.id]) is None else begun_batch(files, query, number)
        for query in queries
    }


def begun_batch(files: Files, query: QueryRecord, number: int) -> Batch:
    """Return a batch that ``query`` has begun; FileNotFoundError if the log does not have it."""
    path = f"{query.logs}/offsets/{number}"
    return Batch(number=number, started=_started(bytes(files.read(path)), f"{files.root}/{path}"))


def state_in_force(files: Files, query: QueryRecord, state: Files, number: int) -> InForce | None:
    """Return the manifests of a ``state`` of ``query`` after its batch ``number``, or None if it has none.

    ``files`` are all files of the checkpoint. DamagedFile or FileNotFoundError if some manifests are missing, which
    happens when a newer batch has been committed in the meantime.
    """
    scales = tuple(Scale(*scale) for scale in query.scales)
    in_force = manifests_in_force(state, scales, number)
    if (in_force is None or in_force.scale + 1 < len(scales)) and last_numbers(files, [query])[query.id] != number:
        raise DamagedFile(state.root, f"has gone on since batch {number}")
    return in_force


def _started(text: bytes, path: str) -> int:
    """Return the start time in a file of Spark's offset log, whose second line is JSON with the time."""
    try:
        return int(json.loads(text.decode().splitlines()[1])["batchTimestampMs"])
    except (ValueError, KeyError, IndexError) as error:
        raise RunError(
            f"{path} was not written by Spark: {error}", hint="restore the checkpoint from a backup"
        ) from error


def _decoded(text: bytes, checkpoint: str) -> str:
    try:
        return text.decode()
    except UnicodeError as error:
        raise RunError(
            f"{record_path(checkpoint)} cannot be read: it is not text",
            hint="give the directory that --checkpoint of the run names",
        ) from error
