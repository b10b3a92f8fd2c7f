"""Edits of the plan of a running job on Spark: in force from the next batch on, and not in a batch that is repeated.

An order and its payments meet in a join; the time between them is real, because Spark's clock cannot be set. Expected
matches were worked out by hand: a payment finds its order unless the order is older than the TTL of its batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hintplan
from hintplan.plans.checkpoint.record import local_record, record_path
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import RunError
from hintplan.plans.files.codec import dump, fingerprint
from hintplan.plans.model.plan import Plan
from hintplan.runtime.metrics.metrics import Metrics
from hintplan.runtime.page.live_page import LivePage
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.running import PlanEdit

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 120
TTL = "join_o_p.state.leftState.ttl"
SHORT = "1 s"


def plan_of_payments(directory: Path) -> Plan:
    """Write each payment with its order, to two sinks of one query; orders are kept for a day."""
    for name in ("o", "p"):
        (directory / name).mkdir()
    return hintplan.compile_sql(
        f"CREATE TABLE o (id INT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/o');"
        f"CREATE TABLE p (id INT, m STRING) WITH ('connector' = 'filesystem', 'format' = 'json', "
        f"'path' = '{directory}/p');"
        "CREATE TABLE r (id INT, m STRING) WITH ('connector' = 'dataframe');"
        "CREATE TABLE s (id INT, m STRING) WITH ('connector' = 'blackhole');"
        "CREATE VIEW t AS SELECT /*+ STATE_TTL('o' = '1 d') */ o.id, p.m FROM o JOIN p ON o.id = p.id;"
        "EXECUTE STATEMENT SET BEGIN INSERT INTO r SELECT id, m FROM t; INSERT INTO s SELECT id, m FROM t; END;",
        name="paid",
    )


class Sink:
    """The methods of the payments that found their order, by batch; ``fail`` lets the next batch with rows fail."""

    def __init__(self) -> None:
        self.rows: dict[int, list[str]] = {}
        self.fail = False

    def __call__(self, rows: DataFrame, batch: int) -> None:
        methods = sorted(row.m for row in rows.collect())
        if self.fail:
            raise ValueError("the sink is away")
        if methods:
            self.rows[batch] = methods


def add(directory: Path, table: str, **row: Any) -> None:
    path = directory / table / f"{time.time_ns()}.json"
    path.with_suffix(".new").write_text(json.dumps(row) + "\n")
    path.with_suffix(".new").rename(path)


def wait_until(execution: Execution, condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        execution.raise_failure()
        assert execution.active
        execution.new_batches()
        execution.wait(0.05)


def edit(execution: Execution, path: Path, plan: Plan) -> PlanEdit:
    """Write an edit, and return the report of the run."""
    dump(plan, path)
    told: list[PlanEdit] = []
    edits = execution.edits
    assert edits is not None
    wait_until(execution, lambda: told.extend(edits.news()) or told)
    return told[0]


def test_an_edit_is_in_force_at_the_next_batch_and_anything_else_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan, path, sink = plan_of_payments(tmp_path), tmp_path / "paid.json", Sink()
    shorter, _ = set_value(plan, TTL, SHORT)
    dump(plan, path)
    checkpoint = tmp_path / "checkpoint"
    add(tmp_path, "o", id=1)
    page = LivePage(metrics=Metrics())
    with execute(
        path, spark, sinks={"r": sink}, checkpoint=checkpoint, trigger="100 ms", watch=True, metrics=page.metrics
    ) as run:
        wait_until(run, lambda: run.progress)
        assert page.document()["digest"] == fingerprint(plan)
        ordered = time.monotonic()
        wait_until(run, lambda: time.monotonic() > ordered + 1.5)
        add(tmp_path, "p", id=1, m="before")
        wait_until(run, lambda: sink.rows)
        refused = edit(run, path, set_value(plan, "config.parallelism.default", "3")[0])
        assert refused.refusal is not None
        assert refused.refusal.startswith("config.parallelism.default cannot change while the job runs:\n")
        assert "state goes from" in refused.refusal
        assert refused.digest == fingerprint(plan)
        applied = edit(run, path, shorter)
        last = run.progress["sink_r"].batch
        assert applied == PlanEdit(
            file=str(path),
            digest=fingerprint(shorter),
            changes=(f"{TTL} 1 d → 1 s",),
            batches={"join_o_p": last + 1},
        )
        shown = page.document()
        assert shown["digest"] == fingerprint(shorter)
        assert shown["operators"]["join_o_p"]["values"]["operator.state_ttl"]["leftState"] == 1
        add(tmp_path, "p", id=1, m="after")
        wait_until(run, lambda: run.progress["sink_r"].batch > last)
        add(tmp_path, "p", id=2, m="at once")
        add(tmp_path, "o", id=2)
        wait_until(run, lambda: len(sink.rows) == 2)
    assert [*sink.rows.values()] == [["before"], ["at once"]]
    record = local_record(str(checkpoint))
    assert record is not None
    assert record.since == (("join_o_p", last + 1),)
    assert json.loads(record.document)["operators"] == json.loads(path.read_text())["operators"]
    lines = Path(record_path(str(checkpoint)), "record.jsonl").read_text().splitlines()
    assert [json.loads(line).get("since") for line in lines][-1] == [["join_o_p", last + 1]]


def test_a_batch_that_has_begun_is_repeated_with_the_plan_of_its_beginning(spark: SparkSession, tmp_path: Path) -> None:
    plan, sink = plan_of_payments(tmp_path), Sink()
    shorter, _ = set_value(plan, TTL, SHORT)
    checkpoint = tmp_path / "checkpoint"

    def run(plan: Plan) -> None:
        execution = execute(plan, spark, sinks={"r": sink}, checkpoint=checkpoint, once=True)
        assert execution.await_termination(DEADLINE_SECONDS)

    def fail(plan: Plan) -> None:
        sink.fail = True
        with pytest.raises(RunError, match="the sink is away"):
            run(plan)
        sink.fail = False

    add(tmp_path, "o", id=1)
    run(plan)
    time.sleep(1.1)
    add(tmp_path, "p", id=1, m="begun by the longer TTL")
    fail(plan)
    add(tmp_path, "p", id=1, m="hidden by the shorter TTL")
    run(shorter)
    assert sink.rows == {1: ["begun by the longer TTL"]}
    add(tmp_path, "o", id=2)
    run(shorter)
    time.sleep(1.1)
    add(tmp_path, "p", id=2, m="begun by the shorter TTL")
    fail(shorter)
    add(tmp_path, "o", id=3)
    add(tmp_path, "p", id=3, m="as always")
    run(plan)
    assert sink.rows == {1: ["begun by the longer TTL"], 5: ["as always"]}
