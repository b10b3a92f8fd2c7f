"""The phases of aggregates: layers, edits, what explain and diff say, and what a plan may not say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

import hintplan
from hintplan.planner.compile import compile_script
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.edit.edit import remove_value, set_value
from hintplan.plans.edit.why import explain_setting
from hintplan.plans.format.digest import operator_facts
from hintplan.plans.merge.merge import merge_plans
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate
from hintplan.plans.show.explain import plan_tree

KEY = "table.optimizer.agg-phase-strategy"
TABLES = """
CREATE TABLE o (id BIGINT, c STRING, v BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE r (c STRING, n BIGINT) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO r SELECT c, {} FROM o GROUP BY c;"


def phases_of(plan: Plan) -> tuple[str, dict] | None:
    aggregate = plan.operator("aggregate_o")
    assert isinstance(aggregate, Aggregate)
    found = aggregate.settings.get("phases")
    return None if found is None else (aggregate.strategy, dict(found.origin))


@pytest.fixture(scope="module")
def total() -> Plan:
    return compile_script(TABLES + QUERY.format("SUM(v)")).plan


def test_a_plan_says_nothing_of_phases_unless_somebody_spoke(total: Plan) -> None:
    assert phases_of(total) is None
    assert b"phases" not in hintplan.dumps(total)
    assert "phases" not in plan_tree(total)


def test_config_speaks_for_every_aggregate() -> None:
    plan = compile_script(TABLES + QUERY.format("SUM(v)"), {KEY: "two_phase"}).plan
    assert plan.config == {KEY: "TWO_PHASE"}
    assert phases_of(plan) == ("TWO_PHASE", {"config": {"agg-phase-strategy": "TWO_PHASE"}})
    assert "phases                    TWO_PHASE (config)\n" in plan_tree(plan)


def test_an_edit_is_stronger_than_config_and_survives_it(total: Plan) -> None:
    edited, _ = set_value(total, "aggregate_o.agg-phase-strategy", "TWO_PHASE")
    assert phases_of(edited) == ("TWO_PHASE", {"default": {"agg-phase-strategy": "AUTO"}})
    edited, _ = set_value(edited, f"config.{KEY}", "ONE_PHASE")
    assert phases_of(edited) == ("TWO_PHASE", {"config": {"agg-phase-strategy": "ONE_PHASE"}})
    assert "TWO_PHASE (edit · config ONE_PHASE)" in plan_tree(edited)
    edited, _ = remove_value(edited, f"config.{KEY}")
    assert phases_of(edited) == ("TWO_PHASE", {"default": {"agg-phase-strategy": "AUTO"}})
    assert hintplan.loads(hintplan.dumps(edited)) == edited


def test_an_edit_that_is_taken_back_leaves_the_plan_as_it_was(total: Plan) -> None:
    edited, _ = set_value(total, "aggregate_o.agg-phase-strategy", "TWO_PHASE")
    back, _ = set_value(edited, "aggregate_o.phases.agg-phase-strategy", "AUTO")
    assert hintplan.dumps(back) == hintplan.dumps(total)


def test_phases_are_no_fact_and_applied_at_the_next_start(total: Plan) -> None:
    edited, changes = set_value(total, "aggregate_o.agg-phase-strategy", "ONE_PHASE")
    assert operator_facts(edited.operator("aggregate_o")) == operator_facts(total.operator("aggregate_o"))
    assert [(c.name, c.before, c.after, c.effect.level) for c in changes] == [
        ("aggregate_o.phases.agg-phase-strategy", "AUTO", "ONE_PHASE", "restart")
    ]
    assert compare_plans(total, edited) == changes


def test_why_names_the_layers_under_the_short_path(total: Plan) -> None:
    assert explain_setting(total, "aggregate_o.agg-phase-strategy").set_by == "default"
    edited, _ = set_value(total, "aggregate_o.agg-phase-strategy", "ONE_PHASE")
    found = explain_setting(edited, "aggregate_o.agg-phase-strategy")
    assert (found.path, found.set_by, found.undo) == ("aggregate_o.phases.agg-phase-strategy", "edit", "AUTO")


def test_an_edit_is_merged_with_another(total: Plan) -> None:
    ours, _ = set_value(total, "aggregate_o.agg-phase-strategy", "TWO_PHASE")
    theirs, _ = set_value(total, "aggregate_o.state.groupAggregateState.ttl", "1 d")
    merged = merge_plans(total, ours, theirs)
    assert phases_of(merged.plan) == phases_of(ours)
    assert merged.plan.operator("aggregate_o").state[0].ttl == "1 d"  # type: ignore[union-attr]


def test_explain_says_which_aggregate_cannot_follow() -> None:
    config = {KEY: "TWO_PHASE"}
    plan = compile_script(TABLES + QUERY.format("COUNT(DISTINCT v)"), config).plan
    assert "TWO_PHASE (config) · runs in one phase: COUNT DISTINCT keeps every value" in plan_tree(plan)
    nested = "INSERT INTO r SELECT c, MAX(n) FROM (SELECT c, id, COUNT(*) AS n FROM o GROUP BY c, id) GROUP BY c;"
    lines = [line for line in plan_tree(compile_script(TABLES + nested, config).plan).splitlines() if "phases" in line]
    assert [line.rpartition("TWO_PHASE")[2] for line in lines] == [
        " (config) · runs in one phase: MAX of a changing input keeps every value",
        " (config)",
    ]


WINDOWS = """
CREATE TABLE o (c STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'o', 'late-rows.target' = 'late');
CREATE TABLE late (c STRING, v BIGINT, ts TIMESTAMP(3), operator STRING, watermark TIMESTAMP_LTZ(3))
WITH ('connector' = 'print');
CREATE TABLE r (c STRING, n BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT c, COUNT({}) FROM TABLE({}) GROUP BY c, window_start, window_end;
"""


@pytest.mark.parametrize(
    ("value", "window"),
    [
        ("*", "TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '10' SECOND)"),
        ("DISTINCT v", "SESSION(TABLE o PARTITION BY c, DESCRIPTOR(ts), INTERVAL '10' SECOND)"),
    ],
)
def test_late_rows_of_a_table_need_one_phase(value: str, window: str) -> None:
    plan = compile_script(WINDOWS.format(value, window), {KEY: "TWO_PHASE"}).plan
    said = "TWO_PHASE (config) · runs in one phase: its late rows go to a table one by one (late-rows.target)"
    assert said in plan_tree(plan)
    without, _ = set_value(plan, "watermark_o.watermark.late-rows.target", "none")
    # Sessions keep the values of DISTINCT, so tasks can merge their rows to sessions all the same.
    assert "TWO_PHASE (config)" in plan_tree(without)
    assert "runs in one phase" not in plan_tree(without)


@pytest.mark.parametrize(
    ("path", "value", "answer"),
    [
        ("aggregate_o.agg-phase-strategy", "THREE", "expected one of AUTO, ONE_PHASE, TWO_PHASE, found 'THREE'"),
        ("aggregate_o.phases.origin.config", "AUTO", "it cannot be edited"),
        ("aggregate_o.phases.strategy", "AUTO", "'phases' has no setting 'strategy'"),
        ("scan_o.agg-phase-strategy", "AUTO", "'scan_o' keeps no state and has nothing to set"),
    ],
)
def test_what_cannot_be_set_is_refused(total: Plan, path: str, value: str, answer: str) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        set_value(total, path, value)
    assert answer in str(caught.value)


def test_a_batch_plan_has_no_phases(total: Plan, refusal: Callable[..., str]) -> None:
    tables = TABLES.replace("'datagen'", "'datagen', 'number-of-rows' = '9'")
    done = compile_script(tables + QUERY.format("SUM(v)"), {"execution.runtime-mode": "batch", KEY: "TWO_PHASE"})
    assert phases_of(done.plan) is None
    with pytest.raises(hintplan.PlanError, match="Spark decides itself"):
        set_value(done.plan, "aggregate_o.agg-phase-strategy", "TWO_PHASE")
    edited = set_value(total, "aggregate_o.agg-phase-strategy", "TWO_PHASE")[0].operator("aggregate_o")
    operators = tuple(edited if o.id == edited.id else o for o in done.plan.operators)
    aggregate = replace(edited, state=(), changelog=("+I",))  # type: ignore[arg-type]
    text = hintplan.dumps(replace(done.plan, operators=tuple(aggregate if o is edited else o for o in operators)))
    assert "Spark decides itself" in refusal(text)


def test_a_config_without_an_aggregate_has_no_effect_and_says_so() -> None:
    script = TABLES + f"SET '{KEY}' = 'TWO_PHASE'; INSERT INTO r SELECT c, v FROM o;"
    assert [finding.diagnostic.message for finding in compile_script(script).findings] == [
        f"'{KEY}' has no effect: no aggregate of this job takes it"
    ]


def test_origins_out_of_step_with_config_are_refused(total: Plan, refusal: Callable[..., str]) -> None:
    document = json.loads(hintplan.dumps(total))
    document["config"][KEY] = "TWO_PHASE"
    assert f"hintplan set plan.json config.{KEY}='TWO_PHASE' brings all origins in step" in refusal(
        json.dumps(document)
    )
