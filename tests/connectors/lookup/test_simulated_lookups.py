"""Thousands of random schedules of hits, misses, retries, failures and timeouts, and what must hold in each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.spec import CacheSpec
from hintplan.runtime.lookup.task import lookup_tables
from tests.connectors.lookup.simulation import (
    AsyncSource,
    BulkAsyncSource,
    BulkSyncSource,
    SyncSource,
    VirtualClock,
    World,
    opened,
    spec,
)

pytestmark = pytest.mark.part(of=2)

SEEDS = 400
KINDS = {"sync": SyncSource, "bulk": BulkSyncSource, "async": AsyncSource, "async bulk": BulkAsyncSource}
HOUR = 3_600_000


class Schedule:
    """One random run: batches of keys, some null, against a source with late rows, delays and failures."""

    def __init__(self, kind: str, seed: int, *, cache: CacheSpec | None = None, **policy: Any) -> None:
        self.random = Random(f"{kind} {seed}")
        random = self.random
        self.clock = VirtualClock()
        self.policy = {
            "capacity": random.randint(1, 5),
            "ordered": random.random() < 0.5,
            "max_attempts": random.choice((0, 0, 1, 3)),
            "delay": random.choice((0, 10, 100)),
            "retries": 50,
            **policy,
        }
        rate = random.choice((0.0, 0.0, 0.2))
        self.world = World(clock=self.clock, random=random, fails=lambda drawn: drawn.random() < rate)
        self.keys = random.choice((3, 12))
        for key in range(self.keys):
            if random.random() < 0.7:
                self.world.appears[key] = self.clock.time + random.choice((0, 0, 50, 500))
        self.lookup = opened(spec(cache, **self.policy), KINDS[kind](self.world), self.clock)
        self.event_loop: Any = self.lookup.event_loop
        self.counters = LookupCounters()
        self.pulled: dict[int, float] = {}
        self.asked: dict[int, int | None] = {}
        self.loads: set[tuple[int, int]] = set()

    def batches(self) -> Iterator[pa.Table]:
        number = 0
        for batch in range(self.random.randint(1, 5)):
            size = self.random.randint(1, 8)
            keys = [self.random.choice((None, *range(self.keys))) for _ in range(size)]
            rows = list(range(number, number + size))
            number += size
            self.event_loop.run_for(self.random.choice((0, 0, 30, 300)))  # other calls go on while input is awaited
            self.asked.update(zip(rows, keys, strict=True))
            self.pulled.update(dict.fromkeys(rows, self.clock.time))
            self.loads |= {(batch, key) for key in keys if key is not None}
            yield pa.table({"row": rows, "k": pa.array(keys, pa.int64())})

    def run(self) -> list[dict[str, Any]]:
        rows = []
        for table in lookup_tables(self.batches(), self.lookup, self.counters):
            rows += table.to_pylist()
        return rows

    def failure(self) -> str | None:
        """What a run fails with, None if it does not."""
        try:
            self.run()
        except RunError as error:
            return str(error)
        return None

    def close(self) -> None:
        self.event_loop.close()


def schedules(kind: str, **settings: Any) -> Iterator[Schedule]:
    for seed in range(SEEDS):
        schedule = Schedule(kind, seed, **settings)
        yield schedule
        schedule.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_gets_the_last_answer_for_its_key_and_none_is_asked_too_often(kind: str) -> None:
    for schedule in schedules(kind):
        rows = schedule.run()
        world, policy, asked = schedule.world, schedule.policy, schedule.asked
        assert sorted(row["row"] for row in rows) == sorted(asked), "a LEFT join keeps every row"
        if policy["ordered"]:
            assert [row["row"] for row in rows] == sorted(asked)
        limit = policy["capacity"] if kind.startswith("async") else 1
        assert world.most_running <= limit
        assert schedule.counters.inFlightMax == world.most_running
        for row in rows:
            assert row["k"] == asked[row["row"]]
            answered = [call for call in world.calls_for(row["k"]) if call.start >= schedule.pulled[row["row"]]]
            if row["at"] is None:
                attempts = sum(call.outcome == "answered" for call in answered)
                assert row["k"] is None or attempts > policy["max_attempts"]
            else:
                assert any(row["k"] in call.found and round(call.end) == row["at"] for call in answered)
        for key in range(schedule.keys):
            times = sum(loaded == key for _, loaded in schedule.loads)
            answered = [call for call in world.calls_for(key) if call.outcome == "answered"]
            assert len(answered) <= times * (1 + policy["max_attempts"])
        assert schedule.counters.loadCount == len(schedule.loads), "each batch asks for each distinct key"
        assert schedule.counters.failures == sum(call.outcome == "failed" for call in world.calls)
        assert (schedule.counters.hitCount, schedule.counters.missCount) == (0, 0)
        assert schedule.counters.lookups == sum(key is not None for key in asked.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_serves_nothing_expired_loads_no_key_twice_at_once_and_counts_what_it_does(kind: str) -> None:
    cache = CacheSpec(kind="PARTIAL", max_rows=8, expire_after_write=200)
    for schedule in schedules(kind, cache=cache):
        rows = schedule.run()
        counters, world = schedule.counters, schedule.world
        assert counters.hitCount + counters.missCount == counters.lookups
        assert counters.missCount == counters.loadCount
        for row in rows:
            if row["at"] is not None:
                assert row["at"] + 200 > schedule.pulled[row["row"]], "the row had expired when it was asked for"
        for first, second in pairs(world.calls):
            assert not set(first.keys) & set(second.keys) or second.start >= first.end
        assert sorted(row["row"] for row in rows) == sorted(schedule.asked)
        if schedule.policy["ordered"]:
            assert [row["row"] for row in rows] == sorted(schedule.asked)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cached_miss_has_had_all_its_attempts(kind: str) -> None:
    cache = CacheSpec(kind="PARTIAL", max_rows=100)
    for schedule in schedules(kind, cache=cache, max_attempts=2, delay=40):
        rows = schedule.run()
        for key in {row["k"] for row in rows if row["k"] is not None}:
            answered = [call for call in schedule.world.calls_for(key) if call.outcome == "answered"]
            hits = [call for call in answered if key in call.found]
            assert len(answered) == 3 or len(hits) == 1, "asked three times, or until it was found"
            for before, after in pairwise(answered):
                assert after.start >= before.end + 40 - 1e-6
            outcomes = {row["at"] for row in rows if row["k"] == key}
            assert len(outcomes) == 1, "one load serves every row"


@pytest.mark.parametrize("kind", ["async", "async bulk"])
def test_no_call_is_made_after_its_timeout_and_the_error_says_which_key(kind: str) -> None:
    timeouts = 0
    for schedule in schedules(kind, timeout=150):
        message = schedule.failure()
        timeouts += message is not None
        if message is not None:
            failed_at = schedule.clock.time
            schedule.event_loop.run_for(HOUR)
            assert all(call.start <= failed_at for call in schedule.world.calls), "calls went on after the failure"
            assert schedule.counters.timeouts >= 1
            assert "operator lookup_rates" in message
            assert "timed out after 150 ms, 150 ms are allowed" in message
            assert any(f"({key})" in message for key in range(schedule.keys))
            assert schedule.world.running == 0
        else:
            assert schedule.counters.timeouts == 0
        for key in range(schedule.keys):
            for first in schedule.world.calls_for(key):
                assert first.end - first.start <= 150 + 1e-6
    assert SEEDS / 10 < timeouts < SEEDS, "the schedules must show both"


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_that_keeps_failing_fails_the_query_with_the_cause(kind: str) -> None:
    for seed in range(50):
        schedule = Schedule(kind, seed, retries=2)
        schedule.world.fails = lambda drawn: True
        message = schedule.failure()
        if message is None:
            assert set(schedule.asked.values()) <= {None}
        else:
            assert "failed 3 times: ConnectionError: the source is away" in message
            tries = Counter(key for call in schedule.world.calls for key in call.keys)
            loads = Counter(key for _, key in schedule.loads)
            assert all(tries[key] <= 3 * loads[key] for key in tries)
        schedule.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_that_heals_within_the_retries_yields_the_right_rows(kind: str) -> None:
    schedule = Schedule(kind, 1, retries=3, max_attempts=0)
    failures = iter([True, True, True])
    schedule.world.fails = lambda drawn: next(failures, False)
    schedule.world.appears = dict.fromkeys(range(schedule.keys), 0.0)
    rows = schedule.run()
    assert all((row["at"] is None) == (row["k"] is None) for row in rows)
    assert schedule.counters.failures == 3
    schedule.close()


def pairs(calls: list[Any]) -> Iterator[tuple[Any, Any]]:
    for index, first in enumerate(calls):
        for second in calls[index + 1 :]:
            yield first, second
