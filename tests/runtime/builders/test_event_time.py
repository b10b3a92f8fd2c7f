"""The event time of a plan's operators, as the engine needs it: numbers, delays and timeouts of sources, and splits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import WatermarkAssigner
from hintplan.plans.settings.watermark import WATERMARK
from hintplan.runtime.builders.event_time import edges_with_splits, event_times
from hintplan.runtime.engine.watermarks import MarkSource
from tests.spark.timed_plan import timed_plan


def with_timeouts(plan: Plan, **timeouts: str) -> Plan:
    """The plan with an idle timeout for each of these tables."""

    def changed(operator):
        table = operator.id.removeprefix("watermark_")
        if not isinstance(operator, WatermarkAssigner) or table not in timeouts:
            return operator
        return replace(
            operator, settings={"watermark": WATERMARK.resolved({"edit": {"idle-timeout": timeouts[table]}})}
        )

    return replace(plan, operators=tuple(map(changed, plan.operators)))


def test_the_sources_of_an_operator_are_tables_and_operators_below(tmp_path: Path) -> None:
    plan = timed_plan(tmp_path, sources=("o", "p"), delay="4 s")
    names = [operator.id for operator in plan.operators]
    times = event_times(plan)
    assert list(times) == ["window_a", "window_b"]
    assert times["window_a"].sources == tuple(
        MarkSource(number=names.index(name), delay=4_000) for name in ("watermark_o", "watermark_p")
    )
    assert times["window_b"].sources == (MarkSource(number=names.index("window_a"), is_operator=True),)
    assert times["window_a"].number == names.index("window_a")


def test_an_operator_is_idle_when_all_of_its_tables_are(tmp_path: Path) -> None:
    plan = timed_plan(tmp_path, sources=("o", "p"))
    both = event_times(with_timeouts(plan, o="1 min", p="10 s"))
    assert [source.idle_timeout for source in both["window_a"].sources] == [60_000, 10_000]
    assert [source.idle_timeout for source in both["window_b"].sources] == [60_000]
    one = event_times(with_timeouts(plan, o="1 min"))
    assert [source.idle_timeout for source in one["window_b"].sources] == [0]


def test_only_topics_have_splits(tmp_path: Path) -> None:
    plan = timed_plan(tmp_path, sources=("o", "p"))
    assert edges_with_splits(plan) == frozenset()
    options = {"connector": "kafka", "topic": "o", "format": "json", "scan.startup.mode": "earliest-offset"}
    topics = replace(plan, tables={**plan.tables, "o": replace(plan.tables["o"], options=options)})
    assert edges_with_splits(topics) == {"scan_o"}
