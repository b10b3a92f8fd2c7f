"""A server of S3 that fails for a while, in whatever it is asked: a run continues, and its results are right."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from tests.connectors.object_store.job import Job
from tests.connectors.object_store.server import Fault, Request
from tests.spark.commands import Commands

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.integration, pytest.mark.part(of=6)]

BATCHES = 4
FOR_A_WHILE = 3
"""How often each kind of request fails in a row. Clients wait longer from time to time, and there are some 25 kinds."""


@pytest.fixture
def job(job: Job, commands: Commands) -> Job:
    job.commands = commands
    return job


def every_kind_fails(job: Job, fault: Fault, times: int) -> Callable[[Request], Fault | None]:
    """The first requests for each part of the checkpoint, and for tables, by each method, fail."""
    seen: dict[tuple[str, str], int] = {}
    lock = threading.Lock()

    def failing(request: Request) -> Fault | None:
        if request.bucket != job.bucket:
            return None
        part = next((name for name in ("state", "offsets", "commits", "sources") if f"/{name}/" in request.key), "")
        with lock:
            seen[part, request.method] = seen.get((part, request.method), 0) + 1
            return fault if seen[part, request.method] <= times else None

    return failing


@pytest.mark.parametrize("fault", ["500 InternalError", "503 SlowDown", "drop"])
def test_a_run_goes_on_when_the_server_is_back(job: Job, fault: Fault) -> None:
    job.order(BATCHES)
    job.compile()
    job.store.failing, job.store.failed = every_kind_fails(job, fault, FOR_A_WHILE), 0
    found = job.run("--once")
    assert found.returncode == 0, found.stderr
    assert job.store.failed > 10 * FOR_A_WHILE, "it did fail"
    job.store.failing = None
    job.check()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("", "checkpoint cannot be written: java.nio.file.AccessDeniedException"),
        ("state/", "operator aggregate_orders cannot keep its state: .* ACCESS_DENIED"),
        ("offsets/", r"the server of S3 refuses it \(/sink_\w+/offsets\)"),
        ("commits/", r"the server of S3 refuses it \(/sink_\w+/commits\)"),
    ],
)
def test_a_right_that_is_missing_ends_the_run_with_its_name(job: Job, part: str, said: str) -> None:
    """At once, for time does not mend it; once the right is given, the run continues."""
    job.order(BATCHES)
    job.compile()

    def refused(request: Request) -> Fault | None:
        writes = request.method == "PUT" and request.bucket == job.bucket
        return "403 AccessDenied" if writes and f"/{part}" in request.key else None

    job.store.failing = refused
    found = job.run("--once")
    assert found.returncode == 1
    assert re.search(said, found.stderr), found.stderr
    assert "Traceback" not in found.stderr, found.stderr
    job.store.failing = None
    assert job.run("--once").returncode == 0
    job.check()
