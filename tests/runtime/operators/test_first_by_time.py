"""First rows at the watermark, and sorts by rowtime: their TTL, their order, and plans that emit first rows at once."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Deduplicate
from tests.plans.in_process import hintplan as command
from tests.runtime.event_time.hand_built import first_by_time, plan_of, temporal_sort
from tests.runtime.partitioned import Partitioned
from tests.runtime.pipeline import Pipeline

SQL = """CREATE TABLE s (k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
 WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 's');
CREATE TABLE r (k STRING, v BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO r SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM s) WHERE n = 1;
"""


def at(seconds: float) -> datetime:
    return datetime(2024, 1, 1) + timedelta(seconds=seconds)


def test_a_key_comes_again_after_its_ttl_and_not_before() -> None:
    pipeline = Pipeline(plan_of(first_by_time("watermark_s", ttl="10 s"), delay="2 s"))
    pipeline.batch({"s": [("a", 1, at(1)), ("x", 2, at(9))]}, now=1_000)
    assert [row for _, row in pipeline.events] == [("a", 1, at(1))]
    pipeline.batch({"s": [("a", 3, at(10)), ("x", 4, at(20))]}, now=10_999)
    assert [row[:2] for _, row in pipeline.events] == [("a", 1), ("x", 2)]
    pipeline.batch({"s": [("a", 5, at(21)), ("x", 6, at(40))]}, now=11_000)  # 10 s after a's row was emitted
    assert [row[:2] for _, row in pipeline.events] == [("a", 1), ("x", 2), ("a", 5)]


def test_rows_that_wait_do_not_expire() -> None:
    pipeline = Pipeline(plan_of(first_by_time("watermark_s", ttl="10 s"), delay="2 s"))
    pipeline.batch({"s": [("a", 1, at(5))]}, now=1_000)
    pipeline.batch({"s": [("b", 2, at(60))]}, now=1_000_000)
    assert [row[:2] for _, row in pipeline.events] == [("a", 1)]


def test_of_equal_times_the_row_that_came_first_is_emitted() -> None:
    pipeline = Partitioned(plan_of(first_by_time("watermark_s"), delay="2 s"), 1)
    for number, partitions in ((1, 1), (2, 5), (3, 2)):
        pipeline = pipeline.rescaled(partitions)
        pipeline.batch({"s": [(key, number, at(5)) for key in ("a", "b", None)]})
    pipeline.batch({"s": [("x", 9, at(60))]})
    assert sorted(pipeline.events, key=str) == [("+I", (key, 1, at(5))) for key in ("a", "b", None)]


def test_a_sort_emits_rows_in_order_within_a_batch_and_from_batch_to_batch() -> None:
    dice = random.Random(5)
    pipeline = Pipeline(plan_of(temporal_sort("watermark_s"), delay="20 s"))
    times = [at(number + dice.choice((0, 0, -7, -15))) for number in range(200)]
    rows = [("a", dice.randrange(3), time) for time in times]
    for start in range(0, len(rows), 13):
        pipeline.batch({"s": rows[start : start + 13]})
    pipeline.drain()
    # Rows that are equal in the order have no difference that could be seen, except their key.
    assert [row for _, row in pipeline.events] == sorted(rows, key=lambda row: (row[2], -row[1]))


def test_rows_that_are_equal_in_the_order_keep_the_order_of_their_arrival() -> None:
    pipeline = Pipeline(plan_of(temporal_sort("watermark_s"), delay="2 s"))
    keys = [str(number) for number in range(30)]
    for start in (0, 10, 20):
        pipeline.batch({"s": [(key, 1, at(100)) for key in keys[start : start + 10]]})
    pipeline.drain()
    assert [row[0] for _, row in pipeline.events] == keys


def at_once(plan: Plan) -> Plan:
    """The plan as it was compiled before: it emits the first row at once."""
    (first,) = (operator for operator in plan.operators if isinstance(operator, Deduplicate))
    before = replace(first, emit=None, state=first.state[:1], changelog=("+I", "-U", "+U"))
    operators = tuple(before if operator is first else operator for operator in plan.operators)
    return replace(plan, operators=operators)


def test_a_plan_without_emit_keeps_its_meaning() -> None:
    plan = hintplan.compile_sql(SQL)
    (first,) = (operator for operator in plan.operators if isinstance(operator, Deduplicate))
    assert (first.emit, first.changelog) == ("at-watermark", INSERT_ONLY)
    assert [(entry.name, entry.ttl) for entry in first.state] == [("deduplicateState", "0 ms"), ("waitingState", None)]
    pipeline = Pipeline(at_once(plan))
    pipeline.batch({"s": [("a", 1, at(5))]})
    pipeline.batch({"s": [("a", 2, at(3))]})
    assert pipeline.events == [
        ("+I", ("a", 1, at(5))),
        ("-U", ("a", 1, at(5))),
        ("+U", ("a", 2, at(3))),
    ]


def test_the_state_of_a_plan_without_emit_is_not_carried_over(tmp_path: Path) -> None:
    plan = hintplan.compile_sql(SQL)
    (tmp_path / "old.json").write_bytes(hintplan.dumps(at_once(plan)))
    (tmp_path / "new.json").write_bytes(hintplan.dumps(plan))
    shown = command("diff", tmp_path / "old.json", tmp_path / "new.json").stdout
    assert "deduplicate_s.emit" in shown
    assert "at-watermark" in shown
    assert "the state of deduplicate_s starts empty" in shown


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k, COUNT(*) FROM s GROUP BY k ORDER BY k", "ORDER BY is not supported in streaming"),
        ("SELECT k, v FROM s ORDER BY ts DESC", "by descending time, by Flink neither"),
        ("SELECT a.k, a.v FROM s AS a JOIN s AS b ON a.k = b.k ORDER BY a.ts", "'ts' is no rowtime here"),
        (
            "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM s) "
            "WHERE n = 1 ORDER BY ts",
            "takes rows that are only added",
        ),
    ],
)
def test_an_order_that_no_watermark_can_give_is_refused(query: str, message: str) -> None:
    script = SQL.partition("INSERT")[0].replace("r (k STRING, v BIGINT, ts TIMESTAMP(3))", "r (k STRING, v BIGINT)")
    with pytest.raises(hintplan.SqlError) as caught:
        hintplan.compile_sql(f"{script}INSERT INTO r {query};")
    (refusal,) = caught.value.diagnostics
    assert message in refusal.message
    assert refusal.hint
    assert refusal.line == 4
