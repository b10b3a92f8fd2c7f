"""A folder of JSON files with times out of order, through all layers: SQL, a plan, runs on Spark, printed rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.commands import Commands, running_commands

SQL = """CREATE TABLE readings (device STRING, temperature INT, at TIMESTAMP(3),
 WATERMARK FOR at AS at - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{folder}/readings');
CREATE TABLE highest (device STRING, begin TIMESTAMP(3), readings BIGINT, temperature INT) WITH ('connector' = 'print');
INSERT INTO highest SELECT device, window_start, COUNT(*), MAX(temperature)
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY device, window_start, window_end;
"""
RUNS: dict[str, tuple[list[tuple[str, int, int]], list[str], str]] = {
    # The watermark comes to 12:00:07, in the first window.
    "first": (
        [("a", 20, 3), ("b", 18, 12), ("a", 25, 1), ("a", 22, 9)],
        [],
        "2 rows in open windows, watermark 2024-01-01 12:00:07 UTC by watermark_readings · --drain closes them",
    ),
    # A row behind the watermark counts, for its window is open. The watermark comes to 12:00:21: two windows close.
    "second": (
        [("b", 19, 2), ("a", 21, 26)],
        ["+I[a, 2024-01-01T12:00, 3, 25]", "+I[b, 2024-01-01T12:00, 1, 19]", "+I[b, 2024-01-01T12:00:10, 1, 18]"],
        "window_readings: 1 row in open windows, watermark 2024-01-01 12:00:21 UTC",
    ),
    # The windows of both rows have closed.
    "third": ([("a", 99, 5), ("b", 99, 19)], [], "2 late rows"),
}
"""Rows of a file, the rows that a run prints after it, and words of its last lines."""
DRAINED = ["+I[a, 2024-01-01T12:00:20, 1, 21]"]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with running_commands(tmp_path_factory.mktemp("commands"), os.environ) as running:
        yield running


def add_file(folder: Path, name: str, rows: list[tuple[str, int, int]]) -> None:
    lines = [
        json.dumps({"device": device, "temperature": temperature, "at": f"2024-01-01 12:00:{second:02}"})
        for device, temperature, second in rows
    ]
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.spark
def test_windows_close_when_the_watermark_passes_them_in_this_run_or_a_later_one(
    tmp_path: Path, commands: Commands
) -> None:
    (tmp_path / "job.sql").write_text(SQL.replace("{folder}", str(tmp_path)), encoding="utf-8")
    compiled = commands.run("compile", "job.sql", "-o", "plan.json", folder=tmp_path)
    assert compiled.returncode == 0, compiled.said
    for name, (rows, expected, ending) in RUNS.items():
        add_file(tmp_path / "readings", name, rows)
        done = commands.run("run", "plan.json", "--once", "--checkpoint", "state", folder=tmp_path)
        assert done.returncode == 0, done.said
        assert sorted(done.stdout.splitlines()) == expected, name
        assert ending in done.stderr, name
    drained = commands.run("run", "plan.json", "--once", "--checkpoint", "state", "--drain", folder=tmp_path)
    assert drained.returncode == 0, drained.said
    assert drained.stdout.splitlines() == DRAINED
    assert "window_readings: all windows closed\n" in drained.stderr
