"""What a checkpoint says before its state is read: what ran on it, and the last committed batch of each query."""

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
    """The last committed batch of a query; ``started`` is when, in ms, which is also its operators' ``now``."""

    number: int
    started: int


def record_at(checkpoint: str, files: Files) -> CheckpointRecord | None:
    """The record of ``checkpoint``, whose files are ``files``, None if it has none.

    RunError if it cannot be read; of a checkpoint on this machine, on which no run goes on, also if what the last batch
    has left is damaged. What a run writes to changes all the time; it has looked when it began.
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
    """What is in the files that are the record of a checkpoint, by their paths."""
    with reaching(files.root):
        names = sorted(name for name in files.names(RECORD) if not name.startswith(("_", ".")))
    found = {}
    for path in (f"{RECORD}/{name}" for name in names):
        files.distrust(path)  # lines may have been added to it
        found[path] = bytes(files.read(path))
    return found


def parsed_record(texts: Mapping[str, bytes], checkpoint: str) -> CheckpointRecord | None:
    """The record that :func:`record_files` found, None if there is none; RunError if it cannot be read."""
    return parse_record(
        [line for text in texts.values() for line in _decoded(text, checkpoint).splitlines()], checkpoint
    )


def entries_kept(there: CheckpointFiles, record: CheckpointRecord | None) -> int:
    """How many entries Spark has kept in its logs: a setting of the run's, which nothing but these logs tells here."""
    found = KEPT_BATCHES
    for query in record.queries if record else ():
        offsets, commits = (there.numbers(f"{query.logs}/{log}") for log in ("offsets", "commits"))
        if offsets and commits and min(offsets[0], commits[0]) > 0:
            found = min(found, max(1, commits[-1] - max(offsets[0], commits[0]) + 1))
    return found


def last_numbers(files: Files, queries: Iterable[QueryRecord]) -> dict[str, int | None]:
    """The number of the last committed batch of each of ``queries``, None for one that has committed none."""
    found = {
        query.id: [int(name) for name in files.names(f"{query.logs}/commits") if name.isdecimal()] for query in queries
    }
    return {query: max(numbers, default=None) for query, numbers in found.items()}


def committed_batches(
    files: Files, queries: Iterable[QueryRecord], numbers: Mapping[str, int | None]
) -> dict[str, Batch | None]:
    """The batch of each query that has one of ``numbers``; FileNotFoundError if nothing is said of it any more."""
    return {
        query.id: None if (number := numbers[query.id]) is None else batch_of(files, query, number) for query in queries
    }


def batch_of(files: Files, query: QueryRecord, number: int) -> Batch:
    """A batch that ``query`` has begun; FileNotFoundError if nothing is said of it."""
    path = f"{query.logs}/offsets/{number}"
    return Batch(number=number, started=_started(bytes(files.read(path)), f"{files.root}/{path}"))


def state_in_force(files: Files, query: QueryRecord, state: Files, number: int) -> InForce | None:
    """The manifests of a ``state`` of ``query`` after its batch ``number``, None if it has none; ``files`` are all.

    DamagedFile or FileNotFoundError if some are gone, as is so when a newer batch has been committed meanwhile.
    """
    scales = tuple(Scale(*each) for each in query.scales)
    found = manifests_in_force(state, scales, number)
    if (found is None or found.scale + 1 < len(scales)) and last_numbers(files, [query])[query.id] != number:
        raise DamagedFile(state.root, f"has gone on since batch {number}")
    return found


def _started(text: bytes, path: str) -> int:
    """The time in a file of Spark's offset log: a line with its version, one of JSON, and the offsets."""
    try:
        return int(json.loads(text.decode().splitlines()[1])["batchTimestampMs"])
    except (ValueError, KeyError, IndexError) as error:
        raise RunError(
            f"{path} is not what Spark writes there: {error}", hint="restore the checkpoint from a backup"
        ) from error


def _decoded(text: bytes, checkpoint: str) -> str:
    try:
        return text.decode()
    except UnicodeError as error:
        raise RunError(
            f"{record_path(checkpoint)} cannot be read: it is not text",
            hint="give the directory that --checkpoint of the run names",
        ) from error
