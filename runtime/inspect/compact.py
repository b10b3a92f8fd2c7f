"""Rewrites the state in a checkpoint so that what nobody will see again leaves the disk, without Spark, between runs.

    found = compact_state("/data/checkpoints/revenue")
    found.total.before.bytes - found.total.after.bytes

Rows go that are deleted, replaced, or expired under the TTL of the plan that last ran. It holds the checkpoint as a run
does (:mod:`hintplan.runtime.checkpoint.run_lock`). What it publishes is of the last committed batch
(:mod:`hintplan.runtime.storage.rewritten`); nothing that Spark has written changes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hintplan.plans.checkpoint.record import CheckpointRecord, absolute, is_local_path, recorded_plan
from hintplan.plans.compare.query_record import QueryRecord, StateRecord
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import RunError
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint.files import CheckpointFiles, stored_files
from hintplan.runtime.checkpoint.held_checkpoint import RunLock
from hintplan.runtime.checkpoint.parts import refuse_damaged
from hintplan.runtime.checkpoint.run_lock import lock_directory, lock_stored
from hintplan.runtime.inspect.batches import batch_of, entries_kept, last_numbers, parsed_record, record_files
from hintplan.runtime.inspect.entries import Entry, entries_of, fits
from hintplan.runtime.inspect.opening import last_plan
from hintplan.runtime.state.compact import compact_tables
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.manifest import write_manifest
from hintplan.runtime.storage.committed import manifests_in_force
from hintplan.runtime.storage.files import Files, files_at
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.names import parsed
from hintplan.runtime.storage.partition import PartitionStore
from hintplan.runtime.storage.place import Place, Scale, folder_of
from hintplan.runtime.storage.read import read_manifest_file
from hintplan.runtime.storage.rewritten import Rewrite, Written, remove_the_rest, rewrite_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Stored ``rows``, without their older versions, in so many ``bytes`` of so many ``files``."""

    rows: int = 0
    bytes: int = 0
    files: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(rows=self.rows + other.rows, bytes=self.bytes + other.bytes, files=self.files + other.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedState:
    """The state of ``operator`` in ``query``; ``kept`` says why its rows are as they were, if no row was looked at."""

    query: str
    operator: str
    before: Size = field(default_factory=Size)
    after: Size = field(default_factory=Size)
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What has become of the states of ``checkpoint``, last run by ``plan``, judged at ``at`` (ms)."""

    checkpoint: str
    plan: str
    at: int
    time_zone: str
    states: tuple[CompactedState, ...]

    @property
    def total(self) -> CompactedState:
        """All states added up."""
        return CompactedState(
            query="",
            operator="total",
            before=sum((state.before for state in self.states), Size()),
            after=sum((state.after for state in self.states), Size()),
        )


def compact_state(checkpoint: str | os.PathLike[str], *, at: int | None = None) -> Compaction:
    """Rewrite the state in ``checkpoint``, a path or a URL, without rows that have expired at ``at`` (ms; or now).

    A batch that has begun and will run again sees the rows that it saw: its time counts, if that is earlier.
    RunError if a run goes on, if ``at`` is to come, or if the checkpoint is damaged or cannot be read.
    """
    checkpoint, clock = os.fspath(checkpoint), int(time.time() * 1000)
    if at is not None and at > clock:
        raise RunError("rows that expire later cannot go now", hint="give a time that has passed, or none")
    root = absolute(checkpoint).rstrip("/")
    files = files_at(root)
    plan = last_plan(checkpoint)
    lock = _locked(checkpoint, files)
    try:
        record = parsed_record(record_files(files), checkpoint)
        if record is None or recorded_plan(record) != plan:
            raise RunError(f"another run has used checkpoint {checkpoint} meanwhile", hint="do it again")
        return _compacted(checkpoint, files, record, plan, lock, clock=clock, at=clock if at is None else at)
    except OSError as error:
        raise RunError(
            f"the checkpoint {checkpoint} cannot be rewritten: {error.strerror or error} ({error.filename or root})",
            hint="nothing is lost: make room, or see whether its user may write there, and do it again",
        ) from error
    finally:
        lock.release()


def _locked(checkpoint: str, files: Files) -> RunLock:
    if is_local_path(checkpoint):
        return lock_directory(checkpoint, Path(files.root))
    from hintplan.runtime.storage.remote_files import remote_files

    return lock_stored(checkpoint, remote_files(files.root))


def _compacted(
    checkpoint: str, files: Files, record: CheckpointRecord, plan: Plan, lock: RunLock, *, clock: int, at: int
) -> Compaction:
    for folder in (f"{query.logs}/{log}" for query in record.queries for log in ("offsets", "commits")):
        files.refresh(folder)
    before = stored_files(files.root)
    refuse_damaged(before, record, checkpoint, kept=entries_kept(before, record))
    entries = entries_of(plan, None)
    numbers = last_numbers(files, record.queries)
    states = []
    for query in record.queries:
        last = numbers[query.id]
        if last is None:
            continue
        for path in (f"{query.logs}/{log}{name}" for log in ("offsets", "commits") for name in (f"/{last}", "")):
            files.settle(path)  # what counts without the batches before must have happened for good
        now = min(at, _begun(before, files, query, last, at))
        for state in query.states:
            if state.place:
                lock.require()
                known = () if query.parked else entries.get(state.operator, ())
                states.append(_state(files, query, state, last, _How(entries=known, now=now, clock=clock)))
    after = stored_files(files.root)
    return Compaction(
        checkpoint=checkpoint,
        plan=record.plan,
        at=at,
        time_zone=plan.config.get(TIME_ZONE, "UTC"),
        states=tuple(_measured(state, record, before, after) for state in states),
    )


def _begun(there: CheckpointFiles, files: Files, query: QueryRecord, last: int, at: int) -> int:
    """The time of the batch that runs again, or ``at`` if none does."""
    began = max(there.numbers(f"{query.logs}/offsets"), default=last)
    return batch_of(files, query, began).started if began > last else at


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What is known of the tables of a state, none if nothing is, and which of its rows have expired: at ``now``."""

    entries: Sequence[Entry]
    now: int
    clock: int

    @property
    def layouts(self) -> list[tuple[StateLayout, int]]:
        return [(layout, parse_duration(entry.ttl or "0 s")) for entry in self.entries for layout in entry.layouts]


def _state(files: Files, query: QueryRecord, state: StateRecord, last: int, how: _How) -> CompactedState:
    here = files_at(f"{files.root}/{query.id}/state/{state.place}")
    scales = tuple(Scale(*each) for each in query.scales)
    for number, scale in enumerate(scales):
        for partition in range(scale.partitions):
            here.refresh(folder_of(number, partition))  # workers on other machines have written there
    told = CompactedState(query=query.id, operator=state.operator)
    found = manifests_in_force(here, scales, last)
    if found is None:
        return replace(told, kept="no batch has written any yet")
    place = Place(
        root=here.root,
        operator=state.operator,
        lineage=state.stored,
        run=_run_after(here, scales, how.clock),
        scales=scales,
    )
    before = [read_manifest_file(here, path) for path in found.paths]
    kept = _kept(before, how)
    rewrite = _as_it_is if kept else _rewriting(how)
    after = [rewrite_partition(here, place, found, partition, rewrite) for partition in range(len(found.paths))]
    remove_the_rest(here, scales, found.scale, after)
    return replace(told, before=Size(rows=_rows(before)), after=Size(rows=_rows(after)), kept=kept)


def _kept(manifests: Sequence[Manifest], how: _How) -> str:
    """Why rows stay as they are, if they do."""
    if not how.entries:
        return "the plan that last ran does not read it"
    if not how.layouts:
        return "its rows wait to be looked up again"
    return "" if fits(how.entries, manifests) else "another version of hintplan has laid it out"


def _as_it_is(store: PartitionStore, path: str) -> Written:
    assert store.before is not None
    return store.tables, store.before.state_rows, store.before.state_bytes


def _rewriting(how: _How) -> Rewrite:
    def rewrite(store: PartitionStore, path: str) -> Written:
        written = compacted(store, store.tables, partial(store.is_stored_with_others, but=path))
        if store.is_changed(*written[:2]):  # then what its manifest has goes to the new one
            written = compacted(store, written[0], store.is_stored_with_others)
        return written

    def compacted(store: PartitionStore, manifest: bytes | None, anew: Callable[[str], bool]) -> Written:
        tables = compact_tables(store, manifest, how.layouts, now=how.now, anew=anew)
        sizes = [segment.size for table in tables.values() for segment in table.segments]
        return write_manifest(tables), sum(table.rows for table in tables.values()), sum(sizes)

    return rewrite


def _run_after(files: Files, scales: Sequence[Scale], clock: int) -> int:
    """A number for what is written now, higher than that of any run that has written to the state."""
    folders = (folder_of(number, each) for number, scale in enumerate(scales) for each in range(scale.partitions))
    names = (parsed(name) for folder in folders for name in files.names(folder))
    return max([clock, *(name.run + 1 for name in names if name is not None)])


def _rows(manifests: Sequence[Manifest]) -> int:
    return sum(manifest.state_rows for manifest in manifests)


def _measured(
    state: CompactedState, record: CheckpointRecord, before: CheckpointFiles, after: CheckpointFiles
) -> CompactedState:
    places = {(query.id, each.operator): each.place for query in record.queries for each in query.states}
    above = f"{state.query}/state/{places[state.query, state.operator]}/"

    def measured(size: Size, sizes: Mapping[str, int]) -> Size:
        found = [length for path, length in sizes.items() if path.startswith(above)]
        return replace(size, bytes=sum(found), files=len(found))

    return replace(state, before=measured(state.before, before.sizes), after=measured(state.after, after.sizes))
