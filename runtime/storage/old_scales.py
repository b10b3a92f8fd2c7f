"""What is left of the partitions that a state was divided into before, until nothing in force names it any more.

The segments of earlier scales stay where they are as long as manifests of the present one name them, which merges bring
to an end. One partition looks after them.
"""

from __future__ import annotations

from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.names import MANIFEST, parsed
from hintplan.runtime.storage.place import Place, folder_of
from hintplan.runtime.storage.read import read_manifest_file


def sweep_old_scales(files: Files, place: Place, kept_batches: int, batch: int) -> None:
    """Remove the files of earlier scales that no manifest of the present one names, once all partitions have one.

    Manifests only ever drop what they name of an earlier scale, so those that are being written name no more.
    """
    if batch <= place.scales[-1].first + kept_batches:
        return  # whoever reads may still read the batches before
    old = (folder_of(number, p) for number, scale in enumerate(place.scales[:-1]) for p in range(scale.partitions))
    there = {folder: names for folder in old if (names := files.names(folder))}
    if not there:
        return
    named: set[str] = set()
    for partition in range(place.partitions):
        folder = folder_of(place.scale, partition)
        manifests = [name for name in files.names(folder) if (found := parsed(name)) and found.kind == MANIFEST]
        if not manifests:
            return
        for name in manifests:
            named |= {ref.file for ref in read_manifest_file(files, f"{folder}/{name}").segments.values()}
    for folder, names in there.items():
        for name in names:
            if f"{folder}/{name}" not in named and parsed(name) is not None:
                files.remove(f"{folder}/{name}")
