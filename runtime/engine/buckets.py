"""Bucket ids: integers that Spark's hash partitioning sends to exactly one partition each.

Grouping by such a column puts bucket ``i`` in partition ``i``, so each partition gets exactly one bucket. The hash is
MurmurHash3 (x86, 32 bit) of one int with Spark's seed 42. Spark guarantees it for ``hash`` and uses it to partition.

>>> bucket_ids(2)
(2, 0)
"""

from __future__ import annotations

from itertools import count

_MASK = 0xFFFFFFFF


def murmur3(value: int, seed: int = 42) -> int:
    """Return Spark's ``hash`` of one non-negative INT, as a signed 32-bit number."""
    k = value * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    h = seed ^ (k * 0x1B873593 & _MASK)
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def bucket_ids(partitions: int) -> tuple[int, ...]:
    """Return, for each partition ``p``, the smallest int ``b`` with ``pmod(hash(b), partitions) == p``."""
    bucket_of: dict[int, int] = {}
    for candidate in count():
        bucket_of.setdefault(murmur3(candidate) % partitions, candidate)
        if len(bucket_of) == partitions:
            return tuple(bucket_of[partition] for partition in range(partitions))
    raise AssertionError("count() does not end")
