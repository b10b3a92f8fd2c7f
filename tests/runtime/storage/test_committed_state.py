"""Which manifests are in force after a committed batch: of what run, and at which number of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.committed import manifests_in_force
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.partition import open_partition
from hintplan.runtime.storage.place import Place, Scale
from hintplan.runtime.storage.read import read_manifest_file


def write(root: Path, batch: int, run: int, rows: int, scales: Sequence[Scale] = (Scale(2),)) -> None:
    """What ``run`` writes of ``batch`` in each partition, as its first one."""
    place = Place(root=str(root), operator="join_a", run=run, scales=tuple(scales))
    for partition in range(place.partitions):
        open_partition(files_at(str(root)), place, partition, batch).publish(None, rows, 0)


def in_force(root: Path, batch: int, scales: Sequence[Scale] = (Scale(2),)) -> dict[int, tuple[int, int]]:
    """The batch and the rows of each partition's manifest."""
    files = files_at(str(root))
    there = manifests_in_force(files, scales, batch)
    paths = () if there is None else there.paths
    found = {partition: read_manifest_file(files, path) for partition, path in enumerate(paths)}
    return {partition: (manifest.batch, manifest.state_rows) for partition, manifest in found.items()}


def test_the_newest_manifest_up_to_the_batch_is_in_force(tmp_path: Path) -> None:
    assert in_force(tmp_path, 3) == {}
    write(tmp_path, batch=1, run=1, rows=10)
    write(tmp_path, batch=4, run=1, rows=40)
    assert in_force(tmp_path, 0) == {}
    assert in_force(tmp_path, 3) == {0: (1, 10), 1: (1, 10)}
    assert in_force(tmp_path, 9) == {0: (4, 40), 1: (4, 40)}


def test_of_a_batch_that_ran_twice_the_last_run_counts(tmp_path: Path) -> None:
    for run, rows in ((8, 80), (9, 90), (7, 70)):  # the last one is late, and belongs to a run that is over
        write(tmp_path, batch=4, run=run, rows=rows)
    assert in_force(tmp_path, 4) == {0: (4, 90), 1: (4, 90)}


def test_another_number_of_partitions_counts_from_its_first_batch_on(tmp_path: Path) -> None:
    scales = (Scale(2), Scale(3, first=5))
    write(tmp_path, batch=4, run=1, rows=40)
    write(tmp_path, batch=5, run=1, rows=41)  # a run that is over, which does not know that there are others now
    assert in_force(tmp_path, 7, scales) == {0: (4, 40), 1: (4, 40)}
    write(tmp_path, batch=6, run=2, rows=60, scales=scales)
    assert in_force(tmp_path, 4, scales) == {0: (4, 40), 1: (4, 40)}
    assert in_force(tmp_path, 6, scales) == {0: (6, 60), 1: (6, 60), 2: (6, 60)}


@pytest.mark.parametrize(("lost", "said"), [("*.manifest", "manifest of batch 4"), ("*", "no manifest")])
def test_a_partition_that_has_lost_its_manifest_is_named(tmp_path: Path, lost: str, said: str) -> None:
    write(tmp_path, batch=1, run=1, rows=10)
    write(tmp_path, batch=4, run=1, rows=40)
    for path in (tmp_path / "0" / "1").glob(lost if lost == "*" else "4.*.manifest"):
        path.unlink()
    with pytest.raises(RunError, match=f"0/1.*{said}"):
        in_force(tmp_path, 4)
    if lost != "*":
        assert in_force(tmp_path, 3) == {0: (1, 10), 1: (1, 10)}
