"""A partition's state from batch to batch: what is written, what is not, and what a worker may continue with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage import partition as protocol
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.partition import KEPT_BATCHES, Known, PartitionStore, Remembered, open_partition
from hintplan.runtime.storage.place import Place, Scale


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(root=str(tmp_path), operator="fold", run=5)


def opened(place: Place, batch: int, remembered: Remembered | None = None) -> PartitionStore:
    return open_partition(LocalFiles(place.root), place, 0, batch, remembered)


def change(place: Place, batch: int, value: int, remembered: Remembered | None = None) -> None:
    """A batch that puts one value in the place of the one before."""
    store = opened(place, batch, remembered)
    if store.tables is not None:
        store.delete("a")
    store.write("a", pa.table({"value": [value]}))
    store.publish(b"{}", 1, 8)


def value_before(place: Place, batch: int) -> int | None:
    store = opened(place, batch)
    return None if store.tables is None else store.read("a")["value"][0].as_py()


def names(place: Place, kind: str = "manifest") -> list[str]:
    return sorted(path.name for path in Path(place.root).glob(f"0/0/*.{kind}"))


def test_a_batch_reads_what_the_one_before_wrote(place: Place) -> None:
    change(place, 0, 10)
    change(place, 1, 11)
    assert [value_before(place, batch) for batch in range(4)] == [None, 10, 11, 11]


def test_a_batch_that_changes_nothing_writes_nothing_but_in_the_first_of_a_run(place: Place) -> None:
    change(place, 0, 10)
    for run, batch in ((place, 1), (replace(place, run=6), 2), (replace(place, run=6), 3)):
        store = opened(run, batch)
        store.publish(store.tables, 1, 8)
    assert names(place) == ["0.5.manifest", "2.6.manifest"]
    assert value_before(place, 9) == 10


def test_an_operator_that_keeps_nothing_has_a_manifest_all_the_same(place: Place) -> None:
    store = opened(place, 0)
    store.publish(None, 0, 0)
    assert names(place) == ["0.5.manifest"]
    assert names(place, "written") == ["0.5.written"]
    assert opened(place, 1).tables is None


def test_what_an_older_run_writes_late_does_not_count(place: Place) -> None:
    change(place, 0, 10)
    late = opened(place, 1)
    newer = replace(place, run=6)
    store = opened(newer, 1)
    store.publish(store.tables, 1, 8)
    late.delete("a")
    late.write("a", pa.table({"value": [66]}))
    late.publish(b"{}", 1, 8)
    assert names(place) == ["0.5.manifest", "1.5.manifest", "1.6.manifest"]
    assert value_before(newer, 2) == 10


def test_of_two_attempts_the_first_stays_and_the_second_remembers_nothing(place: Place) -> None:
    first, second = Remembered(), Remembered()
    stores = [opened(place, 0, remembered) for remembered in (first, second)]
    for store in stores:
        store.write("a", pa.table({"value": [10]}))
        store.publish(b"{}", 1, 8)
    assert [len(remembered.manifests) for remembered in (first, second)] == [1, 0]
    change(place, 1, 11, second)
    assert value_before(place, 2) == 11


def test_a_worker_goes_on_without_listing_only_after_the_batch_before_in_the_same_run(place: Place) -> None:
    remembered = Remembered()
    change(place, 0, 10, remembered)
    change(place, 1, 11)
    assert opened(place, 1, remembered).before == opened(place, 1).before
    assert opened(place, 2, remembered).before == opened(place, 2).before
    (known,) = remembered.manifests
    remembered.manifests[known] = Known(1, opened(place, 1).before, 1)
    assert opened(replace(place, run=6), 2, remembered).before == opened(place, 2).before


def test_a_worker_looks_again_before_what_it_alone_remembers_may_be_swept(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered, looked = Remembered(), []
    find = protocol.find_manifest

    def noted(files: Files, place: Place, partition: int, batch: int) -> Manifest | None:
        looked.append(batch)
        return find(files, place, partition, batch)

    monkeypatch.setattr(protocol, "find_manifest", noted)
    for batch in range(2 * KEPT_BATCHES + 5):
        change(place, batch, batch, remembered)
    assert looked == [0, KEPT_BATCHES, 2 * KEPT_BATCHES]


def test_a_segment_is_written_once(place: Place) -> None:
    change(place, 0, 10)
    store = opened(place, 1)
    with pytest.raises(RunError, match="written twice"):
        store.write("a", pa.table({"value": [11]}))


def test_manifests_of_the_last_batches_stay_and_what_they_name(place: Place) -> None:
    for batch in range(4 * KEPT_BATCHES):
        change(place, batch, batch)
    batches = sorted(int(name.partition(".")[0]) for name in names(place))
    assert KEPT_BATCHES <= len(batches) <= 2 * KEPT_BATCHES + 1
    assert batches == list(range(batches[0], 4 * KEPT_BATCHES))
    assert [value_before(place, batch + 1) for batch in batches] == batches
    assert names(place, "written") == [name.replace("manifest", "written") for name in names(place)]


def test_a_file_that_an_old_manifest_needs_stays_as_long_as_it_is_in_force(place: Place) -> None:
    change(place, 0, 10)
    for batch in range(1, 5 * KEPT_BATCHES):
        store = opened(place, batch)
        store.publish(store.tables, 1, 8)
    change(place, 5 * KEPT_BATCHES, 11)
    assert [value_before(place, batch) for batch in (1, 5 * KEPT_BATCHES, 5 * KEPT_BATCHES + 1)] == [10, 10, 11]


def test_what_dead_attempts_have_left_goes_with_their_batch(place: Place) -> None:
    change(place, 0, 10)
    folder = Path(place.root) / "0/0"
    for name in (".1.5.manifest.ab.tmp", "1.5.ab.arrow", "1.4.manifest.x", "README"):
        (folder / name).write_bytes(b"half")
    for batch in range(1, 3 * KEPT_BATCHES):
        change(place, batch, batch)
    assert not (folder / ".1.5.manifest.ab.tmp").exists()
    assert not (folder / "1.5.ab.arrow").exists()
    assert (folder / "README").exists()


# --- A file system that answers with what it remembers ----------------------------------------------------------------


class Mounted:
    """A directory as another machine has it mounted: it lists a folder as it was when it last asked, until it is told
    to ask again, and does not find what is not listed."""

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._listed: dict[str, list[str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def names(self, folder: str) -> list[str]:
        return list(self._listed.setdefault(folder, self._files.names(folder)))

    def read(self, path: str) -> pa.Buffer:
        folder, _, name = path.rpartition("/")
        if name not in self.names(folder):
            raise FileNotFoundError(path)
        return self._files.read(path)

    def refresh(self, folder: str) -> None:
        self._listed.pop(folder, None)


def test_what_another_machine_published_just_now_counts(place: Place) -> None:
    here = Mounted(LocalFiles(place.root))
    change(place, 0, 10)
    assert "0.5.manifest" in here.names("0/0")
    change(place, 1, 11)
    found = open_partition(here, place, 0, 2)
    assert found.read("a")["value"][0].as_py() == 11


def test_the_partitions_before_are_asked_for_anew_too(place: Place) -> None:
    here = Mounted(LocalFiles(place.root))
    change(place, 0, 10)
    here.names("0/0")
    change(place, 1, 11)
    scaled = replace(place, run=6, scales=(Scale(1), Scale(2, first=2)))
    store = open_partition(here, scaled, 0, 2)
    assert [manifest.batch for manifest in store.inherited] == [1]


def test_a_worker_that_goes_on_asks_for_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = Remembered()
    change(place, 0, 10, remembered)
    monkeypatch.setattr(LocalFiles, "refresh", lambda *_: pytest.fail("each batch would wait for the file server"))
    change(place, 1, 11, remembered)
    assert names(place) == ["0.5.manifest", "1.5.manifest"]
