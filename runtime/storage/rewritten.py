"""Rewrites state while no run is active: publishes a new manifest of the last committed batch, and cleans up.

A batch reads the newest manifest before it, and for one batch, the manifest of the highest run. The rewritten manifest
belongs to the last valid batch, and its run number is higher than all earlier ones. So the next run finds it, and uses
a higher number itself. In each partition, the old manifest stays in force until the new one is published. Then all
files that no manifest in force names are removed. The state is complete at every moment, even after a crash. Processes
of a dead run may still be working on the following batch. Their files are ignored, and they only remove files that are
older than the rewritten ones.

    in_force = manifests_in_force(files, place.scales, batch=12)
    after = [rewrite_partition(files, place, in_force, partition, rewrite) for partition in range(place.partitions)]
    remove_the_rest(files, place.scales, in_force.scale, after)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hintplan.runtime.storage.committed import InForce
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.names import MANIFEST, WRITTEN, file_name, parse_name
from hintplan.runtime.storage.partition import PartitionStore, Remembered, Token, new_token
from hintplan.runtime.storage.place import Place, Scale, folder_of
from hintplan.runtime.storage.read import read_manifest_file

Written = tuple[bytes | None, int, int]
"""The operator's manifest, and the rows and bytes of its state."""
Rewrite = Callable[[PartitionStore, str], Written]
"""A function that reads a partition from the store and writes its replacement; it also gets the path of the manifest.
"""


def rewrite_partition(
    files: Files, place: Place, in_force: InForce, partition: int, rewrite: Rewrite, token: Token = new_token
) -> Manifest:
    """Let ``rewrite`` change a partition of ``place``, which has a new run number; return the manifest in force.

    Nothing is published if nothing changes. RunError if a file of the partition is damaged.
    """
    base = read_manifest_file(files, in_force.paths[partition])
    place = replace(place, scales=place.scales[: in_force.scale + 1])
    store = PartitionStore(files, place, partition, in_force.last, base, (), Remembered(), token)
    tables, rows, size = rewrite(store, in_force.paths[partition])
    if not store.is_changed(tables, rows):
        return base
    return store.publish(tables, rows, size, sweeping=False) or base


def remove_the_rest(files: Files, scales: Sequence[Scale], scale: int, manifests: Sequence[Manifest]) -> None:
    """Remove all files of a state except ``manifests`` and the files that they name.

    ``manifests`` has one manifest of each partition of ``scale``.
    """
    kept = set()
    for partition, manifest in enumerate(manifests):
        folder = folder_of(scale, partition)
        files.settle(folder)  # sync it before removing files that are in force without it
        kept |= {f"{folder}/{file_name(manifest.batch, manifest.run, kind)}" for kind in (MANIFEST, WRITTEN)}
        kept |= {ref.file for ref in manifest.segments.values()}
    for number, scale_record in enumerate(scales):
        for folder in (folder_of(number, partition) for partition in range(scale_record.partitions)):
            for name in files.names(folder):
                if f"{folder}/{name}" not in kept and parse_name(name) is not None:
                    files.remove(f"{folder}/{name}")
