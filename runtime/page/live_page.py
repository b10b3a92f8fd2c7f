"""The page of a running plan, served in this process: the page of ``hintplan show``, whose numbers follow the run.

    GET /             the page
    GET /?evidence    the page, with the curve of each state
    GET /data         its numbers, as JSON

It only answers requests to read. Like the page of ``show``, it loads nothing else, and runs only its own script.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from socket import gethostname
from threading import Condition, Lock
from typing import Any
from urllib.parse import parse_qs

from py4j.protocol import Py4JError

from hintplan.plans.errors import HintplanError, RunError
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.files.codec import fingerprint
from hintplan.plans.lazy import load
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.live_rows import LiveRun
from hintplan.plans.show.page import plan_page
from hintplan.plans.text.terminal import one_line, print_message, without_secrets
from hintplan.runtime.metrics import table
from hintplan.runtime.metrics.metrics import Metrics
from hintplan.runtime.page.document import run_document
from hintplan.runtime.page.moment import moment_of
from hintplan.runtime.page.numbers import time_text
from hintplan.runtime.supervision.health import STOPPING, Health
from hintplan.runtime.web_server import Answer, address, is_loopback, json_answer, serving

EVERY_SECONDS = 2.0
"""The time between two requests of an open page for numbers."""

_SEEN_SECONDS = 3 * EVERY_SECONDS
_END_SECONDS = 3.0
_MOST_TABS, _LONGEST_TAB = 100, 40
"""Limits on the names that open pages give themselves."""

_EVIDENCE_SECONDS = 60.0
"""The time for which evidence is kept that was read from the checkpoint."""

_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
"""Besides the policy that the page itself contains."""

_OPEN_TO_OTHERS = (
    "warning: everyone who reaches this machine at {} can read the page, without a password: the plan, its tables and "
    "the numbers of the run"
)


def load_evidence(plan: Plan, checkpoint: str) -> Evidence:
    """Return the evidence about the states of ``plan`` in ``checkpoint``; it loads the reader when it is used."""
    read: Callable[[Plan, str], Evidence] = load("hintplan.runtime.inspect.evidence:read_evidence")
    return read(plan, checkpoint)


@dataclass(slots=True, kw_only=True)
class LivePage:
    """The page of the run that began last with ``metrics``, at ``url``; close it when nobody needs it.

    ``plan`` is shown until a run begins. ``file`` is the name of the plan in commands on the page. ``health`` has the
    phase of a supervised run. ``read_evidence`` reads the evidence of a plan from a checkpoint. ``now`` is in seconds
    since 1970.
    """

    metrics: Metrics
    plan: Plan | None = None
    file: str = "plan.json"
    health: Health | None = None
    now: Callable[[], float] = time.time
    url: str = ""
    failure: str | None = None
    read_evidence: Callable[[Plan, str], Evidence] = load_evidence
    _run: str = field(default_factory=lambda: uuid.uuid4().hex)
    _opened: float = 0.0
    _over: bool = False
    _tabs: dict[str, float] = field(default_factory=dict)
    _told: Condition = field(default_factory=Condition)
    _page: tuple[str, bytes] = ("", b"")
    _evidence: tuple[str, float, Evidence | str] | None = None
    _reading: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.metrics.keeps_recent = True
        self._opened = self.now()

    def answer(self, path: str) -> Answer:
        """Return the answer to a request for ``path``."""
        path, _, query = path.partition("?")
        if path == "/data":
            return self._data(next(iter(parse_qs(query).get("tab", ())), None))
        if path == "/":
            return self._html(with_evidence="evidence" in parse_qs(query, keep_blank_values=True))
        return json_answer({"error": "not found", "pages": ["/", "/data"]}, HTTPStatus.NOT_FOUND)

    def document(self) -> dict[str, Any]:
        """Return the status of the run and its numbers, as JSON values."""
        run, plan = self.metrics.latest, self._shown()
        failure = self._failure()
        moment = None if run is None else moment_of(run, self.now())
        starts = {} if plan is None else dict(self.metrics.measurements.values(table.RUN_START))
        restarts = {} if plan is None else dict(self.metrics.measurements.values(table.RUN_RESTARTS))
        name = "" if plan is None else plan.name
        return {
            "plan": one_line(name),
            "digest": "" if plan is None else fingerprint(plan),
            "mode": "" if plan is None else plan.mode,
            "run": self._run,
            "phase": self._phase(failure),
            "failure": None if failure is None else without_secrets(failure),
            "over": self._over,
            "restarts": int(restarts.get((name,), 0)),
            "now": round(self.now(), 3),
            "since": round(starts.get((name,), self._opened), 3),
            **({"queries": [], "operators": {}} if moment is None else run_document(moment)),
        }

    def end(self) -> None:
        """Tell open pages that the run is over, and wait until they know it, at most three seconds."""
        with self._told:
            self._over = True
            self._told.wait_for(lambda: not self._waiting_tabs(), timeout=_END_SECONDS)

    def _shown(self) -> Plan | None:
        run = self.metrics.latest
        return self.plan if run is None else run.measured.plan

    def _failure(self) -> str | None:
        """Return the reason for which the run has failed; Spark is asked only after its end."""
        if self.failure is not None or self.health is not None:
            return self.failure or (self.health.failure if self.health is not None else None)
        run = self.metrics.latest
        return run.failure if run is not None and run.has_ended else None

    def _phase(self, failure: str | None) -> str:
        if failure is not None:
            return "failed"
        if self.health is not None:
            if not self._over:
                return self.health.phase
            return "stopped" if self.health.phase == STOPPING else "finished"
        run = self.metrics.latest
        return "starting" if run is None else "ended" if run.has_ended or self._over else "running"

    def _data(self, tab: str | None) -> Answer:
        document = self.document()
        if tab is not None and len(tab) <= _LONGEST_TAB:
            with self._told:
                if document["over"]:
                    self._tabs.pop(tab, None)
                elif tab in self._tabs or len(self._waiting_tabs()) < _MOST_TABS:
                    self._tabs = {**self._waiting_tabs(), tab: time.monotonic()}
                self._told.notify_all()
        answer = json_answer(document)
        return Answer(content=answer.content, headers=_HEADERS)

    def _waiting_tabs(self) -> dict[str, float]:
        """Return the open pages that have asked for numbers lately."""
        oldest = time.monotonic() - _SEEN_SECONDS
        return {tab: seen for tab, seen in self._tabs.items() if seen > oldest}

    def _html(self, *, with_evidence: bool) -> Answer:
        plan = self._shown()
        if plan is None:
            return Answer(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                type="text/plain; charset=utf-8",
                content=b"no plan runs yet; this page opens when one does\n",
                headers={**_HEADERS, "Refresh": "2"},
            )
        digest = fingerprint(plan)
        live = LiveRun(digest=digest, url="data", seconds=EVERY_SECONDS, evidence=_offer(plan))
        if with_evidence and live.evidence:
            found, note = self._read(plan, digest)
            content = plan_page(plan, file=self.file, live=replace(live, evidence=note), evidence=found).encode()
        else:
            if self._page[0] != digest:
                self._page = digest, plan_page(plan, file=self.file, live=live).encode()
            content = self._page[1]
        return Answer(type="text/html; charset=utf-8", content=content, headers=_HEADERS)

    def _read(self, plan: Plan, digest: str) -> tuple[Evidence | None, str]:
        """Return the evidence in the checkpoint of the run, read at most once a minute, and words about it."""
        with self._reading:
            kept = self._evidence
            if kept is None or kept[0] != digest or time.monotonic() - kept[1] > _EVIDENCE_SECONDS:
                kept = self._evidence = digest, time.monotonic(), self._evidence_now(plan)
        if isinstance(kept[2], str):
            return None, f"The evidence of the states cannot be read: {without_secrets(kept[2])}"
        return kept[2], f"The evidence of the states is of {time_text(kept[2].at / 1000)}:"

    def _evidence_now(self, plan: Plan) -> Evidence | str:
        run = self.metrics.latest
        if run is None or run.checkpoint is None:
            return "the run has not started yet"
        try:
            return self.read_evidence(plan, run.checkpoint)
        except (HintplanError, OSError, Py4JError) as error:
            return str(error)


def _offer(plan: Plan) -> str:
    """Return words that offer to read the evidence; empty for a plan whose states have none."""
    has_evidence = plan.mode == "streaming" and any(entry.ttl for o in plan.operators for entry in o.state)
    return "How old are rows when they are used? The checkpoint has the evidence:" if has_evidence else ""


@contextmanager
def open_page(
    where: str | tuple[str, int],
    *,
    metrics: Metrics | None = None,
    plan: Plan | None = None,
    file: str = "plan.json",
    health: Health | None = None,
) -> Iterator[LivePage]:
    """Serve the page of the runs with ``metrics`` at ``where``, ``[HOST:]PORT``, during the block.

    Without a host, only this machine can read it; with another host, a warning is printed. Port 0 is any free one; the
    page's ``url`` has the actual one. Give ``LivePage.metrics`` to :func:`hintplan.runtime.run.execute.execute`; runs
    that began before are not shown. RunError if the address is not available.
    """
    try:
        host, port = address(where) if isinstance(where, str) else where
    except ValueError as error:
        raise RunError(str(error)) from error
    page = LivePage(metrics=metrics or Metrics(), plan=plan, file=file, health=health)
    names = (host,) if is_loopback(host) else (host, gethostname())
    with serving(page.answer, (host, port), "--page", own_names=names) as url:
        page.url = url
        if not is_loopback(host):
            print_message(_OPEN_TO_OTHERS.format(url.removeprefix("http://")))
        try:
            yield page
        except HintplanError as error:
            page.failure = str(error)
            raise
        finally:
            page.end()
