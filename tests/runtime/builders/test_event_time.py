"""The event time of a plan's operators, as the engine needs it: numbers, delays and timeouts of sources, and splits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import WatermarkAssigner
from hintplan.plans.settings.watermark import WATERMARK
from hintplan.runtime.builders.event_time import edges_with_last_rows, edges_with_splits, event_times
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


def read_from(plan: Plan, **options: str) -> Plan:
    """The plan with other options of table ``o``."""
    return replace(plan, tables={**plan.tables, "o": replace(plan.tables["o"], options=options)})


def test_generated_rows_have_a_last_one_if_they_end(tmp_path: Path) -> None:
    plan = timed_plan(tmp_path, sources=("o", "p"))
    for options, wanted in ({}, set()), ({"number-of-rows": "5"}, {"scan_o"}):
        generated = read_from(plan, connector="datagen", **options)
        assert edges_with_last_rows(generated) == wanted
        assert not any(source.read_once for source in event_times(generated)["window_a"].sources)


def test_a_table_of_a_database_is_read_once_and_needs_no_timeout(tmp_path: Path) -> None:
    plan = with_timeouts(timed_plan(tmp_path, sources=("o", "p")), p="10 s")
    times = event_times(read_from(plan, connector="jdbc", url="jdbc:sqlite:o.db", **{"table-name": "o"}))
    assert [source.read_once for source in times["window_a"].sources] == [True, False]
    assert [source.idle_timeout for source in times["window_b"].sources] == [10_000]


UPSERTS = """CREATE TABLE o (k BIGINT, ts TIMESTAMP(3), {computed}PRIMARY KEY (k) NOT ENFORCED,
WATERMARK FOR {time} AS {time}) WITH ('connector' = 'upsert-kafka', 'topic' = 'o',
'properties.bootstrap.servers' = 'b:9092', 'key.format' = 'json', 'value.format' = 'json');"""
REPLACING = {
    "upserts": (UPSERTS.format(computed="", time="ts"), "o", "changelog-normalize"),
    "upserts with a computed rowtime": (
        UPSERTS.format(computed="late AS ts + INTERVAL '1' SECOND, ", time="late"),
        "o",
        "changelog-normalize",
    ),
    "last rows": (
        """CREATE TABLE o (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka',
        'topic' = 'o', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json',
        'scan.startup.mode' = 'earliest-offset');
        CREATE VIEW last_rows AS SELECT k, ts FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM o) WHERE n = 1;""",
        "last_rows",
        "deduplicate",
    ),
}
"""Tables whose rows replace each other: the SQL, the relation that is read, and the operator that replaces rows."""


@pytest.mark.parametrize("name", REPLACING)
def test_the_watermark_of_a_topic_is_below_an_operator_that_replaces_rows(name: str) -> None:
    tables, rows, replacing = REPLACING[name]
    time = "late" if "late" in tables else "ts"
    plan = compile_sql(
        f"""{tables} CREATE TABLE r (k BIGINT, n BIGINT) WITH ('connector' = 'print');
        INSERT INTO r SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE {rows}, DESCRIPTOR({time}), INTERVAL '1' MINUTE))
        GROUP BY k, window_start, window_end;"""
    )
    assert not plan_problems(plan)
    operators = [operator.op for operator in plan.operators if operator.op != "calc"]
    assert operators == ["scan", "watermark-assigner", replacing, "window-aggregate", "sink"]
    assert "scan_o" in edges_with_splits(plan)
    (times,) = event_times(plan).values()
    assert times.sources == (MarkSource(number=[o.op for o in plan.operators].index("watermark-assigner")),)


def test_only_topics_have_splits(tmp_path: Path) -> None:
    plan = timed_plan(tmp_path, sources=("o", "p"))
    assert edges_with_splits(plan) == frozenset()
    options = {"connector": "kafka", "topic": "o", "format": "json", "scan.startup.mode": "earliest-offset"}
    topics = replace(plan, tables={**plan.tables, "o": replace(plan.tables["o"], options=options)})
    assert edges_with_splits(topics) == {"scan_o"}
