"""State that is rewritten while no run goes on: a manifest more of the last committed batch, and then nothing else.

A batch reads the newest manifest before it, of one batch that of the highest run. So what is published here, of the
last batch that counts and with a run higher than any before, is what the next run finds; that runs with a higher one
yet. Until it is there, in every partition by itself, what was in force stays; then all goes that no manifest in force
names. Whatever moment it ends at, the state is whole. Processes of a dead run may still be at the batch after the last
one: what they write does not count, and what they sweep is older than what is written here.

    found = manifests_in_force(files, place.scales, batch=12)
    after = [rewrite_partition(files, place, found, partition, rewrite) for partition in range(place.partitions)]
    remove_the_rest(files, place.scales, found.scale, after)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hintplan.runtime.storage.committed import InForce
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.names import MANIFEST, WRITTEN, named, parsed
from hintplan.runtime.storage.partition import PartitionStore, Remembered, Token, new_token
from hintplan.runtime.storage.place import Place, Scale, folder_of
from hintplan.runtime.storage.read import read_manifest_file

Written = tuple[bytes | None, int, int]
"""The operator's manifest, and the rows and bytes of its state."""
Rewrite = Callable[[PartitionStore, str], Written]
"""Reads a partition from the store, and writes to it what is to be there instead; given the path of its manifest."""


def rewrite_partition(
    files: Files, place: Place, found: InForce, partition: int, rewrite: Rewrite, token: Token = new_token
) -> Manifest:
    """Let ``rewrite`` change a partition of ``place``, whose run is a new one; the manifest that is then in force.

    Nothing is published if nothing changes. RunError if a file of it is damaged.
    """
    base = read_manifest_file(files, found.paths[partition])
    place = replace(place, scales=place.scales[: found.scale + 1])
    store = PartitionStore(files, place, partition, found.last, base, (), Remembered(), token)
    tables, rows, size = rewrite(store, found.paths[partition])
    if not store.is_changed(tables, rows):
        return base
    return store.publish(tables, rows, size, sweeping=False) or base


def remove_the_rest(files: Files, scales: Sequence[Scale], scale: int, manifests: Sequence[Manifest]) -> None:
    """Remove all files of a state but ``manifests``, one of each partition of ``scale``, and what they name."""
    kept = set()
    for partition, manifest in enumerate(manifests):
        folder = folder_of(scale, partition)
        files.settle(folder)  # before anything goes that is in force without it
        kept |= {f"{folder}/{named(manifest.batch, manifest.run, kind)}" for kind in (MANIFEST, WRITTEN)}
        kept |= {ref.file for ref in manifest.segments.values()}
    for number, each in enumerate(scales):
        for folder in (folder_of(number, partition) for partition in range(each.partitions)):
            for name in files.names(folder):
                if f"{folder}/{name}" not in kept and parsed(name) is not None:
                    files.remove(f"{folder}/{name}")
