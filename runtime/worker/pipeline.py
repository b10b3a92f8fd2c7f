"""Batches of one task on their way through asynchronous work: pulled, started, and put out when they are done.

The next batch is pulled while calls for earlier ones are in flight, so the edges of Arrow batches leave no gap. How
much is started is bounded twice: by ``room``, which the work itself grants, and by the size of what waits to be put
out behind something slow. Knows neither keys nor rows.

    for table in flowing(steps, fetcher.room, event_loop, ordered=True, most=8): ...
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, TypeVar

from hintplan.runtime.worker.event_loop import EventLoop

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step(Generic[Result]):
    """One batch: ``work`` is what must be done before ``result`` may be asked for; None if it may be at once.

    A step without work overtakes those that wait, so it has no place where order matters. ``size`` counts against
    what may wait.
    """

    result: Callable[[], Result]
    work: Coroutine[Any, Any, None] | None
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Waiting(Generic[Result]):
    result: Callable[[], Result]
    done: Future[None]
    size: int


def flowing(
    steps: Iterable[Step[Result]],
    room: Callable[[], Coroutine[Any, Any, None]],
    event_loop: EventLoop,
    *,
    ordered: bool,
    most: int,
) -> Iterator[Result]:
    """The results of ``steps``: in their order if ``ordered``, else as they are done; a failure anywhere at once.

    No step is pulled before ``room`` is there, or while steps of ``most`` in size wait. What is not done when the
    caller stops, or something fails, is cancelled.
    """
    waiting: deque[_Waiting[Result]] = deque()
    try:
        for step in steps:
            if step.work is None:
                yield step.result()
                continue
            waiting.append(_Waiting(result=step.result, done=event_loop.submit(step.work), size=step.size))
            room_there = event_loop.submit(room())
            yield from _finished(waiting, ordered)
            while waiting and (not room_there.done() or sum(each.size for each in waiting) >= most):
                event_loop.wait([future for future in (room_there, *_futures(waiting)) if not future.done()])
                yield from _finished(waiting, ordered)
        while waiting:
            yield from _finished(waiting, ordered)
            if waiting:
                event_loop.wait([future for future in _futures(waiting) if not future.done()])
    finally:
        for each in waiting:
            each.done.cancel()


def _futures(waiting: Iterable[_Waiting[Result]]) -> Iterator[Future[None]]:
    return (each.done for each in waiting)


def _finished(waiting: deque[_Waiting[Result]], ordered: bool) -> Iterator[Result]:
    """Remove what can be put out; a failure anywhere is raised at once."""
    for future in _futures(waiting):
        if future.done():
            future.result()
    ready = list(takewhile(_is_done, waiting)) if ordered else list(filter(_is_done, waiting))
    for each in ready:
        each.done.result()
        waiting.remove(each)
    return (each.result() for each in ready)


def _is_done(each: _Waiting[Result]) -> bool:
    return each.done.done()
