"""What a run answers on its port, asked over HTTP as a probe does."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.supervision.health import (
    RESTARTING,
    RUNNING,
    SILENT_SECONDS,
    WAITING,
    Health,
    served,
)
from hintplan.runtime.web_server import address


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(plan="revenue", digest="0123456789abcdef", clock=clock)


@pytest.fixture
def url(health: Health) -> Iterator[str]:
    with served(health, ("127.0.0.1", 0)) as found:
        yield found


def asked(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def test_a_run_is_alive_before_it_is_ready(health: Health, url: str, clock: Clock) -> None:
    for phase in ("starting", WAITING, RUNNING):
        health.enter(phase)
        assert asked(f"{url}/healthz")[0] == 200
        status, body = asked(f"{url}/readyz")
        assert (status, body["status"]) == (503, "planning" if phase == RUNNING else phase)
    health.planned = True
    clock.now += 2.5
    health.batch("sink_r", 7)
    clock.now += 1.5
    assert asked(f"{url}/readyz?verbose") == (
        200,
        {
            "status": "ok",
            "phase": "running",
            "plan": "revenue",
            "digest": "0123456789abcdef",
            "uptime_ms": 4000,
            "batches": {"sink_r": {"batch": 7, "ended_ms_ago": 1500}},
            "stuck": {},
            "clock_behind_ms": 0,
            "restarts": 0,
            "lease": None,
            "error": None,
        },
    )
    health.enter(RESTARTING)
    assert asked(f"{url}/readyz")[0] == 503
    assert asked(f"{url}/healthz")[0] == 200


def test_a_stuck_batch_is_not_well_until_it_ends_or_goes_on(health: Health, url: str) -> None:
    health.enter(RUNNING)
    health.stuck("sink_r", 90_000, 3)
    health.running("sink_r", 3)
    status, body = asked(f"{url}/healthz")
    assert (status, body["status"], body["stuck"]) == (503, "stuck", {"sink_r": 90_000})
    health.batch("sink_r", 3)
    assert asked(f"{url}/healthz")[0] == 200
    health.stuck("sink_r", 90_000, 0)
    health.running("sink_r", 1)
    assert asked(f"{url}/healthz")[0] == 200
    health.stuck("sink_r", 90_000, None)
    health.enter(RESTARTING)
    assert asked(f"{url}/healthz")[0] == 200


def test_a_run_that_is_not_looked_after_any_more_is_hung(health: Health, url: str, clock: Clock) -> None:
    clock.now += SILENT_SECONDS
    assert asked(f"{url}/healthz")[1]["status"] == "ok", "Spark may take long to start"
    health.enter(RUNNING)
    clock.now += SILENT_SECONDS
    status, body = asked(f"{url}/healthz")
    assert (status, body["status"], body["seen_ms_ago"]) == (503, "hung", SILENT_SECONDS * 1000)
    health.seen()
    assert asked(f"{url}/healthz")[0] == 200


def test_a_run_without_its_lease_is_not_ready(health: Health, url: str) -> None:
    lease = {"epoch": 3, "lease_ms": 60_000, "renewed_ms_ago": 50_000, "in_force": False}
    health.enter(RUNNING)
    health.planned, health.lease = True, lambda: lease
    status, body = asked(f"{url}/readyz")
    assert (status, body["status"], body["lease"]) == (503, "without its lease", lease)


def test_a_failed_run_is_neither(health: Health, url: str) -> None:
    health.enter(RUNNING)
    health.planned, health.failure = True, "the query of r failed"
    for page in ("healthz", "readyz"):
        status, body = asked(f"{url}/{page}")
        assert (status, body["status"], body["error"]) == (503, "failed", "the query of r failed")


def test_other_pages_are_not_there(url: str) -> None:
    assert asked(f"{url}/") == (404, {"status": "not found", "pages": ["/healthz", "/readyz"]})
    with urllib.request.urlopen(urllib.request.Request(f"{url}/healthz", method="HEAD"), timeout=30) as answer:
        assert (answer.status, answer.read()) == (200, b"")


def test_a_port_that_is_taken_is_named(health: Health) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"--health cannot listen on 127.0.0.1 port {port}: "), served(
            health, ("127.0.0.1", port)
        ):  # fmt: skip
            pass


@pytest.mark.parametrize("text", ["", "x", "8080x", "host:", "1:2:3", "70000", "host:-1"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected PORT or HOST:PORT"):
        address(text)
