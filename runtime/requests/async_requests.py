"""Asynchronous requests: up to ``capacity`` of a task in flight at once, across all its Arrow batches.

A request occupies its slot until it has an answer, including retries and the pauses between them, as in Flink. The time
limit covers this whole time. Requests start in their order, and the next batch is read before slots become idle.

Everything runs on one event loop and takes the time from it alone, so a loop with a simulated clock replays any
schedule. A call that blocks the loop for longer than the time limit fails with an error that names it
(:mod:`hintplan.runtime.worker.steps`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Generic

from hintplan.plans.errors import RunError
from hintplan.runtime.requests.metrics import RequestCounters
from hintplan.runtime.requests.request import Answer, AnyRequest, RequestPolicy
from hintplan.runtime.worker.steps import Steps

_TURN = 64
"""The requests that may be answered without a wait before other coroutines get a turn."""


class _Batch(Generic[AnyRequest, Answer]):
    def __init__(self, requests: Sequence[AnyRequest]) -> None:
        self.requests = requests
        self.answers: dict[int, Answer] = {}
        self.started = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class AsyncRequests(ABC, Generic[AnyRequest, Answer]):
    """All requests of one task. After a failure, or after the caller abandons a batch, no more calls are made.

    A call that ends with an exception in ``retry_on`` is repeated by the rules of ``policy``. ``most`` bounds the rows
    or keys without an answer while the task reads on.
    """

    def __init__(
        self,
        policy: RequestPolicy,
        counters: RequestCounters,
        steps: Steps,
        *,
        retry_on: tuple[type[Exception], ...],
        most: int,
    ) -> None:
        self._policy = policy
        self._counters = counters
        self._steps = steps
        self._retry_on = retry_on
        self._most = most
        self._batches: set[_Batch[AnyRequest, Answer]] = set()
        self._queue: deque[_Batch[AnyRequest, Answer]] = deque()
        self._unanswered = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._working = 0
        self._in_flight = 0
        self._stopped = False
        self._changed = asyncio.Event()

    @abstractmethod
    async def call(self, request: AnyRequest) -> Answer:
        """Call the user's code once for ``request``."""

    async def room(self) -> None:
        """Wait until fewer than ``most`` rows or keys lack an answer, or a call has failed."""
        while self._unanswered >= self._most and not self._stopped:
            self._changed.clear()
            await self._changed.wait()

    async def answers(self, requests: Sequence[AnyRequest]) -> list[Answer]:
        """Return the answers to ``requests``, in their order; RunError if one of them fails or takes too long."""
        if not requests:
            return []
        batch: _Batch[AnyRequest, Answer] = _Batch(requests)
        self._batches.add(batch)
        self._queue.append(batch)
        self._unanswered += sum(request.size for request in requests)
        for _ in range(min(len(requests), self._policy.capacity - self._working)):
            self._working += 1
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)
        try:
            await batch.done
        finally:
            if batch in self._batches:  # the caller abandoned it
                self._stop(None)
        return [batch.answers[place] for place in range(len(requests))]

    async def answer(self, request: AnyRequest) -> Answer:
        """Return the answer to one ``request`` that has a slot, repeated after failures."""
        failures = 0
        while True:
            self._counters.calls += 1
            self._in_flight += 1
            self._counters.inFlightMax = max(self._counters.inFlightMax, self._in_flight)
            try:
                return await self._steps.walked(self.call(request), request)
            except self._retry_on as error:
                if type(error) is RunError:
                    raise
                self._counters.failures += 1
                failures += 1
                pause = request.pause(failures, error, self._retry_on)
            except (KeyboardInterrupt, SystemExit) as error:  # would end the event loop
                raise request.failed(failures + 1, error) from error
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                raise request.cancelled() from error
            finally:
                self._in_flight -= 1
            await asyncio.sleep(pause / 1000)
            self._counters.repeats += 1

    async def _work(self) -> None:
        turn = 0
        try:
            while self._queue:
                batch = self._queue[0]
                place = batch.started
                batch.started += 1
                if batch.started == len(batch.requests):
                    self._queue.popleft()
                request = batch.requests[place]
                batch.answers[place] = await self._within_time(request)
                self._unanswered -= request.size
                self._changed.set()
                if len(batch.answers) == len(batch.requests):
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
        """Cancel all calls; waiting callers get ``error``, which is None if nobody waits."""
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

    async def _within_time(self, request: AnyRequest) -> Answer:
        if not self._policy.timeout:
            return await self.answer(request)
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = asyncio.timeout(self._policy.timeout / 1000)
        try:
            async with limit:
                answer = await self.answer(request)
        except TimeoutError:
            if not limit.expired():
                raise
        if limit.expired():  # also if the user's code suppressed the cancellation
            self._counters.timeouts += 1
            raise request.timed_out(round((loop.time() - started) * 1000))
        return answer
