"""A collector of OpenTelemetry on loopback: it reads what comes with the official protobufs, and keeps it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

DEADLINE_SECONDS = 60

Series = dict[tuple[tuple[str, str], ...], float]


@dataclass(slots=True)
class Received:
    """The reports that came, the newest last, with the path and the headers of each."""

    url: str
    reports: list[ExportMetricsServiceRequest] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, number: int) -> None:
        """Until so many reports have come."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.reports) >= number, DEADLINE_SECONDS)

    def resource(self) -> dict[str, str]:
        """The attributes of what sent the last report."""
        (found,) = self.reports[-1].resource_metrics
        return {each.key: each.value.string_value for each in found.resource.attributes}

    def series(self) -> dict[str, Series]:
        """Of the last report, by metric and attributes: a number, or how many values a histogram has."""
        found: dict[str, Series] = {}
        for metric in self.metrics():
            points = getattr(metric, metric.WhichOneof("data")).data_points
            for point in points:
                labels = tuple(sorted((each.key, each.value.string_value) for each in point.attributes))
                value = point.count if metric.HasField("histogram") else point.as_double or point.as_int
                found.setdefault(metric.name, {})[labels] = value
        return found

    def metrics(self) -> list:
        """The metrics of the last report as they are."""
        (resource,) = self.reports[-1].resource_metrics
        (scope,) = resource.scope_metrics
        return list(scope.metrics)


@contextmanager
def receiver(port: int = 0) -> Iterator[Received]:
    """A collector at ``port``, any free one if it is 0."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with received.came:
                received.reports.append(ExportMetricsServiceRequest.FromString(body))
                received.paths.append(self.path)
                received.headers.append(dict(self.headers))
                received.came.notify_all()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    received = Received(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
