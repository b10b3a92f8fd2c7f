"""Segments of state and the saved manifest, against a dictionary in place of Spark's state store."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from plans.errors import RunError
from runtime.engine import local_files
from runtime.engine import segments as segments_module
from runtime.engine.blobs import CHUNK_BYTES, CHUNK_ROWS, chunks
from runtime.engine.opened import Opened
from runtime.engine.process import PartitionProcessor, deferred
from runtime.engine.saved import STATE_VERSION, Saved, decode
from runtime.engine.segments import Segments
from runtime.spark.by_value import Deferred
from tests.runtime.restarted import OneValue
from tests.spark.engine.counting import counting

ROWS = pa.schema([("id", pa.int64())])


class DictStore:
    """MapState's three calls, counting what crosses them."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.calls = 0

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        self.calls += 1
        return (self.values[key[0]],) if key[0] in self.values else None

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.calls += 1
        self.values[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:
        self.calls += 1
        del self.values[key[0]]


def table(first: int, rows: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + rows), pa.int64())})


def test_a_segment_reads_back_as_it_was_written(tmp_path: Path) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path)
    assert first.write("a", table(5, 100).slice(10, 20)) == 160
    assert first.read("a") == table(15, 20)
    stored = first.commit()
    assert Segments(stored, store, tmp_path).read("a") == table(15, 20)


def test_a_segment_that_lies_on_the_worker_is_not_fetched(tmp_path: Path) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path)
    first.write("a", table(0, 10))
    stored = first.commit()
    store.calls = 0
    assert Segments(stored, store, tmp_path).read("a") == table(0, 10)
    assert store.calls == 0


def test_a_segment_in_many_chunks_is_put_together_on_another_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments_module, "CHUNK_BYTES", 1000)
    store = DictStore()
    first = Segments({}, store, tmp_path / "one")
    first.write("a", table(0, 1000))
    stored = first.commit()
    assert len(store.values) == stored["a"][1] > 8
    assert max(map(len, store.values.values())) == 1000
    assert Segments(stored, store, tmp_path / "two").read("a") == table(0, 1000)
    assert [path.suffix for path in (tmp_path / "two").iterdir()] == [".arrow"]


def test_writing_and_deleting_within_a_batch_costs_nothing(tmp_path: Path) -> None:
    store = DictStore()
    segments = Segments({}, store, tmp_path)
    segments.write("a", table(0, 10))
    segments.delete("a")
    assert segments.commit() == {}
    assert store.calls == 0
    assert list(tmp_path.iterdir()) == []


def test_a_segment_in_pieces_is_one_segment(tmp_path: Path) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path / "one")
    assert first.write_pieces("a", (table(start, 10) for start in (0, 10, 20))) == 240
    assert first.read("a") == table(0, 30)
    assert store.calls == 0, "nothing is persisted before the call has succeeded"
    first.settle()
    stored = first.commit()
    assert Segments(stored, store, tmp_path / "two").read("a").combine_chunks() == table(0, 30)


def test_a_segment_in_pieces_that_is_deleted_within_the_batch_leaves_nothing(tmp_path: Path) -> None:
    store = DictStore()
    segments = Segments({}, store, tmp_path)
    segments.write_pieces("a", [table(0, 10), table(10, 10)])
    with pytest.raises(RunError, match="written twice"):
        segments.write("a", table(0, 1))
    segments.delete("a")
    assert segments.commit() == {}
    assert store.calls == 0
    assert list(tmp_path.iterdir()) == []


def test_deleting_removes_the_segment_from_store_and_worker(tmp_path: Path) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path)
    first.write("a", table(0, 10))
    second = Segments(first.commit(), store, tmp_path)
    second.delete("a")
    assert store.values, "nothing is removed before the call has succeeded"
    assert second.commit() == {}
    assert store.values == {}
    assert list(tmp_path.iterdir()) == []


def test_the_same_name_in_another_history_is_another_segment(tmp_path: Path) -> None:
    tokens = (f"token{number}" for number in count())
    one, two = DictStore(), DictStore()
    first = Segments({}, one, tmp_path, lambda: next(tokens))
    first.write("a", table(0, 10))
    stored = first.commit()
    replayed = Segments({}, two, tmp_path, lambda: next(tokens))
    replayed.write("a", table(500, 10))
    assert Segments(replayed.commit(), two, tmp_path).read("a") == table(500, 10)
    assert Segments(stored, one, tmp_path).read("a") == table(0, 10)


def test_a_segment_is_written_once(tmp_path: Path) -> None:
    segments = Segments({}, DictStore(), tmp_path)
    segments.write("a", table(0, 1))
    with pytest.raises(RunError, match="written twice"):
        segments.write("a", table(0, 1))


def test_a_lost_chunk_is_reported_and_leaves_no_half_file(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="lost part 1 of 2 of state segment t"):
        Segments({"a": ("t", 2)}, DictStore(), tmp_path).read("a")
    assert not (tmp_path / "t.arrow").exists()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def half_written(path: Path) -> None:
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size // 2] + bytes(size - size // 2))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_an_older_version(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES = [flip, cut, half_written, emptied, of_an_older_version, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_local_file_is_fetched_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path)
    first.write("a", table(0, 1000))
    stored = first.commit()
    (file,) = tmp_path.iterdir()
    right = file.read_bytes()
    damage(file)
    assert Segments(stored, store, tmp_path).read("a") == table(0, 1000)
    assert file.read_bytes() == right
    store.calls = 0
    assert Segments(stored, store, tmp_path).read("a") == table(0, 1000)
    assert store.calls == 0


def test_a_file_that_another_process_wrote_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[int] = []
    is_right = local_files._is_right
    monkeypatch.setattr(local_files, "_is_right", lambda whole: checks.append(whole.size) or is_right(whole))
    store = DictStore()
    first = Segments({}, store, tmp_path)
    first.write("a", table(0, 1000))
    stored = first.commit()
    assert Segments(stored, store, tmp_path).read("a") == table(0, 1000)
    assert checks == []
    monkeypatch.setattr(local_files, "_checked", {})
    for _ in range(2):
        assert Segments(stored, store, tmp_path).read("a") == table(0, 1000)
    assert len(checks) == 1


def test_a_segment_stays_open_for_the_next_batch_while_its_file_is_the_same(tmp_path: Path) -> None:
    store, opened = DictStore(), Opened()
    first = Segments({}, store, tmp_path, opened=opened)
    first.write("a", table(0, 1000))
    stored = first.commit()
    found = Segments(stored, store, tmp_path, opened=opened).read("a")
    assert found == table(0, 1000)
    assert Segments(stored, store, tmp_path, opened=opened).read("a") is found


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_file_that_is_damaged_while_it_is_open_is_fetched_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    store, opened = DictStore(), Opened()
    first = Segments({}, store, tmp_path, opened=opened)
    first.write("a", table(0, 1000))
    stored = first.commit()
    Segments(stored, store, tmp_path, opened=opened).read("a")
    (file,) = tmp_path.iterdir()
    damage(file)
    assert Segments(stored, store, tmp_path, opened=opened).read("a") == table(0, 1000)


def test_what_another_worker_removed_is_let_go_with_the_next_batch(tmp_path: Path) -> None:
    store, opened = DictStore(), Opened()
    first = Segments({}, store, tmp_path, opened=opened)
    first.write("a", table(0, 1000))
    stored = first.commit()
    held = weakref.ref(Segments(stored, store, tmp_path, opened=opened).read("a"))
    assert held() is not None
    elsewhere = Segments(stored, store, tmp_path)
    elsewhere.delete("a")
    elsewhere.commit()
    Segments({}, store, tmp_path, opened=opened).commit()
    assert held() is None


@pytest.mark.parametrize("opened", [Opened(limit=20_000), Opened(files=2)], ids=["bytes", "files"])
def test_segments_stay_open_only_as_far_as_they_fit(tmp_path: Path, opened: Opened) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path, opened=opened)
    for name in "abc":
        first.write(name, table(0, 1000))
    stored = first.commit()
    segments = Segments(stored, store, tmp_path, opened=opened)
    held = {name: weakref.ref(segments.read(name)) for name in "abac"}
    assert [name for name in "abc" if held[name]() is not None] == ["a", "c"]


def test_what_a_dead_worker_left_half_written_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    left = [tmp_path / f"token.{process.pid}.{'0' * 32}.tmp", tmp_path / "token.tmp"]
    alive = tmp_path / f"token.{os.getpid()}.{'0' * 32}.tmp"
    for path in (*left, alive):
        path.write_bytes(b"x")
    segments = Segments({}, DictStore(), tmp_path)
    segments.write("a", table(0, 10))
    segments.commit()
    assert [path.suffix for path in tmp_path.iterdir() if path != alive] == [".arrow"]
    assert alive.exists()


def test_damaged_data_in_the_state_store_is_named_with_the_operator(tmp_path: Path) -> None:
    store = DictStore()
    first = Segments({}, store, tmp_path / "one")
    first.write("a", table(0, 1000))
    stored = first.commit()
    (name,) = store.values
    store.values[name] = store.values[name][:-100]
    with pytest.raises(RunError, match=r"operator join_o_c: the state store holds damaged data of state segment"):
        Segments(stored, store, tmp_path / "two", operator="join_o_c").read("a")


def test_a_directory_without_room_is_named_and_the_segment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: local_files.Summed, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = DictStore()
    first = Segments({}, store, tmp_path / "one")
    first.write("a", table(0, 10))
    stored = first.commit()
    with monkeypatch.context() as patch:
        patch.setattr(local_files.Summed, "write", full)
        with pytest.raises(RunError) as caught:
            Segments(stored, store, tmp_path / "two", operator="aggregate_t").read("a")
    assert "operator aggregate_t cannot keep its state on this worker: No space left on device" in str(caught.value)
    assert "spark.local.dir" in str(caught.value)
    assert list((tmp_path / "two").iterdir()) == []
    assert Segments(stored, store, tmp_path / "two").read("a") == table(0, 10)


def test_output_is_cut_by_rows_and_by_bytes() -> None:
    narrow = table(0, CHUNK_ROWS + 1)
    assert [chunk.num_rows for chunk in chunks(narrow)] == [CHUNK_ROWS, 1]
    wide = pa.table({"text": ["x" * 1_000_000] * 100})
    cut = list(chunks(wide))
    assert len(cut) == 4
    assert max(chunk.nbytes for chunk in cut) <= CHUNK_BYTES
    assert pa.concat_tables(cut) == wide
    assert list(chunks(table(0, 0))) == []


def processor_with(manifest: OneValue) -> Deferred:
    class Handle:
        def getValueState(self, name: str, schema: str) -> OneValue:
            assert name == "manifest"
            return manifest

        def getMapState(self, name: str, key: str, value: str) -> DictStore:
            assert name == "segments"
            return DictStore()

    processor = deferred(PartitionProcessor("count", counting(ROWS, ())))
    processor.init(Handle())
    return processor


class Now:
    def getCurrentProcessingTimeInMs(self) -> int:
        return 1_000


def test_state_of_a_newer_format_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    manifest = OneValue((STATE_VERSION + 1, None, 0, 0, json.dumps({}), None))
    with pytest.raises(RunError, match=f"state of operator count has format {STATE_VERSION + 1}"):
        list(processor_with(manifest).handleInputRows((0,), iter(()), Now()))


def test_state_of_the_format_without_names_is_read_and_gets_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    kept = b'{"generation": 0, "touched": 0}'
    manifest = OneValue((1, None, 0, 0, json.dumps({"s": ["token", 1]}), kept))
    assert decode(manifest.value, "count") == Saved(None, 0, 0, {"s": ("token", 1)}, kept, None)
    list(processor_with(manifest).handleInputRows((0,), iter(()), Now()))
    assert decode(manifest.value, "count") == Saved(None, 0, 0, {"s": ("token", 1)}, kept, "count")


def test_an_operator_without_state_keeps_no_manifest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    manifest = OneValue()
    (metrics,) = processor_with(manifest).handleInputRows((0,), iter(()), Now())
    assert manifest.value is None
    assert (metrics.blob, metrics.state_rows, metrics.reports) == (None, 0, 1)
