"""What ``hintplan state`` says of a checkpoint: rows counted by hand, and what a restart really sees."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import planner
import plans
from plans.analysis.streaming_queries import Query
from plans.compare.carryover import numbered_states
from plans.edit.edit import set_value
from plans.errors import PlanError, RunError
from plans.model.plan import Plan
from runtime import read_state
from runtime.inspect import command
from runtime.inspect.contents import Amount, CheckpointState, EntryState, UnderEdit
from runtime.inspect.entries import Entry, choice
from runtime.inspect.report import state_text
from runtime.run.execution import execute
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
HOUR = 3_600_000


def script(directory: Path, *, columns: str = "k BIGINT, a STRING", of: str = "a", counted: str = "l") -> str:
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
            table("l", columns),
            table("r", "k BIGINT, b STRING"),
            table("joined", "a STRING, b STRING", changelog),
            table(f"counted_{counted}", "k BIGINT, n BIGINT", changelog),
            f"INSERT INTO joined SELECT {of}, b FROM l JOIN r ON l.k = r.k;",
            f"INSERT INTO counted_{counted} SELECT k, COUNT(DISTINCT {'a' if counted == 'l' else 'b'}) "
            f"FROM {counted} GROUP BY k;",
        ]
    )


def run(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(DEADLINE_SECONDS)


def batch_time(checkpoint: Path, sink: str, batch: int) -> int:
    """When Spark started the batch, from its own file."""
    return json.loads((checkpoint / sink / "offsets" / str(batch)).read_text().splitlines()[1])["batchTimestampMs"]


def files(directory: Path) -> dict[str, str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path): f"{path.stat().st_mtime_ns} {hashlib.md5(path.read_bytes()).hexdigest()}" for path in found}


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


def test_state_is_counted_as_by_hand_and_as_a_restart_sees_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint"
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

    before = files(checkpoint)
    found = read_state(plan, str(checkpoint), spark, at=at, edited=edited, show=2)
    assert files(checkpoint) == before, "reading must leave the checkpoint as it is"
    assert {query.id: query.batch for query in found.queries} == {"sink_joined": 1, "sink_counted_l": 1}
    assert {query.id: query.started for query in found.queries}["sink_joined"] == new

    # (1, a1), (1, a2) of the first batch; (2, a3), written again, and (4, a4) of the second; NULL keys never match.
    left = entry(found, "join_l_r", "leftState")
    assert left.amount == Amount(rows=4, keys=3, bytes=left.amount.bytes, oldest=old, newest=new, expired=0, soon=0)
    assert left.edited == UnderEdit(ttl=f"{at - old} ms", rows=2, expired=2, soon=2)
    ((table, rows),) = left.shown
    assert table == "left"
    assert sorted((row["k"], row["a"], row["__count"]) for row in rows.to_pylist()) == [(2, "a3", 3), (4, "a4", 1)]
    right = entry(found, "join_l_r", "rightState")
    assert (right.amount.rows, right.amount.keys, right.edited) == (1, 1, None)
    # Groups 1, 2, 4 and NULL, and what is counted in them: a1 and a2, a3, a4, x.
    groups = entry(found, "aggregate_l", "groupAggregateState")
    assert (groups.amount.rows, groups.amount.keys, groups.amount.expired) == (9, 4, 0)
    assert {name: amount.rows for name, amount in groups.tables} == {"groups": 4, "values(a)": 5}
    assert found.total.rows == 4 + 1 + 9
    _check_other_plans(spark, tmp_path, checkpoint, at)
    _check_command(spark, tmp_path, checkpoint, plan, at, monkeypatch)

    # A restart with an edited TTL: a right row for each key meets the left rows that are still visible.
    kept = shutil.copytree(checkpoint, tmp_path / "kept")
    ttl = batch_time(checkpoint, "sink_joined", 1) - old
    restarted, _ = set_value(plan, "join_l_r.state.leftState.ttl", f"{ttl} ms")
    add_rows(tmp_path, "r", [{"k": k, "b": "b"} for k in (1, 2, 4)])
    run(restarted, spark, checkpoint)
    then = batch_time(checkpoint, "sink_joined", 2)
    met = [row["a"] for row in changes(tmp_path / "joined")]
    told = entry(read_state(plan, str(kept), spark, at=then, edited=restarted), "join_l_r", "leftState").edited
    assert told is not None
    # Rows of the first batch have expired; those of the second too, if the restart took longer than the two runs.
    assert set(met) <= {"a3", "a4"}
    # The row (2, a3) is there three times, and meets its partner as often.
    assert told.rows == len(set(met))
    assert sorted(met) in ([], ["a4"] * 0 + ["a3"] * 3 + ["a4"])


def _check_other_plans(spark: SparkSession, directory: Path, checkpoint: Path, at: int) -> None:
    """Operators that the plan has not, or keeps other columns for, are told from the manifests; strangers refused."""
    changed = script(directory, columns="k BIGINT, a STRING, c STRING", of="c", counted="r")
    found = read_state(planner.compile_sql(changed, name="changed"), str(checkpoint), spark, at=at)
    states = {
        (query.id, query.batch, state.id, state.status): {each.name: each.amount.rows for each in state.entries}
        for query in found.queries
        for state in query.operators
    }
    assert states == {
        ("sink_joined", 1, "join_l_r", "other-meaning"): {"left": 4, "right": 1},
        ("sink_counted_r", None, "aggregate_r", "read"): {"groupAggregateState": 0},
        ("sink_counted_l", 1, "aggregate_l", "orphan"): {"groups": 4, "values(a)": 5},
    }
    text = state_text(found)
    assert "join_l_r  (another state in the plan: a run starts it empty)" in text
    assert "aggregate_l  (not in the plan)" in text
    assert "sink_counted_r · no batch committed yet" in text
    assert "written by plan kept" in text
    stranger = planner.compile_sql(
        "CREATE TABLE x (a INT) WITH ('connector' = 'datagen');"
        "CREATE TABLE y (a INT) WITH ('connector' = 'blackhole');"
        "INSERT INTO y SELECT a FROM x;",
        name="stranger",
    )
    with pytest.raises(RunError, match="written by plan kept, which has no operator in common with stranger"):
        read_state(stranger, str(checkpoint), spark, at=at)
    with pytest.raises(RunError, match="there is no checkpoint in"):
        read_state(stranger, str(directory / "nothing"), spark, at=at)


def test_states_are_numbered_from_the_sink_down_also_in_a_checkpoint_with_an_odd_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = (
        script(tmp_path).partition("INSERT")[0]
        + """
        CREATE VIEW sums AS SELECT k, COUNT(a) AS n FROM l GROUP BY k;
        INSERT INTO joined SELECT z.b, CAST(x.n + y.n AS STRING)
        FROM sums AS x JOIN sums AS y ON x.k = y.k JOIN (SELECT k, MAX(b) AS b FROM r GROUP BY k) AS z ON x.k = z.k"""
    )
    plan = planner.compile_sql(text)
    add_rows(tmp_path, "l", [{"k": 1, "a": "x"}])
    add_rows(tmp_path, "r", [{"k": 1, "b": "y"}])
    checkpoint = tmp_path / "state [1] {a,b}*?"
    run(plan, spark, checkpoint)
    found = read_state(plan, str(checkpoint), spark)
    (query,) = found.queries
    stored = {operator.number: operator.id for operator in query.operators}
    wanted = ["join_x_y_z", "join_x_y", "aggregate_l", "aggregate_l", "aggregate_r"]
    assert [stored[number] for number in range(len(stored))] == wanted
    assert numbered_states(plan, Query(id="sink_joined", sinks=("sink_joined",))) == wanted
    changed = planner.compile_sql(text.replace("MAX(b)", "MIN(b)"))
    with pytest.raises(RunError, match="allow-state-drop"):
        run(changed, spark, checkpoint)


def _check_command(
    spark: SparkSession, directory: Path, checkpoint: Path, plan: Plan, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def opened(*_args, **_options):
        yield spark

    monkeypatch.setattr(command, "opened_session", opened)
    path = directory / "plan.json"
    plans.dump(plan, path)
    done = CliRunner().invoke(
        command.state_command,
        [
            *(str(path), "--checkpoint", str(checkpoint), "--json", "--at", "2100-01-01T00:00:00Z", "--show", "1"),
            *("--if", "config.table.exec.state.ttl=0s", "--entry", "join_l_r.state.leftState.ttl"),
        ],
        catch_exceptions=False,
    )
    document = json.loads(done.stdout)
    assert document["at"] == "2100-01-01T00:00:00.000Z"
    ((state,),) = (operator["state"] for query in document["queries"] for operator in query["operators"])
    assert (state["name"], state["ttl"], state["rows"], state["expired"]) == ("leftState", "1 d", 0, 4)
    assert state["if"] == {"ttl": "0 ms", "rows": 4, "expire-in-1h": 0, "expired": 0}
    (row,) = state["shown"]["left"]
    assert (row["key"]["k"], row["expired"]) in ((2, True), (4, True))


def test_what_cannot_be_meant_is_refused_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_args, **_options):
        raise AssertionError("Spark must not be started")

    monkeypatch.setattr(command, "opened_session", never)
    path = tmp_path / "plan.json"
    plans.dump(planner.compile_sql(script(tmp_path)), path)

    def refused(*arguments: str) -> str:
        done = CliRunner().invoke(command.state_command, [str(path), *arguments])
        return done.output if done.exception is None or isinstance(done.exception, SystemExit) else str(done.exception)

    assert "there is no directory nowhere" in refused("--checkpoint", "nowhere")
    here = ("--checkpoint", str(tmp_path))
    assert "expected --if PATH=TTL" in refused(*here, "--if", "join_l_r")
    assert "'tables.l.options.path' is no TTL" in refused(*here, "--if", "tables.l.options.path=x")
    assert "bad duration '3'" in refused(*here, "--if", "join_l_r.leftState.ttl=3")
    assert "did you mean" in refused(*here, "--if", "join_l_r.leftStat.ttl=3d")
    assert "write a time such as" in refused(*here, "--at", "yesterday")


def test_an_unknown_state_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(PlanError, match=r"there is no state 'join_x\.leftStat'") as error:
        choice({"join_x": (Entry(name="leftState"),)}, ("aggregate_y",), ["join_x.leftStat"])
    assert "did you mean 'join_x.leftState'" in str(error.value)
