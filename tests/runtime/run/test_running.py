"""What a run says of a batch that waits for something outside: a function that waits for a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.operators import Aggregate, AggregateCall, Sink
from hintplan.plans.settings.state import StateEntry, ttl_settings
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.running_text import running_json, stuck_json, stuck_text
from hintplan.runtime.run.watch import Watch
from hintplan.runtime.running import RunningBatch, StuckBatch
from hintplan.runtime.sources import lag_text
from tests.runtime.functions.test_functions_on_spark import MODULES, job, table, texts

pytestmark = pytest.mark.spark

POLLS = 3_000
WAIT_SECONDS = 0.05


@pytest.fixture
def execution(spark: SparkSession, tmp_path: Path) -> Iterator[Execution]:
    """Counts words of a file a batch: the first one is free, the second waits for the file ``gate``."""
    texts(tmp_path, str(tmp_path))
    texts(tmp_path, str(tmp_path / "gate"))
    texts(tmp_path, str(tmp_path))
    plan = job(tmp_path, "Gate", "table")
    scan, call, _ = plan.operators
    count = Aggregate(
        id="aggregate_w",
        inputs=(call.id,),
        keys=("word",),
        aggregates=(AggregateCall(name="n", function="COUNT", type="BIGINT"),),
        state=(StateEntry(index=0, name="groupAggregateState", input=call.id, settings=ttl_settings()),),
        changelog=("+I", "-U", "+U"),
    )
    options = {**plan.tables["result"].options, "sink.changelog": "true"}
    run = execute(
        replace(
            plan,
            operators=(scan, call, count, Sink(id="sink_result", inputs=(count.id,), table="result")),
            tables={**plan.tables, "result": table({"word": "STRING", "n": "BIGINT"}, options)},
        ),
        spark,
        trigger="100 ms",
        checkpoint=str(tmp_path / "checkpoint"),
        policy=Policy(modules=MODULES),
    )
    assert isinstance(run, Execution)
    yield run
    (tmp_path / "gate").touch()
    run.stop()


def polls(execution: Execution) -> Iterator[float]:
    """Times, two seconds apart to whoever is told them, at which the run may have come further."""
    for poll in range(POLLS):
        execution.raise_failure()
        yield 2.0 * poll
        execution.wait(WAIT_SECONDS)
    pytest.fail("what is waited for does not come")


def test_a_batch_that_waits_is_shown_with_its_operator_and_then_called_stuck(execution: Execution) -> None:
    watch = Watch(execution, pace=2.0)
    for _ in polls(execution):
        if "sink_result" in execution.progress:
            break
    first = execution.progress["sink_result"]
    two = {"reads": 0, "writes": 2 * 2, "lists": 2, "deletes": 0}  # each of two partitions: a manifest and its mark
    assert first.batch == 0
    assert first.operators["aggregate_w"].file_operations == two
    (source,) = first.sources
    assert source.rows_in == 1
    assert source.metrics["numFilesOutstanding"] in ("1", "2")  # the next batch takes one of them, now or soon
    assert source.operator is not None
    assert lag_text(source).startswith(f"{source.operator} is behind: ")

    for now in polls(execution):
        found = list(watch.news(now))
        if found and isinstance(found[0], RunningBatch) and found[0].stages and found[0].stages[0].waiting:
            break
    running = found[0]
    assert isinstance(running, RunningBatch)
    # A task for the only file, and one for each of two partitions behind it.
    assert (running.sinks, running.batch, running.tasks, running.done) == (("sink_result",), 1, 1 + 2, 0)
    stage, behind = running_json(running)["stages"]
    assert (stage["operators"], stage["tasks"], len(stage["waiting"])) == (["correlate_w"], 1, 1)
    assert (behind["operators"], behind["tasks"], behind["waiting"]) == (["aggregate_w", "sink_result"], 2, [])

    stuck = list(watch.news(now + 400.0))[-1]
    assert isinstance(stuck, StuckBatch)
    head, quiet, where, *_ = stuck_text(stuck)
    assert stuck.quiet_ms == stuck.batch.running_ms >= 400_000
    assert head.startswith("sink_result batch 1 seems to be stuck: at work for ")
    assert quiet.startswith("  no task has ended for ")
    host = stage["waiting"][0]["host"]
    assert where.startswith(
        f"  correlate_w waits: 1 of 1 tasks in stage {stage['stage']}, at work on {host}, the oldest"
    )
    assert (stuck_json(stuck)["usual_ms"], stuck_json(stuck)["page"]) == (None, None)
    assert not any(isinstance(one, StuckBatch) for one in watch.news(now + 800.0))


def test_the_batches_after_it_are_not_told_of(execution: Execution, tmp_path: Path) -> None:
    watch = Watch(execution, pace=2.0)
    (tmp_path / "gate").touch()
    for _ in polls(execution):
        if "sink_result" in execution.progress and execution.progress["sink_result"].batch == 2:
            break
    for now in polls(execution):
        if now > 100.0:
            break
        assert list(watch.news(now)) == []
