"""Metrics as others get them: over HTTP, read with Prometheus' own client and OpenTelemetry's own protobufs."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from hintplan.plans.errors import NotInstalled, RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.metrics.exporter import destination
from hintplan.runtime.metrics.metrics import Metrics, open_metrics
from hintplan.runtime.metrics.table import METRICS
from tests.runtime.metrics.receiver import receiver
from tests.runtime.metrics.scraped import of, scrape
from tests.runtime.metrics.test_measure import BATCH, QUERIES
from tests.spark.programs import revenue_plan

QUICK_MS = "50"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return revenue_plan(tmp_path, sink={"connector": "print"})


def measured(metrics: Metrics, plan: Plan) -> str:
    """Measures one batch; where Prometheus is answered."""
    metrics.begun(plan, QUERIES).told(BATCH)
    return metrics.exporters[0].place


def test_prometheus_reads_counters_gauges_and_histograms(plan: Plan) -> None:
    with open_metrics("prometheus=:0") as metrics:
        found = scrape(measured(metrics, plan))
    labels = {"plan": plan.name, "query": "sink_result"}
    assert of(found, "hintplan_batch_rows_in_total", **labels) == 9
    assert of(found, "hintplan_operator_state_rows", operator="join_o_c", kind="join") == 7
    assert of(found, "hintplan_batch_duration_seconds_bucket", le="1.0") == 0
    assert of(found, "hintplan_batch_duration_seconds_bucket", le="2.5") == 1
    assert of(found, "hintplan_batch_duration_seconds_bucket", le="+Inf") == 1
    assert of(found, "hintplan_batch_duration_seconds_sum") == 1.5


def test_only_this_machine_is_answered_unless_a_host_is_given() -> None:
    with open_metrics("prometheus=:0", "prometheus=0.0.0.0:0") as metrics:
        here, everywhere = (exporter.server.socket.getsockname()[0] for exporter in metrics.exporters)
    assert (here, everywhere) == ("127.0.0.1", "0.0.0.0")


def test_a_port_in_use_is_said_and_what_was_opened_before_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunError, match=f"metrics cannot be served at 127.0.0.1:{port}: Address already in use"):
            open_metrics("prometheus=:0", f"prometheus=:{port}")


def test_an_address_that_is_no_more_answered_can_be_had_again() -> None:
    with open_metrics("prometheus=:0") as metrics:
        port = metrics.exporters[0].place.split(":")[-1].removesuffix("/metrics")
    with open_metrics(f"prometheus=:{port}") as metrics:
        scrape(metrics.exporters[0].place)


def test_a_collector_gets_at_the_end_what_prometheus_can_read(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
    said: list[str] = []
    with receiver() as received:
        with open_metrics("prometheus=:0", f"otlp={received.url}", tell=said.append) as metrics:
            page = scrape(measured(metrics, plan))
        received.wait_for(1)
    assert said == []
    assert set(received.paths) == {"/v1/metrics"}
    assert received.headers[0]["authorization"] == "Bearer abc"
    assert received.resource()["service.name"] == "hintplan"
    sent = received.series()
    compared = 0
    for metric in METRICS:
        name = metric.prometheus + ("_count" if metric.type == "histogram" else "")
        read = {labels: value for (found, labels), value in page.items() if found == name}
        if metric.name not in ("hintplan.run.active",):  # which is 0 when the run has ended
            assert sent.get(metric.name, {}) == read
            compared += len(read)
    assert compared > 20
    (duration,) = [metric for metric in received.metrics() if metric.name == "hintplan.batch.duration"]
    assert (duration.unit, list(duration.histogram.data_points[0].explicit_bounds)[:3]) == ("s", [0.1, 0.25, 0.5])


def test_what_sends_is_called_as_the_environment_says(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=billing,deployment.environment=test")
    with receiver() as received:
        with open_metrics("prometheus=:0", f"otlp={received.url}") as metrics:
            measured(metrics, plan)
        received.wait_for(1)
    found = received.resource()
    assert (found["service.name"], found["deployment.environment"]) == ("billing", "test")


def test_a_collector_that_is_away_is_told_of_once_and_sent_to_when_it_comes(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", QUICK_MS)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    told: list[str] = []
    with open_metrics("prometheus=:0", f"otlp=http://127.0.0.1:{port}", tell=told.append) as metrics:
        measured(metrics, plan)
        exporter = metrics.exporters[1]
        for _ in range(3):
            exporter.provider.force_flush()
        assert told == [
            f"metrics cannot be sent to http://127.0.0.1:{port}/v1/metrics: Connection refused; this is tried again"
        ]
        with receiver(port) as received:
            received.wait_for(2)
            assert received.series()["hintplan.batch.rows_in"]
            exporter.close()
        metrics.exporters = metrics.exporters[:1]
    assert told[1:] == [f"metrics are sent to http://127.0.0.1:{port}/v1/metrics again"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prometheus=9090", "'9090' is no"),
        ("prometheus=:99999", "':99999' is no"),
        ("prometheus=", "'' is no"),
        ("otlp=collector:4318", "'collector:4318' is no URL of a collector"),
        ("otlp=http://", "'http://' is no URL of a collector"),
        ("otlp=http://user:secret@collector", "credentials do not belong in a URL"),
        ("otlp=http://collector/?a=b", "has more than a host and a path"),
        (":9090", "metrics go to prometheus="),
    ],
)
def test_a_place_that_is_none_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        destination(text)
    assert "secret" not in str(caught.value)
    with pytest.raises(RunError):
        open_metrics(text)


def test_the_path_of_a_collector_is_kept() -> None:
    url = "http://prometheus:9090/api/v1/otlp/v1/metrics"
    assert destination("otlp=http://prometheus:9090/api/v1/otlp").url == url
    assert destination(f"otlp={url}").url == url
    assert destination("prometheus=[::1]:9090").host == "::1"


def test_what_lacks_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(NotInstalled) as caught:
        open_metrics("prometheus=:0")
    assert str(caught.value) == (
        f"giving metrics to others needs opentelemetry-sdk, which this Python ({sys.executable}) lacks: "
        "pip install 'hintplan[metrics]'"
    )
