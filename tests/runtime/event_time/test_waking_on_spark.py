"""Batches that Spark runs without new rows: for windows and joins of processing time, and for an idle table."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.runtime.event_time.test_ends_on_spark import DEADLINE_SECONDS, Rows, add_file

pytestmark = pytest.mark.spark

TABLE = "k BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), pt AS PROCTIME(), WATERMARK FOR ts AS ts"
SCRIPT = f"""
CREATE TABLE a ({TABLE}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{{folder}}/a');
CREATE TABLE b ({TABLE}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{{folder}}/b',
 'scan.watermark.idle-timeout' = '1 s');
CREATE TABLE by_clock (k BIGINT, n BIGINT, starting TIMESTAMP(3), ending TIMESTAMP(3)) WITH ('connector' = 'dataframe');
CREATE TABLE by_rowtime (n BIGINT, ending TIMESTAMP(3)) WITH ('connector' = 'dataframe');
CREATE TABLE joined (a BIGINT, b BIGINT) WITH ('connector' = 'dataframe');
CREATE VIEW united AS SELECT ts FROM a UNION ALL SELECT ts FROM b;
BEGIN STATEMENT SET;
INSERT INTO by_clock SELECT k, COUNT(*), window_start, window_end
FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(pt), INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO joined SELECT a.ms, b.ms FROM a LEFT JOIN b
ON a.k = b.k AND b.pt BETWEEN a.pt AND a.pt + INTERVAL '1' SECOND;
INSERT INTO by_rowtime SELECT COUNT(*), window_end
FROM TABLE(TUMBLE(TABLE united, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
END;
"""


class Awaited(Rows):
    """Rows that a test waits for."""

    def __init__(self, *tables: str) -> None:
        super().__init__(*tables)
        self.came = threading.Condition()

    def take(self, table: str) -> Any:
        note = super().take(table)

        def take(rows: DataFrame, batch: int) -> None:
            with self.came:
                note(rows, batch)
                self.came.notify_all()

        return take

    def until(self, table: str, count: int) -> list[tuple[Any, ...]]:
        """The rows of ``table``, once it has ``count``."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        with self.came:
            while len(self.rows[table]) < count:
                assert self.came.wait(deadline - time.monotonic()), f"{table} has {self.rows[table]}"
            return list(self.rows[table])


def test_windows_close_and_rows_are_padded_without_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    plan = hintplan.compile_sql(SCRIPT.replace("{folder}", str(tmp_path)))
    add_file(tmp_path / "a", "a", 2, 3, 9, 11)
    add_file(tmp_path / "b", "b", 4)
    rows = Awaited("by_clock", "joined", "by_rowtime")
    sinks = {table: rows.take(table) for table in rows.rows}
    execution = execute(plan, spark, sinks=sinks, checkpoint=str(tmp_path / "cp"))
    assert isinstance(execution, Execution)
    try:
        first = rows.until("by_clock", 3)  # 2 and 9 have one key
        assert [row[0] for row in rows.until("by_rowtime", 1)] == [4]  # table b has been silent for a second
        joined = rows.until("joined", 4)
        while not execution.stop_between_batches():  # so that the batches of these rows are not repeated
            execution.wait(0.1)
    finally:
        execution.stop()
    assert sorted(row[:2] for row in first) == [(2, 2), (3, 1), (4, 1)]
    assert joined[0] == (11_000, 4_000), "they have one key, and come in one batch"
    assert sorted(row[0] for row in joined[1:] if row[1] is None) == [2_000, 3_000, 9_000]
    assert {row[3] - row[2] for row in rows.rows["by_clock"]} == {timedelta(seconds=1)}
    progress = execution.progress["sink_by_clock"]
    assert [source.operator for source in progress.sources] == ["scan_a"]
    times = progress.operators["window_a"].event_time
    assert times is not None
    assert times.watermark is None

    add_file(tmp_path / "a", "aaa", 30)
    drained = Rows(*rows.rows)
    drained.run(plan, spark, tmp_path / "cp", drain=True)
    assert drained.rows["joined"] == [(30_000, None)]
    assert [row[:2] for row in drained.rows["by_clock"] if row[0] == 2] == [(2, 1)]
