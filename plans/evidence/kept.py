"""The matches, rows and bytes that a state keeps with another TTL, according to its evidence.

A *match* is a hit, or a miss by expiry: a row of the state that was needed. Matches after the TTL in force are visible
only for a while, so shares refer to the matches that were observable. A period shows the share of a TTL only if its own
TTL was at least as long.

>>> share_text(Share(low=9_961, high=9_961, of=10_000)), share_text(Share(low=1, high=2, of=3))
('99.61 %', '33.33 to 66.67 %')
"""

from __future__ import annotations

from functools import reduce

from hintplan.plans.evidence.ages import ENDS, added, below, possibly_below
from hintplan.plans.evidence.document import StateEvidence
from hintplan.plans.evidence.period import Period, joined
from hintplan.plans.frozen import frozen


@frozen
class Share:
    """At least ``low`` and at most ``high`` ``of`` the observable matches; they differ inside a bucket of ages."""

    low: int
    high: int
    of: int

    @property
    def least(self) -> float:
        """The smallest possible share, from 0 to 1."""
        return self.low / self.of

    @property
    def most(self) -> float:
        """The largest possible share, from 0 to 1."""
        return self.high / self.of

    @property
    def lost(self) -> Share:
        """The matches that are not in this share."""
        return Share(low=self.of - self.high, high=self.of - self.low, of=self.of)


@frozen
class Size:
    """The rows and bytes of a state; with ``at_least``, a longer TTL keeps an unknown number of further rows."""

    rows: int
    bytes: int
    at_least: bool = False


def observed(state: StateEvidence) -> Period | None:
    """Return the observations of all periods of a state, or None without any."""
    return reduce(joined, state.periods) if state.periods else None


def matches(period: Period) -> int:
    """Return the number of matches that were observable."""
    return sum(period.hits) + sum(period.misses)


def share_kept(state: StateEvidence, ttl: int) -> Share | None:
    """Return the share of matches that ``ttl`` (ms; 0 never expires rows) keeps.

    Only periods with at least this TTL count. None if there are none, or if they have no matches.
    """
    seen = [period for period in state.periods if _sees(period, ttl)]
    total = sum(map(matches, seen))
    if not total:
        return None
    # A period has no hit that its own TTL loses.
    exact = [period for period in seen if period.ttl == ttl]
    others = [period for period in seen if period.ttl != ttl]
    hits = sum(sum(period.hits) for period in exact)
    return Share(
        low=hits + sum(below(period.hits, ttl) for period in others),
        high=hits + sum(possibly_below(period.hits, ttl) for period in others),
        of=total,
    )


def _sees(period: Period, ttl: int) -> bool:
    return period.ttl == 0 or 0 < ttl <= period.ttl


def further_matches(state: StateEvidence, ttl: int) -> int:
    """Return the number of observed misses that a longer TTL would surely have kept; there may be more of them."""
    period = observed(state)
    return 0 if period is None else below(period.misses, ttl)


def size_kept(state: StateEvidence, ttl: int) -> Size:
    """Return the size that the state would have now with ``ttl`` (ms; 0 never expires rows)."""
    if state.ttl and (ttl == 0 or ttl > state.ttl):
        return Size(rows=state.rows, bytes=state.bytes, at_least=True)
    rows = state.rows if ttl == state.ttl else below(state.row_ages, ttl)
    return Size(rows=rows, bytes=state.bytes * rows // state.rows if state.rows else 0)


def quantile(state: StateEvidence, share: float) -> int | None:
    """Return the end of the bucket (ms) below which at least ``share`` (0 to 1) of the observed matches are.

    None if that is the last bucket, or if there are no matches.
    """
    period = observed(state)
    if period is None or not (total := matches(period)):
        return None
    count = 0
    for end, number in zip(ENDS, added(period.hits, period.misses), strict=False):
        count += number
        if count >= share * total:
            return end
    return None


def share_text(share: Share) -> str:
    """Return a share in percent; its bounds if they differ."""
    low, high = percent(share.least), percent(share.most)
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def percent(share: float) -> str:
    """Return a share from 0 to 1 in percent, and with enough digits that it is not 0 or 100 unless ``share`` is.

    >>> percent(0.5), percent(0.99999), percent(1), percent(0.000012)
    ('50 %', '99.999 %', '100 %', '0.001 %')
    """
    for digits in (2, 3, 4, 6):
        text = f"{100 * share:.{digits}f}"
        if float(text) not in (0, 100) or share in (0, 1):
            break
    return f"{text.rstrip('0').rstrip('.')} %"
