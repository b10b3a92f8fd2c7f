"""Observes how old the stored rows of a state are when a batch uses them, and how many it would have used after expiry.

The ages go into the buckets of :mod:`hintplan.plans.evidence.ages`. Of a large batch, one in 16 hits is counted 16
times. The observations of a state are one or two periods, cumulative over batches: the current one, which lasts a week
or until the TTL changes, and the sum of all periods before it.

>>> observation = Observation((), ttl=0, now=10_000)
>>> observation.use(3, lambda some: np.array([10_000, 8_500, 1_000])[some])
>>> (period,) = observation.periods()
>>> [(ENDS[bucket], count) for bucket, count in enumerate(period.hits) if count]
[(2000, 1), (10000, 1)]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from hintplan.plans.evidence.ages import ENDS, NONE, Counts
from hintplan.plans.evidence.period import Period, joined
from hintplan.plans.evidence.uses import Uses
from hintplan.runtime.state.layout import Int64s

PERIOD = 7 * 86_400_000
"""The longest time, in ms, of the current period."""
SAMPLED_FROM = 1 << 16
"""The number of rows of one use from which only a part of them is counted."""
_ONE_IN = 16
_ENDS = np.array(ENDS, np.int64)


class Observation:
    """The observations of a state before a batch, and in the batch."""

    def __init__(self, before: tuple[Period, ...], *, ttl: int, now: int) -> None:
        self._before = before
        self._ttl = ttl
        self._now = now
        self._hits: Int64s | None = None
        self._misses: Int64s | None = None
        self._written = self._expired = 0
        self._sampled = False

    def use(self, rows: int, writes: Callable[[slice], Int64s]) -> None:
        """Count the use of stored rows; ``writes`` returns the last write (ms) of some of them, expired or not.

        Rows of the same batch are left out.
        """
        is_part = rows >= SAMPLED_FROM
        step = _ONE_IN if is_part else 1
        ages = self._now - writes(slice(self._now % step, None, step))
        if not (ages > 0).all():
            ages = ages[ages > 0]
        if not len(ages):
            return
        self._sampled |= is_part
        if self._ttl and (gone := ages >= self._ttl).any():
            self._misses = _counted(ages[gone], step, self._misses)
            ages = ages[~gone]
        self._hits = _counted(ages, step, self._hits)

    def write(self, rows: int) -> None:
        """Count row versions that the batch writes."""
        self._written += rows

    def expire(self, rows: int) -> None:
        """Count rows that are dropped because they have expired."""
        self._expired += rows

    def uses(self) -> Uses:
        """Return the ages at which the batch has used rows."""
        return Uses(hits=_counts(self._hits), misses=_counts(self._misses))

    def periods(self) -> tuple[Period, ...]:
        """Return the periods after the batch: none, the current one, or the sum of those before and the current one."""
        if self._hits is None and self._misses is None and not self._written and not self._expired:
            return self._before
        batch = Period(
            since=self._now,
            until=self._now,
            ttl=self._ttl,
            hits=_counts(self._hits),
            misses=_counts(self._misses),
            written=self._written,
            expired=self._expired,
            sampled=self._sampled,
        )
        if not self._before:
            return (batch,)
        *earlier, current = self._before
        if current.ttl == self._ttl and self._now - current.since < PERIOD:
            return (*earlier, joined(current, batch))
        return (current if not earlier else joined(earlier[0], current), batch)


def joined_observations(one: tuple[Period, ...], other: tuple[Period, ...]) -> tuple[Period, ...]:
    """Return the observations of two partitions as one: the current periods are joined, and those before them."""
    if not one or not other:
        return one or other
    current = joined(one[-1], other[-1])
    earlier = [*one[:-1], *other[:-1]]
    return (reduce(joined, earlier), current) if earlier else (current,)


def _counts(histogram: Int64s | None) -> Counts:
    return NONE if histogram is None else tuple(histogram.tolist())


def _counted(ages: Int64s, weight: int, before: Int64s | None) -> Int64s:
    """Return the histogram ``before`` with ``ages``, each as many times as ``weight``."""
    found = np.bincount(np.searchsorted(_ENDS, ages, "right"), minlength=len(NONE))
    if weight > 1:
        found *= weight
    return found if before is None else before + found
