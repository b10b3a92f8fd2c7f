"""Temporal joins in plans that were edited by hand, and their states in commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import hintplan
from hintplan.plans.analysis.changelog import with_changelogs
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.analysis.windows import rowtimes_of
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan

TABLES = """
CREATE TABLE orders (id BIGINT, cur STRING, ts TIMESTAMP(3), up TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE rates (cur STRING, rate BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (cur) NOT ENFORCED)
WITH ('connector' = 'filesystem', 'path' = 'r', 'format' = 'json', 'source.changelog' = 'upsert');
CREATE TABLE sold (id BIGINT, up TIMESTAMP(3), ts TIMESTAMP(3), at TIMESTAMP(3), rate BIGINT)
WITH ('connector' = 'print');
"""
JOIN = (
    "INSERT INTO sold SELECT o.id, o.up, o.ts, r.ts, r.rate FROM orders AS o "
    "JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur;"
)


@cache
def plan() -> Plan:
    return hintplan.compile_sql(TABLES + JOIN, {"table.exec.state.ttl": "1 d"})


def edited(change: Callable[[dict[str, Any]], None]) -> Plan:
    """The plan with a change of the JSON of its join."""
    document = json.loads(hintplan.dumps(plan()))
    change(next(each for each in document["operators"] if each["op"] == "temporal-join"))
    return hintplan.loads(json.dumps(document))


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no rowtime": (lambda join: join.update({"left-time": "up"}), "left-time: 'up' is no rowtime"),
    "no time": (lambda join: join.update({"left-time": "id"}), "left-time: a rowtime is TIMESTAMP"),
    "a full join": (lambda join: join.update({"join-type": "full"}), "join-type: expected one of 'inner', 'left'"),
    "other versions": (lambda join: join.update(versions="some"), "versions: expected one of 'all', 'ascending'"),
    "no keys": (lambda join: join.update(keys=[]), "keys: "),
    "a key twice": (lambda join: join["keys"].append(join["keys"][0]), r"keys\[1\].right: 'cur' is twice"),
    "a TTL of rows that wait": (
        lambda join: join["state"][0].update(ttl="1 d", origin={"config": "1 d"}),
        "leftState.ttl: 'leftState' has no TTL: it keeps rows until the watermark reaches the row",
    ),
    "no TTL of versions": (
        lambda join: [join["state"][1].pop(key) for key in ("ttl", "origin")],
        "rightState: the state 'rightState' has no 'ttl'",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_by_hand_that_makes_no_sense_is_refused_with_its_place(name: str) -> None:
    change, message = EDITS[name]
    with pytest.raises(PlanError, match=message):
        edited(change)


def test_a_batch_plan_has_no_temporal_join() -> None:
    document = json.loads(hintplan.dumps(plan()))
    document["mode"] = "batch"
    with pytest.raises(PlanError, match="FOR SYSTEM_TIME AS OF an event time is for streams"):
        hintplan.loads(json.dumps(document))


def test_the_time_of_the_left_side_stays_a_rowtime_and_that_of_versions_does_not() -> None:
    assert rowtimes_of(plan())["join_o_r"] == ("ts",)
    assert [column.name for column in plan().by_id["join_o_r"].output][2:4] == ["ts", "at"]  # type: ignore[attr-defined]


def test_its_changes_are_those_of_the_left_side() -> None:
    assert plan().by_id["join_o_r"].changelog == ("+I",)  # type: ignore[attr-defined]
    assert with_changelogs(plan()) == plan()
    assert not plan_problems(plan())


def test_the_ttl_of_versions_is_a_setting() -> None:
    after, _ = set_value(plan(), "join_o_r.rightState.ttl", "7 d")
    (change,) = compare_plans(plan(), after)
    assert (change.path, change.before, change.after) == ("join_o_r.rightState.ttl", "1 d", "7 d")
    with pytest.raises(PlanError, match="has no TTL: it keeps rows until the watermark reaches the row"):
        set_value(plan(), "join_o_r.leftState.ttl", "7 d")


def test_upserts_are_no_left_input() -> None:
    rows = "rates AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur"
    both = hintplan.compile_sql(f"{TABLES}INSERT INTO sold (id) SELECT r.rate FROM {rows};")
    (join,) = (operator for operator in both.operators if operator.op == "temporal-join")
    assert [both.by_id[name].op for name in join.inputs] == ["changelog-normalize", "watermark-assigner"]
    as_they_come = both.replaced(join.with_inputs((both.by_id[join.inputs[0]].inputs[0], join.inputs[1])))
    kept = tuple(operator for operator in as_they_come.operators if operator.op != "changelog-normalize")
    problems = [problem.message for problem in plan_problems(replace(as_they_come, operators=kept))]
    assert f"the left input is a changelog, but '{kept[0].id}' reads upserts" in problems
