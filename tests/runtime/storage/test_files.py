"""What state needs of a file system, on a directory of this machine and on an S3 server."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.local_files import LocalFiles
from hintplan.runtime.storage.partition import Remembered, open_partition
from hintplan.runtime.storage.place import Place
from hintplan.runtime.storage.remote_files import remote_files


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "local":
        return LocalFiles(str(tmp_path), sync=False)
    return remote_files(f"{request.getfixturevalue('s3')}/{tmp_path.name}")


def test_a_file_is_there_when_it_is_whole(files: Files) -> None:
    with files.writing("0/3/1.7.abc.arrow") as out:
        out.write(b"first ")
        assert not [name for name in files.names("0/3") if not name.startswith(".")]
        out.write(b"second")
    assert files.names("0/3") == ["1.7.abc.arrow"]
    assert bytes(files.read("0/3/1.7.abc.arrow")) == b"first second"


def test_a_file_that_fails_on_the_way_is_not_there(files: Files) -> None:
    with pytest.raises(TypeError), files.writing("0/3/1.7.abc.arrow") as out:
        out.write("no bytes")  # type: ignore[arg-type]
    assert files.names("0/3") == []


def test_the_first_file_of_a_name_stays(files: Files) -> None:
    assert files.publish("0/3/1.7.manifest", b"one")
    assert not files.publish("0/3/1.7.manifest", b"two")
    assert bytes(files.read("0/3/1.7.manifest")) == b"one"


def test_what_is_removed_is_gone_and_may_be_removed_again(files: Files) -> None:
    files.publish("0/3/1.7.manifest", b"one")
    files.read("0/3/1.7.manifest")
    for _ in range(2):
        files.remove("0/3/1.7.manifest")
    assert [name for name in files.names("0/3") if name] == []
    with pytest.raises(FileNotFoundError):
        files.read("0/3/1.7.manifest")


def test_there_is_nothing_in_a_folder_that_is_not_there(files: Files) -> None:
    assert files.names("0/3") == []


def test_state_is_found_again_by_another_worker(files: Files) -> None:
    place = Place(root=files.root, operator="op")
    written = {}
    for batch, rows in enumerate((10, 100_000, 20)):
        store = open_partition(files, place, 0, batch, Remembered())
        written[f"rows/{batch}"] = pa.table({"n": np.arange(rows) * (batch + 1)})
        store.write(f"rows/{batch}", written[f"rows/{batch}"])
        store.publish(b"{}", rows, rows * 8)
    found = open_partition(files, place, 0, 3, Remembered())
    assert found.before is not None
    assert (found.before.batch, found.before.state_rows) == (2, 20)
    assert {name: found.read(name) for name in written} == written


def test_what_a_batch_asks_of_the_file_system_is_counted(files: Files) -> None:
    """By hand: reads, writes, lists, deletes. Beside a manifest, this machine has a mark of it; asking an object store
    whether the manifest is there already is a read.
    """
    local = isinstance(files, LocalFiles)
    manifest = (0, 2, 0, 0) if local else (1, 1, 0, 0)

    def asked(batch: int, remembered: Remembered, rows: int, read: str | None = None) -> tuple[int, ...]:
        before = files.operations.counts()
        store = open_partition(files, Place(root=files.root, operator="op"), 0, batch, remembered)
        if read is not None:
            store.read(read)
        if rows:
            store.write(f"rows/{batch}", pa.table({"n": np.arange(rows)}))
        store.publish(b"{}", 1, 1)
        return files.operations.since(before)

    def plus(*more: int) -> tuple[int, ...]:
        return tuple(map(sum, zip(manifest, more, strict=True)))

    worker = Remembered()
    assert asked(0, worker, rows=10) == plus(0, 0, 1, 0)  # looks for an older manifest
    assert asked(1, worker, rows=100_000) == plus(0, 1, 0, 0)  # 800 kB are a file of their own
    assert asked(2, worker, rows=0) == (0, 0, 0, 0)
    # Another worker lists the folder, and reads the manifest and the segment, of which an object store has a copy here.
    fetched = 2 if local else 1
    assert asked(3, Remembered(), rows=10, read="rows/1") == plus(fetched, 0, 1, 0)


def test_a_damaged_copy_is_fetched_again(s3: str, tmp_path: Path) -> None:
    files = remote_files(f"{s3}/{tmp_path.name}")
    place = Place(root=files.root, operator="op")
    table = pa.table({"n": np.arange(100_000)})
    store = open_partition(files, place, 0, 0, Remembered())
    store.write("rows/1", table)
    store.publish(b"{}", 1, 1)
    (copy,) = Path(files.copies).rglob("*.arrow")
    os.truncate(copy, 1000)
    assert open_partition(files, place, 0, 1, Remembered()).read("rows/1") == table


def test_a_scheme_that_nothing_can_open_is_refused_with_those_that_can() -> None:
    with pytest.raises(RunError, match="nowhere://host/path cannot be reached") as refused:
        remote_files("nowhere://host/path")
    assert "s3://" in str(refused.value.diagnostics[0].hint)


def test_a_file_is_taken_from_beside_it_or_not_at_all(s3: str, tmp_path: Path) -> None:
    here, there = LocalFiles(str(tmp_path / "a")), LocalFiles(str(tmp_path / "b"))
    bucket, other = (remote_files(f"{s3}/{tmp_path.name}/{name}") for name in "ab")
    for files in (here, bucket):
        files.publish("0/3/1.7.manifest", b"one")
        files.settle("0/3/1.7.manifest")
    assert there.take("0/3/1.7.manifest", here, link=True)
    assert other.take("0/3/1.7.manifest", bucket, link=False)
    for files in (there, other):
        assert bytes(files.read("0/3/1.7.manifest")) == b"one"
    assert not there.take("0/3/1.7.manifest", bucket, link=True)
    assert not other.take("0/3/1.7.manifest", here, link=True)
    assert not there.take("0/3/1.7.manifest", here, link=False)
    with pytest.raises(FileNotFoundError):
        there.take("0/3/2.7.manifest", here, link=True)
