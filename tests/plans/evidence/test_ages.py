"""Buckets of ages, and what several periods have seen."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hintplan.plans.evidence.ages import ENDS, NONE, below, bucket_of, counts, possibly_below
from hintplan.plans.evidence.period import Period, joined

AGES = st.lists(st.integers(min_value=0, max_value=3 * ENDS[-1]) | st.sampled_from(ENDS), max_size=30)


def histogram(ages: list[int]) -> tuple[int, ...]:
    found: dict[int, int] = {}
    for age in ages:
        found[bucket_of(age)] = found.get(bucket_of(age), 0) + 1
    return counts(found)


def test_buckets_end_at_durations_that_people_write() -> None:
    assert list(ENDS) == sorted(set(ENDS))
    assert {1_000, 60_000, 3_600_000, 6 * 3_600_000, 86_400_000, 7 * 86_400_000, 365 * 86_400_000} < set(ENDS)
    # About two to each doubling: no bucket is wider than a factor of two.
    assert all(1.1 < after / before <= 2 for before, after in pairwise(ENDS))
    assert len(NONE) == len(ENDS) + 1


@given(AGES, st.sampled_from(ENDS))
def test_a_ttl_at_the_end_of_a_bucket_is_exact(ages: list[int], ttl: int) -> None:
    kept = sum(age < ttl for age in ages)
    assert below(histogram(ages), ttl) == possibly_below(histogram(ages), ttl) == kept


@given(AGES, st.integers(min_value=1, max_value=3 * ENDS[-1]))
def test_any_other_ttl_is_bounded(ages: list[int], ttl: int) -> None:
    assert below(histogram(ages), ttl) <= sum(age < ttl for age in ages) <= possibly_below(histogram(ages), ttl)


def test_periods_add_up() -> None:
    one = Period(since=10, until=20, ttl=0, hits=counts({3: 2}), written=5)
    two = Period(
        since=5, until=15, ttl=60_000, hits=counts({3: 1, 7: 1}), misses=counts({20: 4}), expired=1, sampled=True
    )
    assert joined(one, two) == Period(
        since=5,
        until=20,
        ttl=60_000,
        hits=counts({3: 3, 7: 1}),
        misses=counts({20: 4}),
        written=5,
        expired=1,
        sampled=True,
    )
