"""One run per checkpoint, where Spark has a part in it: two executions, other file systems, Spark's own check."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from plans.errors import RunError
from runtime.checkpoint.run_lock import LOCK, RunLock, _lock_through
from runtime.run.execute import execute
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180


def lock_as_hdfs(spark: SparkSession, directory: Path, *, take_over: bool = False) -> RunLock:
    """A lock through Hadoop's API alone, as on hdfs and s3a, on the one file system that a test has."""
    jvm = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"file://{directory}/{LOCK}")
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return _lock_through(jvm, system, str(directory), path, os.getpid(), take_over)


def test_a_second_execution_is_refused_and_goes_ahead_when_the_first_has_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", sample(0, 20))
    plan, checkpoint = revenue_plan(tmp_path), str(tmp_path / "checkpoint")
    first = execute(plan, spark, checkpoint=checkpoint)
    with pytest.raises(RunError, match=f"checkpoint {checkpoint} is in use by this process, since"):
        execute(plan, spark, checkpoint=checkpoint)
    assert first.active
    for query in first.queries.values():
        query.stop()  # not through the execution, whose end nobody notes
    second = execute(plan, spark, checkpoint=checkpoint, once=True)
    assert second.await_termination(DEADLINE_SECONDS)
    assert fold(changes(tmp_path)) == expected(sample(0, 20))
    assert (tmp_path / "checkpoint" / LOCK).read_text(encoding="utf-8") == ""


def test_spark_refuses_a_query_that_it_still_runs(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    plan, checkpoint = revenue_plan(tmp_path), str(tmp_path / "checkpoint")
    first = execute(plan, spark, checkpoint=checkpoint)
    assert first._lock is not None
    first._lock.release()  # as on Spark Connect, where there is none
    try:
        with pytest.raises(RunError, match=r"sink_result .* is already running on this Spark") as caught:
            execute(plan, spark, checkpoint=checkpoint)
        assert "--take-over" in str(caught.value)
        assert first.active
        over = execute(plan, spark, checkpoint=checkpoint, once=True, take_over=True)
        assert over.await_termination(DEADLINE_SECONDS)
        assert not first.active
    finally:
        first.stop()


def test_on_other_file_systems_a_file_says_who_runs(spark: SparkSession, tmp_path: Path) -> None:
    first = lock_as_hdfs(spark, tmp_path)
    with pytest.raises(RunError, match="is in use by this process"):
        lock_as_hdfs(spark, tmp_path)
    first.release()
    assert not (tmp_path / LOCK).exists()
    record = {"host": "etl-7", "pid": 4711, "since": "2026-01-02 03:04:05 UTC"}
    (tmp_path / LOCK).write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(RunError, match="was taken by process 4711 on etl-7, since 2026-01-02"):
        lock_as_hdfs(spark, tmp_path)
    lock_as_hdfs(spark, tmp_path, take_over=True).release()
    ended = {**record, "host": socket.gethostname(), "pid": os.getppid(), "birth": "another"}
    (tmp_path / LOCK).write_text(json.dumps(ended), encoding="utf-8")
    lock_as_hdfs(spark, tmp_path).release()
    assert not (tmp_path / LOCK).exists()
