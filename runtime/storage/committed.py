"""A whole state as a committed batch left it: the manifest of each of its partitions that is then in force.

    found = manifests_in_force(files_at("/data/checkpoints/revenue/sink_r/state/join_o_c.1"), (Scale(4),), batch=12)
    found.paths[0]

It may be read while a run goes on there, which sweeps what older batches have left: what fails is to be asked again
for a newer batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import DamagedFile
from hintplan.runtime.storage.names import WRITTEN, newest, parsed
from hintplan.runtime.storage.place import Scale, folder_of


@dataclass(frozen=True, slots=True)
class InForce:
    """The ``paths`` of the manifests that are in force, a partition after the other, which are of ``scale``.

    Only those of the batches up to ``last`` count there.
    """

    scale: int
    last: int
    paths: tuple[str, ...]


def manifests_in_force(files: Files, scales: Sequence[Scale], batch: int) -> InForce | None:
    """The manifests that count once ``batch`` is committed; None if no batch has written any.

    ``files`` are those of the state, ``scales`` the numbers of partitions that it had. The first batch in which an
    operator runs writes to each of its partitions. DamagedFile if one is lost; FileNotFoundError if it goes while it is
    read.
    """
    end = batch + 1
    for number in reversed(range(len(scales))):
        scale = scales[number]
        folders = [folder_of(number, partition) for partition in range(scale.partitions)]
        names = [newest_manifest(files, folder, since=scale.first, before=end) for folder in folders]
        if any(names):
            for folder, name in zip(folders, names, strict=True):
                if name is None:
                    raise DamagedFile(f"{files.root}/{folder}", "has no manifest, other partitions have")
            paths = tuple(f"{folder}/{name}" for folder, name in zip(folders, names, strict=True))
            return InForce(number, end - 1, paths)
        end = min(end, scale.first)
    return None


def newest_manifest(files: Files, folder: str, *, since: int, before: int) -> str | None:
    """The name of the manifest in force in the folder of a partition, None if there is none yet.

    RunError if a newer one was written and is lost, as far as the file system has markers that tell.
    """
    names = files.names(folder)
    found = newest(names, since=since, before=before)
    marker = newest(names, since=since, before=before, kind=WRITTEN)
    if marker is not None and (said := parsed(marker)) is not None:
        there = None if found is None else parsed(found)
        if there is None or there[:2] < said[:2]:
            raise DamagedFile(f"{files.root}/{folder}", f"has lost the manifest of batch {said.batch}")
    return found
