"""One run per checkpoint, where Spark has a part in it: two executions, other file systems, Spark's own check."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError, Unavailable
from hintplan.runtime.checkpoint import run_lock
from hintplan.runtime.checkpoint.heartbeat import StopSwitch
from hintplan.runtime.checkpoint.lease import Waiting, claim, look, run_out
from hintplan.runtime.checkpoint.lease_stores import directory_store, hadoop_store
from hintplan.runtime.checkpoint.local_lock import LOCK
from hintplan.runtime.checkpoint.lock_owner import ourselves
from hintplan.runtime.run.execute import execute
from hintplan.runtime.spark.stopping import stop_query
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180


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
        stop_query(query)  # not through the execution, whose end nobody notes
    second = execute(plan, spark, checkpoint=checkpoint, once=True)
    assert second.await_termination(DEADLINE_SECONDS)
    assert fold(changes(tmp_path)) == expected(sample(0, 20))
    assert (tmp_path / "checkpoint" / LOCK).read_text(encoding="utf-8") == ""


def test_spark_refuses_a_query_that_it_still_runs(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    plan, checkpoint = revenue_plan(tmp_path), str(tmp_path / "checkpoint")
    first = execute(plan, spark, checkpoint=checkpoint)
    assert first.lock is not None
    first.lock.release()  # as on Spark Connect, where there is none
    try:
        with pytest.raises(RunError, match=r"sink_result .* is already running on this Spark") as caught:
            execute(plan, spark, checkpoint=checkpoint)
        assert "take_over=True" in str(caught.value)
        assert first.active
        over = execute(plan, spark, checkpoint=checkpoint, once=True, take_over=True)
        assert over.await_termination(DEADLINE_SECONDS)
        assert not first.active
    finally:
        first.stop()


def test_on_other_file_systems_a_lease_says_who_runs(spark: SparkSession, tmp_path: Path) -> None:
    store = replace(hadoop_store(spark, f"file://{tmp_path}/state"), atomic=True)  # as on hdfs
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    waiting = Waiting(clock=lambda: now, sleep=sleep)
    first = claim(store, run_out(store, "it", waiting), ourselves(None), 60.0, waiting)
    assert first is not None
    assert claim(store, None, ourselves(None), 60.0, waiting) is None
    with pytest.raises(RunError, match="checkpoint it is in use by this process"):
        run_out(store, "it", waiting)
    assert first.renew()
    first.release()
    elsewhere = replace(ourselves(None), host="etl-7", pid=4711)
    second = claim(store, run_out(store, "it", waiting), elsewhere, 60.0, waiting)
    assert second is not None
    assert (now, second.epoch, store.epochs()) == (0.0, 2, [2])
    third = claim(store, run_out(store, "it", waiting), ourselves(None), 60.0, waiting)
    assert third is not None
    assert (60.0 <= now < 70.0, third.epoch, second.renew()) == (True, 3, False)
    assert "was taken over" not in str(second.lost())  # it has run out before anyone could have taken it


def test_a_query_stops_in_the_jvm_when_nobody_renews_its_lease(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", sample(0, 20))
    execution = execute(revenue_plan(tmp_path), spark, checkpoint=str(tmp_path / "checkpoint"))
    switch = StopSwitch.of(spark, execution.queries.values())
    try:
        switch.set(600.0)
        switch.set(0.05)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while execution.active:
            assert time.monotonic() < deadline
            execution.wait(0.05)
    finally:
        switch.close()
        execution.stop()


def test_an_execution_fails_when_its_lease_is_lost(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(run_lock, "is_shared", lambda path: True)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", sample(0, 20))
    plan, checkpoint = revenue_plan(tmp_path), str(tmp_path / "checkpoint")
    execution = execute(plan, spark, checkpoint=checkpoint, lease="10 s")
    assert execution.lock is not None
    assert execution.lock.beat is not None
    with pytest.raises(RunError, match="in use by this process"):
        execute(plan, spark, checkpoint=checkpoint, once=True)
    execution.lock.beat.lease.until = 0.0  # as after a pause of the machine
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"could not be renewed within 7\.5 s"):
            execution.raise_failure()
    assert not execution.active
    assert is_free(checkpoint)
    over = execute(plan, spark, checkpoint=checkpoint, once=True)
    assert over.await_termination(DEADLINE_SECONDS)
    assert fold(changes(tmp_path)) == expected(sample(0, 20))
    assert is_free(checkpoint)


def is_free(checkpoint: str) -> bool:
    seen = look(directory_store(Path(checkpoint)))
    return seen is not None and seen.is_free
