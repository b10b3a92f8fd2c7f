"""Marks of sinks in a checkpoint: what holds after a batch, what is damaged, and which files stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles, local_files
from hintplan.runtime.checkpoint.sink_marks import SinkMark, mark_damage, marks_line, newest_mark, read_marks
from hintplan.runtime.run.marking import SinkMarks, _LocalStore
from hintplan.runtime.storage.local_files import LocalFiles

TABLE = Table(columns=(), options={"connector": "jdbc", "table-name": "r"})


def marks_in(checkpoint: Path, began: int = -1) -> SinkMarks:
    made = SinkMarks(store=_LocalStore(files=LocalFiles(str(checkpoint / "sink_r"))))
    made.begin(local_files(checkpoint), "sink_r", began)
    return made


def names(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / "sink_r" / "marks").iterdir())


def had(checkpoint: Path, ended: int) -> dict[str, int]:
    return {name: mark.had["batch"] for name, mark in read_marks(local_files(checkpoint), "sink_r", ended).items()}


def test_the_last_two_files_stay_and_each_has_all_sinks(tmp_path: Path) -> None:
    marks = marks_in(tmp_path)
    for batch, sinks in ((0, "ab"), (3, "a"), (4, "b"), (9, "a")):
        for sink in sinks:
            marks.of(sink, TABLE)(batch, {"batch": batch})
    assert names(tmp_path) == ["4", "9"]
    assert [had(tmp_path, ended) for ended in (3, 4, 8, 9, 20)] == [
        {}, {"a": 3, "b": 4}, {"a": 3, "b": 4}, {"a": 9, "b": 4}, {"a": 9, "b": 4}
    ]  # fmt: skip


def test_a_run_goes_on_from_the_marks_that_are_there(tmp_path: Path) -> None:
    """Also from those of a batch that had begun, which another sink may have had; not from those of lost logs."""
    marks_in(tmp_path).of("a", TABLE)(4, {"batch": 4})
    marks_in(tmp_path, began=5).of("a", TABLE)(5, {"batch": 5})
    marks_in(tmp_path, began=5).of("b", TABLE)(5, {"batch": 5})
    assert (names(tmp_path), had(tmp_path, 5)) == (["4", "5"], {"a": 5, "b": 5})
    marks_in(tmp_path, began=4).of("b", TABLE)(6, {"batch": 6})
    assert (names(tmp_path), had(tmp_path, 6)) == (["4", "6"], {"a": 4, "b": 6})


def test_half_a_file_of_a_batch_that_has_not_ended_is_passed_over(tmp_path: Path) -> None:
    marks_in(tmp_path).of("a", TABLE)(4, {"batch": 4})
    torn = tmp_path / "sink_r" / "marks" / "5"
    torn.write_bytes(marks_line(5, {})[:20])
    assert had(tmp_path, 4) == {"a": 4}
    with pytest.raises(RunError, match="the checkpoint is damaged: sink_r/marks/5 was not written by hintplan"):
        had(tmp_path, 5)
    marks_in(tmp_path, began=5).of("b", TABLE)(5, {"batch": 5})
    assert had(tmp_path, 5) == {"a": 4, "b": 5}


def test_each_bit_that_is_flipped_is_noticed() -> None:
    line = marks_line(7, {"sink_r": SinkMark(batch=7, place="0123456789abcdef", had={"ends": {"0": 12}})})
    assert mark_damage("q/marks/7", line) is None
    for place in range(len(line)):
        for bit in range(8):
            flipped = bytes([*line[:place], line[place] ^ 1 << bit, *line[place + 1 :]])
            assert mark_damage("q/marks/7", flipped) is not None, (place, bit)
    for length in range(len(line)):
        assert mark_damage("q/marks/7", line[:length]) is not None


def test_what_stands_in_the_place_of_another_is_named() -> None:
    assert str(mark_damage("q/marks/8", marks_line(7, {}))) == "q/marks/8 belongs to batch 7"


def test_marks_of_a_later_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hintplan.runtime.checkpoint.sink_marks.VERSION", 2)
    later = marks_line(7, {})
    monkeypatch.undo()
    with pytest.raises(RunError, match="q/marks/7 has marks of version 2, and this version of hintplan reads 1"):
        mark_damage("q/marks/7", later)


def test_the_newest_is_by_number() -> None:
    files = CheckpointFiles(sizes={f"q/marks/{n}": 1 for n in (2, 9, 10)}, read=lambda paths: {})
    assert [newest_mark(files, "q", ended) for ended in (-1, 9, 10, 99)] == [
        None, "q/marks/9", "q/marks/10", "q/marks/10"
    ]  # fmt: skip


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "sink_r").mkdir()
    (tmp_path / "sink_r" / "marks").write_text("")
    with pytest.raises(RunError, match="the marks of a cannot be written to the checkpoint: File exists"):
        marks_in(tmp_path).of("a", TABLE)(0, {})
