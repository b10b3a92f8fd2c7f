"""A run drains whichever way a program waits for it or looks at it, and not if it is stopped; queries are simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.run.supervised import follow
from hintplan.runtime.supervision.stop import Stop


class Query:
    """A query that ends once it has been looked at a number of times."""

    lastProgress = None
    recentProgress = ()
    status: Mapping[str, Any] = {"isDataAvailable": False, "isTriggerActive": False, "message": ""}

    def __init__(self, looks: int = 0) -> None:
        self.looks = looks
        self.stopped = False

    @property
    def isActive(self) -> bool:
        self.looks -= 1
        return self.looks >= 0 and not self.stopped

    def exception(self) -> None:
        return None

    def awaitTermination(self, seconds: float) -> bool:
        return not self.isActive

    def stop(self) -> None:
        self.stopped = True


class Run(Execution):
    """A run of one query, and the last batch that closes its windows."""

    def __init__(self, looks: int = 3, fail: bool = False) -> None:
        self.first, self.last = Query(looks), Query(looks)
        self.drains = 0

        def drain() -> Mapping[str, Any]:
            self.drains += 1
            if fail:
                raise RunError("the query of r cannot be started")
            return {"r": self.last}

        queries = cast(Any, {"r": self.first})
        super().__init__(queries=queries, checkpoint="c", temporary=False, partitions=1, drain=drain)


def wait(run: Run) -> None:
    assert run.await_termination()


def wait_a_little(run: Run) -> None:
    while not run.await_termination(0):
        pass


def poll(run: Run) -> None:
    while run.active:
        pass


def read_batches(run: Run) -> None:
    while run.is_unfinished:
        run.new_batches()


def look_at_progress(run: Run) -> None:
    while run.is_unfinished:
        assert run.progress == {}


def supervise(run: Run) -> None:
    assert follow(run, Stop(), lambda: None) == "finished"


WAYS = [wait, wait_a_little, poll, read_batches, look_at_progress, supervise]


@pytest.mark.parametrize("way", WAYS)
def test_windows_close_once_however_the_run_is_driven(way: Callable[[Run], None]) -> None:
    run = Run()
    way(run)
    assert (run.drains, run.queries, run.is_unfinished) == (1, {"r": run.last}, False)
    assert run.last.looks < 0
    assert not run.last.stopped


@pytest.mark.parametrize("way", [wait, wait_a_little, supervise])
def test_a_last_batch_that_cannot_start_fails_the_wait(way: Callable[[Run], None]) -> None:
    with pytest.raises(RunError, match="the query of r cannot be started"):
        way(Run(fail=True))


@pytest.mark.parametrize("way", [poll, read_batches, look_at_progress])
def test_a_last_batch_that_cannot_start_is_the_exception_of_the_run(way: Callable[[Run], None]) -> None:
    run = Run(fail=True)
    way(run)
    assert str(run.exception) == "the query of r cannot be started"
    with pytest.raises(RunError):
        run.await_termination()
    assert run.drains == 1


def test_a_stopped_run_leaves_windows_open() -> None:
    for stop in (Run.stop, Run.stop_between_batches):
        run = Run(looks=0)
        stop(run)
        poll(run)
        assert (run.drains, run.is_unfinished) == (0, False)
    asked, run = Stop(), Run(looks=0)
    asked.received = 1
    assert (follow(run, asked, lambda: None), run.drains) == ("stopped", 0)
    with Run(looks=0) as run:
        pass
    assert run.drains == 0


def test_two_threads_that_look_at_a_run_drain_it_once() -> None:
    for _ in range(20):
        run = Run(looks=0)
        threads = [threading.Thread(target=poll, args=(run,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert run.drains == 1
