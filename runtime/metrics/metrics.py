"""The metrics of the runs of a process, measured while they are active, and exported to Prometheus or OpenTelemetry.

    with open_metrics("prometheus=:9090") as metrics:
        execute(plan, checkpoint="state", metrics=metrics).await_termination()

A plan that runs again with the same metrics counts as restarted, and its counters continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from hintplan.plans.errors import RunError
from hintplan.plans.extras import require
from hintplan.plans.files.codec import fingerprint
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.terminal import print_message
from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.exporter import Destination, Exporter, destination
from hintplan.runtime.metrics.followed import Followed
from hintplan.runtime.metrics.measure import Measured
from hintplan.runtime.metrics.measurements import Measurements
from hintplan.runtime.metrics.recent import Recent


@dataclass(slots=True)
class Metrics:
    """The measurements of runs, and their ``exporters``; close it when no run needs it.

    ``now`` is in seconds since 1970, ``clock`` is monotonic. ``latest`` is the run that began last. With
    ``keeps_recent``, runs keep their recent past, for a page.
    """

    measurements: Measurements = field(default_factory=Measurements)
    exporters: tuple[Exporter, ...] = ()
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    keeps_recent: bool = False
    latest: Followed | None = None
    _runs: dict[str, Followed] = field(default_factory=dict)

    def begun(self, plan: Plan, queries: Mapping[str, Sequence[str]]) -> Followed:
        """Prepare to follow a run of ``plan``; ``queries`` have their sinks. Return the object that follows the run."""
        into, before = self.measurements, self._runs.get(plan.name)
        if before is not None:
            before.end()
        recent = Recent(plan.name, into) if self.keeps_recent else None
        run = self._runs[plan.name] = Followed(Measured(into, plan, queries), self.clock, recent)
        for labels, _ in into.values(table.RUN_INFO):
            if labels[0] == plan.name:
                into.set(table.RUN_INFO, None, *labels)
        into.set(table.RUN_INFO, 1, plan.name, fingerprint(plan), plan.mode, _version())
        into.set(table.RUN_ACTIVE, 0, plan.name)
        into.set(table.RUN_START, self.now(), plan.name)
        into.add(table.RUN_RESTARTS, 0 if before is None else 1, plan.name)
        run.measured.begun()
        if recent is not None:
            recent.sample(self.clock())
        self.latest = run
        return run

    def close(self) -> None:
        """Stop following runs, send the last report, and stop serving."""
        for run in self._runs.values():
            run.end()
        for exporter in self.exporters:
            exporter.close()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def open_metrics(*destinations: str, tell: Callable[[str], None] = print_message) -> Metrics:
    """Open metrics for all ``destinations``: ``prometheus=[HOST]:PORT`` serves them, ``otlp=URL`` sends them.

    Without a host, the server answers only this machine. Port 0 is any free port; ``Metrics.exporters`` have the actual
    one. ``tell`` receives a message about a collector that does not answer. Raise RunError for an invalid destination
    or a port that is not available; NotInstalled without the packages of ``hintplan[metrics]``.
    """
    try:
        wanted = [destination(text) for text in destinations]
    except ValueError as error:
        raise RunError(str(error)) from error
    require("metrics")
    measurements = Measurements()
    with ExitStack() as opened:
        exporters = []
        for target in wanted:
            exporters.append(_exporter(target, measurements, tell))
            opened.callback(exporters[-1].close)
        opened.pop_all()
    return Metrics(measurements, tuple(exporters))


def _exporter(wanted: Destination, measurements: Measurements, tell: Callable[[str], None]) -> Exporter:
    if wanted.url is None:
        from hintplan.runtime.metrics.prometheus import serve

        return serve(measurements, wanted.host, wanted.port)
    from hintplan.runtime.metrics.otlp import send

    return send(measurements, wanted.url, _version(), tell)


def _version() -> str:
    try:
        return version_of("hintplan")
    except PackageNotFoundError:
        return "unknown"
