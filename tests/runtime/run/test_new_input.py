"""Whether a run that takes what is there may find something new, from the files of its sources and its checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run import new_input
from hintplan.runtime.run.new_input import may_find_rows

ENDED = 1_000_000
"""When the last batch ended, in seconds."""


def plan_of(*tables: str) -> Plan:
    """A plan that reads tables with these options."""
    declared = "".join(f"CREATE TABLE t{n} (id BIGINT) WITH ({options});" for n, options in enumerate(tables))
    rows = " UNION ALL ".join(f"SELECT id FROM t{n}" for n, _ in enumerate(tables))
    sink = "CREATE TABLE k (id BIGINT) WITH ('connector' = 'blackhole');"
    return hintplan.compile_sql(f"{declared}{sink}INSERT INTO k {rows};")


def files_in(folder: Path) -> str:
    return f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{folder}'"


def written(file: Path, time: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    os.utime(file, (time, time))


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    for batch in range(2):
        written(tmp_path / "checkpoint" / "sink_k" / "commits" / str(batch), ENDED - 1 + batch)
    written(tmp_path / "checkpoint" / "sink_k" / "offsets" / "2", ENDED + 50)  # of a batch that did not end
    return str(tmp_path / "checkpoint")


def test_files_that_changed_before_the_last_batch_ended_are_nothing_new(tmp_path: Path, checkpoint: str) -> None:
    written(tmp_path / "a" / "1.json", ENDED - 10)
    written(tmp_path / "b" / "day=1" / "1.json", ENDED - 0.5)
    plan = plan_of(files_in(tmp_path / "a"), files_in(tmp_path / "b"))
    assert not may_find_rows(plan, checkpoint)
    assert not may_find_rows(plan, f"file://{checkpoint}")


@pytest.mark.parametrize("late", ["a/2.json", "b/2.json", "b/day=2/x.json", "a/_hidden/x"])
def test_a_file_that_changed_later_may_have_rows(tmp_path: Path, checkpoint: str, late: str) -> None:
    written(tmp_path / "a" / "1.json", ENDED - 10)
    written(tmp_path / "b" / "1.json", ENDED - 10)
    written(tmp_path / late, ENDED)
    assert may_find_rows(plan_of(files_in(tmp_path / "a"), files_in(tmp_path / "b")), checkpoint)


def test_without_a_batch_that_ended_all_is_new(tmp_path: Path) -> None:
    written(tmp_path / "a" / "1.json", ENDED)
    plan = plan_of(files_in(tmp_path / "a"))
    (tmp_path / "new").mkdir()
    assert may_find_rows(plan, None)
    assert may_find_rows(plan, str(tmp_path / "new"))
    assert may_find_rows(plan, str(tmp_path / "none"))
    assert may_find_rows(plan, "s3a://bucket/checkpoint")


@pytest.mark.parametrize(
    "options",
    [
        "'connector' = 'datagen', 'number-of-rows' = '1'",
        "'connector' = 'filesystem', 'format' = 'json', 'path' = 's3a://bucket/a'",
        "'connector' = 'filesystem', 'format' = 'json', 'path' = '/nowhere at all'",
    ],
)
def test_what_is_not_a_directory_here_may_always_have_rows(tmp_path: Path, checkpoint: str, options: str) -> None:
    written(tmp_path / "a" / "1.json", ENDED - 10)
    assert may_find_rows(plan_of(files_in(tmp_path / "a"), options), checkpoint)


def test_a_directory_of_many_files_is_not_looked_through(
    tmp_path: Path, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_input, "_MOST", 3)
    for number in range(4):
        written(tmp_path / "a" / f"{number}.json", ENDED - 10)
    assert may_find_rows(plan_of(files_in(tmp_path / "a")), checkpoint)
