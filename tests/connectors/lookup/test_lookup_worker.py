"""What tasks of one worker share: sources and caches by identity, and one load per key, on real threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup import worker
from hintplan.runtime.lookup.api import AsyncLookupFunction, Key, LookupContext, LookupFunction, Row, ScanFunction
from hintplan.runtime.lookup.caches.full_cache import Reloads
from hintplan.runtime.lookup.caches.schedule import ThreadScheduler
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.spec import CacheSpec
from hintplan.runtime.lookup.task import lookup_tables
from hintplan.runtime.lookup.worker import OpenLookup, shared_lookup
from hintplan.runtime.worker import shared
from hintplan.runtime.worker.clock import SystemClock
from hintplan.runtime.worker.event_loop import worker_event_loop
from tests.connectors.lookup.rates import Never, PlainCache
from tests.connectors.lookup.simulation import COLUMNS, spec

ROOT = Path(__file__).parents[3]
PARTIAL = CacheSpec(kind="PARTIAL", max_rows=100)


class Slow(LookupFunction):
    """Answers when it is let to; notes who asked for what."""

    def __init__(self) -> None:
        self.asked: list[Key] = []
        self.go = threading.Event()
        self.started = threading.Event()
        self.closed = False
        self.fail = False

    def lookup(self, key: Key) -> Iterable[Row]:
        self.asked.append(key)
        self.started.set()
        assert self.go.wait(60)
        if self.fail:
            self.fail = False
            raise ConnectionError("gone")
        return [(key[0], 7)]

    def close(self) -> None:
        self.closed = True


class SlowAsync(AsyncLookupFunction):
    def __init__(self) -> None:
        self.asked: list[Key] = []

    async def lookup(self, key: Key) -> Iterable[Row]:
        self.asked.append(key)
        return [(key[0], 7)]


def opened(source: Any, cache: CacheSpec = PARTIAL) -> OpenLookup:
    clock = SystemClock()
    return OpenLookup(spec(cache), source, clock, worker_event_loop(), ThreadScheduler(clock))


def ask(lookup: OpenLookup, keys: Sequence[int]) -> tuple[list[Any], LookupCounters]:
    counters = LookupCounters()
    table = pa.table({"row": pa.array(range(len(keys)), pa.int64()), "k": pa.array(keys, pa.int64())})
    found = [row for part in lookup_tables([table], lookup, counters) for row in part.to_pylist()]
    return [row["at"] for row in found], counters


def test_two_tasks_that_miss_one_key_at_once_load_it_once() -> None:
    source = Slow()
    lookup = opened(source)
    with ThreadPoolExecutor(2) as tasks:
        first = tasks.submit(ask, lookup, [1])
        assert source.started.wait(60)
        second = tasks.submit(ask, lookup, [1])
        source.go.set()
        results = [first.result(60), second.result(60)]
    assert source.asked == [(1,)]
    assert [values for values, _ in results] == [[7], [7]]
    assert sorted(counters.missCount for _, counters in results) == [0, 1]
    lookup.close()
    assert source.closed


def test_a_task_whose_leader_failed_loads_the_key_itself() -> None:
    source = Slow()
    source.fail = True
    lookup = opened(source)
    with ThreadPoolExecutor(2) as tasks:
        first = tasks.submit(ask, lookup, [1])
        assert source.started.wait(60)
        second = tasks.submit(ask, lookup, [1])
        source.go.set()
        with pytest.raises(RunError, match="gone"):
            first.result(60)
        assert second.result(60)[0] == [7]
    lookup.close()


def test_asynchronous_sources_run_on_the_loop_of_the_worker() -> None:
    source = SlowAsync()
    lookup = opened(source)
    with ThreadPoolExecutor(4) as tasks:
        results = list(tasks.map(lambda _: ask(lookup, range(50))[0], range(4)))
    assert results == [[7] * 50] * 4
    assert sorted(source.asked) == [(key,) for key in range(50)]
    lookup.close()


def test_a_full_cache_is_reloaded_in_the_background() -> None:
    class Scan(ScanFunction):
        loads = 0

        def scan(self, context: LookupContext) -> Iterator[pa.Table]:
            self.loads += 1
            yield pa.table({"k": [1], "at": [self.loads]})

    described = CacheSpec(kind="FULL", trigger_class="tests.connectors.lookup.rates.Never")
    allowed = replace(
        spec(described), context=replace(spec().context, allowed_modules=("tests.connectors.lookup.rates",))
    )
    clock = SystemClock()
    scheduler = ThreadScheduler(clock)
    lookup = OpenLookup(allowed, Scan(), clock, worker_event_loop(), scheduler)
    assert ask(lookup, [1, 2])[0] == [1, None]
    assert isinstance(lookup._trigger, Never)
    assert lookup._trigger.opened
    assert lookup.full is not None
    due = threading.Event()
    reloads = Reloads(lookup.full, clock, scheduler)
    reloads.call_at(clock.now(), due.set)
    assert due.wait(60)
    reloads.call_at(clock.now() + 3_600_000, due.clear)()
    reloads.trigger_reload().result(60)
    values, counters = ask(lookup, [1, 2])
    assert values == [2, None]
    assert (counters.lookups, counters.hitCount, counters.missCount) == (2, 1, 1)
    lookup.close()


def test_a_cache_of_the_users_is_asked_and_told() -> None:
    described = replace(PARTIAL, cache_class="tests.connectors.lookup.rates.PlainCache")
    allowed = replace(spec(described), context=replace(spec().context, allowed_modules=("tests",)))
    clock = SystemClock()
    source = SlowAsync()
    lookup = OpenLookup(allowed, source, clock, worker_event_loop(), ThreadScheduler(clock))
    assert [ask(lookup, [1, 2, 1])[0] for _ in range(2)] == [[7, 7, 7]] * 2
    assert len(source.asked) == 2
    assert isinstance(lookup._lookup_cache, PlainCache)
    assert lookup._lookup_cache.rows == {(1,): [(1, 7)], (2,): [(2, 7)]}
    counters = LookupCounters()
    lookup.report(counters)
    assert counters.numCachedRecords == 2
    lookup.close()


def test_lookups_are_shared_by_operator_and_settings_and_by_nothing_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_open", lambda described: opened(SlowAsync(), described.cache))
    plain = spec(PARTIAL)
    others = [
        replace(plain, run="another run"),
        replace(plain, cache=replace(PARTIAL, max_rows=5)),
        replace(plain, policy=replace(plain.policy, operator="lookup_other")),
        replace(plain, policy=replace(plain.policy, capacity=7)),
        replace(plain, context=replace(plain.context, options={"url": "elsewhere"})),
        replace(plain, context=replace(plain.context, columns=COLUMNS[:1])),
    ]
    with shared_lookup(plain) as first:
        pass
    with shared_lookup(spec(PARTIAL)) as second:
        assert second is first, "the next batch finds what the last one left"
        for other in others:
            with shared_lookup(other) as third:
                assert third is not first
    shared._close_all()


def test_what_another_run_left_is_closed_when_it_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SlowAsync()
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    monkeypatch.setattr(source, "close", close)
    monkeypatch.setattr(worker, "_open", lambda described: opened(source, described.cache))
    monkeypatch.setattr(shared, "_IDLE", 0)
    with shared_lookup(spec(PARTIAL)), shared_lookup(replace(spec(PARTIAL), run="two")):
        assert closed == [], "it is in use"
    with shared_lookup(replace(spec(PARTIAL), run="three")):
        assert closed == ["closed", "closed"]
    shared._close_all()


def test_workers_load_neither_the_sql_parser_nor_pandas() -> None:
    program = (
        "import sys, hintplan.runtime.lookup.task, hintplan.runtime.operators.lookup_retry\n"
        "print([name for name in ('sqlglot', 'pandas', 'rich', 'click', 'psycopg', 'httpx') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
