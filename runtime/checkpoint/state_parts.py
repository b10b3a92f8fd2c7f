"""The files that the states of a query must have in a checkpoint, and a check for missing or damaged files.

    <query>/state/<place>/<scale>/<partition>/<batch>.<run>.manifest     see :mod:`hintplan.runtime.storage`

For each partition, the newest manifest up to the last batch that ended is in force; the files that it names must exist.
A state that was ever written has a manifest in each partition. Older manifests, and files of a batch that did not end,
are ignored. This module reads files through :mod:`hintplan.runtime.checkpoint.files`, local or remote.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hintplan.plans.compare.query_record import QueryRecord, StateRecord
from hintplan.runtime.checkpoint.files import SMALL, CheckpointFiles, Damage
from hintplan.runtime.storage.manifest import DamagedFile, Manifest, SegmentRef, body_start, decode_manifest
from hintplan.runtime.storage.names import MANIFEST, WRITTEN, file_name, newest, parse_name
from hintplan.runtime.storage.place import folder_of

STATE = "state"
_AT_ONCE = 64 << 20
"""The bytes of the files that are read together."""

Folders = Mapping[str, Sequence[str]]
"""The names of the files in each nonempty folder."""


def state_damages(files: CheckpointFiles, query: QueryRecord, *, began: int, ended: int) -> Iterator[Damage]:
    """Yield the missing and damaged files of the states of ``query``.

    ``began`` and ``ended`` are the numbers of its last batches that began and that ended.
    """
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
    """A state, its directory ``root``, and the existing files."""

    files: CheckpointFiles
    root: str
    record: StateRecord
    folders: Folders

    def damage(self, part: str, what: str = "is missing") -> Damage:
        return Damage(part=part, what=f"{what} (state of {self.record.operator})")


def _folders(files: CheckpointFiles, above: str) -> Folders:
    names_in: dict[str, list[str]] = defaultdict(list)
    for path in files.sizes:
        if path.startswith(f"{above}/"):
            folder, _, name = path.rpartition("/")
            names_in[folder].append(name)
    return names_in


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
    name = parse_name(path.rpartition("/")[2])
    return -1 if name is None else name.batch


def _scale(state: _State, query: QueryRecord, ended: int) -> int | None:
    """Return the scale whose manifests are in force: the last one that has manifests.

    If the state has begun in the last scale, only that scale counts.
    """
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
    """Return the path of the manifest in force. It may be missing: the mark that records it also counts."""
    folder = f"{state.root}/{folder_of(scale, partition)}"
    names = (
        f"{name.removesuffix(WRITTEN)}{MANIFEST}" if name.endswith(f".{WRITTEN}") else name
        for name in state.folders.get(folder, ())
    )
    manifest = newest(names, before=ended + 1, since=first)
    return None if manifest is None else f"{folder}/{manifest}"


def _lost(state: _State, scale: int, partition: int) -> str:
    """Return the folder of a partition, or the nearest folder above it if that is empty."""
    for folder in (state.root, f"{state.root}/{scale}"):
        if not any(known_folder.startswith(f"{folder}/") for known_folder in state.folders):
            return folder
    return f"{state.root}/{folder_of(scale, partition)}"


def _of_manifests(state: _State, manifests: Mapping[str, int], partitions: int) -> Iterator[Damage]:
    """Yield damages of ``manifests``, each mapped to its partition, and of the segment files that they name."""
    needed: dict[str, set[SegmentRef]] = defaultdict(set)
    for path, content in _contents(state.files, manifests):
        try:
            manifest = decode_manifest(content, path)
        except DamagedFile as error:
            yield state.damage(path, error.what)
            continue
        if wrong := _taken_for_another(manifest, path, state.record, manifests[path], partitions):
            yield state.damage(path, wrong)
            continue
        for ref in manifest.segments.values():
            needed[f"{state.root}/{ref.file}"].add(ref)
    yield from _of_segments(state, needed)


def _taken_for_another(manifest: Manifest, path: str, record: StateRecord, partition: int, partitions: int) -> str:
    """Return the real origin of an intact manifest if it does not belong at ``path``, otherwise an empty text."""
    if manifest.lineage is not None and manifest.lineage != record.stored:
        return f"belongs to another state, of {manifest.operator}"
    if (manifest.partition, manifest.partitions) != (partition, partitions):
        return f"is of partition {manifest.partition} of {manifest.partitions}"
    if path.rpartition("/")[2] != file_name(manifest.batch, manifest.run, MANIFEST):
        return f"is of batch {manifest.batch} of run {manifest.run}"
    return ""


def _of_segments(state: _State, needed: Mapping[str, Iterable[SegmentRef]]) -> Iterator[Damage]:
    """Yield damages of the ``needed`` segment files; large and remote files are checked only for their length."""
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
            yield state.damage(path, "was changed after it was written")


def _contents(files: CheckpointFiles, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of files, in groups that fit into memory together."""
    group: list[str] = []
    size = 0
    for path in paths:
        if group and size + files.sizes[path] > _AT_ONCE:
            yield from files.read(group).items()
            group, size = [], 0
        group.append(path)
        size += files.sizes[path]
    yield from files.read(group).items()
