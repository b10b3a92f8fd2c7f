"""Fetch keys from an asynchronous source: up to ``capacity`` calls of a task at once, across all its Arrow batches.

A call occupies its slot until its key has a final answer, including retries and the waits between them, as in Flink.
The timeout covers this whole time. Everything runs on one event loop and takes the time from it alone, so a loop with a
simulated clock replays any schedule. A call that blocks the loop for longer than the timeout fails with an error that
names its keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, Row
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.policy import Answers, FetchPolicy, answers, backoff, chunks, failed, looking_up, timed_out
from hintplan.runtime.worker.clock import Clock
from hintplan.runtime.worker.exceptions import retried
from hintplan.runtime.worker.steps import Steps


@dataclass(slots=True, kw_only=True)
class _Tries:
    """The calls for some keys, and the last failure among them."""

    policy: FetchPolicy
    keys: list[Key]
    failures: int = 0
    last: Exception | None = None

    @property
    def limit(self) -> int:
        return self.policy.timeout

    def __str__(self) -> str:
        return looking_up(self.policy, self.keys)


class AsyncFetcher:
    """All calls of one task to an asynchronous source."""

    def __init__(
        self,
        function: AsyncLookupFunction,
        policy: FetchPolicy,
        clock: Clock,
        counters: LookupCounters,
        steps: Steps,
    ) -> None:
        self._function = function
        self._policy = policy
        self._steps = steps
        self._clock = clock
        self._counters = counters
        self._places = asyncio.Semaphore(policy.capacity)
        self._in_flight = 0
        self._unanswered = 0
        self._changed = asyncio.Event()

    async def room(self) -> None:
        """Wait until fewer than ``capacity`` keys lack an answer, or a fetch has failed."""
        while self._unanswered >= self._policy.capacity:
            self._changed.clear()
            await self._changed.wait()

    async def fetch(self, keys: Sequence[Key]) -> Answers:
        """Fetch the final answer for each of the distinct ``keys``; RunError if the source fails or is too slow."""
        self._unanswered += len(keys)
        fetched = Answers()
        remaining = chunks(self._function, keys)
        failure: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._policy.capacity, len(keys))):
                    group.create_task(self._work(remaining, fetched))
        except BaseExceptionGroup as failures:
            failure = failures.exceptions[0]
        finally:
            self._answered(len(keys) - len(fetched.rows))
        if failure is not None:
            raise failure
        return fetched

    async def _work(self, remaining: Iterator[list[Key]], found: Answers) -> None:
        for chunk in remaining:
            async with self._places:
                found.update(await self._within_time(chunk))
            self._answered(len(chunk))

    def _answered(self, number: int) -> None:
        self._unanswered -= number
        self._changed.set()

    async def _within_time(self, keys: list[Key]) -> Answers:
        loop = asyncio.get_running_loop()
        started = loop.time()
        tries = _Tries(policy=self._policy, keys=keys)
        limit = asyncio.timeout(self._policy.timeout / 1000 if self._policy.timeout else None)
        try:
            async with limit:
                return await self._attempts(tries)
        except TimeoutError as error:
            if not limit.expired():
                raise
            self._counters.timeouts += 1
            elapsed = round((loop.time() - started) * 1000)
            raise timed_out(self._policy, keys, elapsed, tries.failures, tries.last) from error

    async def _attempts(self, tries: _Tries) -> Answers:
        fetched = Answers()
        pending = tries.keys
        for attempt in range(1 + self._policy.max_attempts):
            if attempt:
                await asyncio.sleep(self._policy.delay / 1000)
                self._counters.retries += len(pending)
            rows = await self._call(pending, tries)
            fetched.add(pending, rows, self._clock.elapsed())
            pending = [key for key in pending if not fetched.rows[key]]
            if not pending:
                break
        return fetched

    async def _call(self, keys: list[Key], tries: _Tries) -> list[list[Row]]:
        function, loop, failures = self._function, asyncio.get_running_loop(), 0
        while True:
            started = loop.time()
            self._in_flight += 1
            self._counters.inFlightMax = max(self._counters.inFlightMax, self._in_flight)
            try:
                rows = await self._steps.walked(self._asked(keys), tries)
            except function.retry_on as error:
                if type(error) is RunError:
                    raise
                self._counters.numLoadFailures += 1
                failures += 1
                if failures > self._policy.max_failures or not retried(error, function.retry_on):
                    raise failed(self._policy, keys, failures, error) from error
                tries.failures, tries.last = failures, error
            except (KeyboardInterrupt, SystemExit) as error:  # would end the event loop
                raise failed(self._policy, keys, failures + 1, error) from error
            else:
                self._counters.latestLoadTime = round((loop.time() - started) * 1000)
                return answers(self._policy, keys, rows)
            finally:
                self._in_flight -= 1
            await asyncio.sleep(backoff(failures - 1) / 1000)

    async def _asked(self, keys: list[Key]) -> Sequence[Iterable[Row]]:
        function = self._function
        return await function.lookup_many(keys) if function.bulk else [await function.lookup(keys[0])]
