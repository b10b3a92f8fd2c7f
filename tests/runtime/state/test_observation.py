"""What states observe: the ages of used rows, misses by expiry, and periods, against models of ten lines each."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.declarations.durations import format_duration
from hintplan.plans.edit.edit import set_value
from hintplan.plans.evidence.ages import NONE, bucket_of
from hintplan.plans.evidence.period import Period, joined
from hintplan.runtime.state.manifest import StateTable, read_tables, write_manifest
from hintplan.runtime.state.observation import PERIOD, SAMPLED_FROM, Observation
from tests.runtime.partitioned import Partitioned
from tests.runtime.state.histories import KINDS
from tests.sample import sampled

HISTORIES = 25
CHUNKS = [pytest.param(kind, chunk, id=f"{kind.__name__}-{chunk}") for kind in KINDS for chunk in range(6)]
TTLS = (0, 1_000, 4_000, 20_000)
DAY = 86_400_000


@pytest.mark.parametrize(("kind", "chunk"), sampled(CHUNKS, keep=3))
def test_states_observe_what_the_model_observes(kind, chunk: int) -> None:
    missed = 0
    for number in range(HISTORIES):
        missed += one_history(kind, random.Random(f"{kind.__name__} {chunk} {number}"))
    assert missed > HISTORIES // 2  # many histories have rows that come too late


def one_history(kind, dice: random.Random) -> int:
    """Hold a history with edits, restarts and other numbers of partitions against the model; return the misses."""
    plan, model = compile_sql(kind.sql), kind()
    operator = kind.operator
    ttls = [0] * len(kind.states)
    pipeline, now = Partitioned(plan, dice.choice((1, 2, 5))), 1_000_000
    for number in range(dice.randrange(4, 14)):
        if dice.random() < (1 if number == 0 else 0.25):
            for place, state in enumerate(kind.states):
                memories = [model.memories[place]] if len(kind.states) > 1 else model.memories
                ttl = dice.choice(TTLS)
                # A longer TTL shows rows again that expired and may have been dropped: open what becomes of them.
                if (ttls[place] and ttl and ttl < ttls[place]) or all(memory.is_full() for memory in memories):
                    plan, _ = set_value(plan, f"{operator}.state.{state}.ttl", format_duration(ttl))
                    ttls[place] = ttl
            pipeline = pipeline.rescaled(pipeline.partitions, plan)
        if dice.random() < 0.3:
            pipeline = pipeline.rescaled(dice.choice((1, 2, 3, 5)), plan)
        now += dice.choice((1, 400, 999, 1_000, 1_001, 3_000, 7_000, 30_000))
        rows = {table: [kind.row(dice) for _ in range(dice.randrange(6))] for table in kind.tables}
        pipeline.batch(rows, now)
        model.batch(rows, now, ttls)
        for place, memory in enumerate(model.memories):
            memory.end_batch(now, ttls[place if len(kind.states) > 1 else 0])
    pipeline = pipeline.rescaled(3 if pipeline.partitions != 3 else 2, plan)
    now += 1
    pipeline.batch({table: [] for table in kind.tables}, now)  # the last scale takes all counters over
    for place, memory in enumerate(model.memories):
        memory.end_batch(now, ttls[place if len(kind.states) > 1 else 0])
    found = 0
    for table, memory in zip(kind.stored, model.memories, strict=True):
        observed = observed_of(pipeline, operator, table)
        assert by_bucket(observed.hits) == bucketed(memory.hits)
        misses = by_bucket(observed.misses)
        assert bucketed(memory.missed) <= misses <= bucketed(memory.missed + memory.perhaps_missed)
        found += misses.total()
    return found


def observed_of(pipeline: Partitioned, operator: str, table: str) -> Period:
    """The sum of all that the partitions of a table have observed."""
    nothing = Period(since=0, until=0, ttl=0)
    manifests = [part.manifest for part in pipeline.parts[operator] if part.manifest is not None]
    return reduce(
        joined, (period for manifest in manifests for period in read_tables(manifest)[table].observed), nothing
    )


def by_bucket(histogram: tuple[int, ...]) -> Counter[int]:
    return Counter({bucket: count for bucket, count in enumerate(histogram) if count})


def bucketed(ages: Counter[int]) -> Counter[int]:
    found: Counter[int] = Counter()
    for age, count in ages.items():
        found[bucket_of(age)] += count
    return found


def use(observation: Observation, writes: list[int]) -> None:
    observation.use(len(writes), lambda some: np.array(writes, np.int64)[some])


def test_rows_of_the_same_batch_are_no_hits() -> None:
    observation = Observation((), ttl=1_000, now=5_000)
    use(observation, [5_000, 4_999, 4_001, 4_000, 100])
    (period,) = observation.periods()
    assert by_bucket(period.hits) == {bucket_of(1): 2}  # the ages 1 and 999
    assert by_bucket(period.misses) == {bucket_of(1_000): 1, bucket_of(4_900): 1}


def test_a_batch_without_observations_changes_nothing() -> None:
    before = (Period(since=1, until=2, ttl=3, written=1),)
    assert Observation(before, ttl=9, now=5_000).periods() == before


def test_a_period_ends_after_a_week_or_with_an_edit() -> None:
    periods: tuple[Period, ...] = ()
    for now, ttl in ((0, 0), (PERIOD - 1, 0), (PERIOD, 0), (PERIOD + 1, DAY), (PERIOD + 2, DAY), (3 * PERIOD, DAY)):
        observation = Observation(periods, ttl=ttl, now=now)
        observation.write(1)
        periods = observation.periods()
    assert periods == (
        Period(since=0, until=PERIOD + 2, ttl=DAY, written=5),
        Period(since=3 * PERIOD, until=3 * PERIOD, ttl=DAY, written=1),
    )


def test_of_a_large_batch_one_in_sixteen_hits_counts_for_all() -> None:
    rows, now = 4 * SAMPLED_FROM, 10_000_000
    ages = np.random.default_rng(1).choice([500, 1_700, 80_000], rows, p=[0.5, 0.3, 0.2])
    observation = Observation((), ttl=0, now=now)
    observation.use(rows, lambda some: (now - ages)[some])
    (period,) = observation.periods()
    assert period.sampled
    assert sum(period.hits) == rows
    for age, share in ((500, 0.5), (1_700, 0.3), (80_000, 0.2)):
        # Four standard deviations of a sample of 16,384.
        assert abs(period.hits[bucket_of(age)] / rows - share) < 4 * (share * (1 - share) / (rows / 16)) ** 0.5


def test_a_manifest_without_observations_is_as_before_and_with_them_comes_back() -> None:
    table = StateTable(fingerprint="f", rows=0)
    assert write_manifest({"t": table}) is None
    hits = tuple(int(bucket == 7) * 12 for bucket in range(len(NONE)))
    period = Period(since=1, until=2, ttl=3, hits=hits, misses=hits, written=4, expired=5, sampled=True)
    written = write_manifest({"t": replace(table, observed=(period, period))})
    assert written is not None
    assert read_tables(written)["t"].observed == (period, period)
