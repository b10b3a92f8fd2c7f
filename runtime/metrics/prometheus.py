"""Metrics for Prometheus: a server in this process that returns the current measurements to each request.

A request costs a run nothing: the server reads memory, not Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from hintplan.plans.errors import RunError
from hintplan.runtime.metrics.measurements import Histogram, Measurements
from hintplan.runtime.metrics.table import BUCKETS, METRICS, Metric


@dataclass(frozen=True, slots=True)
class PrometheusExporter:
    """A running server; ``place`` is the URL for Prometheus."""

    place: str
    server: Any
    thread: Any

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def serve(measurements: Measurements, host: str, port: int) -> PrometheusExporter:
    """Serve metrics at an address, with port 0 for any free ``port``; RunError if the address is not available."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(measurements))
    shown = f"[{host}]" if ":" in host else host
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise RunError(
            f"metrics cannot be served at {shown}:{port}: {error.strerror or error}",
            hint="give another port, such as --metrics prometheus=:0 for any free one",
        ) from error
    return PrometheusExporter(f"http://{shown}:{server.server_port}/metrics", server, thread)


@dataclass(frozen=True, slots=True, eq=False)
class _Collector(Collector):
    measurements: Measurements

    def collect(self) -> Iterator[Family]:
        for metric in METRICS:
            family = self._family(metric)
            if family.samples:
                yield family

    def _family(self, metric: Metric) -> Family:
        if metric.type == "histogram":
            histogram = HistogramMetricFamily(metric.prometheus, metric.description, labels=metric.labels)
            for labels, values in self.measurements.histograms(metric):
                histogram.add_metric(labels, _cumulative(values), values.sum)
            return histogram
        kind = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
        family = kind(metric.prometheus, metric.description, labels=metric.labels)
        for labels, value in self.measurements.values(metric):
            family.add_metric(labels, value)
        return family


def _cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [*map(str, BUCKETS), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True))
