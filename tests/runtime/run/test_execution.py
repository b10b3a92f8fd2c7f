"""Plans run on Spark: results, restarts, and what is refused before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.checkpoint.continuation import continuation, record_after
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator
from hintplan.plans.settings.state import with_ttl
from hintplan.runtime.checkpoint.record import write_record
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.spark import session as session_module
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180


def run_once(plan: Plan, spark: SparkSession, checkpoint: Path | None) -> Execution:
    execution = execute(plan, spark, checkpoint=None if checkpoint is None else str(checkpoint), once=True)
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


def edited(plan: Plan, operator_id: str, **facts: Any) -> Plan:
    def edit(operator: Operator) -> Operator:
        return replace(operator, **facts) if operator.id == operator_id else operator

    return replace(plan, operators=tuple(map(edit, plan.operators)))


def files_below(directory: Path) -> Iterator[tuple[str, int]]:
    return ((str(path), path.stat().st_mtime_ns) for path in sorted(directory.rglob("*")) if path.is_file())


def test_a_plan_yields_what_the_query_means_and_a_restart_continues(spark: SparkSession, tmp_path: Path) -> None:
    orders = sample(0, 60)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", orders[:20])
    add_rows(tmp_path, "late", orders[20:40])
    plan = revenue_plan(tmp_path)
    first = run_once(plan, spark, tmp_path / "checkpoint")
    assert fold(changes(tmp_path)) == expected(orders[:40])

    progress = first.progress["sink_result"]
    assert progress.operators["aggregate_t"].state_rows == len(expected(orders[:40]))
    assert progress.operators["join_o_c"].state_rows == len(CUSTOMER_ROWS) + sum(o["id"] % 10 != 3 for o in orders[:40])
    assert progress.operators["join_o_c"].state_bytes > 0

    add_rows(tmp_path, "orders", orders[40:])
    again = run_once(replace(plan, name="renamed"), spark, tmp_path / "checkpoint")
    assert fold(changes(tmp_path)) == expected(orders)
    assert again.progress["sink_result"].rows_in == 20
    assert again.progress["sink_result"].batch > progress.batch

    before = list(files_below(tmp_path))
    refused = r"aggregate_t and join_o_c start empty \(calc_o.filter id % 10 <> 3 → id % 10 <> 4\)"
    with pytest.raises(RunError, match=refused):
        execute(
            edited(plan, "calc_o", filter="id % 10 <> 4"), spark, checkpoint=str(tmp_path / "checkpoint"), once=True
        )
    other = edited(plan, "sink_result", id="sink_other", table="other")
    other = replace(other, tables={**plan.tables, "other": plan.tables["result"]})
    with pytest.raises(RunError, match=r"sink_other: it is new and would write files to .*, where sink_result has"):
        execute(other, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
    assert list(files_below(tmp_path)) == before
    add_rows(tmp_path, "orders", (more := sample(60, 10)))
    run_once(edited(plan, "sink_result", id="sink_other"), spark, tmp_path / "checkpoint")
    assert fold(changes(tmp_path)) == expected([*orders, *more]), "a sink that is only called otherwise continues"


def test_settings_may_change_and_the_number_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    orders = sample(0, 40)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", orders[:20])
    run_once(revenue_plan(tmp_path), spark, tmp_path / "checkpoint")
    add_rows(tmp_path, "orders", orders[20:])
    plan = revenue_plan(tmp_path, **{"parallelism.default": "3", "table.local-time-zone": "Europe/Berlin"})
    plan = edited(plan, "aggregate_t", state=(with_ttl(plan.operator("aggregate_t").state[0], "7 d"),))
    execution = run_once(plan, spark, tmp_path / "checkpoint")
    assert fold(changes(tmp_path)) == expected(orders)
    assert execution.partitions == 3
    assert execution.notes[0].startswith("state goes from 2 partitions to 3, the value of parallelism.default")


def test_without_a_checkpoint_nothing_is_left_behind(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    execution = run_once(revenue_plan(tmp_path), spark, None)
    assert execution.temporary
    assert not Path(execution.checkpoint).exists()


def test_a_checkpoint_of_an_unknown_layout_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = revenue_plan(tmp_path)
    record = record_after(continuation(None, plan), None, plan, partitions=2, spark=spark.version)
    assert record is not None
    write_record(spark, str(tmp_path / "checkpoint"), replace(record, layout=7))
    with pytest.raises(RunError, match="has layout 7, this version of hintplan reads layout 5"):
        execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)


def test_a_checkpoint_with_a_damaged_record_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    damaged = tmp_path / "checkpoint" / "hintplan"
    damaged.mkdir(parents=True)
    (damaged / "part-0.txt").write_text('{"layout": 1, "pl', encoding="utf-8")
    with pytest.raises(RunError, match="was not written by hintplan"):
        execute(revenue_plan(tmp_path), spark, checkpoint=str(tmp_path / "checkpoint"), once=True)


def test_a_failing_expression_is_reported_with_its_cause(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "orders", sample(0, 5))
    plan = edited(revenue_plan(tmp_path), "calc_o", filter="1 / (id - 3) > 0")
    with pytest.raises(RunError) as caught:
        run_once(plan, spark, tmp_path / "checkpoint")
    message = str(caught.value)
    assert message.startswith("the query of sink_result failed: ")
    assert "[DIVIDE_BY_ZERO] Division by zero" in message
    assert "\tat " not in message


@pytest.mark.parametrize("join_type", ["inner", "left"])
def test_an_unsafe_join_condition_is_refused(spark: SparkSession, tmp_path: Path, join_type: str) -> None:
    unsafe = "l.amount > r.minimum AND reflect('java.lang.System', 'exit') = r.country"
    plan = edited(revenue_plan(tmp_path), "join_o_c", condition=unsafe)
    if join_type == "left":
        plan = edited(plan, "join_o_c", join_type="left", changelog=("+I", "-D"))
        plan = edited(plan, "aggregate_t", changelog=("+I", "-U", "+U", "-D"))
    with pytest.raises(PlanError, match=r"operators\.join_o_c\.condition: .*reflect"):
        execute(plan, spark, once=True)


def test_an_invalid_plan_does_not_run(spark: SparkSession, tmp_path: Path) -> None:
    plan = revenue_plan(tmp_path)
    with pytest.raises(PlanError, match="there is no operator 'nobody'"):
        execute(edited(plan, "sink_result", inputs=("nobody",)), spark, once=True)


def test_a_session_that_lacks_a_fixed_setting_is_refused_with_the_fix(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_fixed", lambda version: {"spark.sql.extensions": "x.Y"})
    with pytest.raises(RunError, match=r'build it with \.config\("spark\.sql\.extensions", "x\.Y"\)'):
        execute(revenue_plan(tmp_path), spark, once=True)


def test_a_run_leaves_the_settings_of_the_callers_session_alone(spark: SparkSession, tmp_path: Path) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    run_once(revenue_plan(tmp_path, **{"table.local-time-zone": "Asia/Tokyo"}), spark, None)
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before


def test_once_and_a_trigger_exclude_each_other(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no trigger"):
        execute(revenue_plan(tmp_path), spark, once=True, trigger="5 s")


def test_a_trigger_needs_a_unit(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the trigger is wrong"):
        execute(revenue_plan(tmp_path), spark, trigger="5")
