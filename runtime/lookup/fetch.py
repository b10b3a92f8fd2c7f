"""Fetch keys from a source: in bulk if it can, else key by key. A miss is repeated if the plan has a retry.

With a synchronous source the caller waits, and all missed keys wait for their retries together. So a batch is delayed
as long as one row would be, no matter how many rows missed. With an asynchronous source, a request occupies its slot
until its keys have their final answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupFunction
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.request import Answers, FetchPolicy, KeyRequest, answers, key_requests
from hintplan.runtime.requests.async_requests import AsyncRequests
from hintplan.runtime.requests.request import answered
from hintplan.runtime.worker.clock import Clock
from hintplan.runtime.worker.steps import Steps


def fetch_sync(
    function: LookupFunction, keys: Sequence[Key], policy: FetchPolicy, clock: Clock, counters: LookupCounters
) -> Answers:
    """Fetch the final answer for each of the distinct ``keys``; RunError with the cause if the source keeps failing."""

    def call(request: KeyRequest) -> Answers:
        started, keys = clock.elapsed(), request.keys
        rows = function.lookup_many(keys) if function.bulk else [function.lookup(keys[0])]
        valid = answers(policy, keys, rows, clock)
        counters.latestLoadTime = clock.elapsed() - started
        return valid

    fetched = Answers()
    missing = list(keys)
    for attempt in range(1 + policy.max_attempts):
        if not missing:
            break
        if attempt:
            clock.sleep(policy.delay)
            counters.retries += len(missing)
        for request in key_requests(policy, function, missing):
            fetched.update(answered(request, call, retry_on=function.retry_on, clock=clock, counters=counters))
        missing = fetched.misses(missing)
    return fetched


class AsyncFetcher(AsyncRequests[KeyRequest, Answers]):
    """All requests of one task to an asynchronous source."""

    _policy: FetchPolicy
    _counters: LookupCounters

    def __init__(
        self,
        function: AsyncLookupFunction,
        policy: FetchPolicy,
        clock: Clock,
        counters: LookupCounters,
        steps: Steps,
    ) -> None:
        super().__init__(policy, counters, steps, retry_on=function.retry_on, most=policy.capacity)
        self._function = function
        self._clock = clock

    async def fetch(self, keys: Sequence[Key]) -> Answers:
        """Fetch the final answer for each of the distinct ``keys``; RunError if the source fails or is too slow."""
        fetched = Answers()
        for part in await self.answers(list(key_requests(self._policy, self._function, keys))):
            fetched.update(part)
        return fetched

    async def answer(self, request: KeyRequest) -> Answers:
        fetched = await super().answer(request)
        for _ in range(self._policy.max_attempts):
            request.keys = fetched.misses(request.keys)
            if not request.keys:
                break
            await asyncio.sleep(self._policy.delay / 1000)
            self._counters.retries += len(request.keys)
            fetched.update(await super().answer(request))
        return fetched

    async def call(self, request: KeyRequest) -> Answers:
        function, loop, keys = self._function, asyncio.get_running_loop(), request.keys
        started = loop.time()
        rows = await function.lookup_many(keys) if function.bulk else [await function.lookup(keys[0])]
        valid = answers(self._policy, keys, rows, self._clock)
        self._counters.latestLoadTime = round((loop.time() - started) * 1000)
        return valid
