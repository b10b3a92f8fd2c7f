"""Calls of an asynchronous function: up to ``capacity`` calls of a task at once, across all its Arrow batches.

A row occupies its slot until it has an answer, including retries and the waits between them, as in Flink. The timeout
covers this whole time. Calls start in the order of the rows, and the next batch is read before slots become idle.

Everything runs on one event loop and takes the time from it alone, so a loop with a simulated clock replays any
schedule. A call that blocks the loop for longer than its timeout fails with an error that names it
(:mod:`hintplan.runtime.worker.steps`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from hintplan.plans.errors import RunError
from hintplan.runtime.functions.api import AsyncScalarFunction, AsyncTableFunction
from hintplan.runtime.functions.failures import Blame, call_text, cancelled, failed, timed_out
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.functions.rows import Arguments, listed
from hintplan.runtime.functions.spec import CallPolicy
from hintplan.runtime.worker.exceptions import retried
from hintplan.runtime.worker.steps import Steps

_AHEAD = 1024
"""The rows that may wait for a slot: enough to keep the slots busy until the next batch is read."""

_TURN = 64
"""The rows that may be answered without a wait before other coroutines get a turn."""


class _Batch:
    def __init__(self, rows: Sequence[Arguments]) -> None:
        self.rows = rows
        self.answers: list[list[Any]] = [[]] * len(rows)
        self.started = 0
        self.answered = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


@dataclass(slots=True, kw_only=True)
class _Row:
    """The calls for one row, and the last failure among them."""

    policy: CallPolicy
    arguments: Arguments
    failures: int = 0
    last: Exception | None = None

    @property
    def limit(self) -> int:
        return self.policy.timeout

    def __str__(self) -> str:
        return call_text(self.policy, self.arguments)


class AsyncCalls:
    """All calls of one task. After a failure, or after the caller abandons a batch, no more calls are made."""

    def __init__(
        self,
        function: AsyncTableFunction | AsyncScalarFunction,
        policy: CallPolicy,
        counters: FunctionCounters,
        steps: Steps,
    ) -> None:
        self._function = function
        self._policy = policy
        self._counters = counters
        self._steps = steps
        self._batches: set[_Batch] = set()
        self._queue: deque[_Batch] = deque()
        self._unstarted = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._working = 0
        self._in_flight = 0
        self._stopped = False
        self._changed = asyncio.Event()

    async def room(self) -> None:
        """Wait until the queue of rows is short enough for more, or a call has failed."""
        while self._unstarted >= max(self._policy.capacity, _AHEAD) and not self._stopped:
            self._changed.clear()
            await self._changed.wait()

    async def answer(self, rows: Sequence[Arguments], into: list[list[Any]]) -> None:
        """Append the rows that the function returns for each of ``rows`` to ``into``; RunError if a call fails."""
        batch = _Batch(rows)
        self._batches.add(batch)
        self._queue.append(batch)
        self._unstarted += len(rows)
        for _ in range(min(len(rows), self._policy.capacity - self._working)):
            self._working += 1
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)
        try:
            await batch.done
        finally:
            if batch in self._batches:  # the caller abandoned it
                self._stop(None)
        into.extend(batch.answers)

    async def _work(self) -> None:
        turn = 0
        try:
            while self._queue:
                batch = self._queue[0]
                place = batch.started
                batch.started += 1
                if batch.started == len(batch.rows):
                    self._queue.popleft()
                self._unstarted -= 1
                self._changed.set()
                batch.answers[place] = await self._within_time(batch.rows[place])
                batch.answered += 1
                if batch.answered == len(batch.rows):
                    self._batches.remove(batch)
                    batch.done.set_result(None)
                turn += 1
                if not turn % _TURN:
                    await asyncio.sleep(0)
        finally:
            self._working -= 1

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.remove(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._stop(error)

    def _stop(self, error: BaseException | None) -> None:
        """Cancel all calls; waiting callers get ``error``, which is None if nobody waits any more."""
        self._stopped = True
        self._changed.set()
        self._queue.clear()
        for worker in self._workers:
            worker.cancel()
        while self._batches:
            batch = self._batches.pop()
            if error is not None and not batch.done.done():
                batch.done.set_exception(error)
                batch.done.exception()  # marks the exception as retrieved, in case nobody awaits it

    async def _within_time(self, arguments: Arguments) -> list[Any]:
        row = _Row(policy=self._policy, arguments=arguments)
        if not self._policy.timeout:
            return await self._attempts(row)
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = asyncio.timeout(self._policy.timeout / 1000)
        try:
            async with limit:
                rows = await self._attempts(row)
        except TimeoutError:
            if not limit.expired():
                raise
        if limit.expired():  # also if the function suppressed the cancellation
            elapsed = round((loop.time() - started) * 1000)
            raise timed_out(self._policy, arguments, elapsed, row.failures, row.last)
        return rows

    async def _attempts(self, row: _Row) -> list[Any]:
        attempts = 0
        while True:
            attempts += 1
            self._counters.calls += 1
            self._in_flight += 1
            self._counters.inFlightMax = max(self._counters.inFlightMax, self._in_flight)
            try:
                with Blame(lambda: str(row), passing=self._function.retry_on):
                    return await self._steps.walked(self._call(row.arguments), row)
            except self._function.retry_on as error:
                if type(error) is RunError:
                    raise
                self._counters.failures += 1
                if attempts > self._policy.retries or not retried(error, self._function.retry_on):
                    raise failed(self._policy, row.arguments, attempts, error) from error
                row.failures, row.last = attempts, error
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                raise cancelled(self._policy, row.arguments) from error
            finally:
                self._in_flight -= 1
            await asyncio.sleep(self._policy.delay / 1000)
            self._counters.retries += 1

    async def _call(self, arguments: Arguments) -> list[Any]:
        returned = self._function.eval(*arguments)
        if hasattr(returned, "__aiter__"):
            return [row async for row in returned]
        if not isawaitable(returned):
            raise RunError(
                f"{call_text(self._policy, arguments)} did not return an awaitable", hint="write async def eval(...)"
            )
        value = await returned
        if isinstance(self._function, AsyncScalarFunction):
            return [value]
        return listed(value, lambda: call_text(self._policy, arguments))
