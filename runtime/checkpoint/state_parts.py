"""What the states of a query must have in a checkpoint, and what of it is missing or damaged.

    <query>/state/<place>/<scale>/<partition>/<batch>.<run>.manifest     see :mod:`hintplan.runtime.storage`

In force is the newest manifest of each partition up to the last batch that ended; what it names must be there. A state
that was ever written has a manifest in each partition. Older manifests, and what a batch has left that did not end,
are nobody's business. Knows files by :mod:`hintplan.runtime.checkpoint.files`, wherever they are.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hintplan.plans.compare.query_record import QueryRecord, StateRecord
from hintplan.runtime.checkpoint.files import SMALL, CheckpointFiles, Damage
from hintplan.runtime.storage.manifest import DamagedFile, Manifest, SegmentRef, body_start, decode
from hintplan.runtime.storage.names import MANIFEST, WRITTEN, named, newest, parsed
from hintplan.runtime.storage.place import folder_of

STATE = "state"
_AT_ONCE = 64 << 20
"""Bytes of files that are read together."""

Folders = Mapping[str, Sequence[str]]
"""The names of the files in each folder that has any."""


def state_damages(files: CheckpointFiles, query: QueryRecord, *, began: int, ended: int) -> Iterator[Damage]:
    """What lacks of the states of ``query``, whose last batch that began and that ended have these numbers."""
    above = f"{query.id}/{STATE}"
    folders = _folders(files, above)
    begun = [state.operator for state in query.states if state.begun]
    if begun and not folders:
        yield Damage(part=f"{above}/", what=f"is missing (state of {', '.join(begun)})")
        return
    for state in query.states:
        if state.place:
            yield from _of_state(_State(files, f"{above}/{state.place}", state, folders), query, began, ended)


@dataclass(frozen=True, slots=True)
class _State:
    """A state, which is in ``root``, and what there is of files."""

    files: CheckpointFiles
    root: str
    record: StateRecord
    folders: Folders

    def damage(self, part: str, what: str = "is missing") -> Damage:
        return Damage(part=part, what=f"{what} (state of {self.record.operator})")


def _folders(files: CheckpointFiles, above: str) -> Folders:
    found: dict[str, list[str]] = defaultdict(list)
    for path in files.sizes:
        if path.startswith(f"{above}/"):
            folder, _, name = path.rpartition("/")
            found[folder].append(name)
    return found


def _of_state(state: _State, query: QueryRecord, began: int, ended: int) -> Iterator[Damage]:
    late = [path for path in _all_files(state) if _batch(path) > began]
    if late:
        yield state.damage(f"{query.logs}/offsets/{began + 1}", f"is missing, though there is {late[0]}")
    scale = _scale(state, query, ended)
    if scale is None:
        return
    partitions, first = query.scales[scale]
    manifests: dict[str, int] = {}
    for partition in range(partitions):
        manifest = _in_force(state, scale, partition, first, ended)
        if manifest is None:
            yield state.damage(f"{_lost(state, scale, partition)}/")
        elif manifest not in state.files.sizes:
            yield state.damage(manifest)
        else:
            manifests[manifest] = partition
    yield from _of_manifests(state, manifests, partitions)


def _all_files(state: _State) -> Iterator[str]:
    for folder, names in state.folders.items():
        if folder.startswith(f"{state.root}/"):
            yield from (f"{folder}/{name}" for name in names if name.endswith((f".{MANIFEST}", f".{WRITTEN}")))


def _batch(path: str) -> int:
    name = parsed(path.rpartition("/")[2])
    return -1 if name is None else name.batch


def _scale(state: _State, query: QueryRecord, ended: int) -> int | None:
    """The scale whose manifests are in force: the last one that has any, and none but the last one if that began."""
    last = len(query.scales) - 1
    for scale in range(last, -1, -1):
        partitions, first = query.scales[scale]
        for partition in range(partitions):
            if _in_force(state, scale, partition, first, ended):
                return scale
        if state.record.begun:
            return last
    return None


def _in_force(state: _State, scale: int, partition: int, first: int, ended: int) -> str | None:
    """The manifest that is or was there, for a mark of it still is."""
    folder = f"{state.root}/{folder_of(scale, partition)}"
    names = (
        f"{name.removesuffix(WRITTEN)}{MANIFEST}" if name.endswith(f".{WRITTEN}") else name
        for name in state.folders.get(folder, ())
    )
    found = newest(names, before=ended + 1, since=first)
    return None if found is None else f"{folder}/{found}"


def _lost(state: _State, scale: int, partition: int) -> str:
    """The folder of a partition, or that above it if there is nothing in it at all."""
    for folder in (state.root, f"{state.root}/{scale}"):
        if not any(each.startswith(f"{folder}/") for each in state.folders):
            return folder
    return f"{state.root}/{folder_of(scale, partition)}"


def _of_manifests(state: _State, manifests: Mapping[str, int], partitions: int) -> Iterator[Damage]:
    """What is wrong with ``manifests``, each of the partition with that number, and with what they name."""
    needed: dict[str, set[SegmentRef]] = defaultdict(set)
    for path, content in _contents(state.files, manifests):
        try:
            found = decode(content, path)
        except DamagedFile as error:
            yield state.damage(path, error.what)
            continue
        if wrong := _taken_for_another(found, path, state.record, manifests[path], partitions):
            yield state.damage(path, wrong)
            continue
        for ref in found.segments.values():
            needed[f"{state.root}/{ref.file}"].add(ref)
    yield from _of_segments(state, needed)


def _taken_for_another(found: Manifest, path: str, record: StateRecord, partition: int, partitions: int) -> str:
    """What a whole manifest is of, if not of what its place says."""
    if found.lineage is not None and found.lineage != record.stored:
        return f"is of another state, that of {found.operator}"
    if (found.partition, found.partitions) != (partition, partitions):
        return f"is of partition {found.partition} of {found.partitions}"
    if path.rpartition("/")[2] != named(found.batch, found.run, MANIFEST):
        return f"is of batch {found.batch} of run {found.run}"
    return ""


def _of_segments(state: _State, needed: Mapping[str, Iterable[SegmentRef]]) -> Iterator[Damage]:
    """What is wrong with the files ``needed`` for segments; of large ones, and of those elsewhere, only lengths."""
    files, read = state.files, []
    for path, refs in sorted(needed.items()):
        if path not in files.sizes:
            yield state.damage(path)
        elif path.endswith(f".{MANIFEST}") or (files.whole and files.sizes[path] <= SMALL):
            read.append(path)
        elif any(files.sizes[path] < ref.offset + ref.length for ref in refs):
            yield state.damage(path, "is cut off")
    for path, content in _contents(files, read):
        data = memoryview(content)
        try:
            data = data[body_start(content, path) :] if path.endswith(f".{MANIFEST}") else data
        except DamagedFile as error:
            yield state.damage(path, error.what)
            continue
        if any(ref.offset + ref.length > len(data) for ref in needed[path]):
            yield state.damage(path, "is cut off")
        elif any(zlib.crc32(data[ref.offset : ref.offset + ref.length]) != ref.crc for ref in needed[path]):
            yield state.damage(path, "is not what was written")


def _contents(files: CheckpointFiles, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """What is in files, of which so many are in memory at a time as are small together."""
    group: list[str] = []
    size = 0
    for path in paths:
        if group and size + files.sizes[path] > _AT_ONCE:
            yield from files.read(group).items()
            group, size = [], 0
        group.append(path)
        size += files.sizes[path]
    yield from files.read(group).items()
