"""Watches the user's code on the event loop, which runs in steps, and detects from outside a step that does not end.

A coroutine yields the loop whenever it waits. From one wait to the next, a step, nothing else runs on the loop, not
even timers. So timers cannot time out a call that blocks instead of awaiting. The start of each step is therefore
recorded: the thread that waits for results sees how long the step has run, and where. A step that ends too late is
detected at its end. The clock is passed in.

    steps = Steps(clock)
    value = await steps.walked(function.eval("x"), caller)
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hintplan.plans.errors import RunError
from hintplan.runtime.worker.clock import Clock

Result = TypeVar("Result")

_OURS = str(Path(__file__).parents[1])
_ADVICE = "pass blocking calls to asyncio.to_thread, or write a synchronous class"


class Caller(Protocol):
    """The owner of steps; its text names it in errors. ``limit`` is the maximum time of a step in ms, 0 for none."""

    @property
    def limit(self) -> int: ...


class Steps:
    """The steps of one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step: tuple[Caller, int] | None = None
        self._caller: ContextVar[Caller | None] = ContextVar("caller", default=None)

    async def walked(self, work: Awaitable[Result], caller: Caller) -> Result:
        """Return the result of ``work``, whose steps, and those in tasks that it starts, belong to ``caller``.

        Raise RunError if a step exceeds the limit; the work is cancelled then.
        """
        token = self._caller.set(caller)
        try:
            result: Result = await _Walk(self, work, caller)
            return result
        finally:
            self._caller.reset(token)

    def task(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        """Return a task for ``work``, as the loop's task factory; a task that a call starts belongs to its caller."""
        caller = self._caller.get()
        return asyncio.Task(work if caller is None else self._owned(work, caller), loop=loop, **more)

    async def _owned(self, work: Awaitable[Result], caller: Caller) -> Result:
        try:
            result: Result = await _Walk(self, work, caller)
            return result
        except (KeyboardInterrupt, SystemExit) as error:  # would stop the loop
            raise RunError(f"{caller} failed in a task that it has started: {type(error).__name__}: {error}") from error

    def begin(self, caller: Caller) -> None:
        """Record that ``caller`` has the loop from now on."""
        self._step = (caller, self._clock.elapsed())

    def end(self) -> RunError | None:
        """Record that no caller has the loop; return an error if the step took too long."""
        late = self._late("blocked")
        self._step = None
        return None if late is None else RunError(late, hint=_ADVICE)

    def check(self, thread: int | None) -> None:
        """Raise RunError if the current step has already taken too long; ``thread`` is the loop's."""
        late = self._late("has blocked")
        if late is not None:
            raise RunError(f"{late}, {_place(thread)}", hint=_ADVICE)

    def _late(self, verb: str) -> str | None:
        if self._step is None:
            return None
        caller, began = self._step
        took = self._clock.elapsed() - began
        if not caller.limit or took <= caller.limit:
            return None
        return f"{caller} {verb} the event loop for {took} ms, {caller.limit} ms are allowed"


class _Walk:
    """Passes the awaited objects of a coroutine to the loop, and records each step of the coroutine."""

    def __init__(self, steps: Steps, work: Awaitable[Any], caller: Caller) -> None:
        self._steps = steps
        self._work = work
        self._caller = caller

    def __await__(self) -> Generator[Any, Any, Any]:
        inner: Any = self._work.__await__()
        answer: Any = None
        thrown: BaseException | None = None
        late: RunError | None = None
        while True:
            self._steps.begin(self._caller)
            try:
                waits_for = inner.send(answer) if thrown is None else inner.throw(thrown)
            except StopIteration as stop:
                late = late or self._steps.end()
                if late is not None:
                    raise late from None
                return stop.value
            except BaseException as error:
                late = late or self._steps.end()
                if late is not None:
                    raise late from error
                raise
            ended_late = self._steps.end()
            if late is None and ended_late is not None:
                late, thrown = ended_late, asyncio.CancelledError()
                continue
            try:
                answer, thrown = (yield waits_for), None
            except BaseException as error:  # noqa: BLE001 -- a cancellation, passed to the work
                answer, thrown = None, error


def _place(thread: int | None) -> str:
    """Return the position of ``thread``: the line of the user's code, and the line that it has called from there."""
    frame = sys._current_frames().get(thread or 0)
    stack = traceback.extract_stack(frame)
    ours = max((place for place, at in enumerate(stack) if at.filename.startswith(_OURS)), default=-1)
    theirs = stack[ours + 1 :] or stack
    shown = [f"{at.filename}:{at.lineno} in {at.name}" for at in (theirs[0], theirs[-1])]
    return "at " + ", which is at ".join(dict.fromkeys(shown))
