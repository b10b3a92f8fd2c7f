"""Lookups in simulated time: a clock, an event loop whose waits take no time, a scheduler, a source that is watched.

Everything runs in one thread. Time moves only when the loop has nothing to do but wait, or when something sleeps, so a
seed determines a whole schedule.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from hintplan.plans.declarations.computations import LookupMode
from hintplan.plans.declarations.tables import Column
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row
from hintplan.runtime.lookup.join import LookupRows
from hintplan.runtime.lookup.request import FetchPolicy
from hintplan.runtime.lookup.source import LookupSource
from hintplan.runtime.lookup.spec import CacheSpec, LookupSpec
from hintplan.runtime.lookup.worker import OpenLookup
from hintplan.runtime.worker.steps import Steps

COLUMNS = (Column(name="k", type="BIGINT"), Column(name="at", type="BIGINT"))
FOUND = pa.schema([("k", pa.int64()), ("at", pa.int64())])
ROWS = LookupRows(
    keys=("k",),
    pre_filter=None,
    fetched=FOUND,
    padded=True,
    conditions=(),
    output=pa.schema([("row", pa.int64()), ("k", pa.int64()), ("at", pa.int64())]),
    origins=(("left", "row"), ("left", "k"), ("right", "at")),
)


class VirtualClock:
    """Milliseconds that pass when somebody waits."""

    def __init__(self, start: float = 1_000_000) -> None:
        self.time = start

    def now(self) -> int:
        return round(self.time)

    def elapsed(self) -> int:
        return round(self.time)

    def sleep(self, milliseconds: int) -> None:
        self.time += milliseconds


class _Selector:
    """A selector that never waits: what it would wait for is added to the clock."""

    def __init__(self, inner: Any, clock: VirtualClock) -> None:
        self._inner = inner
        self._clock = clock

    def select(self, timeout: float | None = None) -> Any:
        ready = self._inner.select(0)
        if not ready:
            assert timeout is not None, "everything waits and nothing will ever happen"
            self._clock.time += timeout * 1000
        return ready

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock_of_test = clock
        self._selector = _Selector(self._selector, clock)  # type: ignore[has-type]

    def time(self) -> float:
        return self._clock_of_test.time / 1000


class VirtualEventLoop:
    """An event loop that runs while somebody waits."""

    def __init__(self, clock: VirtualClock) -> None:
        self.steps = Steps(clock)
        self.loop = VirtualLoop(clock)
        self.loop.set_task_factory(self.steps.task)

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def wait(self, futures: Sequence[Future[Any]]) -> None:
        done = asyncio.Event()
        for future in futures:
            future.add_done_callback(lambda _: self.loop.call_soon_threadsafe(done.set))
        self.loop.run_until_complete(done.wait())

    def run_for(self, milliseconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(milliseconds / 1000))

    def close(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run_for(0)
        self.loop.close()


class VirtualScheduler:
    """Actions that fall due when the test moves the clock; what may take long is run at once."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def call_at(self, time: int, action: Callable[[], None]) -> Callable[[], None]:
        entry = (time, next(self._order), action)
        heapq.heappush(self._due, entry)
        return lambda: self._due.remove(entry) if entry in self._due else None

    def call_after(self, milliseconds: int, action: Callable[[], None]) -> Callable[[], None]:
        return self.call_at(self._clock.now() + milliseconds, action)

    def run(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        try:
            future.set_result(work())
        except ConnectionError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        self._due.clear()

    def advance(self, milliseconds: int) -> None:
        """Let time pass, calling what falls due at its time."""
        end = self._clock.now() + milliseconds
        while self._due and self._due[0][0] <= end:
            time, _, action = heapq.heappop(self._due)
            self._clock.time = max(self._clock.time, time)
            action()
        self._clock.time = max(self._clock.time, end)


@dataclass(slots=True)
class Call:
    """One call for ``keys``: when it started and ended, and how: answered, failed or cancelled."""

    keys: tuple[int, ...]
    start: float
    end: float = -1.0
    outcome: str = "running"
    found: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class World:
    """What is in the simulated source, and how it behaves. A row says when it was read, as its ``at``.

    ``appears`` is the time from which a key has a row, never if it is not there. ``latency`` and ``fails`` decide each
    call.
    """

    clock: VirtualClock
    random: Random
    appears: dict[int, float] = field(default_factory=dict)
    latency: Callable[[Random], float] = lambda random: random.expovariate(1 / 20)
    fails: Callable[[Random], bool] = lambda random: False
    calls: list[Call] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    def begin(self, keys: Sequence[Key]) -> Call:
        call = Call(keys=tuple(key[0] for key in keys), start=self.clock.time)
        self.calls.append(call)
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        return call

    def answer(self, call: Call) -> list[list[Row]]:
        if self.fails(self.random):
            call.outcome = "failed"
            raise ConnectionError("the source is away")
        call.outcome = "answered"
        call.found = tuple(key for key in call.keys if self.appears.get(key, float("inf")) <= self.clock.time)
        return [[(key, self.clock.now())] if key in call.found else [] for key in call.keys]

    def end(self, call: Call) -> None:
        call.end = self.clock.time
        self.running -= 1
        if call.outcome == "running":
            call.outcome = "cancelled"

    def calls_for(self, key: int) -> list[Call]:
        return [call for call in self.calls if key in call.keys]


class AsyncSource(AsyncLookupFunction):
    retry_on = (ConnectionError,)

    def __init__(self, world: World) -> None:
        self.world = world

    async def lookup(self, key: Key) -> Iterable[Row]:
        return (await self.lookup_many([key]))[0]

    async def lookup_many(self, keys: Sequence[Key]) -> Sequence[Iterable[Row]]:
        call = self.world.begin(keys)
        try:
            await asyncio.sleep(self.world.latency(self.world.random) / 1000)
            return self.world.answer(call)
        finally:
            self.world.end(call)


class BulkAsyncSource(AsyncSource):
    bulk = True
    bulk_size = 3


class SyncSource(LookupFunction):
    retry_on = (ConnectionError,)

    def __init__(self, world: World) -> None:
        self.world = world

    def lookup(self, key: Key) -> Iterable[Row]:
        return self.lookup_many([key])[0]

    def lookup_many(self, keys: Sequence[Key]) -> Sequence[Iterable[Row]]:
        call = self.world.begin(keys)
        try:
            self.world.clock.time += self.world.latency(self.world.random)
            return self.world.answer(call)
        finally:
            self.world.end(call)


class BulkSyncSource(SyncSource):
    bulk = True
    bulk_size = 3


def _never_opened(mode: LookupMode, context: LookupContext) -> Any:
    raise AssertionError("what is simulated is opened by the test")


def spec(cache: CacheSpec | None = None, **policy: Any) -> LookupSpec:
    settings = {
        "capacity": 3, "timeout": 0, "ordered": True, "max_attempts": 0, "delay": 0, "retries": 0, **policy
    }  # fmt: skip
    return LookupSpec(
        run="test",
        source=LookupSource(connector="simulated", modes=("sync",), open=_never_opened),
        mode="sync",
        context=LookupContext(table="rates", options={}, keys=COLUMNS[:1], columns=COLUMNS),
        policy=FetchPolicy(operator="lookup_rates", table="rates", **settings),
        cache=cache or CacheSpec(kind="NONE"),
        rows=ROWS,
    )


def opened(described: LookupSpec, source: Any, clock: VirtualClock) -> OpenLookup:
    return OpenLookup(described, source, clock, VirtualEventLoop(clock), VirtualScheduler(clock))
