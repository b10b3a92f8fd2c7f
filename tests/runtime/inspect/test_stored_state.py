"""What ``hintplan state`` says of a checkpoint that runs on Spark have left: counted by hand, and as a restart sees it.

What needs no Spark is in tests/runtime/inspect.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import planner
from plans.edit.edit import set_value
from plans.model.plan import Plan
from runtime import read_state, state_rows
from runtime.inspect.contents import Amount, CheckpointState, EntryState, UnderEdit
from runtime.run.execute import execute
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
HOUR = 3_600_000


def script(directory: Path) -> str:
    def table(name: str, columns: str, options: str = "") -> str:
        (directory / name).mkdir(exist_ok=True)
        path = directory / name / ("result" if options else "")
        return (
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'json', "
            f"'path' = '{path}'{options});"
        )

    changelog = ", 'sink.changelog' = 'true'"
    return "\n".join(
        [
            "SET 'table.exec.state.ttl' = '1 d';",
            "SET 'parallelism.default' = '2';",
            table("l", "k BIGINT, a STRING"),
            table("r", "k BIGINT, b STRING"),
            table("joined", "a STRING, b STRING", changelog),
            table("counted", "k BIGINT, n BIGINT", changelog),
            "INSERT INTO joined SELECT a, b FROM l JOIN r ON l.k = r.k;",
            "INSERT INTO counted SELECT k, COUNT(DISTINCT a) FROM l GROUP BY k;",
        ]
    )


def run(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(DEADLINE_SECONDS)


def batch_time(checkpoint: Path, sink: str, batch: int) -> int:
    """When Spark started the batch, from its own file."""
    return json.loads((checkpoint / sink / "offsets" / str(batch)).read_text().splitlines()[1])["batchTimestampMs"]


def entry(found: CheckpointState, operator: str, name: str) -> EntryState:
    (one,) = (
        each
        for query in found.queries
        for state in query.operators
        if state.id == operator
        for each in state.entries
        if each.name == name
    )
    return one


def test_state_is_counted_as_by_hand_and_as_a_restart_sees_it(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "state [1] {a,b}*?"
    plan = planner.compile_sql(script(tmp_path), name="kept")
    first = [(1, "a1"), (1, "a2"), (2, "a3"), (2, "a3"), (None, "x")]
    add_rows(tmp_path, "l", [{"k": k, "a": a} for k, a in first])
    add_rows(tmp_path, "r", [{"k": 3, "b": "b0"}])
    run(plan, spark, checkpoint)
    add_rows(tmp_path, "l", [{"k": 2, "a": "a3"}, {"k": 4, "a": "a4"}])
    run(plan, spark, checkpoint)
    old, new = (batch_time(checkpoint, "sink_joined", batch) for batch in (0, 1))
    at = new + HOUR // 6
    edited, _ = set_value(plan, "join_l_r.state.leftState.ttl", f"{at - old} ms")

    found = read_state(plan, str(checkpoint), at=at, edited=edited, show=2)
    assert {query.id: query.batch for query in found.queries} == {"sink_joined": 1, "sink_counted": 1}
    assert {query.id: query.started for query in found.queries}["sink_joined"] == new

    # (1, a1), (1, a2) of the first batch; (2, a3), written again, and (4, a4) of the second; NULL keys never match.
    left = entry(found, "join_l_r", "leftState")
    assert left.amount == Amount(rows=4, keys=3, bytes=left.amount.bytes, oldest=old, newest=new, expired=0, soon=0)
    assert left.edited == UnderEdit(ttl=f"{at - old} ms", rows=2, expired=2, soon=2)
    right = entry(found, "join_l_r", "rightState")
    assert (right.amount.rows, right.amount.keys, right.edited) == (1, 1, None)
    rows = state_rows(plan, str(checkpoint), "join_l_r.leftState", at=at).read_all().to_pylist()
    assert sorted((row["k"], row["a"], row["__count"], row["__write"]) for row in rows) == [
        (1, "a1", 1, old),
        (1, "a2", 1, old),
        (2, "a3", 3, new),
        (4, "a4", 1, new),
    ]
    # Groups 1, 2, 4 and NULL, and what is counted in them: a1 and a2, a3, a4, x.
    groups = entry(found, "aggregate_l", "groupAggregateState")
    assert (groups.amount.rows, groups.amount.keys, groups.amount.expired) == (9, 4, 0)
    assert {name: amount.rows for name, amount in groups.tables} == {"groups": 4, "values(a)": 5}

    # A restart with an edited TTL: a right row for each key meets the left rows that are still visible.
    kept = shutil.copytree(checkpoint, tmp_path / "kept")
    restarted, _ = set_value(plan, "join_l_r.state.leftState.ttl", f"{new - old} ms")
    add_rows(tmp_path, "r", [{"k": k, "b": "b"} for k in (1, 2, 4)])
    run(restarted, spark, checkpoint)
    then = batch_time(checkpoint, "sink_joined", 2)
    met = [row["a"] for row in changes(tmp_path / "joined")]
    told = entry(read_state(plan, str(kept), at=then, edited=restarted), "join_l_r", "leftState").edited
    assert told is not None
    # Rows of the first batch have expired; those of the second too, if the restart took longer than the two runs.
    assert set(met) <= {"a3", "a4"}
    # The row (2, a3) is there three times, and meets its partner as often.
    assert told.rows == len(set(met))
    assert sorted(met) in ([], ["a3"] * 3 + ["a4"])
