"""The cost of another TTL, for a review: the rows and bytes that go, and the matches that it would have lost.

>>> cost_of(StateEvidence(operator="j", name="leftState", ttl=0, rows=0), 0, 3_600_000).text
'no row goes; no match of the state was observed'
"""

from __future__ import annotations

from typing import Any

from hintplan.plans.evidence.document import StateEvidence, utc
from hintplan.plans.evidence.kept import Share, Size, further_matches, observed, share_kept, share_text, size_kept
from hintplan.plans.evidence.period import Period
from hintplan.plans.frozen import frozen
from hintplan.plans.text.counts import age_text, count_of, human_bytes

FEW = 1_000
"""The number of matches below which a share is shown with the number."""


@frozen
class Cost:
    """The effect of a TTL ``after`` (ms; 0 never expires rows) instead of ``before`` on an observed state.

    ``share`` is the share of the observable matches that the TTL keeps, None if it is not known. ``more`` is the number
    of observed misses that a longer TTL would have kept.
    """

    before: int
    after: int
    size_before: Size
    size_after: Size
    seen: Period | None = None
    share: Share | None = None
    more: int = 0

    @property
    def is_shorter(self) -> bool:
        """True if the new TTL is shorter."""
        return self.after > 0 and (self.before == 0 or self.after < self.before)

    @property
    def is_known(self) -> bool:
        """True if matches were observed that the TTL loses, or that the TTL before lost."""
        return self.share is not None if self.is_shorter else self.more > 0

    @property
    def text(self) -> str:
        """The rows, bytes and matches in a line."""
        return f"{self.rows_text}; {self.matches_text}"

    @property
    def rows_text(self) -> str:
        """The rows and bytes that go."""
        rows, size = self.size_before.rows - self.size_after.rows, self.size_before.bytes - self.size_after.bytes
        if not rows:
            return "no row goes"
        part, whole = human_bytes(size), human_bytes(self.size_before.bytes)
        part = part.partition(" ")[0] if part.partition(" ")[2] == whole.partition(" ")[2] else part
        return (
            f"{rows:,} of {count_of(self.size_before.rows, 'row')} {'goes' if rows == 1 else 'go'}, {part} of {whole}"
        )

    @property
    def matches_text(self) -> str:
        """The share of matches that a shorter TTL loses, or the number that a longer one would have kept."""
        seen = self.seen
        if seen is None or not sum(seen.hits) + sum(seen.misses):
            return "no match of the state was observed"
        time = f"the last {age_text(seen.until - seen.since)}"
        sampled = " (sampled)" if seen.sampled else ""
        if not self.is_shorter:
            if not self.more:
                return f"no match of {time} was seen to come too late for the TTL before"
            late = count_of(self.more, "match", "matches")
            return f"at least {late} of {time} came too late for the TTL before{sampled}"
        if self.share is None:
            return f"the matches that it loses are not known: no TTL of {time} was as long"
        few = f"the {count_of(self.share.of, 'match', 'matches')}" if self.share.of < FEW else ""
        if not self.share.lost.high:
            return f"{f'none of {few}' if few else 'no match'} of {time} came later than that{sampled}"
        of = few or "matches"
        return f"{share_text(self.share.lost)} of {of} of {time} came later than that{sampled}"

    def json(self) -> dict[str, Any]:
        """Return the cost as JSON values."""
        seen = self.seen
        return {
            "rows-before": self.size_before.rows,
            "rows-after": self.size_after.rows,
            "bytes-before": self.size_before.bytes,
            "bytes-after": self.size_after.bytes,
            "size-is-least": self.size_before.at_least or self.size_after.at_least,
            "kept-least": None if self.share is None else self.share.least,
            "kept-most": None if self.share is None else self.share.most,
            "further-matches": self.more,
            "observed": None if seen is None else {"since": utc(seen.since), "until": utc(seen.until)},
            "sampled": seen is not None and seen.sampled,
            "text": self.text,
        }


def cost_of(state: StateEvidence, before: int, after: int) -> Cost:
    """Return the cost of the TTL ``after`` instead of ``before`` (ms; 0 never expires rows)."""
    longer = before != 0 and (after == 0 or after > before)
    return Cost(
        before=before,
        after=after,
        size_before=size_kept(state, before),
        size_after=size_kept(state, after),
        seen=observed(state),
        share=share_kept(state, after),
        more=further_matches(state, after) if longer else 0,
    )
