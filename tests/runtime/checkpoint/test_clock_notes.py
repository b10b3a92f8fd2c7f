"""What is said of a clock that is behind the last batch of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.checkpoint.clock_notes import clock_notes
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.run.execute import execute

DAY_MS = 86_400_000


def files(offsets: dict[str, str], *, whole: bool = True) -> CheckpointFiles:
    texts = {path: text.encode() for path, text in offsets.items()}
    sizes = {path: len(text) for path, text in texts.items()}
    return CheckpointFiles(
        sizes=sizes, read=lambda paths: {path: texts[path] for path in paths if path in texts}, whole=whole
    )


def offsets(milliseconds: object) -> str:
    return "v1\n" + json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": milliseconds}) + '\n{"logOffset":0}'


@pytest.mark.parametrize(
    ("there", "now", "said"),
    [
        ({"q/offsets/0": offsets(2 * DAY_MS), "q/offsets/1": offsets(DAY_MS)}, DAY_MS, False),
        ({"q/offsets/9": offsets(DAY_MS), "q/offsets/10": offsets(2 * DAY_MS)}, DAY_MS, True),
        ({"q/offsets/0": offsets(DAY_MS), "other/offsets/0": offsets(2 * DAY_MS)}, DAY_MS, True),
        ({"q/offsets/0": offsets(DAY_MS)}, DAY_MS - 10_000, False),
        ({"q/offsets/0": offsets(DAY_MS)}, DAY_MS - 10_001, True),
        ({"q/offsets/0": offsets("soon")}, 0, False),
        ({"q/offsets/0": "v1"}, 0, False),
        ({}, 0, False),
    ],
)
def test_a_clock_behind_the_last_batch_is_told(there: dict[str, str], now: int, said: bool) -> None:
    assert len(list(clock_notes(files(there), ["q", "other"], now))) == said


def test_nothing_is_said_of_checkpoints_elsewhere() -> None:
    assert list(clock_notes(files({"q/offsets/0": offsets(DAY_MS)}, whole=False), ["q"], 0)) == []


@pytest.mark.spark
def test_a_run_says_by_how_much_the_clock_is_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"k": 1}\n')
    plan = hintplan.compile_sql(
        f"CREATE TABLE t (k INT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / 'in'}');"
        "CREATE TABLE r (k INT) WITH ('connector' = 'blackhole'); INSERT INTO r SELECT k FROM t;"
    )
    checkpoint = str(tmp_path / "checkpoint")
    execute(plan, spark, checkpoint=checkpoint, once=True).await_termination()
    execution = execute(plan, spark, checkpoint=checkpoint, once=True)
    execution.await_termination()
    assert not any("clock" in note for note in execution.notes)
    (path,) = (tmp_path / "checkpoint").glob("*/offsets/0")
    version, metadata, source = path.read_text().splitlines()
    later = {**json.loads(metadata), "batchTimestampMs": json.loads(metadata)["batchTimestampMs"] + DAY_MS}
    path.write_text("\n".join((version, json.dumps(later), source)))
    path.with_name(".0.crc").unlink()
    execution = execute(plan, spark, checkpoint=checkpoint, once=True)
    execution.await_termination()
    (note,) = (note for note in execution.notes if "clock" in note)
    assert note.startswith("the clock of this machine is 1439 min ")
