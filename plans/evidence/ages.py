"""Histograms of ages: how long after their last write rows were used, with buckets that end at the TTLs people choose.

A bucket has the ages from the end of the bucket before it to below its own end; the last bucket has no end. A row is
visible while ``age < TTL``, so the count below a TTL that is the end of a bucket is exact.

>>> bucket_of(999), bucket_of(1_000), bucket_of(10**12) == len(ENDS)
(0, 1, True)
>>> below(counts({5: 3, 6: 1}), ENDS[5])
3
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import add

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000

ENDS: tuple[int, ...] = (
    *(int(seconds * _SECOND) for seconds in (1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 45)),
    *(int(minutes * _MINUTE) for minutes in (1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 45)),
    *(int(hours * _HOUR) for hours in (1, 1.5, 2, 3, 4, 6, 8, 12, 18)),
    *(int(days * _DAY) for days in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 270, 365, 540, 730)),
)
"""The ends of the buckets in ms, about two for each doubling from a second to two years. Stored counts rely on them."""

Counts = tuple[int, ...]
"""A count for each bucket: one more than :data:`ENDS`."""

NONE: Counts = (0,) * (len(ENDS) + 1)


def bucket_of(age: int) -> int:
    """Return the bucket of an age in ms."""
    return bisect_right(ENDS, age)


def counts(by_bucket: Mapping[int, int]) -> Counts:
    """Return the counts with these values and 0 for all other buckets."""
    if not by_bucket:
        return NONE
    result = list(NONE)
    for bucket, number in by_bucket.items():
        result[bucket] = number
    return tuple(result)


def by_bucket(histogram: Counts) -> list[list[int]]:
    """Return the place and the count of each bucket that is not empty, as state stores it; :func:`counts` reads it.

    >>> by_bucket(counts({1: 4})), by_bucket(NONE)
    ([[1, 4]], [])
    """
    return [] if histogram is NONE else [[bucket, count] for bucket, count in enumerate(histogram) if count]


def added(one: Counts, other: Counts) -> Counts:
    """Return the sum of two histograms."""
    return other if one is NONE else one if other is NONE else tuple(map(add, one, other))


def pairs(histogram: Counts) -> list[list[int | None]]:
    """Return the end (ms; None for the last bucket) and the count of each bucket that is not empty.

    >>> pairs(counts({1: 4, len(ENDS): 2}))
    [[1500, 4], [None, 2]]
    """
    ends: tuple[int | None, ...] = (*ENDS, None)
    return [[end, number] for end, number in zip(ends, histogram, strict=True) if number]


def below(histogram: Sequence[int], ttl: int) -> int:
    """Return the number of ages that are surely below ``ttl`` (ms; 0 is no limit).

    The bucket that ``ttl`` divides is not in it.
    """
    return sum(histogram) if ttl == 0 else sum(histogram[: bisect_right(ENDS, ttl)])


def possibly_below(histogram: Sequence[int], ttl: int) -> int:
    """Return the number of ages that may be below ``ttl`` (ms; 0 is no limit), with the bucket that it divides."""
    if ttl == 0:
        return sum(histogram)
    end = bisect_right(ENDS, ttl)
    return sum(histogram[:end] if ENDS[end - 1 : end] == (ttl,) else histogram[: end + 1])
