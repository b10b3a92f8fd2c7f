"""Removes files of earlier scales of a state, once no manifest in force names them.

Segments of earlier scales stay in place while manifests of the current scale name them, until merges have replaced
them. One partition is responsible for the removal.
"""

from __future__ import annotations

from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.names import MANIFEST, parse_name
from hintplan.runtime.storage.place import Place, folder_of
from hintplan.runtime.storage.read import read_manifest_file


def sweep_old_scales(files: Files, place: Place, kept_batches: int, batch: int) -> None:
    """Remove files of earlier scales that no manifest of the current one names, once all partitions have a manifest.

    New manifests never add references to files of an earlier scale, so manifests that are being written need no check.
    """
    if batch <= place.scales[-1].first + kept_batches:
        return  # readers may still use the earlier batches
    old = (folder_of(number, p) for number, scale in enumerate(place.scales[:-1]) for p in range(scale.partitions))
    old_files = {folder: names for folder in old if (names := files.names(folder))}
    if not old_files:
        return
    named: set[str] = set()
    for partition in range(place.partitions):
        folder = folder_of(place.scale, partition)
        manifests = [
            name for name in files.names(folder) if (file_name := parse_name(name)) and file_name.kind == MANIFEST
        ]
        if not manifests:
            return
        for name in manifests:
            named |= {ref.file for ref in read_manifest_file(files, f"{folder}/{name}").segments.values()}
    for folder, names in old_files.items():
        for name in names:
            if f"{folder}/{name}" not in named and parse_name(name) is not None:
                files.remove(f"{folder}/{name}")
