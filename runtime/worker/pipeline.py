"""Runs the batches of one task through asynchronous work: pulls them, starts their work, and yields finished results.

The next batch is pulled while calls for earlier batches are in flight, so batch boundaries leave no gap. Two bounds
limit the started work: ``room``, which the work itself grants, and the size of results that wait behind something slow.
Knows no keys and no rows.

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
    """One batch. ``work`` must be done before ``result`` may be called; None if it may be called at once.

    A step without work overtakes waiting steps, so it must not be used where order matters. ``size`` counts against the
    limit on waiting steps.
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
    """Yield the results of ``steps``: in order if ``ordered``, else as they finish. Raise any failure at once.

    No step is pulled before ``room`` is granted, or while the sizes of waiting steps reach ``most``. If the caller
    stops or a step fails, unfinished work is cancelled.
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
            while waiting and (not room_there.done() or sum(entry.size for entry in waiting) >= most):
                event_loop.wait([future for future in (room_there, *_futures(waiting)) if not future.done()])
                yield from _finished(waiting, ordered)
        while waiting:
            yield from _finished(waiting, ordered)
            if waiting:
                event_loop.wait([future for future in _futures(waiting) if not future.done()])
    finally:
        for entry in waiting:
            entry.done.cancel()


def _futures(waiting: Iterable[_Waiting[Result]]) -> Iterator[Future[None]]:
    return (entry.done for entry in waiting)


def _finished(waiting: deque[_Waiting[Result]], ordered: bool) -> Iterator[Result]:
    """Remove and return results that can be yielded; raise any failure at once."""
    for future in _futures(waiting):
        if future.done():
            future.result()
    ready = list(takewhile(_is_done, waiting)) if ordered else list(filter(_is_done, waiting))
    for entry in ready:
        entry.done.result()
        waiting.remove(entry)
    return (entry.result() for entry in ready)


def _is_done(each: _Waiting[Result]) -> bool:
    return each.done.done()
