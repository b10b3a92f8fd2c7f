"""Observations of a state in a period: ages of hits, misses by expiry, rows written and expired.

A *hit* is a stored row that is found and used, and its age is the time since its last write. Rows of the same batch are
no hits, since no TTL loses them. A *miss* is a row that would have been a hit if it had not expired. It is observed
only while the expired row is still stored, so the misses are a lower bound, and no hit is older than the TTL.
"""

from __future__ import annotations

from hintplan.plans.evidence.ages import NONE, Counts, added
from hintplan.plans.frozen import frozen


@frozen
class Period:
    """The observations from ``since`` to ``until`` (ms since 1970).

    ``ttl`` (ms) is the TTL in force, and the shortest if several were; 0 never expires rows. ``written`` are
    the row versions written, and ``expired`` the rows dropped because they had expired. With ``sampled``, only a part
    of the hits was counted, and its counts were multiplied.
    """

    since: int
    until: int
    ttl: int
    hits: Counts = NONE
    misses: Counts = NONE
    written: int = 0
    expired: int = 0
    sampled: bool = False


def joined(one: Period, other: Period) -> Period:
    """Return what both periods have observed, of one state at other times or in other partitions."""
    return Period(
        since=min(one.since, other.since),
        until=max(one.until, other.until),
        ttl=min((ttl for ttl in (one.ttl, other.ttl) if ttl), default=0),
        hits=added(one.hits, other.hits),
        misses=added(one.misses, other.misses),
        written=one.written + other.written,
        expired=one.expired + other.expired,
        sampled=one.sampled or other.sampled,
    )
