"""Advice against calculations by hand, and against a generated year with a known distribution of waiting times."""

from __future__ import annotations

import math
import random
from collections import Counter
from statistics import NormalDist

import pytest

from hintplan.plans.evidence.advice import advice_on, needed_matches, option_of
from hintplan.plans.evidence.ages import ENDS, NONE, Counts, bucket_of, counts
from hintplan.plans.evidence.document import StateEvidence
from hintplan.plans.evidence.kept import Share, percent, quantile, share_kept, share_text, size_kept
from hintplan.plans.evidence.period import Period

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def ages(*values: tuple[int, int]) -> Counts:
    """Return a histogram of (age, number) pairs."""
    found: Counter[int] = Counter()
    for age, number in values:
        found[bucket_of(age)] += number
    return counts(found)


def period(ttl: int, hits: Counts, misses: Counts = NONE, days: int = 12) -> Period:
    return Period(since=0, until=days * DAY, ttl=ttl, hits=hits, misses=misses, written=20_000)


def state(ttl: int | None, *periods: Period, row_ages: Counts = NONE, size: int = 0) -> StateEvidence:
    rows = sum(row_ages)
    return StateEvidence(
        operator="j", name="leftState", ttl=ttl, rows=rows, bytes=size, row_ages=row_ages, periods=periods
    )


# Of 10,000 matches, 9,000 came after 5 minutes, 990 after 5 hours, 8 after 10 hours and 2 after 20 hours.
HITS = ages((5 * MINUTE, 9_000), (5 * HOUR, 990), (10 * HOUR, 8), (20 * HOUR, 2))


def test_shares_of_ttls_are_exact_below_the_ttl_in_force() -> None:
    one = state(DAY, period(DAY, HITS))
    shares = {ttl: share_kept(one, ttl) for ttl in (HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY)}
    assert {ttl: share and share.low for ttl, share in shares.items()} == {
        HOUR: 9_000,
        6 * HOUR: 9_990,
        12 * HOUR: 9_998,
        DAY: 10_000,
        2 * DAY: None,
    }
    assert [share_text(share) for share in shares.values() if share] == ["90 %", "99.9 %", "99.98 %", "100 %"]


def test_a_ttl_inside_a_bucket_has_bounds() -> None:
    # 5 h 30 min divides the bucket from 4 to 6 hours, in which 990 matches are.
    share = share_kept(state(DAY, period(DAY, HITS)), 11 * HOUR // 2)
    assert share == Share(low=9_000, high=9_990, of=10_000)
    assert share_text(share) == "90 to 99.9 %"
    assert share_text(share.lost) == "0.1 to 10 %"


def test_the_shortest_ttl_that_keeps_the_share_is_proposed() -> None:
    one = state(DAY, period(DAY, HITS))
    assert advice_on(one, 0.999).proposed == 6 * HOUR  # exactly 9,990 of 10,000
    assert advice_on(one, 0.9).proposed == 6 * MINUTE  # the bucket of 5 minutes ends at 6
    assert not advice_on(one, 0.999).at_least
    assert [quantile(one, share) for share in (0.5, 0.99, 0.999, 1)] == [
        6 * MINUTE,
        6 * HOUR,
        6 * HOUR,
        DAY,
    ]


def test_the_table_has_the_ttl_in_force_the_proposed_one_and_neighbours() -> None:
    assert [option.ttl for option in advice_on(state(DAY, period(DAY, HITS))).options] == [
        3 * HOUR,
        6 * HOUR,
        DAY,
        2 * DAY,
    ]
    assert [option.ttl for option in advice_on(state(0, period(0, HITS))).options] == [3 * HOUR, 6 * HOUR, 12 * HOUR, 0]
    assert [option.ttl for option in advice_on(state(0)).options] == [0]


def test_misses_lower_the_share_and_make_the_proposal_a_lower_bound() -> None:
    # 9,900 hits within 30 minutes, and 100 rows that came 66 minutes after an order with a TTL of 1 hour.
    one = state(HOUR, period(HOUR, ages((30 * MINUTE - 1, 9_900)), ages((66 * MINUTE, 100))))
    advice = advice_on(one, 0.999)
    assert share_kept(one, HOUR) == Share(low=9_900, high=9_900, of=10_000)
    assert (advice.proposed, advice.at_least) == (90 * MINUTE, True)
    assert option_of(one, 90 * MINUTE).more == 100
    assert option_of(one, 90 * MINUTE).share is None
    # 99 % is kept by the TTL in force and by half of it.
    assert (advice_on(one, 0.99).proposed, advice_on(one, 0.99).at_least) == (30 * MINUTE, False)


def test_a_longer_ttl_is_proposed_even_if_the_misses_came_in_its_own_bucket() -> None:
    # 50 minutes end no bucket; the misses came after 55 minutes, in the bucket that it divides.
    one = state(50 * MINUTE, period(50 * MINUTE, ages((10 * MINUTE, 9_000)), ages((55 * MINUTE, 1_000))))
    assert advice_on(one, 0.95).proposed == HOUR
    one = state(HOUR, period(HOUR, ages((10 * MINUTE, 9_000)), ages((HOUR, 1_000))))
    assert advice_on(one, 0.95).proposed == 90 * MINUTE


def test_a_period_with_a_shorter_ttl_does_not_judge_a_longer_one() -> None:
    before = period(6 * HOUR, ages((HOUR, 5_000)), ages((7 * HOUR, 50)))
    now = period(DAY, ages((HOUR, 9_000), (10 * HOUR, 1_000)))
    one = state(DAY, before, now)
    assert share_kept(one, 12 * HOUR) == Share(low=10_000, high=10_000, of=10_000)
    assert share_kept(one, 8 * HOUR) == Share(low=9_000, high=9_000, of=10_000)
    # Both periods see 6 hours: 5,000 and 9,000 of 5,050 and 10,000.
    assert share_kept(one, 6 * HOUR) == Share(low=14_000, high=14_000, of=15_050)


def test_a_ttl_that_was_lengthened_a_moment_ago_is_judged_by_what_was_observed_before() -> None:
    # Only the TTL of 6 hours was observed, and it loses a tenth: the matches of 7 hours take a TTL of 8.
    one = state(7 * DAY, period(6 * HOUR, ages((HOUR, 9_000)), ages((7 * HOUR, 1_000))))
    advice = advice_on(one, 0.95)
    assert (advice.proposed, advice.at_least) == (8 * HOUR, True)


def test_rows_and_bytes_go_by_the_ages_of_the_rows() -> None:
    one = state(DAY, row_ages=ages((HOUR, 30), (10 * HOUR, 60), (20 * HOUR, 10)), size=1_000)
    sizes = {ttl: size_kept(one, ttl) for ttl in (6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 0)}
    assert [(size.rows, size.bytes, size.at_least) for size in sizes.values()] == [
        (30, 300, False),
        (90, 900, False),
        (100, 1_000, False),
        (100, 1_000, True),
        (100, 1_000, True),
    ]


def test_too_few_matches_give_no_proposal() -> None:
    assert [needed_matches(keep) for keep in (0.9, 0.99, 0.999)] == [100, 1_000, 10_000]
    few = state(DAY, period(DAY, ages((HOUR, 999))))
    assert (advice_on(few, 0.999).proposed, advice_on(few, 0.999).has_enough) == (None, False)
    assert advice_on(few, 0.9).proposed == 90 * MINUTE
    assert advice_on(state(DAY, period(DAY, NONE))).proposed is None
    assert advice_on(state(DAY)).waiting == ()


def test_a_state_of_event_time_has_no_options() -> None:
    advice = advice_on(state(None, period(0, HITS)))
    assert (advice.options, advice.proposed) == ((), None)


def test_matches_beyond_the_last_bucket_take_an_unlimited_ttl() -> None:
    late = state(0, period(0, ages((HOUR, 9_000), (3 * ENDS[-1], 1_000))))
    assert advice_on(late, 0.99).proposed is None
    assert advice_on(late, 0.9).proposed == 90 * MINUTE


@pytest.mark.parametrize(("share", "text"), [(1.0, "100 %"), (0.0, "0 %"), (0.999_96, "99.996 %"), (1 / 3, "33.33 %")])
def test_percents_are_100_only_if_nothing_is_lost(share: float, text: str) -> None:
    assert percent(share) == text


# A year of orders: the payment of each comes after a log-normal time with a median of 40 minutes.
MEDIAN, SIGMA = 40 * MINUTE, 1.1
ORDERS = 60_000


def waiting_times() -> list[int]:
    generator = random.Random(20_260_301)
    return [int(generator.lognormvariate(math.log(MEDIAN), SIGMA)) for _ in range(ORDERS)]


def true_quantile(share: float) -> float:
    return MEDIAN * math.exp(SIGMA * NormalDist().inv_cdf(share))


def a_year(ttl: int) -> StateEvidence:
    """Return the observations of a year by a state with this TTL; expired rows stay for a quarter of the TTL."""
    hits: Counter[int] = Counter()
    misses: Counter[int] = Counter()
    for wait in waiting_times():
        if not ttl or wait < ttl:
            hits[bucket_of(wait)] += 1
        elif wait < ttl * 1.25:
            misses[bucket_of(wait)] += 1
    return state(ttl, period(ttl, counts(hits), counts(misses), days=365))


@pytest.mark.parametrize("ttl", [0, 30 * DAY])
@pytest.mark.parametrize("keep", [0.9, 0.99, 0.999])
def test_a_year_of_payments_gives_the_right_ttl(ttl: int, keep: float) -> None:
    advice = advice_on(a_year(ttl), keep)
    assert advice.proposed is not None
    assert abs(ENDS.index(advice.proposed) - bucket_of(int(true_quantile(keep)))) <= 1
    assert not advice.at_least


@pytest.mark.parametrize("ttl", [2 * HOUR, 6 * HOUR, 12 * HOUR])
def test_a_ttl_that_cuts_a_year_of_payments_is_at_least_lengthened(ttl: int) -> None:
    one = a_year(ttl)
    advice = advice_on(one, 0.999)
    missed = sum(ttl <= wait < ttl * 1.25 for wait in waiting_times())
    assert true_quantile(0.999) > ttl * 1.25
    assert advice.at_least
    assert advice.proposed is not None
    assert ttl < advice.proposed <= ENDS[bucket_of(int(true_quantile(0.999)))]
    assert missed == sum(one.periods[0].misses) > 100
