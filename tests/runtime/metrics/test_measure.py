"""What batches mean in metrics, counted by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.evidence.ages import bucket_of, counts
from hintplan.plans.evidence.uses import Uses
from hintplan.plans.files.codec import fingerprint
from hintplan.plans.model.plan import Plan
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.measure import FUNCTION_METRICS, LOOKUP_METRICS
from hintplan.runtime.metrics.measurements import Measurements
from hintplan.runtime.metrics.metrics import Metrics
from hintplan.runtime.metrics.table import METRICS, Metric
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.progress import BatchProgress, EventTimeProgress, OperatorProgress
from hintplan.runtime.sources import SourceProgress
from tests.spark.programs import revenue_plan

ROOT = Path(__file__).parents[3]
QUERIES = {"sink_result": ("sink_result",)}
JOIN = OperatorProgress(
    rows_in=9,
    rows_out=4,
    state_rows=7,
    state_bytes=700,
    oldest_write=1_700_000_000_500,
    counts={"rows_beyond_limit": 2},
    file_operations={"reads": 1, "writes": 2, "lists": 0, "deletes": 0},
)
BATCH = BatchProgress(
    sink="sink_result",
    batch=3,
    timestamp="2026-11-20T10:32:02.500Z",
    rows_in=9,
    rows_out=5,
    duration_ms=1_500,
    operators={"join_o_c": JOIN},
    sources=(
        SourceProgress(
            source="FileStreamSource[a]", operator="scan_orders", rows_in=8, metrics={"numFilesOutstanding": "12"}
        ),
        SourceProgress(source="hintplan-waking", operator="join_o_c", rows_in=0),
    ),
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return revenue_plan(tmp_path, sink={"connector": "print"})


def values(metrics: Metrics, metric: Metric) -> dict[tuple[str, ...], float]:
    return dict(metrics.measurements.values(metric))


def begun(metrics: Metrics, plan: Plan, queries: Mapping[str, tuple[str, ...]] = QUERIES):
    return metrics.begun(plan, queries).told


def test_what_batches_report_adds_up_and_what_is_stored_is_as_the_last_one_left_it(plan: Plan) -> None:
    metrics = Metrics(now=lambda: 1_790_000_000.0)
    told = begun(metrics, plan)
    told(BATCH)
    told(replace(BATCH, batch=4, operators={"join_o_c": replace(JOIN, state_rows=8, oldest_write=None)}))
    name = plan.name
    assert values(metrics, table.BATCH_ROWS_IN) == {(name, "sink_result"): 18}
    assert values(metrics, table.BATCH_ROWS_OUT) == {(name, "sink_result"): 10}
    assert values(metrics, table.SINK_ROWS) == {(name, "sink_result", "sink_result"): 10}
    assert values(metrics, table.SOURCE_ROWS) == {(name, "sink_result", "scan_orders"): 16}
    assert values(metrics, table.SOURCE_LAG_FILES) == {(name, "sink_result", "scan_orders"): 12}
    assert values(metrics, table.SOURCE_LAG_OFFSETS) == {}
    labels = (name, "sink_result", "join_o_c", "join")
    assert values(metrics, table.OPERATOR_ROWS_IN) == {labels: 18}
    assert values(metrics, table.STATE_ROWS) == {labels: 8}
    assert values(metrics, table.STATE_SIZE) == {labels: 700}
    assert values(metrics, table.STATE_OLDEST) == {}
    assert values(metrics, table.OPERATOR_COUNTED) == {(*labels, "rows_beyond_limit"): 4}
    assert values(metrics, table.STATE_FILE_OPERATIONS)[*labels, "writes"] == 4
    # 10:32:02.5 and 1.5 seconds.
    assert values(metrics, table.BATCH_END) == {(name, "sink_result"): 1_795_170_724.0}
    ((_, histogram),) = metrics.measurements.histograms(table.BATCH_DURATION)
    assert histogram.sum == 3.0
    assert sum(histogram.counts) == histogram.counts[table.BUCKETS.index(2.5)] == 2


def test_the_oldest_write_is_said_in_seconds(plan: Plan) -> None:
    metrics = Metrics()
    begun(metrics, plan)(BATCH)
    assert list(values(metrics, table.STATE_OLDEST).values()) == [1_700_000_000.5]


def test_the_ages_of_uses_are_counted_by_state(plan: Plan) -> None:
    metrics = Metrics()
    told = begun(metrics, plan)
    hour, day = 3_600_000, 86_400_000
    left = Uses(
        hits=counts({bucket_of(500): 3, bucket_of(hour): 4, bucket_of(2 * hour): 1, bucket_of(400 * day): 2}),
        misses=counts({bucket_of(5 * day): 6, bucket_of(9 * day): 1}),
    )
    told(replace(BATCH, operators={"join_o_c": replace(JOIN, uses={0: left})}))
    told(replace(BATCH, batch=4, operators={"join_o_c": replace(JOIN, uses={0: left, 1: Uses(hits=left.misses)})}))
    labels = (plan.name, "sink_result", "join_o_c", "join")
    hits = {age: value for age, value in values(metrics, table.STATE_HITS).items() if value}
    assert hits == {
        (*labels, "leftState", "1 s"): 6,
        # An hour is not below an hour.
        (*labels, "leftState", "3 h"): 10,
        (*labels, "leftState", "longer"): 4,
        (*labels, "rightState", "7 d"): 6,
        (*labels, "rightState", "14 d"): 1,
    }
    assert values(metrics, table.STATE_EXPIRED_HITS) == {(*labels, "leftState"): 14, (*labels, "rightState"): 0}


def test_an_operator_that_goes_by_event_time_has_a_watermark_until_it_is_drained(plan: Plan) -> None:
    metrics = Metrics()
    told = begun(metrics, plan)
    times = EventTimeProgress(watermark=1_700_000_000_500, held_by="scan_o", late_rows=2, waiting_rows=7)
    told(replace(BATCH, operators={"join_o_c": replace(JOIN, event_time=times)}))
    labels = (plan.name, "sink_result", "join_o_c", "join")
    assert values(metrics, table.WATERMARK) == {labels: 1_700_000_000.5}
    assert values(metrics, table.WAITING_ROWS) == {labels: 7}
    ended = replace(times, watermark=FOREVER, late_rows=1, waiting_rows=0)
    told(replace(BATCH, batch=4, operators={"join_o_c": replace(JOIN, event_time=ended)}))
    assert values(metrics, table.WATERMARK) == {}
    assert values(metrics, table.LATE_ROWS) == {labels: 3}
    assert values(metrics, table.WAITING_ROWS) == {labels: 0}


def test_a_batch_of_several_sinks_is_one_batch(plan: Plan) -> None:
    metrics = Metrics()
    told = begun(metrics, plan, {"join_o_c": ("sink_result", "sink_other")})
    told(BATCH)
    told(replace(BATCH, sink="sink_other", rows_in=0, rows_out=2, operators={}, sources=()))
    assert values(metrics, table.BATCH_ROWS_IN) == {(plan.name, "join_o_c"): 9}
    assert values(metrics, table.BATCH_ROWS_OUT) == {(plan.name, "join_o_c"): 7}
    ((labels, histogram),) = metrics.measurements.histograms(table.BATCH_DURATION)
    assert (labels, sum(histogram.counts)) == ((plan.name, "join_o_c"), 1)
    assert {labels[-1]: value for labels, value in values(metrics, table.SINK_ROWS).items()} == {
        "sink_result": 5,
        "sink_other": 2,
    }


def test_the_ttls_in_force_are_known_before_the_first_batch(plan: Plan) -> None:
    metrics = Metrics()
    begun(metrics, hintplan.set(plan, "join_o_c.leftState.ttl", "90 min"))
    found = {labels[1:]: value for labels, value in values(metrics, table.STATE_TTL).items()}
    assert found == {
        ("join_o_c", "join", "leftState"): 5_400,
        ("join_o_c", "join", "rightState"): 0,
        ("aggregate_t", "aggregate", "groupAggregateState"): 0,
    }


def test_a_plan_that_runs_once_more_was_restarted(plan: Plan) -> None:
    times = iter((100.0, 200.0))
    metrics = Metrics(now=lambda: next(times))
    begun(metrics, plan)(BATCH)
    assert values(metrics, table.RUN_RESTARTS) == {(plan.name,): 0}
    begun(metrics, plan)(BATCH)
    assert values(metrics, table.RUN_RESTARTS) == {(plan.name,): 1}
    assert values(metrics, table.RUN_START) == {(plan.name,): 200.0}
    assert values(metrics, table.BATCH_ROWS_IN) == {(plan.name, "sink_result"): 18}
    assert [labels[:3] for labels in values(metrics, table.RUN_INFO)] == [(plan.name, fingerprint(plan), "streaming")]
    metrics.close()
    assert values(metrics, table.RUN_ACTIVE) == {(plan.name,): 0}


def test_everything_that_lookups_and_functions_count_has_a_metric() -> None:
    assert list(LOOKUP_METRICS) == list(LookupCounters.reported)
    assert list(FUNCTION_METRICS) == list(FunctionCounters.reported)


def test_every_metric_is_measured_somewhere() -> None:
    code = "".join(
        (ROOT / "runtime" / "metrics" / name).read_text() for name in ("measure.py", "metrics.py", "followed.py")
    )
    used = {getattr(table, name).name for name in re.findall(r"\btable\.([A-Z_]+)\b", code)}
    assert used == {metric.name for metric in METRICS}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions_of_prometheus(metric: Metric) -> None:
    assert re.fullmatch(r"hintplan(_[a-z]+)+", metric.prometheus)
    assert metric.prometheus.endswith("_total") == (metric.type == "counter")
    assert metric.unit in ("", "s", "By") or re.fullmatch(r"\{[a-z]+\}", metric.unit)
    assert metric.labels[0] == "plan"
    assert metric.description.endswith(".")
    if metric.type == "histogram":
        assert metric.unit == "s"


def test_a_gauge_may_be_asked_for_what_it_is_now() -> None:
    measurements, now = Measurements(), 5.0
    measurements.set(table.BATCH_RUNNING, lambda: now - 2.0, "p", "q")
    assert measurements.values(table.BATCH_RUNNING) == [(("p", "q"), 3.0)]
    now = 7.5
    assert measurements.values(table.BATCH_RUNNING) == [(("p", "q"), 5.5)]
