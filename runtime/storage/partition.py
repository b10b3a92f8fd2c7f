"""One partition of a state during one batch: opened in the state after the previous batch, changed, and published.

A batch is a function: batch n reads the newest manifest before n and writes the manifest of n. If two attempts run,
both publish equal manifests, and the first one stays. Files of an older run never override files of a newer run for the
same batch, because the first batch of each run always writes. The sweep removes neither files that a manifest of the
last batches names, nor files that a batch may be writing. This module does not know operators.

    store = open_partition(files_at(place.root), place, partition=0, batch=12)
    result = operator.process(deltas, store.tables, store, now)
    store.publish(result.manifest, result.state_rows, result.state_bytes)
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.files import ByteSink, Files
from hintplan.runtime.storage.local_files import let_pages_go
from hintplan.runtime.storage.manifest import (
    DamagedFile,
    Manifest,
    SegmentRef,
    StoredWatermark,
    added_lateness,
    encode_manifest,
    offsets,
)
from hintplan.runtime.storage.names import MANIFEST, SEGMENT, WRITTEN, file_name, newest, parse_name
from hintplan.runtime.storage.old_scales import sweep_old_scales
from hintplan.runtime.storage.open_segments import OpenSegments
from hintplan.runtime.storage.place import Place, bounds, folder_of
from hintplan.runtime.storage.read import read_manifest_file, read_segment, segment_key

INLINE_BYTES = 256 << 10
"""Segments up to this size are stored in the manifest, because each file is a request to an object store."""
KEPT_BATCHES = 10
"""The number of batches whose manifests are kept, for readers and for slow attempts."""
SWEEP_EVERY = 10

Token = Callable[[], str]


def new_token() -> str:
    """Return a random token that distinguishes a segment from others of its batch and run."""
    return uuid.uuid4().hex[:16]


@dataclass(frozen=True, slots=True)
class Known:
    """The manifest in force after ``batch``. ``read_in`` is the batch in which it was last read from disk."""

    batch: int
    manifest: Manifest | None
    read_in: int


@dataclass(slots=True)
class Remembered:
    """The cache of this process for partitions of which it has run a batch."""

    manifests: dict[tuple[str, int, int], Known] = field(default_factory=dict)
    opened: OpenSegments = field(default_factory=OpenSegments)


def open_partition(
    files: Files,
    place: Place,
    partition: int,
    batch: int,
    remembered: Remembered | None = None,
    token: Token = new_token,
) -> PartitionStore:
    """Open the state of ``partition`` before ``batch``; RunError if it is damaged, or belongs to another operator."""
    remembered = Remembered() if remembered is None else remembered
    cached = remembered.manifests.get((place.root, place.scale, partition))
    inherited: Sequence[Manifest] = ()
    if cached is not None and _is_in_force(cached, place, batch):
        base, read_in = cached.manifest, cached.read_in
    else:
        base, read_in = find_manifest(files, place, partition, batch), batch
        if base is None:
            inherited = find_inherited(files, place, partition)
    return PartitionStore(files, place, partition, batch, base, inherited, remembered, token, read_in)


def _is_in_force(known: Known, place: Place, batch: int) -> bool:
    """Return whether the cached manifest is equivalent to the one on disk.

    On file systems where a second file replaces the first, the manifest of another attempt may be there instead. It is
    equal, but may not name this process's segments. These are kept for ``KEPT_BATCHES`` batches, and the manifest is
    read again before that.
    """
    of_this_run = known.manifest is None or known.manifest.run == place.run
    return of_this_run and known.batch == batch - 1 and batch - known.read_in < KEPT_BATCHES


def find_manifest(files: Files, place: Place, partition: int, batch: int) -> Manifest | None:
    """Return the newest manifest of a partition before ``batch``, or None if there is none yet.

    DamagedFile if it is lost. The folder is refreshed first, because another machine may just have published the newest
    manifest, and an older one would be a wrong state. This is needed in the first batch of a run, and when a partition
    moves to another worker, but not in each batch.
    """
    folder = folder_of(place.scale, partition)
    files.refresh(folder)
    name = newest(files.names(folder), before=batch, since=place.scales[-1].first)
    if name is None and place.begun:
        raise DamagedFile(f"{files.root}/{folder}", "no longer has a manifest")
    if name is None:
        return None
    manifest = read_manifest_file(files, f"{folder}/{name}")
    if manifest.lineage != place.lineage:
        raise DamagedFile(f"{files.root}/{folder}/{name}", f"belongs to another state, of {manifest.operator}")
    return manifest


def find_inherited(files: Files, place: Place, partition: int) -> list[Manifest]:
    """Return the last manifests of the partitions of earlier scales whose hashes a new partition takes over."""
    if not place.scale:
        return []
    before = replace(place, scales=place.scales[:-1])
    low, high = bounds(partition, place.partitions)
    manifests = []
    for old in range(before.partitions):
        old_low, old_high = bounds(old, before.partitions)
        if old_low < high and low < old_high:
            manifest = find_manifest(files, before, old, place.scales[-1].first)
            manifests += find_inherited(files, before, old) if manifest is None else [manifest]
    return manifests


class PartitionStore:
    """A SegmentStore for the files of a partition and the manifest that names them."""

    def __init__(
        self,
        files: Files,
        place: Place,
        partition: int,
        batch: int,
        base: Manifest | None,
        inherited: Sequence[Manifest],
        remembered: Remembered,
        token: Token,
        read_in: int = 0,
    ) -> None:
        self._files = files
        self._place = place
        self._partition = partition
        self._batch = batch
        self._remembered = remembered
        self._token = token
        self._read_in = read_in
        self._folder = folder_of(place.scale, partition)
        self.before = base
        self.inherited = tuple(inherited)
        self._refs: dict[str, SegmentRef] = {} if base is None else dict(base.segments)
        self._pending: dict[str, pa.Table] = {}

    @property
    def tables(self) -> bytes | None:
        """The operator's own manifest."""
        return None if self.before is None else self.before.tables

    @property
    def watermark(self) -> StoredWatermark | None:
        """The watermark before the batch.

        A new partition has the one of the partitions before it, which all agree, and the late rows of those whose first
        heir it is.
        """
        if self.before is not None:
            return self.before.watermark
        stored = [(m.watermark, self._is_first_heir(m)) for m in self.inherited if m.watermark is not None]
        if not stored:
            return None
        mine = (watermark.lateness for watermark, is_heir in stored if is_heir)
        return replace(stored[0][0], lateness=reduce(added_lateness, mine, ()))

    @property
    def manifests(self) -> tuple[bytes, ...]:
        """The operator's manifests of the partitions that had the hashes of this one before."""
        return tuple(manifest.tables for manifest in self.inherited if manifest.tables is not None)

    @property
    def is_first_heir(self) -> tuple[bool, ...]:
        """True for each of ``manifests`` whose partition begins in this one: what cannot be divided goes to it."""
        return tuple(self._is_first_heir(manifest) for manifest in self.inherited if manifest.tables is not None)

    def _is_first_heir(self, manifest: Manifest) -> bool:
        low, high = self.bounds
        return low <= bounds(manifest.partition, manifest.partitions)[0] < high

    @property
    def bounds(self) -> tuple[int, int]:
        """The hashes of this partition: from the first to before the second."""
        return bounds(self._partition, self._place.partitions)

    def is_stored_with_others(self, segment: str, *, but: str = "") -> bool:
        """Return whether a segment shares its file with others; False if the file is ``but``.

        A shared file is kept as long as one of its segments is needed.
        """
        ref = self._refs.get(segment)
        return ref is not None and (ref.low is not None or ref.file.endswith(MANIFEST)) and ref.file != but

    def inherit(self, segment: str, part: int, old: str) -> pa.Table:
        manifest = self._of_part(part)
        ref = manifest.segments[old]
        theirs = bounds(manifest.partition, manifest.partitions)
        low, high = self.bounds
        low, high = max(low, theirs[0]), min(high, theirs[1])
        if ref.low is not None and ref.high is not None:
            low, high = max(low, ref.low), min(high, ref.high)
        self._refs[segment] = replace(ref, low=low, high=max(low, high))
        return self.read(segment)

    def read_old(self, part: int, old: str) -> pa.Table:
        return read_segment(self._files, self._of_part(part).segments[old], self._remembered.opened)

    def _of_part(self, part: int) -> Manifest:
        return [manifest for manifest in self.inherited if manifest.tables is not None][part]

    def read(self, segment: str) -> pa.Table:
        if segment in self._pending:
            return self._pending[segment]
        return read_segment(self._files, self._refs[segment], self._remembered.opened)

    def write(self, segment: str, table: pa.Table) -> int:
        self._check_new(segment)
        self._pending[segment] = table
        return int(table.nbytes)

    def write_pieces(self, segment: str, pieces: Iterable[pa.Table]) -> int:
        self._check_new(segment)
        self._refs[segment], size = self._laid(pieces)
        return size

    def settle(self) -> None:
        let_pages_go()
        pa.default_memory_pool().release_unused()

    def delete(self, segment: str) -> None:
        if self._pending.pop(segment, None) is None:
            self._refs.pop(segment)  # the sweep removes the file when no manifest names it

    def is_changed(self, tables: bytes | None, state_rows: int, watermark: StoredWatermark | None = None) -> bool:
        """Return whether there is anything to write; a ``watermark`` of None stays as it is."""
        if watermark not in (None, self.watermark):
            return True
        if self._pending or self.before is None or self.before.segments != self._refs:
            return True
        return (self.before.tables, self.before.state_rows) != (tables, state_rows)

    def publish(
        self,
        tables: bytes | None,
        state_rows: int,
        state_bytes: int,
        *,
        watermark: StoredWatermark | None = None,
        sweeping: bool = True,
    ) -> Manifest | None:
        """Write the manifest of the batch unless nothing has changed, and return the manifest in force.

        If another attempt was first, its manifest is equal, except for the names of segments. A ``watermark`` of None
        stays as it is. With ``sweeping``, files that no batch needs are removed periodically.
        """
        after: Manifest | None
        if self.is_changed(tables, state_rows, watermark) or self._is_first_of_run:
            after, first = self._published(tables, state_rows, state_bytes, watermark or self.watermark)
        else:
            after, first = self.before, True
        key = (self._place.root, self._place.scale, self._partition)
        if first:
            self._remembered.manifests[key] = Known(self._batch, after, self._read_in)
        else:
            self._remembered.manifests.pop(key, None)  # another attempt was first, with other segment names
        if sweeping and after is not self.before and self._sweeps:
            kept = sweep(self._files, self._folder, self._batch)
            beyond = f"{self._files.root}/{self._folder}"
            self._remembered.opened.forget_unless(beyond, lambda key: key[0].rpartition("/")[2] in kept)
            if self._place.scale and not self._partition:
                sweep_old_scales(self._files, self._place, KEPT_BATCHES, self._batch)
        return after

    @property
    def _is_first_of_run(self) -> bool:
        """True if this run has not written a batch yet.

        Its first batch must write, to override the files that an older run has begun for this batch.
        """
        return self.before is None or self.before.run != self._place.run

    @property
    def _sweeps(self) -> bool:
        """True if a sweep is due since the previous manifest, which need not belong to the previous batch."""
        before = self._batch if self.before is None else self.before.batch
        return (before + self._partition) // SWEEP_EVERY < (self._batch + self._partition) // SWEEP_EVERY

    def _published(
        self, tables: bytes | None, state_rows: int, state_bytes: int, watermark: StoredWatermark | None
    ) -> tuple[Manifest, bool]:
        name = file_name(self._batch, self._place.run, MANIFEST)
        inline: dict[str, pa.Buffer] = {}
        for segment, table in self._pending.items():
            if table.nbytes <= INLINE_BYTES:
                inline[segment] = _arrow_file(table)
            else:
                self._refs[segment], _ = self._laid([table])
        starts = offsets(len(data) for data in inline.values())
        for (segment, data), offset in zip(inline.items(), starts, strict=True):
            self._refs[segment] = SegmentRef(f"{self._folder}/{name}", offset, len(data), zlib.crc32(data))
        manifest = Manifest(
            operator=self._place.operator,
            lineage=self._place.lineage,
            batch=self._batch,
            run=self._place.run,
            partition=self._partition,
            partitions=self._place.partitions,
            state_rows=state_rows,
            state_bytes=state_bytes,
            tables=tables,
            segments=self._refs,
            watermark=watermark,
        )
        first = self._files.publish(f"{self._folder}/{name}", encode_manifest(manifest, list(inline.values())))
        self._files.mark(f"{self._folder}/{file_name(self._batch, self._place.run, WRITTEN)}")
        keys = {segment_key(self._files, ref) for ref in self._refs.values()}
        opened = self._remembered.opened
        opened.forget_unless(f"{self._files.root}/{self._folder}", keys.__contains__)
        for segment in inline if first else ():
            opened.keep(segment_key(self._files, self._refs[segment]), self._pending[segment])
        self._pending.clear()
        return manifest, first

    def _check_new(self, segment: str) -> None:
        if segment in self._pending or segment in self._refs:
            raise RunError(f"segment {segment!r} of state is written twice; segments are immutable")

    def _laid(self, pieces: Iterable[pa.Table]) -> tuple[SegmentRef, int]:
        """Write a file of ``pieces``, and return its location and the size of the pieces in bytes."""
        path = f"{self._folder}/{file_name(self._batch, self._place.run, SEGMENT, self._token())}"
        pieces = iter(pieces)
        piece = next(pieces)
        size = 0
        with self._files.writing(path) as out:
            summed = _Summed(out)
            with pa.ipc.new_file(pa.PythonFile(summed, "w"), piece.schema) as writer:
                while piece is not None:
                    writer.write_table(piece)
                    size += piece.nbytes
                    piece = next(pieces, None)
        return SegmentRef(path, 0, summed.length, summed.sum), size


def sweep(files: Files, folder: str, batch: int) -> set[str]:
    """Remove files that no attempt needs once ``batch`` runs, and return the names of the others.

    All earlier batches have ended by then. The manifests of the last batches are kept, with the manifest before them,
    which is in force until the first of these. Segments and drafts are removed unless a kept manifest names them or an
    attempt may still publish them.
    """
    names = files.names(folder)
    oldest = batch - KEPT_BATCHES
    last = newest(names, before=oldest)
    kept = {name for name in names if name == last or _is_of(name, oldest)}
    for name in [name for name in kept if name.endswith(f".{MANIFEST}")]:
        refs = read_manifest_file(files, f"{folder}/{name}").segments.values()
        kept |= {ref.file.rpartition("/")[2] for ref in refs if ref.file.rpartition("/")[0] == folder}
    kept |= {name.removesuffix(MANIFEST) + WRITTEN for name in kept if name.endswith(f".{MANIFEST}")}
    for name in names:
        if name not in kept and parse_name(name) is not None:
            files.remove(f"{folder}/{name}")
    return kept


def _is_of(name: str, oldest: int) -> bool:
    """Return whether a file belongs to the batch ``oldest`` or a later one."""
    file_name = parse_name(name)
    return file_name is not None and file_name.batch >= oldest


def _arrow_file(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


class _Summed:
    """A file wrapper that computes the length and the checksum of the written data."""

    def __init__(self, file: ByteSink) -> None:
        self._file = file
        self.length = 0
        self.sum = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        part = memoryview(data)
        self.sum = zlib.crc32(part, self.sum)
        self.length += part.nbytes
        return self._file.write(part)

    def flush(self) -> None:
        pass
