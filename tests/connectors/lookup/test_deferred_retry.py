"""The deferred lookup as a stateful operator: what it parks, finds, pads and stores, in virtual time without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from plans.checkpoint.continuation import continuation, record_after, refuse
from plans.errors import RunError
from plans.model.plan import Plan
from plans.operators import LookupJoin
from runtime.lookup.metrics import LOOKUP_METRICS
from runtime.lookup.spec import CacheSpec, LookupSpec
from runtime.lookup.worker import OpenLookup
from runtime.operator import Result
from runtime.operators.lookup_retry import LookupRetry, read_parked
from runtime.state.memory import MemoryStore
from tests.connectors.lookup.simulation import AsyncSource, SyncSource, VirtualClock, World, opened, spec
from tests.connectors.lookup.test_lookups_on_spark import DEFERRED, job
from tests.sample import sampled

COLUMNS = pa.schema([("row", pa.int64()), ("k", pa.int64())])
DELAY = 100


class Partition:
    """One partition of a deferred lookup, called as the engine calls it; a restart is a new one on the same state."""

    def __init__(
        self, world: World, *, attempts: int = 2, source: Any = AsyncSource, once: bool = False, **settings: Any
    ) -> None:
        self.world = world
        described = replace(spec(**settings, ordered=False), policy=replace(spec().policy, ordered=False))
        described = replace(described, policy=replace(described.policy, caches_misses=False))
        self.lookup = opened(described, source(world), world.clock)
        self.operator = LookupRetry(
            spec=described,
            columns=COLUMNS,
            max_attempts=attempts,
            delay=DELAY,
            once=once,
            acquire=self._acquire(),
        )
        self.store = MemoryStore()
        self.manifest: bytes | None = None
        self.rows: list[tuple[int, int | None]] = []

    def _acquire(self) -> Callable[[LookupSpec], Any]:
        @contextmanager
        def acquire(described: LookupSpec) -> Iterator[OpenLookup]:
            yield self.lookup

        return acquire

    def call(self, *rows: tuple[int, int | None]) -> Result:
        """Process ``rows`` (number, key) now."""
        delta = pa.table([[row[c] for row in rows] for c in (0, 1)], schema=COLUMNS) if rows else None
        result = self.operator.process([delta], self.manifest, self.store, self.world.clock.now())
        self.manifest = result.manifest
        self.rows += [(row["row"], row["at"]) for row in result.output.to_pylist()]
        assert result.state_rows == sum(table.num_rows for table in self.store.segments.values())
        return result

    @property
    def due(self) -> int | None:
        """When the first of the rows that wait is to be looked up again."""
        waiting = () if self.manifest is None else read_parked(self.manifest)[2]
        return min((each.at + DELAY for each in waiting), default=None)

    def let_pass(self, milliseconds: int) -> None:
        """Call the partition whenever rows are due."""
        end = self.world.clock.now() + milliseconds
        while self.due is not None and self.due <= end:
            self.world.clock.time = max(self.world.clock.time, self.due)
            self.call()
        self.world.clock.time = max(self.world.clock.time, end)


def world(appears: dict[int, float] | None = None, *, takes: float = 0) -> World:
    clock = VirtualClock(0)
    return World(clock=clock, random=Random(1), appears=appears or {}, latency=lambda random: takes)


def metrics(result: Result) -> dict[str, int]:
    return dict(zip((name for name, _ in LOOKUP_METRICS), result.metrics, strict=True))


@pytest.mark.parametrize("source", [AsyncSource, SyncSource])
def test_rows_behind_a_miss_do_not_wait_and_the_miss_is_found_when_it_appears(source: Any) -> None:
    partition = Partition(world({1: 0, 2: 150}), source=source)
    result = partition.call((10, 1), (11, 2), (12, None), (13, 1))
    assert sorted(partition.rows) == [(10, 0), (12, None), (13, 0)], "null keys are not looked up, so they do not wait"
    assert (result.state_rows, partition.due) == (1, DELAY)
    partition.let_pass(1000)
    assert partition.rows[3:] == [(11, 200)], "the first look after 150 ms is the one at 200"
    assert partition.manifest is None
    assert partition.store.segments == {}
    assert [call.start for call in partition.world.calls_for(2)] == [0, 100, 200]


def test_after_the_last_attempt_a_left_join_pads_and_an_inner_join_drops() -> None:
    for padded, expected in ((True, [(11, None)]), (False, [])):
        partition = Partition(world(), attempts=2)
        rows = replace(partition.operator.spec.rows, padded=padded)
        partition.operator = replace(partition.operator, spec=replace(partition.operator.spec, rows=rows))
        partition.lookup.spec = partition.operator.spec
        partition.call((11, 2))
        partition.let_pass(1000)
        assert partition.rows == expected
        assert [call.start for call in partition.world.calls_for(2)] == [0, 100, 200], "once, and two attempts more"
        assert partition.due is None


def test_a_cached_miss_is_one_that_had_all_its_attempts() -> None:
    partition = Partition(world({2: 10_000}), cache=CacheSpec(kind="PARTIAL", max_rows=10))
    partition.call((11, 2))
    partition.let_pass(90)
    second = partition.call((12, 2))
    assert second.state_rows == 2, "the first miss was no final answer, so the second row is looked up too"
    partition.let_pass(1000)
    assert sorted(partition.rows) == [(11, None), (12, None)]
    asked = len(partition.world.calls)
    third = partition.call((13, 2))
    assert (third.state_rows, len(partition.world.calls)) == (0, asked), "now the miss is known"
    assert metrics(third)["hitCount"] == 1


def test_what_is_found_is_cached_and_parked_rows_profit() -> None:
    partition = Partition(world({2: 50}), cache=CacheSpec(kind="PARTIAL", max_rows=10))
    partition.call((11, 2))
    partition.world.clock.time = 60
    partition.call((12, 2))
    partition.let_pass(1000)
    assert sorted(partition.rows) == [(11, 60), (12, 60)]
    assert len(partition.world.calls) == 2


def test_a_run_that_ends_with_its_input_makes_the_remaining_attempts_at_once() -> None:
    partition = Partition(world({2: 150}), attempts=3, once=True)
    result = partition.call((11, 2), (12, 3), (13, 4))
    assert sorted(partition.rows) == [(11, 200), (12, None), (13, None)]
    assert (result.state_rows, partition.manifest) == (0, None)
    assert partition.world.clock.now() == 300, "rows wait together: three delays, however many rows"
    assert metrics(result)["retries"] == 3 + 3 + 2


def test_rows_parked_by_a_continuous_run_are_decided_by_one_that_ends() -> None:
    first = Partition(world({2: 50}), attempts=5)
    first.call((11, 2), (12, 3))
    again = Partition(first.world, attempts=2, once=True)
    again.store, again.manifest = first.store, first.manifest
    first.world.clock.time = 60
    again.call()
    assert sorted(again.rows) == [(11, 100), (12, None)]
    assert len(again.world.calls_for(3)) == 3, "attempts are judged by the plan that runs"


def test_metrics_count_a_row_once_however_often_it_is_looked_up() -> None:
    partition = Partition(world(), attempts=2, cache=CacheSpec(kind="PARTIAL", max_rows=10))
    first = metrics(partition.call((11, 2), (12, 2), (13, 3)))
    assert (first["lookups"], first["hitCount"], first["missCount"], first["loadCount"]) == (3, 1, 2, 2)
    partition.world.clock.time = DELAY
    again = metrics(partition.call())
    assert (again["lookups"], again["hitCount"], again["missCount"], again["retries"]) == (0, 0, 0, 2)


def test_state_of_another_plan_is_refused() -> None:
    partition = Partition(world())
    partition.call((11, 2))
    other = replace(partition.operator, columns=COLUMNS.append(pa.field("more", pa.int64())))
    with pytest.raises(RunError, match="another layout"):
        other.process([None], partition.manifest, partition.store, 0)


@pytest.mark.parametrize("seed", sampled(range(200), keep=50))
def test_any_slicing_and_any_restarts_give_each_row_one_answer_within_its_attempts(seed: int) -> None:
    random = Random(seed)
    attempts, keys = random.choice((1, 2, 4)), 6
    appears = {key: random.choice((0, 80, 150, 260, 900)) for key in range(keys) if random.random() < 0.8}
    simulated = world({key: float(time) for key, time in appears.items()})
    cache = random.choice((None, CacheSpec(kind="PARTIAL", max_rows=4)))
    partition = Partition(simulated, attempts=attempts, cache=cache)
    came: dict[int, tuple[int, int | None]] = {}
    emitted: list[tuple[int, int | None]] = []
    for number in range(random.randint(1, 30)):
        key = random.choice((None, *range(keys)))
        came[number] = (simulated.clock.now(), key)
        partition.call((number, key))
        partition.let_pass(random.choice((0, 7, 60, 130)))
        if random.random() < 0.2:
            restarted = Partition(simulated, attempts=attempts, cache=cache)
            restarted.store, restarted.manifest = partition.store, partition.manifest
            emitted += partition.rows
            partition = restarted
    partition.let_pass(10_000)
    emitted += partition.rows
    assert sorted(number for number, _ in emitted) == sorted(came), "nothing is lost, nothing comes twice"
    assert partition.store.segments == {}
    for number, at in emitted:
        arrived, key = came[number]
        last = arrived + attempts * DELAY
        if key is None:
            assert at is None
        elif cache is None:
            looks = [arrived + n * DELAY for n in range(attempts + 1)]
            assert at == next((look for look in looks if appears.get(key, float("inf")) <= look), None)
        elif at is not None:
            assert appears[key] <= at <= last, "a cached row may be older than the order"


def test_a_checkpoint_with_parked_rows_is_told_from_one_without(tmp_path: Path) -> None:
    plan = job(tmp_path, hint=DEFERRED, **{"async-class": "tests.connectors.lookup.rates.AsyncRates"})
    lookup = plan.operator("lookup_r")
    assert isinstance(lookup, LookupJoin)
    assert lookup.retry is not None

    def with_values(group: str, **changed: Any) -> LookupJoin:
        old = lookup.settings[group]
        named = {name.replace("_", "-"): value for name, value in changed.items()}
        return replace(lookup, settings={**lookup.settings, group: replace(old, values={**old.values, **named})})

    def retrying(**settings: Any) -> Plan:
        changed = with_values("retry", **settings)
        return replace(plan, operators=tuple(changed if each is lookup else each for each in plan.operators))

    inline = retrying(mode="inline")

    def start(before: Plan, after: Plan) -> None:
        record = record_after(continuation(None, before), None, before, partitions=2, spark="4.3.0")
        refuse(continuation(record, after), "checkpoint", allow_drop=False)

    start(plan, retrying(max_attempts=7))
    start(inline, inline)
    start(inline, plan)  # nothing waits yet
    with pytest.raises(RunError, match=r"lookup_r is left behind"):
        start(plan, inline)
    full = replace(
        lookup, settings={**lookup.settings, "cache": replace(lookup.cache, values={"lookup.cache": "FULL"})}
    )
    with pytest.raises(RunError, match=r"lookup_r is left behind"):
        start(plan, replace(plan, operators=tuple(full if each is lookup else each for each in plan.operators)))
