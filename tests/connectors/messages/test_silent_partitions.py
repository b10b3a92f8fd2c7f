"""A partition of a topic that falls silent holds the watermark back, until its idle timeout has passed.

Each run is one batch. All partitions have rows in the first; then the last one is silent. A timeout of 1 ms has passed
in the next batch, and one of 1 h has not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

import hintplan
from hintplan.plans.edit.edit import set_value
from hintplan.plans.lint.time_rules import never_idle
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.explain import plan_tree
from hintplan.runtime.inspect.read import read_state
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.report import event_time_text
from tests.connectors.messages.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 120
SILENT = 3
TIMEOUT = "table.exec.source.idle-timeout"


class Batch(NamedTuple):
    """The key and second of the rows in each partition, the windows that close, and the watermark, both in seconds."""

    rows: dict[int, list[tuple[str, int]]]
    closed: dict[tuple[str, int], int]
    watermark: int
    late: int = 0


ALL = Batch({0: [("a", 3)], 1: [("a", 4)], 2: [("b", 5)], 3: [("b", 6)]}, {}, 1)
HELD = Batch({0: [("a", 14)], 1: [("a", 15)], 2: [("b", 16)]}, {}, 4)
STILL_HELD = Batch({0: [("a", 17)], 1: [("a", 18)], 2: [("b", 25)]}, {}, 4)
LEFT_OUT = Batch({0: [("a", 19)], 1: [("a", 21)], 2: [("b", 26)]}, {("a", 10): 2, ("b", 10): 2}, 17)
BACK = Batch({SILENT: [("b", 9), ("b", 24)]}, {("a", 20): 5, ("b", 20): 1}, 22, late=1)
"""The others have no rows in this batch, so they are left out."""


class Job:
    """A count by key and window of 10 s over a topic of four partitions, with a delay of 2 s."""

    def __init__(self, spark: SparkSession, broker: Broker, checkpoint: Path) -> None:
        self.spark, self.broker, self.checkpoint = spark, broker, str(checkpoint)
        self.topic = broker.create(4)
        self.closed: dict[tuple[str, int], int] = {}

    def plan(self, settings: str = "") -> Plan:
        return hintplan.compile_sql(
            f"""{settings}
            CREATE TABLE readings (k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (
              'connector' = 'kafka', 'topic' = '{self.topic}', 'properties.bootstrap.servers' = '{self.broker.servers}',
              'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
            );
            CREATE TABLE counted (k STRING, window_end TIMESTAMP(3), n BIGINT) WITH ('connector' = 'dataframe');
            INSERT INTO counted SELECT k, window_end, COUNT(*)
            FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '10' SECOND))
            GROUP BY k, window_start, window_end;""",
            {"parallelism.default": "2"},
        )

    def run(self, plan: Plan, batch: Batch) -> Any:
        """Run ``batch``, and return the event time of the window."""
        for partition, rows in batch.rows.items():
            messages = [(None, json.dumps({"k": k, "ts": f"1970-01-01 00:00:{second:02}"})) for k, second in rows]
            self.broker.send(self.topic, messages, partition=partition)
        execution = self.execute(plan)
        assert self.closed == batch.closed
        time = execution.progress["sink_counted"].operators["window_readings"].event_time
        assert time is not None
        assert (time.watermark, time.late_rows) == (batch.watermark * 1000, batch.late)
        return time

    def execute(self, plan: Plan) -> Execution:
        """Read all messages that are there, and return the run at its end."""
        self.closed = {}
        execution = execute(plan, self.spark, checkpoint=self.checkpoint, once=True, sinks={"counted": self._write})
        assert isinstance(execution, Execution)
        assert execution.await_termination(DEADLINE_SECONDS)
        execution.raise_failure()
        return execution

    def _write(self, rows: DataFrame, batch: int) -> None:
        for row in rows.toArrow().to_pylist():
            place = row["k"], row["window_end"].second
            assert place not in self.closed
            self.closed[place] = row["n"]


def test_a_silent_partition_holds_windows_open_until_its_timeout_has_passed(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    job = Job(spark, broker, tmp_path / "checkpoint")
    plan, patient = job.plan(), job.plan(f"SET '{TIMEOUT}' = '1 h';")
    edited, _ = set_value(patient, "watermark_readings.watermark.idle-timeout", "1 ms")
    job.run(plan, ALL)
    held = job.run(plan, HELD)
    assert event_time_text(held)[0].endswith(f" by {job.topic}/{SILENT} of watermark_readings")
    (query,) = read_state(plan, job.checkpoint).queries
    (stored,) = [operator.watermark for operator in query.operators if operator.watermark is not None]
    assert (stored.held_by, stored.split) == ("watermark_readings", f"{job.topic}/{SILENT}")
    assert "idle-timeout never" in plan_tree(plan)
    (finding,) = never_idle(plan)
    assert "a partition of 'readings' holds back the others" in finding.message
    assert not [*never_idle(patient)]
    job.run(patient, STILL_HELD)
    assert job.execute(edited).progress == {}, "without rows there is no batch, so no timeout closes a window"
    job.run(edited, LEFT_OUT)
    job.run(edited, BACK)


def test_an_empty_partition_holds_nothing_back(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    job = Job(spark, broker, tmp_path / "checkpoint")
    first = Batch({0: [("a", 3)], 1: [("a", 15)]}, {}, 1)
    second = Batch({0: [("a", 14)]}, {("a", 10): 1}, 12)
    plan = job.plan()
    job.run(plan, first)
    job.run(plan, second)
