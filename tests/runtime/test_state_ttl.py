"""State TTLs from SQL to Spark: hints, edits and restarts on one checkpoint, and expiry of idle state in real time."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.layers import layers_of
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180


def table(name: str, columns: str, directory: Path, options: str = "") -> str:
    (directory / name).mkdir(parents=True, exist_ok=True)
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'json', "
        f"'path' = '{directory / name}'{options});"
    )


def sink(name: str, columns: str, directory: Path) -> str:
    path = directory / name / "result"
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}', "
        f"'sink.changelog' = 'true');"
    )


def seen(directory: Path, name: str) -> list[tuple]:
    """The changelog in a sink, in no particular order."""
    return [(row.pop("op"), *row.values()) for row in changes(directory / name)]


def wait_for_state(execution: Execution, wanted: dict[str, int]) -> None:
    """Until each operator has kept as many rows as wanted after some batch since the last call, though it may keep
    fewer by now; real time passes, because Spark's clock cannot be set."""
    missing = dict(wanted)
    seen: dict[str, list[int]] = {name: [] for name in wanted}
    for _ in range(DEADLINE_SECONDS * 10):
        execution.raise_failure()
        for batch in execution.new_batches():
            for name in seen.keys() & batch.operators.keys():
                seen[name].append(batch.operators[name].state_rows)
                if seen[name][-1] == missing.get(name):
                    del missing[name]
        if not missing:
            return
        execution.wait(0.1)
    raise AssertionError(f"state rows were {seen}, never {missing}")


def wait_for_results(execution: Execution, directory: Path, wanted: dict[str, list[tuple]]) -> None:
    for _ in range(DEADLINE_SECONDS * 5):
        execution.raise_failure()
        if {name: seen(directory, name) for name in wanted} == wanted:
            return
        execution.wait(0.2)
    raise AssertionError(f"the results are { ({name: seen(directory, name) for name in wanted}) }, not {wanted}")


@pytest.mark.integration
def test_idle_state_of_joins_and_aggregates_expires_on_its_own_side(spark: SparkSession, tmp_path: Path) -> None:
    script = "\n".join(
        [
            table("l", "k BIGINT, a STRING", tmp_path),
            table("r", "k BIGINT, b STRING", tmp_path),
            table("x", "k BIGINT", tmp_path),
            sink("left_expires", "a STRING, b STRING", tmp_path),
            sink("right_expires", "a STRING, b STRING", tmp_path),
            sink("group_expires", "k BIGINT, n BIGINT", tmp_path),
            "EXECUTE STATEMENT SET BEGIN",
            "INSERT INTO left_expires SELECT /*+ STATE_TTL('l' = '2s') */ a, b FROM l JOIN r ON l.k = r.k;",
            "INSERT INTO right_expires SELECT /*+ STATE_TTL('r' = '2s') */ a, b FROM l JOIN r ON l.k = r.k;",
            "INSERT INTO group_expires SELECT /*+ STATE_TTL('x' = '2s') */ k, COUNT(*) FROM x GROUP BY k;",
            "END;",
        ]
    )
    plan = hintplan.compile_sql(script, name="expiry")
    joins = [op.id for op in plan.operators if op.id.startswith("join")]
    assert len(joins) == 2
    add_rows(tmp_path, "l", [{"k": 1, "a": "a1"}])
    add_rows(tmp_path, "r", [{"k": 2, "b": "b2"}])
    add_rows(tmp_path, "x", [{"k": 7}])
    execution = execute(plan, spark, trigger="200 ms")
    try:
        wait_for_state(execution, {joins[0]: 2, joins[1]: 2, "aggregate_x": 1})
        expired = time.monotonic() + 2
        while time.monotonic() < expired:
            execution.raise_failure()
            execution.wait(0.1)
        add_rows(tmp_path, "l", [{"k": 2, "a": "a2"}])
        add_rows(tmp_path, "r", [{"k": 1, "b": "b1"}])
        add_rows(tmp_path, "x", [{"k": 7}])
        # Each join gets one row whose partner is still there, and one whose partner has expired.
        wanted = {
            "left_expires": [("+I", "a2", "b2")],
            "right_expires": [("+I", "a1", "b1")],
            "group_expires": [("+I", 7, 1), ("+I", 7, 1)],
        }
        wait_for_results(execution, tmp_path, wanted)
        # The rows that expired are gone: kept are both of the side that is kept for good, and the new one of the other.
        wait_for_state(execution, {joins[0]: 3, joins[1]: 3, "aggregate_x": 1})
    finally:
        execution.stop()
    assert {name: seen(tmp_path, name) for name in wanted} == wanted


def test_an_edited_ttl_keeps_the_state_and_applies_at_once(spark: SparkSession, tmp_path: Path) -> None:
    script = "\n".join(
        [
            "SET 'table.exec.state.ttl' = '1 d';",
            table("l", "k BIGINT, a STRING", tmp_path),
            table("r", "k BIGINT, b STRING", tmp_path),
            sink("joined", "a STRING, b STRING", tmp_path),
            sink("counted", "k BIGINT, n BIGINT", tmp_path),
            "INSERT INTO joined SELECT /*+ STATE_TTL('l' = '0s') */ a, b FROM l JOIN r ON l.k = r.k;",
            "INSERT INTO counted SELECT /*+ STATE_TTL('r' = '0s') */ k, COUNT(*) FROM r GROUP BY k;",
        ]
    )
    plan = hintplan.compile_sql(script, name="edits")
    ttls = {f"{op.id}.{s.name}": (s.ttl, layers_of(s.settings, "ttl")) for op in plan.operators for s in op.state}
    assert ttls == {
        "join_l_r.leftState": ("0 ms", {"config": "1 d", "hint": "0 ms"}),
        "join_l_r.rightState": ("1 d", {"config": "1 d"}),
        "aggregate_r.groupAggregateState": ("0 ms", {"config": "1 d", "hint": "0 ms"}),
    }

    def run(plan: Plan, b: str) -> tuple[set, set]:
        """Feeds one more right row of key 1; returns what that adds to both results."""
        before = [Counter(seen(tmp_path, name)) for name in ("joined", "counted")]
        add_rows(tmp_path, "r", [{"k": 1, "b": b}])
        execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
        assert execution.await_termination(DEADLINE_SECONDS)
        after = [Counter(seen(tmp_path, name)) for name in ("joined", "counted")]
        joined, counted = (set((new - old).elements()) for new, old in zip(after, before, strict=True))
        return joined, counted

    def with_ttl(ttl: str) -> Plan:
        changed, _ = set_value(plan, "join_l_r.state.leftState.ttl", ttl)
        changed, _ = set_value(changed, "aggregate_r.state.groupAggregateState.ttl", ttl)
        return changed

    add_rows(tmp_path, "l", [{"k": 1, "a": "a"}])
    assert run(plan, "b1") == ({("+I", "a", "b1")}, {("+I", 1, 1)})
    assert run(with_ttl("1 h"), "b2") == ({("+I", "a", "b2")}, {("-U", 1, 1), ("+U", 1, 2)})
    assert run(with_ttl("30 d"), "b3") == ({("+I", "a", "b3")}, {("-U", 1, 2), ("+U", 1, 3)})
    assert run(plan, "b4") == ({("+I", "a", "b4")}, {("-U", 1, 3), ("+U", 1, 4)})
    assert run(with_ttl("1 ms"), "b5") == (set(), {("+I", 1, 1)})
