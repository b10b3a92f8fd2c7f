"""A group window on Spark: early results in batches without rows, also repeated ones, and late ones with more time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hintplan
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import RunError
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.runtime.event_time.test_ends_on_spark import DEADLINE_SECONDS, Rows, add_file
from tests.runtime.event_time.test_waking_on_spark import Awaited

SCRIPT = """
CREATE TABLE a (k BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{folder}/a');
CREATE TABLE r (second BIGINT, n BIGINT) WITH ('connector' = 'dataframe');
SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '1 s';
SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.delay' = '0 ms';
SET 'table.exec.emit.allow-lateness' = '1 s';
INSERT INTO r SELECT EXTRACT(SECOND FROM TUMBLE_START(ts, INTERVAL '10' SECOND)), COUNT(*)
FROM a GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
"""


@pytest.mark.spark
def test_results_come_early_without_new_rows_and_late_with_more_lateness(spark: SparkSession, tmp_path: Path) -> None:
    plan = hintplan.compile_sql(SCRIPT.replace("{folder}", str(tmp_path)))
    add_file(tmp_path / "a", "a", 2, 9)
    early = Awaited("r")
    execution = execute(plan, spark, sinks={"r": early.take("r")}, checkpoint=str(tmp_path / "cp"))
    assert isinstance(execution, Execution)
    try:
        assert early.until("r", 1) == [(0, 2, "+I")]
        while not execution.stop_between_batches():  # so that the batch of this row is not repeated
            execution.wait(0.1)
    finally:
        execution.stop()

    longer, _ = set_value(plan, "window_a.emit.allow-lateness", "20 s")
    add_file(tmp_path / "a", "aa", 3, 24)
    closed = Rows("r")
    closed.run(longer, spark, tmp_path / "cp")
    assert closed.rows["r"] == [(0, 2, "-U"), (0, 3, "+U")]
    add_file(tmp_path / "a", "aaa", 5, 12)
    late = Rows("r")
    late.run(longer, spark, tmp_path / "cp", drain=True)
    assert late.rows["r"] == [(0, 3, "-U"), (0, 4, "+U"), (10, 1, "+I"), (20, 1, "+I")]


class Failing(Rows):
    """A sink that fails once it has taken rows."""

    def take(self, table: str) -> Any:
        note = super().take(table)

        def take(rows: DataFrame, batch: int) -> None:
            note(rows, batch)
            if self.rows[table]:
                raise ConnectionError("the sink has gone away")

        return take


@pytest.mark.spark
def test_a_run_that_repeats_a_batch_without_input_reads_the_new_input_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = hintplan.compile_sql(SCRIPT.replace("{folder}", str(tmp_path)))
    add_file(tmp_path / "a", "a", 2, 9)
    failing, again = Failing("r"), Rows("r")
    execution = execute(plan, spark, sinks={"r": failing.take("r")}, checkpoint=str(tmp_path / "cp"))
    assert isinstance(execution, Execution)
    with pytest.raises(RunError, match="the sink has gone away"):
        execution.await_termination(DEADLINE_SECONDS)
    assert failing.rows["r"] == [(0, 2, "+I")]
    add_file(tmp_path / "a", "aa", 3, 24)
    again.run(plan, spark, tmp_path / "cp")
    assert again.rows["r"] == [(0, 2, "+I"), (0, 2, "-U"), (0, 3, "+U")]
