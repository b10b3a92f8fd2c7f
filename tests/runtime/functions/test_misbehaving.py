"""Functions and lookups that block, exit, or fail in ways that no further attempt mends: named, and the loop continues.

What blocks is simulated by a clock that continues within a step, or waits for an event of the test on a real loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.errors import RunError
from hintplan.runtime.functions import AsyncTableFunction
from hintplan.runtime.functions.metrics import FunctionCounters
from hintplan.runtime.functions.task import function_tables
from hintplan.runtime.functions.worker import OpenFunction
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupFunction, Row
from hintplan.runtime.lookup.caches.schedule import ThreadScheduler
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.task import lookup_tables
from hintplan.runtime.lookup.worker import OpenLookup
from hintplan.runtime.worker.event_loop import LoopThread, finish
from hintplan.runtime.worker.exceptions import NEVER_HEAL
from tests.connectors.lookup.simulation import VirtualClock, VirtualEventLoop, opened
from tests.connectors.lookup.simulation import spec as lookup_spec
from tests.runtime.functions.simulation import Script, function_spec, schedule, simulate

DEADLINE_SECONDS = 60
DEFAULTS = {"capacity": 10, "timeout": 30_000, "retries": 3, "delay": 10_000}


def function(body: Callable[[int], Any]) -> AsyncTableFunction:
    kind = type(
        "Some", (AsyncTableFunction,), {"arguments": ("BIGINT",), "result": "BIGINT", "eval": staticmethod(body)}
    )
    return kind()  # type: ignore[no-any-return]


def source(body: Callable[[Key], Any]) -> AsyncLookupFunction:
    kind = type("Source", (AsyncLookupFunction,), {"lookup": staticmethod(body)})
    return kind()  # type: ignore[no-any-return]


def call(called: AsyncTableFunction, event_loop: Any, *ids: int, **policy: Any) -> list[int]:
    opened_function = OpenFunction(function_spec(called, **policy), called, event_loop)
    tables = function_tables([pa.table({"id": pa.array(ids, pa.int64())})], opened_function, FunctionCounters())
    return [row["n"] for table in tables for row in table.to_pylist()]


def look_up(lookup: OpenLookup, *ids: int) -> list[int]:
    table = pa.table({"row": pa.array(ids, pa.int64()), "k": pa.array(ids, pa.int64())})
    return [row["at"] for part in lookup_tables([table], lookup, LookupCounters()) for row in part.to_pylist()]


# --- causes of failures -----------------------------------------------------------------------------------------------


def test_a_call_that_always_fails_times_out_with_its_last_failure_at_the_default_settings() -> None:
    async def away(number: int) -> list[int]:
        await asyncio.sleep(0.005)
        raise ConnectionError("no route to https://me:secret@example.org/ " + "x" * 5000)

    with pytest.raises(RunError) as caught:
        call(function(away), VirtualEventLoop(VirtualClock()), 1, **DEFAULTS)
    # Attempts begin at 0, 10,005 and 20,010 ms; the fourth would at 30,015.
    assert str(caught.value).startswith(
        "operator correlate_f: f(1) timed out after 30000 ms, 30000 ms are allowed; attempt 3 of 4 failed: "
        "ConnectionError: no route to https://***@example.org/ xxx"
    )
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_lookup_that_always_fails_times_out_with_its_last_failure() -> None:
    async def away(key: Key) -> Iterable[Row]:
        await asyncio.sleep(0.005)
        raise ConnectionError("nobody answers")

    lookup = opened(lookup_spec(timeout=500, retries=9), source(away), VirtualClock())
    # Tries begin at 0, 105 and 310 ms, after pauses of 100, 200 and 400 ms.
    message = r"key \(1\) timed out after 500 ms, 500 ms are allowed; attempt 3 of 10 failed: ConnectionError: nobody"
    with pytest.raises(RunError, match=message):
        look_up(lookup, 1)


@pytest.mark.parametrize("kind", NEVER_HEAL)
def test_what_says_that_code_is_wrong_is_not_tried_again(kind: type[Exception]) -> None:
    calls: list[Any] = []

    async def wrong(argument: Any) -> Any:
        calls.append(argument)
        raise kind("wrong")

    class Sync(LookupFunction):
        def lookup(self, key: Key) -> Iterable[Row]:
            calls.append(key)
            raise kind("wrong")

    with pytest.raises(RunError, match=rf"f\(1\) failed: {kind.__name__}: wrong\n.*is retried only if retry_on"):
        call(function(wrong), VirtualEventLoop(VirtualClock()), 1, **DEFAULTS)
    for asked in (source(wrong), Sync()):
        with pytest.raises(RunError, match=rf"key \(1\) failed once: {kind.__name__}: wrong\n.*retry_on of the class"):
            look_up(opened(lookup_spec(retries=3), asked, VirtualClock()), 1)
    assert calls == [1, (1,), (1,)]


def test_what_retry_on_names_itself_is_tried_again() -> None:
    calls: list[int] = []

    async def wrong_once(number: int) -> list[int]:
        calls.append(number)
        if len(calls) < 3:
            raise TypeError("half a page")
        return [number]

    called = function(wrong_once)
    type(called).retry_on = (ConnectionError, TypeError)
    assert call(called, VirtualEventLoop(VirtualClock()), 7, **DEFAULTS) == [7]
    assert calls == [7, 7, 7]


# --- blocking ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    others=st.lists(st.integers(0, 5).map(lambda tens: 10 * tens), max_size=12),
    place=st.integers(0, 12),
    capacity=st.integers(1, 4),
    blocked=st.integers(1001, 5000),
)
def test_whoever_blocks_the_loop_is_named_and_nobody_else(
    others: list[int], place: int, capacity: int, blocked: int
) -> None:
    scripts = [Script(delays=(delay,)) for delay in others]
    place = min(place, len(scripts))
    scripts.insert(place, Script(delays=(0,), blocks=blocked))
    outcome = simulate(scripts, [5], capacity=capacity, timeout=1000)
    message = f"operator correlate_f: f({place}) blocked the event loop for {blocked} ms, 1000 ms are allowed"
    assert (outcome.failure or "").startswith(message)
    starts = schedule([script.delays[0] for script in scripts], capacity)
    assert abs(outcome.elapsed - (starts[place] + blocked)) < 0.01


def test_blocking_for_less_than_the_timeout_is_slow_and_no_failure() -> None:
    scripts = [Script(delays=(10,), blocks=300)] * 5
    outcome = simulate(scripts, [5], capacity=1, timeout=1000)
    assert (outcome.failure, len(outcome.rows), outcome.elapsed) == (None, 5, 5 * 310)


def test_what_blocks_after_waiting_is_cancelled_and_cleans_up() -> None:
    clock, done = VirtualClock(), []

    async def late(number: int) -> list[int]:
        await asyncio.sleep(0.01)
        clock.time += 5000
        try:
            await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0)
            done.append("cleaned up")
        return [number]

    with pytest.raises(RunError, match=r"f\(1\) blocked the event loop for 5000 ms, 1000 ms are allowed"):
        call(function(late), VirtualEventLoop(clock), 1, timeout=1000)
    assert done == ["cleaned up"]


def test_a_lookup_that_blocks_is_named() -> None:
    clock = VirtualClock()

    async def blocks(key: Key) -> Iterable[Row]:
        if key == (2,):
            clock.time += 5000
        return [(key[0], 7)]

    lookup = opened(lookup_spec(timeout=1000), source(blocks), clock)
    message = r"operator lookup_rates .*: looking up key \(2\) blocked the event loop for 5000 ms, 1000 ms are allowed"
    with pytest.raises(RunError, match=message):
        look_up(lookup, 1, 2, 3)


class Held:
    """User code that has the loop until the test lets it go; the clock jumps as soon as it has it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.go = threading.Event()

    def hold(self) -> None:
        self.clock.time += 5000
        assert self.go.wait(DEADLINE_SECONDS)


@pytest.fixture
def held() -> Iterable[Held]:
    waiting = Held(VirtualClock())
    yield waiting
    waiting.go.set()


def test_a_call_that_never_returns_ends_the_task_with_its_name_and_the_line_at_which_it_hangs(held: Held) -> None:
    event_loop = LoopThread(held.clock)

    async def hangs(number: int) -> list[int]:
        if number == 2:
            held.hold()
        return [number]

    line = hangs.__code__.co_firstlineno + 2
    with pytest.raises(RunError) as caught:
        call(function(hangs), event_loop, 1, 2, 3, capacity=2, timeout=1000)
    text = str(caught.value)
    assert text.startswith(
        "operator correlate_f: f(2) has blocked the event loop for 5000 ms, 1000 ms are allowed, "
        f"at {__file__}:{line} in hangs, which is at "
    )
    assert "pass blocking calls to asyncio.to_thread" in text
    held.go.set()
    event_loop.submit(asyncio.sleep(0)).result(DEADLINE_SECONDS)
    assert call(function(hangs), event_loop, 1, 3, capacity=2, timeout=1000) == [1, 3], "the loop continues"


def test_a_task_that_a_call_starts_belongs_to_the_call(held: Held) -> None:
    async def helper() -> None:
        held.hold()

    async def hangs(number: int) -> list[int]:
        await asyncio.gather(helper())
        return [number]

    with pytest.raises(RunError, match=r"f\(1\) has blocked the event loop for 5000 ms.* in helper"):
        call(function(hangs), LoopThread(held.clock), 1, timeout=1000)


def test_a_lookup_that_never_returns_ends_the_task(held: Held) -> None:
    async def hangs(key: Key) -> Iterable[Row]:
        held.hold()
        return []

    clock = held.clock
    lookup = OpenLookup(lookup_spec(timeout=1000), source(hangs), clock, LoopThread(clock), ThreadScheduler(clock))
    with pytest.raises(RunError, match=r"looking up key \(1\) has blocked the event loop for 5000 ms.* in hangs"):
        look_up(lookup, 1)


def test_without_a_timeout_a_call_may_have_the_loop_for_as_long_as_it_likes(held: Held) -> None:
    event_loop = LoopThread(held.clock)

    async def hangs(number: int) -> list[int]:
        held.hold()
        return [number]

    with ThreadPoolExecutor(1) as task:
        answer = task.submit(call, function(hangs), event_loop, 1)
        held.go.set()
        assert answer.result(DEADLINE_SECONDS) == [1]


# --- exits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_exit_fails_its_call_and_the_loop_survives(kind: type[BaseException]) -> None:
    event_loop = LoopThread(VirtualClock())

    async def leaves(number: int) -> list[int]:
        if number == 2:
            raise kind("enough")
        return [number]

    async def task_leaves(number: int) -> list[int]:
        (found,) = await asyncio.gather(leaves(number))
        return found

    async def lookup_leaves(key: Key) -> Iterable[Row]:
        raise kind("enough")

    class SyncLeaves(LookupFunction):
        def lookup(self, key: Key) -> Iterable[Row]:
            raise kind("enough")

    async def undriven() -> int:
        asyncio.get_running_loop().call_soon(sys.exit)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return 5

    clock = VirtualClock()
    with pytest.raises(RunError, match=rf"f\(2\) failed: {kind.__name__}: enough"):
        call(function(leaves), event_loop, 1, 2, capacity=1, timeout=1000)
    with pytest.raises(RunError, match=rf"f\(2\) failed in a task that it has started: {kind.__name__}: enough"):
        call(function(task_leaves), event_loop, 1, 2, capacity=1, timeout=1000)
    for asked in (source(lookup_leaves), SyncLeaves()):
        lookup = OpenLookup(lookup_spec(retries=3), asked, clock, event_loop, ThreadScheduler(clock))
        with pytest.raises(RunError, match=rf"looking up key \(1\) failed once: {kind.__name__}: enough"):
            look_up(lookup, 1)
    assert finish(event_loop, undriven()) == 5
    assert call(function(leaves), event_loop, 1, 3, capacity=1, timeout=1000) == [1, 3]


# --- one rule for lookups and calls -----------------------------------------------------------------------------------


def test_a_lookup_that_cancels_itself_fails_and_is_no_miss() -> None:
    async def gives_up(key: Key) -> Iterable[Row]:
        raise asyncio.CancelledError

    lookup = opened(lookup_spec(), source(gives_up), VirtualClock())
    with pytest.raises(RunError, match=r"looking up key \(1\) was cancelled, but not by the engine"):
        look_up(lookup, 1)


def test_a_lookup_that_ignores_its_cancellation_has_timed_out() -> None:
    async def late(key: Key) -> Iterable[Row]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return [(key[0], 7)]
        return []

    lookup = opened(lookup_spec(timeout=500), source(late), VirtualClock())
    with pytest.raises(RunError, match=r"looking up key \(1\) timed out after 500 ms, 500 ms are allowed"):
        look_up(lookup, 1)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_lookup_that_yields_rows_and_then_fails_is_repeated(is_async: bool) -> None:
    failures = iter([ConnectionError("half a page"), None])

    def rows(key: Key) -> Iterable[Row]:
        yield (key[0], 7)
        if (failure := next(failures)) is not None:
            raise failure

    async def async_rows(key: Key) -> Iterable[Row]:
        return rows(key)

    class Sync(LookupFunction):
        def lookup(self, key: Key) -> Iterable[Row]:
            return rows(key)

    lookup = opened(lookup_spec(retries=1), source(async_rows) if is_async else Sync(), VirtualClock())
    assert look_up(lookup, 1) == [7]
