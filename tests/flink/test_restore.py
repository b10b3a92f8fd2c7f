"""State whose TTL changes between two runs, against what real Flink 2.3 did with the same rows (restore.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.flink.record_restore import CASES
from tests.sample import sampled
from tests.spark.programs import add_rows, changes

RECORDED = json.loads(Path(__file__).with_name("restore.json").read_text(encoding="utf-8"))
DEADLINE_SECONDS = 120


@pytest.mark.integration
@pytest.mark.spark
@pytest.mark.parametrize("case", sampled(CASES, keep=2))
def test_a_changed_ttl_finds_the_state_that_flink_found(spark: SparkSession, tmp_path: Path, case: str) -> None:
    before, after, wait = CASES[case]
    # Flink waited longer than the TTL without a row; here any time between two runs is longer than the shortest one.
    after = "1 ms" if wait else after
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' ="
    script = f"""
        CREATE TABLE o (k STRING, v BIGINT) WITH ({files} '{tmp_path}/o');
        CREATE TABLE r (k STRING, n BIGINT, s BIGINT) WITH ({files} '{tmp_path}/result',
          'sink.changelog' = 'true');
        INSERT INTO r SELECT k, COUNT(*), SUM(v) FROM o GROUP BY k;
    """

    def run(ttl: str, *rows: dict[str, Any]) -> list[str]:
        seen = sorted(map(line, changes(tmp_path)))
        add_rows(tmp_path, "o", list(rows))
        plan = hintplan.compile_sql(script, {"table.exec.state.ttl": ttl, "parallelism.default": "1"}, name="restored")
        execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
        assert execution.await_termination(DEADLINE_SECONDS)
        found = sorted(map(line, changes(tmp_path)))
        for known in seen:
            found.remove(known)
        return found

    run(before, {"k": "x", "v": 1}, {"k": "y", "v": 2})
    assert run(after, {"k": "x", "v": 10}) == sorted(RECORDED[case])


def line(row: dict[str, Any]) -> str:
    return f"{row['op']}[{row['k']}, {row['n']}, {row['s']}]"
