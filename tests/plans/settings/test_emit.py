"""The settings of early and late results: their layers, what an edit of them does, and where they have no place."""

from __future__ import annotations

import pytest

import hintplan
from hintplan.planner.compile import compile_sql
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import WindowAggregate
from hintplan.plans.settings.emit import EMIT

TABLES = """
CREATE TABLE o (k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (k STRING, n BIGINT) WITH ('connector' = 'print');
"""
EARLY = "SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '1 min';"
LATE = "SET 'table.exec.emit.late-fire.enabled' = 'true'; SET 'table.exec.emit.late-fire.delay' = '0 ms';"
QUERY = "INSERT INTO r SELECT k, COUNT(*) FROM o GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR);"


def window(plan: Plan) -> WindowAggregate:
    operator = plan.operator("window_o")
    assert isinstance(operator, WindowAggregate)
    return operator


def test_config_sets_delays_and_a_ttl_the_lateness() -> None:
    plan = compile_sql(f"{TABLES} {EARLY} {LATE} SET 'table.exec.state.ttl' = '2 h'; {QUERY}")
    settings = window(plan).settings[EMIT.name]
    assert dict(settings.values) == {"early-fire.delay": "1 min", "late-fire.delay": "0 ms", "allow-lateness": "2 h"}
    assert settings.origin["config"]["allow-lateness"] == "2 h"
    assert window(plan).changelog == ("+I", "-U", "+U")


def test_an_edit_says_what_it_does_to_windows() -> None:
    plan = compile_sql(f"{TABLES} {LATE} SET 'table.exec.emit.allow-lateness' = '2 h'; {QUERY}")
    _, (longer,) = set_value(plan, "window_o.emit.allow-lateness", "6 h")
    _, (shorter,) = set_value(plan, "window_o.emit.allow-lateness", "1 h")
    assert longer.effect.text == "windows take rows until 6 h after they have closed"
    assert shorter.effect.text == "rows more than 1 h behind the end of their window are dropped"
    assert {longer.effect.level, shorter.effect.level} == {"restart"}
    assert window(plan).kept_until("windowAggregateState") == "until the watermark is 2 h past the window"
    assert window(plan).changes_for((), ()) == 3 * 3_600_000


def test_a_window_without_early_and_late_results_has_none_of_the_settings() -> None:
    warnings: list[Diagnostic] = []
    plan = compile_sql(f"{TABLES} SET 'table.exec.emit.allow-lateness' = '2 h'; {QUERY}", on_warning=warnings.append)
    assert EMIT.name not in window(plan).settings
    assert [warning.message for warning in warnings] == [
        "'table.exec.emit.allow-lateness' has no effect: no window aggregate of this job takes it"
    ]
    with pytest.raises(PlanError):
        set_value(plan, "window_o.emit.allow-lateness", "6 h")


def test_hand_edits_of_early_and_late_fire_are_checked() -> None:
    plan = compile_sql(f"{TABLES} {EARLY} {QUERY}")
    text = hintplan.dumps(plan).decode()
    for old, new, message in (
        ('"style": "group",', "", "only a window in GROUP BY has 'early-fire'"),
        ('"early-fire": true,', "", "the settings of early and late results need 'early-fire' or 'late-fire'"),
        ('{ "type": "tumble", "size": "1 h" }', '{ "type": "session", "gap": "1 h" }', "sessions have no 'early-fire'"),
    ):
        assert old in text
        with pytest.raises(PlanError) as caught:
            hintplan.loads(text.replace(old, new, 1).encode(), allow_fact_edits=True)
        assert message in str(caught.value)
