"""A state after a committed batch: the manifest in force of each of its partitions.

    in_force = manifests_in_force(files_at("/data/checkpoints/revenue/sink_r/state/join_o_c.1"), (Scale(4),), batch=12)
    in_force.paths[0]

It can be read while a run is active. The run removes files of older batches, so a caller retries a failed read with a
newer batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import DamagedFile
from hintplan.runtime.storage.names import WRITTEN, newest, parse_name
from hintplan.runtime.storage.place import Scale, folder_of


@dataclass(frozen=True, slots=True)
class InForce:
    """The ``paths`` of the manifests in force, one for each partition of ``scale``.

    Only manifests of batches up to ``last`` are valid for that scale.
    """

    scale: int
    last: int
    paths: tuple[str, ...]


def manifests_in_force(files: Files, scales: Sequence[Scale], batch: int) -> InForce | None:
    """Return the manifests in force after ``batch`` is committed; None if no batch has written any.

    ``files`` are the files of the state, and ``scales`` are its partition counts over time. The first batch of an
    operator writes a manifest in each partition. DamagedFile if one is lost; FileNotFoundError if one is removed during
    the read.
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
    """Return the name of the manifest in force in the folder of a partition, or None if there is none yet.

    RunError if a newer manifest was written and is lost, on file systems where markers record that.
    """
    names = files.names(folder)
    name = newest(names, since=since, before=before)
    marker = newest(names, since=since, before=before, kind=WRITTEN)
    if marker is not None and (written := parse_name(marker)) is not None:
        current = None if name is None else parse_name(name)
        if current is None or current[:2] < written[:2]:
            raise DamagedFile(f"{files.root}/{folder}", f"has lost the manifest of batch {written.batch}")
    return name
