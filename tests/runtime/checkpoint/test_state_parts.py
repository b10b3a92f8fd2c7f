"""What a state must have in a checkpoint: written as workers write it, damaged, and named by part and operator."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hintplan.plans.compare.query_record import QueryRecord, StateRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import local_files
from hintplan.runtime.checkpoint.state_parts import state_damages
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.partition import open_partition
from hintplan.runtime.storage.place import Place, Scale

JOIN = StateRecord(operator="join_o_c", lineage="a", place="join_o_c.1", begun=True)
QUERY = QueryRecord(id="sink_r", sinks=("sink_r",), sources=(), states=(JOIN,), begun=True, scales=((2, 0),))
ROOT = "sink_r/state/join_o_c.1"
LARGE, SMALL = 200_000, 10
"""Rows of a segment that is a file of more than 1 MiB, and of one that stands in its manifest."""


def write(
    checkpoint: Path, batch: int, *, rows: int = SMALL, scales: Sequence[Scale] = (Scale(2),), run: int = 1
) -> None:
    """One more segment in each partition."""
    place = Place(root=str(checkpoint / ROOT), operator="join_o_c", lineage="a", run=run, scales=tuple(scales))
    for partition in range(place.partitions):
        store = open_partition(files_at(place.root), place, partition, batch)
        store.write(f"left/{batch}", pa.table({"hash": pa.array(range(rows), pa.int64())}))
        store.publish(b"{}", rows, rows * 8)


def said(checkpoint: Path, query: QueryRecord = QUERY, *, began: int = 1, ended: int = 1, whole: bool = True) -> str:
    files = replace(local_files(checkpoint), whole=whole)
    return "; ".join(map(str, state_damages(files, query, began=began, ended=ended)))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A state in two partitions: a large segment of batch 0 and a small one of batch 1."""
    write(tmp_path, 0, rows=LARGE)
    write(tmp_path, 1)
    assert said(tmp_path) == ""
    return tmp_path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 0xFF  # of an Arrow file its schema, of a manifest its last segment
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("pattern", "damage", "what"),
    [
        ("0/0/1.1.manifest", Path.unlink, r"0/0/1\.1\.manifest is missing"),
        ("0/0/1.1.manifest", cut, r"0/0/1\.1\.manifest is cut off"),
        ("0/0/1.1.manifest", flip, r"0/0/1\.1\.manifest was changed after it was written"),
        ("0/1/0.1.*.arrow", Path.unlink, r"0/1/0\.1\.\w+\.arrow is missing"),
        ("0/1/0.1.*.arrow", cut, r"0/1/0\.1\.\w+\.arrow is cut off"),
        ("0/1", shutil.rmtree, r"0/1/ is missing"),
        ("0", shutil.rmtree, " is missing"),
        ("0/0/0.1.manifest", Path.unlink, None),
        ("0/0/1.1.written", Path.unlink, None),
    ],
)
def test_what_is_needed_is_missed_wherever_it_is_read(
    checkpoint: Path, pattern: str, damage: Callable[[Path], None], what: str | None, whole: bool
) -> None:
    (path,) = (checkpoint / ROOT).glob(pattern)
    damage(path)
    found = said(checkpoint, whole=whole)
    if what is None:
        assert found == ""
    else:
        assert re.search(rf"^sink_r/state/(join_o_c\.1/)?{what} \(state of join_o_c\)", found), found


def test_the_mark_of_a_manifest_that_was_written_by_a_later_run_says_that_it_is_lost(checkpoint: Path) -> None:
    write(checkpoint, 1, run=2)
    (checkpoint / ROOT / "0" / "1" / "1.2.manifest").unlink()
    assert said(checkpoint) == f"{ROOT}/0/1/1.2.manifest is missing (state of join_o_c)"


def test_what_a_batch_left_that_did_not_end_is_nobodys_business(checkpoint: Path) -> None:
    write(checkpoint, 2)
    (checkpoint / ROOT / "0" / "1" / "2.1.manifest").write_bytes(b"cut off")
    assert said(checkpoint, began=2, ended=1) == ""


def test_state_that_is_newer_than_the_logs_says_that_these_have_lost_entries(checkpoint: Path) -> None:
    assert re.match(r"sink_r/offsets/1 is missing, though there is sink_r/state/.*/1\.1\.", said(checkpoint, began=0))


def test_only_state_that_was_written_is_missed(tmp_path: Path) -> None:
    assert said(tmp_path) == "sink_r/state/ is missing (state of join_o_c)"
    assert said(tmp_path, replace(QUERY, states=(replace(JOIN, begun=False),))) == ""


def test_a_state_of_another_lineage_or_partition_is_not_taken_for_its_own(checkpoint: Path) -> None:
    other = replace(QUERY, states=(replace(JOIN, operator="join_o_p", lineage="b"),))
    assert "1.1.manifest belongs to another state, of join_o_c (state of join_o_p)" in said(checkpoint, other)
    shutil.rmtree(checkpoint / ROOT / "0" / "1")
    shutil.copytree(checkpoint / ROOT / "0" / "0", checkpoint / ROOT / "0" / "1")
    assert said(checkpoint) == f"{ROOT}/0/1/1.1.manifest is of partition 0 of 2 (state of join_o_c)"


def test_a_new_scale_is_in_force_once_it_was_written(checkpoint: Path) -> None:
    scaled = replace(QUERY, scales=((2, 0), (3, 2)))
    waiting = replace(scaled, states=(replace(JOIN, begun=False),))
    assert said(checkpoint, waiting) == ""
    (lost,) = (checkpoint / ROOT / "0" / "0").glob("*.arrow")
    kept = lost.read_bytes()
    lost.unlink()
    assert f"{lost.name} is missing (state of join_o_c)" in said(checkpoint, waiting)
    lost.write_bytes(kept)
    write(checkpoint, 2, scales=[Scale(2), Scale(3, 2)])
    assert said(checkpoint, scaled, began=2, ended=2) == ""
    shutil.rmtree(checkpoint / ROOT / "0")  # nothing in the new scale refers to it
    assert said(checkpoint, scaled, began=2, ended=2) == ""
    shutil.rmtree(checkpoint / ROOT / "1" / "2")
    assert said(checkpoint, scaled, began=2, ended=2) == f"{ROOT}/1/2/ is missing (state of join_o_c)"


def test_state_of_a_format_that_is_not_known_is_refused_as_such(checkpoint: Path) -> None:
    manifest = checkpoint / ROOT / "0" / "0" / "1.1.manifest"
    manifest.write_bytes(manifest.read_bytes().replace(b"hintplan-state 1 ", b"hintplan-state 9 ", 1))
    with pytest.raises(RunError, match=r"1\.1\.manifest has state format 9"):
        said(checkpoint)
