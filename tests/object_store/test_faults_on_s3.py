"""A server of S3 that fails for a while: a run goes on, or ends with a message and goes on when started again.

Whatever happens, what comes out in the end is what was put in.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

import pytest

from tests.object_store.job import Job
from tests.object_store.server import Fault, Request

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.integration]

BATCHES = 4
FOR_A_WHILE = 3
"""How often each kind of request fails in a row. Clients wait longer from time to time, and there are some 25 kinds."""


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


@pytest.mark.parametrize("fault", ["503 SlowDown", "500 InternalError", "drop"])
def test_a_run_goes_on_when_the_server_is_back(fault: Fault, job: Job) -> None:
    job.order(BATCHES)
    job.compile()
    job.store.failing, job.store.failed = every_kind_fails(job, fault, FOR_A_WHILE), 0
    found = job.run("--once")
    assert found.returncode == 0, found.stderr
    assert job.store.failed > 10 * FOR_A_WHILE, "it did fail"
    job.store.failing = None
    job.check()


def down(part: str, fault: Fault, *, after: int) -> Callable[[Request], Fault | None]:
    """Writes of ``part`` fail for ever after as many that did not."""
    left = iter(range(after))

    def failing(request: Request) -> Fault | None:
        wrote = part in request.key and request.method in ("PUT", "COPY", "POST")
        return fault if wrote and next(left, None) is None else None

    return failing


@pytest.mark.parametrize("part", ["/state/", "/commits/"])
def test_a_run_that_ends_says_why_and_the_next_one_goes_on(part: str, job: Job) -> None:
    """Refused for good, after the first batch: what was written so far counts once."""
    job.order(BATCHES)
    job.compile()
    job.store.failing = down(part, "403 AccessDenied", after=5)
    found: subprocess.CompletedProcess[str] = job.run("--once")
    assert found.returncode == 1, found.stderr
    assert "Traceback" not in found.stderr
    assert "AccessDenied" in found.stderr or "ACCESS_DENIED" in found.stderr or "403" in found.stderr, found.stderr
    assert "s3a://" in found.stderr or job.bucket in found.stderr
    job.store.failing = None
    again = job.run("--once")
    assert again.returncode == 0, again.stderr
    job.check()
