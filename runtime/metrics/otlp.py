"""Metrics for OpenTelemetry, sent to a collector over HTTP, each minute and at the end.

OpenTelemetry's own environment variables set intervals, headers, certificates, compression and resource attributes
(``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_EXPORTER_OTLP_HEADERS``). A collector that does not answer is reported once,
and tried again with the next report. Nothing is lost, because counters are cumulative.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource

from hintplan.runtime.metrics.measurements import Labels, Measurements
from hintplan.runtime.metrics.table import BUCKETS, METRICS, Metric

_ERRNO = re.compile(r"\[Errno -?\d+\] ([^\"')]+)")
_LAST_REPORT_MS = 5_000
"""The time that the end of a run waits for a collector."""


@dataclass(frozen=True, slots=True)
class OtlpExporter:
    """Sends reports to the URL ``place``."""

    place: str
    provider: MeterProvider

    def close(self) -> None:
        self.provider.shutdown(_LAST_REPORT_MS)


def send(measurements: Measurements, url: str, version: str, tell: Callable[[str], None]) -> OtlpExporter:
    """Send the measurements to ``url``; ``tell`` receives a message when this fails, and when it works again."""
    name = os.environ.get("OTEL_SERVICE_NAME")
    resource = Resource.create({} if name or "service.name=" in _attributes() else {SERVICE_NAME: "hintplan"})
    reader = PeriodicExportingMetricReader(_TellingExporter(url, tell))
    provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    meter = provider.get_meter("hintplan", version)
    recorders = {metric.name: recorder for metric in METRICS if (recorder := _instrument(meter, metric, measurements))}

    def record(metric: Metric, labels: Labels, value: float) -> None:
        recorders[metric.name](value, _attributed(metric, labels))

    measurements.recorders.append(record)
    return OtlpExporter(url, provider)


def _attributes() -> str:
    return os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


class _TellingExporter(OTLPMetricExporter):
    def __init__(self, url: str, tell: Callable[[str], None]) -> None:
        super().__init__(url)
        self._url, self._tell, self._away = url, tell, False
        self._why = _quietly_noted()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **more: Any
    ) -> MetricExportResult:
        self._why.said = ""
        result = super().export(metrics_data, timeout_millis, **more)
        away = result is not MetricExportResult.SUCCESS
        if away != self._away:
            self._away = away
            self._tell(
                f"metrics cannot be sent to {self._url}: {self._why.said or 'it does not answer'}; this is tried again"
                if away
                else f"metrics are sent to {self._url} again"
            )
        return result


class _Reason(logging.Handler):
    """Keeps the reason for the failure of the first attempt; later records may only report a timeout."""

    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        if self.said:
            return
        if record.levelno == logging.WARNING and len(arguments) == 3:  # the library tries again
            errno = _ERRNO.search(str(arguments[0]))
            self.said = errno[1] if errno else str(arguments[0])
        elif len(arguments) == 3:
            _, code, reason = arguments
            self.said = f"{reason} ({code})"


def _quietly_noted() -> _Reason:
    """Keep the library from writing each attempt to stderr, and return the handler that keeps the reason."""
    reason, logger = _Reason(), logging.getLogger(OTLPMetricExporter.__module__)
    logger.addHandler(reason)
    logger.propagate = False
    return reason


def _instrument(meter: Meter, metric: Metric, measurements: Measurements) -> Callable[..., None] | None:
    """Create the instrument of ``metric``; for a histogram, return the function that records a value."""
    about = {"name": metric.name, "unit": metric.unit, "description": metric.description}
    if metric.type == "histogram":
        return meter.create_histogram(**about, explicit_bucket_boundaries_advisory=BUCKETS).record
    create = meter.create_observable_counter if metric.type == "counter" else meter.create_observable_gauge
    create(**about, callbacks=[partial(_observed, metric, measurements)])
    return None


def _observed(metric: Metric, measurements: Measurements, options: CallbackOptions) -> Iterable[Observation]:
    return [Observation(value, _attributed(metric, labels)) for labels, value in measurements.values(metric)]


def _attributed(metric: Metric, labels: Labels) -> dict[str, str]:
    return dict(zip(metric.labels, labels, strict=True))
