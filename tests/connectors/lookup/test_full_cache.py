"""Full caches and the triggers that reload them, in virtual time."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Literal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import CacheReloadTrigger, Key, Row
from hintplan.runtime.lookup.caches.full_cache import FullCache, Reloads
from hintplan.runtime.lookup.caches.schedule import ThreadScheduler
from hintplan.runtime.lookup.caches.triggers import PeriodicReloadTrigger, TimedReloadTrigger, reload_time
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.request import Answers, FetchPolicy, answers
from hintplan.runtime.lookup.rows import python_rows
from hintplan.runtime.worker.clock import SystemClock
from tests.connectors.lookup.simulation import VirtualClock, VirtualScheduler
from tests.sample import sampled

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string())])
POLICY = FetchPolicy(
    operator="lookup_t",
    table="t",
    capacity=1,
    timeout=0,
    ordered=True,
    max_attempts=0,
    delay=0,
    retries=0,
)
UTC = ZoneInfo("UTC")


class Table:
    """A table that can be changed, can fail, and takes its time to be read."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.rows: list[Row] = []
        self.failures = 0
        self.takes = 0
        self.loads: list[int] = []

    def load(self) -> Iterator[pa.Table]:
        self.loads.append(self.clock.now())
        self.clock.time += self.takes
        half = len(self.rows) // 2
        for index, part in enumerate((self.rows[:half], self.rows[half:])):
            if index and self.failures:
                self.failures -= 1
                raise ConnectionError("the connection was lost half way")
            yield pa.table([[row[c] for row in part] for c in (0, 1)], schema=SCHEMA)


def caching(table: Table, *, retries: int = 0) -> FullCache:
    return FullCache(
        table.load, SCHEMA, ["k"], table.clock, retry_on=(ConnectionError,), policy=replace(POLICY, retries=retries)
    )


def found(cache: FullCache, key: Key) -> list[Row]:
    rows = cache.probe([key])
    return python_rows(rows.table.slice(int(rows.start[0]), int(rows.count[0])))


def test_all_rows_of_a_key_are_found_null_keys_are_not_kept_and_what_is_not_there_does_not_exist() -> None:
    table = Table(VirtualClock())
    table.rows = [(1, "a"), (2, "b"), (None, "c"), (1, "d"), (1, None)]
    cache = caching(table)
    cache.open()
    assert found(cache, (1,)) == [(1, "a"), (1, "d"), (1, None)]
    assert found(cache, (2,)) == [(2, "b")]
    assert found(cache, (3,)) == []
    counters = LookupCounters()
    cache.report(counters)
    assert (counters.loadCount, counters.numCachedRecords, counters.failures) == (1, 2, 0)


def test_an_empty_table_is_a_cache_that_knows_nothing() -> None:
    cache = caching(Table(VirtualClock()))
    cache.open()
    assert found(cache, (1,)) == []


def test_a_failed_first_load_is_tried_again_and_then_fails_with_its_cause() -> None:
    table = Table(VirtualClock())
    table.rows, table.failures = [(1, "a")], 2
    caching(table, retries=2).open()
    assert len(table.loads) == 3
    table.failures = 3
    with pytest.raises(RunError, match="failed 3 times: ConnectionError: the connection was lost half way"):
        caching(table, retries=2).open()


def test_a_failed_reload_keeps_the_old_contents_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(VirtualClock())
    table.rows = [(1, "old"), (2, "old")]
    cache = caching(table)
    cache.open()
    table.rows, table.failures = [(1, "new"), (3, "new")], 1
    with pytest.raises(ConnectionError):
        cache.reload()
    assert found(cache, (1,)) == [(1, "old")]
    assert found(cache, (3,)) == []
    assert f"{POLICY.where}: reloading the full cache failed, its old contents stay" in caplog.text
    cache.reload()
    assert found(cache, (1,)) == [(1, "new")]
    assert found(cache, (2,)) == []
    counters = LookupCounters()
    cache.report(counters)
    assert (counters.loadCount, counters.failures) == (3, 1)


def test_a_lookup_during_a_reload_sees_the_old_contents_as_a_whole() -> None:
    table = Table(VirtualClock())
    table.rows = [(1, "old"), (2, "old")]
    cache = caching(table)
    cache.open()
    before = cache.probe([(1,), (2,)])
    table.rows = [(2, "new"), (1, "new")]
    seen: list[list[Row]] = []

    def load() -> Iterator[pa.Table]:
        for part in Table.load(table):
            seen.append(found(cache, (1,)))
            yield part

    table.load = load  # type: ignore[method-assign]
    reloading = caching(table)
    reloading.open()
    cache.reload()
    assert all(rows == [(1, "old")] for rows in seen)
    assert python_rows(before.table) == [(1, "old"), (2, "old")], "what was found stays what it was"
    assert found(cache, (1,)) == [(1, "new")]


def test_columns_that_a_scan_lacks_are_named() -> None:
    cache = FullCache(lambda: [pa.table({"k": [1]})], SCHEMA, ["k"], VirtualClock(), retry_on=(), policy=POLICY)
    with pytest.raises(RunError, match=re.escape(f"{POLICY.where}: the scan returned no column name")):
        cache.open()


@pytest.mark.parametrize("seed", sampled(range(200), keep=50))
def test_whatever_fails_a_cache_shows_the_last_load_that_succeeded(seed: int) -> None:
    random = Random(seed)
    clock = VirtualClock()
    table, scheduler = Table(clock), VirtualScheduler(clock)
    table.rows = [(1, "0"), (2, "0")]
    cache = caching(table)
    cache.open()
    shown, good = "0", LookupCounters()
    trigger = PeriodicReloadTrigger(100, random.choice(("FIXED_DELAY", "FIXED_RATE")))
    trigger.open(Reloads(cache, clock, scheduler))
    for step in range(1, 20):
        table.rows = [(1, str(step)), (2, str(step))]
        table.failures = random.choice((0, 0, 1))
        table.takes = random.choice((0, 30))
        before, failing = len(table.loads), table.failures
        scheduler.advance(random.choice((20, 100)))
        if len(table.loads) - before > failing:
            shown = str(step)
        assert found(cache, (1,)) == [(1, shown)]
        assert found(cache, (2,)) == [(2, shown)]
    trigger.close()
    loads = len(table.loads)
    scheduler.advance(1000)
    assert len(table.loads) == loads, "a closed trigger loads no more"
    cache.report(good)
    assert good.loadCount == loads


def loads_of(trigger: Callable[[], CacheReloadTrigger], *, start: int, takes: int, span: int) -> list[int]:
    """When a trigger loads within ``span`` ms after ``start``, relative to it; a load takes ``takes`` ms."""
    clock = VirtualClock(start)
    table, scheduler = Table(clock), VirtualScheduler(clock)
    cache = caching(table)
    cache.open()
    table.takes = takes
    table.loads.clear()
    trigger().open(Reloads(cache, clock, scheduler))
    scheduler.advance(span)
    return [load - start for load in table.loads]


class PutBack(SystemClock):
    """A clock whose calendar is put back by a day as soon as somebody looks at it, again and again."""

    def __init__(self) -> None:
        self.days = 0

    def now(self) -> int:
        self.days += 1
        return super().now() - self.days * 86_400_000


@pytest.mark.parametrize("mode", ["FIXED_DELAY", "FIXED_RATE"])
def test_a_clock_that_is_put_back_delays_no_periodic_load(mode: Literal["FIXED_DELAY", "FIXED_RATE"]) -> None:
    clock, loads, thrice = PutBack(), itertools.count(1), threading.Event()

    def load() -> Iterator[Row]:
        if next(loads) == 3:
            thrice.set()
        yield (1, "a")

    cache = FullCache(load, SCHEMA, ["k"], clock, retry_on=(), policy=POLICY)
    cache.open()
    scheduler = ThreadScheduler(clock)
    trigger = PeriodicReloadTrigger(1, mode)
    trigger.open(Reloads(cache, clock, scheduler))
    assert thrice.wait(60)
    trigger.close()
    scheduler.close()


def test_what_is_cancelled_is_not_called_by_either_clock() -> None:
    clock = SystemClock()
    scheduler, last = ThreadScheduler(clock), threading.Event()
    called: list[str] = []
    cancelled = [
        scheduler.call_at(clock.now() + 60, lambda: called.append("at")),
        scheduler.call_after(60, lambda: called.append("after")),
    ]
    scheduler.call_after(120, last.set)
    for cancel in cancelled:
        cancel()
        cancel()
    assert last.wait(60)
    assert called == []
    scheduler.close()


def test_a_fixed_delay_is_from_the_end_of_a_load_to_the_start_of_the_next() -> None:
    made = loads_of(lambda: PeriodicReloadTrigger(100, "FIXED_DELAY"), start=0, takes=30, span=400)
    assert made == [100, 230, 360]


def test_a_fixed_rate_is_from_start_to_start_and_makes_up_for_a_slow_load() -> None:
    assert loads_of(lambda: PeriodicReloadTrigger(100, "FIXED_RATE"), start=0, takes=30, span=400) == [
        100, 200, 300, 400
    ]  # fmt: skip
    slow = loads_of(lambda: PeriodicReloadTrigger(100, "FIXED_RATE"), start=0, takes=250, span=400)
    assert slow[:2] == [100, 350], "the loads due at 200 and 300 come right after, and never overlap"


def at(text: str, zone: ZoneInfo = UTC) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


@pytest.mark.parametrize(
    ("written", "zone", "days", "start", "expected"),
    [
        ("10:15", "UTC", 1, "2026-03-01T09:00", ["2026-03-01T10:15", "2026-03-02T10:15", "2026-03-03T10:15"]),
        ("10:15Z", "Asia/Tokyo", 1, "2026-03-01T09:00", ["2026-03-01T10:15", "2026-03-02T10:15", "2026-03-03T10:15"]),
        ("10:15+07:00", "UTC", 1, "2026-03-01T09:00", ["2026-03-02T03:15", "2026-03-03T03:15", "2026-03-04T03:15"]),
        ("10:15", "Asia/Tokyo", 2, "2026-03-01T09:00", ["2026-03-02T01:15", "2026-03-04T01:15"]),
        ("09:00", "UTC", 3, "2026-03-01T09:00", ["2026-03-01T09:00", "2026-03-04T09:00"]),
        # The clocks in Berlin go forward on 2026-03-29 at 01:00 UTC: noon is an hour earlier from then on.
        ("12:00", "Europe/Berlin", 1, "2026-03-28T09:00", ["2026-03-28T11:00", "2026-03-29T10:00", "2026-03-30T10:00"]),
    ],
)
def test_a_timed_trigger_loads_at_that_time_of_day_every_so_many_days(
    written: str, zone: str, days: int, start: str, expected: list[str]
) -> None:
    begin = at(start)
    trigger = TimedReloadTrigger(reload_time(written, ZoneInfo(zone)), days)
    made = loads_of(lambda: trigger, start=begin, takes=0, span=at("2026-04-30T00:00") - begin)
    assert [begin + load for load in made[: len(expected)]] == [at(text) for text in expected]


def test_a_scan_may_yield_rows_and_arrow_in_turns() -> None:
    clock = VirtualClock()

    def load() -> Iterator[object]:
        yield (1, "a")
        yield pa.table({"name": ["b"], "k": [2]})
        yield [1, "c"]
        yield pa.record_batch({"k": [3], "name": ["d"], "more": [0]})

    cache = FullCache(load, SCHEMA, ["k"], clock, retry_on=(Exception,), policy=POLICY)
    cache.open()
    assert [found(cache, (k,)) for k in (1, 2, 3, 4)] == [[(1, "a"), (1, "c")], [(2, "b")], [(3, "d")], []]


@pytest.mark.parametrize(
    ("yielded", "message"),
    [
        (None, f"{POLICY.where}: the scan returned None, expected rows"),
        ([None], f"{POLICY.where}: the scan yielded None, expected a row"),
        (["ab"], f"{POLICY.where}: the scan yielded a str, expected a row"),
        ([(1, "a"), (2,)], f"{POLICY.where}: the source returned a row of 1 values, expected 2"),
        ([("x", "a")], f"{POLICY.where}: the source returned values for column 'k' that are no int64"),
    ],
)
def test_a_scan_that_yields_something_else_is_refused_with_the_lookups_name(yielded: object, message: str) -> None:
    cache = FullCache(
        lambda: yielded, SCHEMA, ["k"], VirtualClock(), retry_on=(ConnectionError,), policy=replace(POLICY, retries=3)
    )
    with pytest.raises(RunError) as caught:
        cache.open()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([None], "the source returned None for key ('EUR'), expected its rows"),
        (["EUR"], "the source returned a str for key ('EUR'), expected its rows"),
        ([{"k": 1}], "the source returned a dict for key ('EUR'), expected its rows"),
        ([[(1, "a"), None]], "the source returned None as a row of key ('EUR'), expected a tuple"),
        ([["EUR"]], "the source returned a str as a row of key ('EUR'), expected a tuple"),
        (None, "the source returned NoneType for key ('EUR'), expected rows for each key"),
        ([[], []], "the source returned 2 answers for 1 keys"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_operator_table_and_key(returned: object, message: str) -> None:
    with pytest.raises(RunError) as caught:
        answers(POLICY, [("EUR",)], returned, VirtualClock())  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"operator lookup_t (lookup in table t): {message}")
    assert answers(POLICY, [("EUR",)], [iter([(1, "a")])], VirtualClock(7)) == Answers(
        {("EUR",): [(1, "a")]}, {("EUR",): 7}
    )
