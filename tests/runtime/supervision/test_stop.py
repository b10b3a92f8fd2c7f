"""How many times a run was told to stop, where a signal comes to the JVM, to Python or to both."""

from __future__ import annotations

import signal

import pytest

from hintplan.runtime.supervision.stop import Stop


def told(*steps: str) -> Stop:
    """What ``jvm``, the request of a JVM that has got a SIGTERM, and signals by their names have come to."""
    stop = Stop(clock=lambda: 0.0)
    for step in steps:
        if step == "jvm":
            stop.asked_by_jvm()
        else:
            stop(signal.Signals[step], None)
    return stop


@pytest.mark.parametrize(
    ("steps", "received"),
    [
        (("jvm",), 1),
        (("jvm", "SIGTERM"), 1),
        (("SIGTERM", "jvm"), 1),
        (("SIGINT", "jvm"), 1),
        (("jvm", "SIGTERM", "SIGTERM"), 2),
        (("SIGTERM", "jvm", "SIGTERM"), 2),
        (("jvm", "SIGINT"), 2),
    ],
)
def test_a_signal_that_comes_to_both_counts_once(steps: tuple[str, ...], received: int) -> None:
    assert told(*steps).received == received


def test_the_batch_has_its_grace_time_wherever_the_signal_has_come() -> None:
    now = [0.0]
    stop = Stop(grace=20.0, clock=lambda: now[0])
    stop.asked_by_jvm()
    assert (stop.is_overdue, stop.exit_code) == (False, 143)
    now[0] = 20.0
    assert stop.is_overdue


@pytest.mark.parametrize(
    ("now", "steps", "code"),
    [
        (False, ("SIGINT", "SIGINT"), None),
        (False, ("SIGINT", "SIGINT", "SIGINT"), 130),
        (False, ("SIGTERM", "SIGTERM", "SIGTERM"), 143),
        (False, ("jvm", "SIGTERM", "SIGTERM"), None),
        (False, ("jvm", "SIGTERM", "SIGTERM", "SIGINT"), 130),
        (True, ("SIGINT", "SIGINT"), None),
        (True, ("SIGINT", "SIGINT", "SIGINT"), 130),
    ],
)
def test_the_signal_after_that_to_stop_now_kills_the_process(
    capsys: pytest.CaptureFixture[str], now: bool, steps: tuple[str, ...], code: int | None
) -> None:
    killed: list[int] = []
    stop = Stop(now=now, clock=lambda: 0.0, kill=killed.append)
    for step in steps:
        stop.asked_by_jvm() if step == "jvm" else stop(signal.Signals[step], None)
    assert killed == ([] if code is None else [code])
    assert ("stopping now; once more to kill the process" in capsys.readouterr().err) == (stop.received > 1)
