"""What a command tells of what takes long; the time is the test's."""

from __future__ import annotations

import os
import pty
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hintplan.plans.text.notice import notice


class Timer:
    """Calls when the test says that the time is over."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds, self._call, self._cancelled = seconds, call, False

    def start(self) -> None:
        Timer.last = self

    def cancel(self) -> None:
        self._cancelled = True

    def is_over(self, *, late: bool = False) -> None:
        """``late``: just when it was cancelled."""
        if late or not self._cancelled:
            self._call()

    last: Timer


@pytest.fixture(params=["terminal", "log"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, Callable[[], str], bool]]:
    """A descriptor, what was written to it, and whether it is a terminal."""
    if request.param == "terminal":
        reader, writer = pty.openpty()

        def read() -> str:
            found = b""
            while select.select([reader], [], [], 0.05)[0]:
                found += os.read(reader, 10_000)
            return found.decode()

        yield writer, read, True
        os.close(reader)
    else:
        path = tmp_path / "log"
        writer = os.open(path, os.O_CREAT | os.O_WRONLY)
        yield writer, path.read_text, False
    os.close(writer)


def test_what_is_quick_is_not_told(place: Any) -> None:
    writer, written, _ = place
    with notice("planning", descriptor=lambda: writer, timer=Timer):
        assert Timer.last.seconds == 1
    Timer.last.is_over()
    Timer.last.is_over(late=True)
    assert written() == ""


class Clock:
    """The time in seconds, as the test sets it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_takes_longer_is_told_with_its_time_and_goes_from_a_terminal(place: Any) -> None:
    writer, written, on_terminal = place
    clock = Clock()
    with notice("starting\x1b[2J", descriptor=lambda: writer, timer=Timer, clock=clock):
        clock.now += 1
        Timer.last.is_over()
        first = written()
        assert Timer.last.seconds == (1 if on_terminal else 10)
        clock.now += 9.9
        Timer.last.is_over()
        later = written()
        clock.now += 0.5
    last = written()
    if on_terminal:
        assert (first, later, last) == (
            "starting\\x1b[2J · 1 s",
            "\r\x1b[Kstarting\\x1b[2J · 11 s",
            "\r\x1b[K",
        )
    else:
        lines = ["starting\\x1b[2J", "starting\\x1b[2J · 11 s so far", "starting\\x1b[2J · took 11.4 s"]
        assert first.splitlines() == lines[:1]
        assert later.splitlines() == lines[:2]
        assert last.splitlines() == lines


def test_it_ends_before_something_else_is_printed_and_then_not_again(place: Any) -> None:
    writer, written, on_terminal = place
    clock = Clock()
    with notice("planning", descriptor=lambda: writer, timer=Timer, clock=clock) as end:
        clock.now += 1
        Timer.last.is_over()
        end()
        os.write(writer, b"waits")
        Timer.last.is_over(late=True)
    shown = written()
    assert shown == ("planning · 1 s\r\x1b[Kwaits" if on_terminal else "planning\nplanning · took 1.0 s\nwaits")


def test_an_error_takes_it_from_the_terminal(place: Any) -> None:
    writer, written, on_terminal = place
    clock = Clock()

    def fails() -> None:
        with notice("planning", descriptor=lambda: writer, timer=Timer, clock=clock):
            clock.now += 2.34
            Timer.last.is_over()
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        fails()
    assert written() == ("planning · 2 s\r\x1b[K" if on_terminal else "planning\nplanning · took 2.3 s\n")
