"""Rewrites the state in a checkpoint between runs, without Spark, to remove invisible rows from the disk.

    compaction = compact_state("/data/checkpoints/revenue")
    compaction.total.before.bytes - compaction.total.after.bytes

It removes rows that are deleted, replaced, or expired under the TTL of the plan that last ran. It locks the checkpoint
as a run does (:mod:`hintplan.runtime.checkpoint.run_lock`). It publishes new files for the last committed batch
(:mod:`hintplan.runtime.storage.rewritten`), and changes no file of Spark.
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
from hintplan.runtime.checkpoint.parts import refuse_damaged
from hintplan.runtime.checkpoint.process_locks import RunLock
from hintplan.runtime.checkpoint.run_lock import lock_directory, lock_stored
from hintplan.runtime.inspect.batches import begun_batch, entries_kept, last_numbers, parsed_record, record_files
from hintplan.runtime.inspect.entries import Entry, entries_of, fits
from hintplan.runtime.inspect.opening import last_plan
from hintplan.runtime.state.compact import compact_tables
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.manifest import write_manifest
from hintplan.runtime.storage.committed import manifests_in_force
from hintplan.runtime.storage.files import Files, files_at
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.names import parse_name
from hintplan.runtime.storage.partition import PartitionStore
from hintplan.runtime.storage.place import Place, Scale, folder_of
from hintplan.runtime.storage.read import read_manifest_file
from hintplan.runtime.storage.rewritten import Rewrite, Written, remove_the_rest, rewrite_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The number of stored ``rows``, without older versions, and the ``bytes`` and ``files`` that they take."""

    rows: int = 0
    bytes: int = 0
    files: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(rows=self.rows + other.rows, bytes=self.bytes + other.bytes, files=self.files + other.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedState:
    """The state of ``operator`` in ``query``. ``kept`` is the reason why its rows were not rewritten, if so."""

    query: str
    operator: str
    before: Size = field(default_factory=Size)
    after: Size = field(default_factory=Size)
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The compacted states of ``checkpoint``, which ``plan`` last ran on; expiry is judged at ``at`` (ms)."""

    checkpoint: str
    plan: str
    at: int
    time_zone: str
    states: tuple[CompactedState, ...]

    @property
    def total(self) -> CompactedState:
        """The sum of all states."""
        return CompactedState(
            query="",
            operator="total",
            before=sum((state.before for state in self.states), Size()),
            after=sum((state.after for state in self.states), Size()),
        )


def compact_state(checkpoint: str | os.PathLike[str], *, at: int | None = None) -> Compaction:
    """Rewrite the state in ``checkpoint``, a path or a URL, without rows that have expired at ``at`` (ms; default now).

    If a batch has begun and will run again, its earlier time applies, so that it sees the same rows as before. RunError
    if a run is active, if ``at`` is in the future, or if the checkpoint is damaged or unreadable.
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
            files.settle(path)  # before older manifests are removed, the last batch must be durable
        now = min(at, _begun(before, files, query, last, at))
        for state in query.states:
            if state.place:
                lock.require()
                entry_list = () if query.parked else entries.get(state.operator, ())
                states.append(_state(files, query, state, last, _How(entries=entry_list, now=now, clock=clock)))
    after = stored_files(files.root)
    return Compaction(
        checkpoint=checkpoint,
        plan=record.plan,
        at=at,
        time_zone=plan.config.get(TIME_ZONE, "UTC"),
        states=tuple(_measured(state, record, before, after) for state in states),
    )


def _begun(there: CheckpointFiles, files: Files, query: QueryRecord, last: int, at: int) -> int:
    """Return the time of the batch that will run again, or ``at`` if there is none."""
    began = max(there.numbers(f"{query.logs}/offsets"), default=last)
    return begun_batch(files, query, began).started if began > last else at


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """The entries of a state, if they are known, and the time ``now`` at which expiry is judged."""

    entries: Sequence[Entry]
    now: int
    clock: int

    @property
    def layouts(self) -> list[tuple[StateLayout, int]]:
        return [(layout, parse_duration(entry.ttl or "0 s")) for entry in self.entries for layout in entry.layouts]


def _state(files: Files, query: QueryRecord, state: StateRecord, last: int, how: _How) -> CompactedState:
    here = files_at(f"{files.root}/{query.id}/state/{state.place}")
    scales = tuple(Scale(*scale_record) for scale_record in query.scales)
    for number, scale in enumerate(scales):
        for partition in range(scale.partitions):
            here.refresh(folder_of(number, partition))  # workers on other machines may have written there
    unchanged = CompactedState(query=query.id, operator=state.operator)
    in_force = manifests_in_force(here, scales, last)
    if in_force is None:
        return replace(unchanged, kept="no batch has written any yet")
    place = Place(
        root=here.root,
        operator=state.operator,
        lineage=state.stored,
        run=_run_after(here, scales, how.clock),
        scales=scales,
    )
    before = [read_manifest_file(here, path) for path in in_force.paths]
    kept = _kept(before, how)
    rewrite = _as_it_is if kept else _rewriting(how)
    after = [rewrite_partition(here, place, in_force, partition, rewrite) for partition in range(len(in_force.paths))]
    remove_the_rest(here, scales, in_force.scale, after)
    return replace(unchanged, before=Size(rows=_rows(before)), after=Size(rows=_rows(after)), kept=kept)


def _kept(manifests: Sequence[Manifest], how: _How) -> str:
    """Return the reason why rows must not be rewritten, or an empty text."""
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
        if store.is_changed(*written[:2]):  # then move segments that its manifest contains to the new one
            written = compacted(store, written[0], store.is_stored_with_others)
        return written

    def compacted(store: PartitionStore, manifest: bytes | None, anew: Callable[[str], bool]) -> Written:
        tables = compact_tables(store, manifest, how.layouts, now=how.now, anew=anew)
        sizes = [segment.size for table in tables.values() for segment in table.segments]
        return write_manifest(tables), sum(table.rows for table in tables.values()), sum(sizes)

    return rewrite


def _run_after(files: Files, scales: Sequence[Scale], clock: int) -> int:
    """Return a run number higher than the number of any run that has written to the state."""
    folders = (
        folder_of(number, partition) for number, scale in enumerate(scales) for partition in range(scale.partitions)
    )
    names = (parse_name(name) for folder in folders for name in files.names(folder))
    return max([clock, *(name.run + 1 for name in names if name is not None)])


def _rows(manifests: Sequence[Manifest]) -> int:
    return sum(manifest.state_rows for manifest in manifests)


def _measured(
    state: CompactedState, record: CheckpointRecord, before: CheckpointFiles, after: CheckpointFiles
) -> CompactedState:
    places = {
        (query.id, state_record.operator): state_record.place
        for query in record.queries
        for state_record in query.states
    }
    above = f"{state.query}/state/{places[state.query, state.operator]}/"

    def measured(size: Size, sizes: Mapping[str, int]) -> Size:
        lengths = [length for path, length in sizes.items() if path.startswith(above)]
        return replace(size, bytes=sum(lengths), files=len(lengths))

    return replace(state, before=measured(state.before, before.sizes), after=measured(state.after, after.sizes))
