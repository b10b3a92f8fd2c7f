"""Interval joins as batch jobs: a job has the rows of the model of a stream in which no row is late."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.runtime.event_time.histories import moment
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.models_of_rows import IntervalJoin
from tests.runtime.event_time.times import FOREVER, NEVER, milliseconds

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2)]

DEADLINE_SECONDS = 120
HOUR = 3_600_000
AUTUMN = milliseconds("2024-10-26T12:00")
"""Thirteen hours before the clocks of Berlin go back."""
SCRIPT = """
SET 'execution.runtime-mode' = 'batch';
SET 'table.local-time-zone' = 'Europe/Berlin';
CREATE TABLE a (k STRING, v BIGINT, ts {kind}, WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/a');
CREATE TABLE b (k STRING, v BIGINT, ts {kind}, WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/b');
CREATE TABLE r (lk STRING, lv BIGINT, rk STRING, rv BIGINT)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/r');
INSERT INTO r SELECT l.k, l.v, r.k, r.v FROM a AS l FULL JOIN b AS r
ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '26' HOUR AND r.ts + INTERVAL '90' MINUTE AND l.v <> r.v;
"""


@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"])
def test_a_batch_job_has_the_rows_of_the_model(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    dice, zoned = random.Random(kind), "LTZ" in kind
    rows = [
        Row(AUTUMN + dice.randrange(48) * HOUR // 2, dice.choice(["x", "y", None]), number % 7, 1, dice.randrange(2))
        for number in range(120)
    ]
    for side, table in enumerate("ab"):
        own = [row for row in rows if row.side == side]
        times = pa.array([moment(row.time, zoned=zoned) for row in own], pa.timestamp("us", "UTC" if zoned else None))
        columns = [pa.array([row.key for row in own], pa.string()), pa.array([row.value for row in own]), times]
        (tmp_path / table).mkdir()
        pq.write_table(pa.table(columns, ["k", "v", "ts"]), tmp_path / table / "0.parquet")
    plan = hintplan.compile_sql(SCRIPT.format(directory=tmp_path, kind=kind))
    assert [operator.op for operator in plan.operators].count("interval-join") == 1
    assert execute(plan, spark).await_termination(DEADLINE_SECONDS)
    found = pyarrow.dataset.dataset(tmp_path / "r", format="parquet").to_table()
    model = IntervalJoin("full", 26 * HOUR, 90 * 60_000, lambda left, right: left.value != right.value)
    expected = Counter(row for _, row in model.batch(rows, NEVER, FOREVER))
    assert Counter(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected
