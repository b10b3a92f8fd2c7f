"""Advice on the TTL of a state: the shortest TTL that keeps the wanted share of its matches, and the effect of others.

It proposes only what the evidence shows: no TTL if there are too few matches. After a TTL that loses more matches than
wanted, the proposal is a lower bound, because later matches were not observable. Nothing is applied.

>>> advice_on(StateEvidence(operator="j", name="leftState", ttl=0), 0.999).proposed is None
True
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from hintplan.plans.evidence.ages import ENDS
from hintplan.plans.evidence.document import StateEvidence
from hintplan.plans.evidence.kept import (
    Share,
    Size,
    further_matches,
    matches,
    observed,
    quantile,
    share_kept,
    size_kept,
)
from hintplan.plans.evidence.period import Period
from hintplan.plans.frozen import frozen

DEFAULT_KEEP = 0.999
"""The share of matches that a proposed TTL keeps unless another share is given."""

LEAST_LOST = 10
"""The number of lost matches from which a share is known well enough for a proposal."""

_SHARES = (0.5, 0.99, 0.999, 1.0)


@frozen
class Option:
    """A TTL (ms; 0 never expires rows) and its effect.

    ``share`` is the share of matches that it keeps; None if no period had so long a TTL. ``more`` is the number of
    observed misses that it would have kept, and the state surely gains.
    """

    ttl: int
    size: Size
    share: Share | None = None
    more: int = 0


@frozen
class Advice:
    """The advice on a ``state``, to keep the share ``keep`` (0 to 1) of its matches.

    ``seen`` joins all periods. ``waiting`` has the share of matches, and the age (ms) by which they had come; None for
    an age of more than two years. ``needed`` is the number of matches from which a share is known well enough.
    With ``at_least``, the proposed TTL is a lower bound.
    """

    state: StateEvidence
    keep: float
    seen: Period | None = None
    waiting: tuple[tuple[float, int | None], ...] = ()
    options: tuple[Option, ...] = ()
    proposed: int | None = None
    at_least: bool = False
    needed: int = 0

    @property
    def matches(self) -> int:
        """The number of matches that were observable."""
        return 0 if self.seen is None else matches(self.seen)

    @property
    def has_enough(self) -> bool:
        """True if there are enough matches for a proposal."""
        return self.matches >= self.needed > 0

    def option(self, ttl: int) -> Option | None:
        """Return the effect of a TTL that the advice lists."""
        return next((option for option in self.options if option.ttl == ttl), None)


def advice_on(state: StateEvidence, keep: float = DEFAULT_KEEP) -> Advice:
    """Return the advice on a state, to keep the share ``keep`` (between 0 and 1) of its matches.

    A state that the watermark empties has no TTL to advise on: it has no options.
    """
    seen = observed(state)
    needed = needed_matches(keep)
    if state.ttl is None:
        return Advice(state=state, keep=keep, seen=seen, needed=needed)
    enough = seen is not None and matches(seen) >= needed
    proposed = _shortest(state, keep) if enough else None
    return Advice(
        state=state,
        keep=keep,
        seen=seen,
        waiting=tuple((share, quantile(state, share)) for share in _SHARES) if seen and matches(seen) else (),
        options=tuple(option_of(state, ttl) for ttl in _listed(state.ttl, proposed)),
        proposed=proposed,
        at_least=proposed is not None and share_kept(state, proposed) is None,
        needed=needed,
    )


def needed_matches(keep: float) -> int:
    """Return the number of matches of which ``keep`` (0 to 1) leaves :data:`LEAST_LOST`.

    >>> needed_matches(0.999), needed_matches(0.5)
    (10000, 20)
    """
    return round(LEAST_LOST / (1 - keep))


def option_of(state: StateEvidence, ttl: int) -> Option:
    """Return the effect of ``ttl`` (ms; 0 never expires rows) on a state."""
    longer = bool(state.ttl) and (ttl == 0 or ttl > (state.ttl or 0))
    return Option(
        ttl=ttl,
        size=size_kept(state, ttl),
        share=share_kept(state, ttl),
        more=further_matches(state, ttl) if longer else 0,
    )


def _shortest(state: StateEvidence, keep: float) -> int | None:
    """Return the shortest TTL that keeps the share; after a TTL in force that loses more, a lower bound.

    None if even the observed misses came too late for any TTL, or if only an unlimited TTL keeps the share.
    """
    shortest = None
    for ttl in sorted({*ENDS, *([state.ttl] if state.ttl else [])}, reverse=True):
        share = share_kept(state, ttl)
        if share is not None:
            if share.least < keep:
                break
            shortest = ttl
    if shortest is not None:
        return shortest
    lower_bound = quantile(state, keep)
    if lower_bound is None or any(period.ttl == 0 for period in state.periods):
        return lower_bound
    # The longest observed TTL keeps too little, so a longer one is needed even if the observed matches end here.
    return max(lower_bound, _next(max(period.ttl for period in state.periods)))


def _next(ttl: int) -> int:
    place = bisect_right(ENDS, ttl)
    return ENDS[place] if place < len(ENDS) else 2 * ttl


def _listed(ttl: int, proposed: int | None) -> tuple[int, ...]:
    """Return the TTLs of the table: the TTL in force, the proposed one, half the shorter and twice the longer one."""
    limited = sorted({choice for choice in (ttl, proposed) if choice})
    if not limited:
        return (ttl,)
    half, twice = bisect_right(ENDS, limited[0] // 2) - 1, bisect_left(ENDS, 2 * limited[-1])
    listed = {*limited, *ENDS[max(half, 0) : max(half, 0) + 1], *ENDS[twice : twice + 1]}
    return (*sorted(listed), *([] if ttl else [0]))
