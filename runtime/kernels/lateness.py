"""The lateness of late rows: the time by which the watermark had passed their last window.

A watermark delay that is longer by more than this time would have kept the row.

>>> [(ENDS[bucket], rows) for bucket, rows in enumerate(lateness(np.array([4_999, 9_999]), 10_000)) if rows]
[(1000, 1), (6000, 1)]
"""

from __future__ import annotations

import numpy as np

from hintplan.plans.evidence.ages import ENDS, NONE, Counts
from hintplan.runtime.state.layout import Int64s

_ENDS = np.array(ENDS, np.int64)
_LONG_AGO = 1 << 62
"""Above all times of rows, and low enough to subtract any of them."""


def lateness(closes: Int64s, before: int, rows: Int64s | None = None) -> Counts:
    """Return how many late rows have which lateness, in the buckets of :mod:`hintplan.plans.evidence.ages`.

    ``closes`` are the watermarks (ms) that close the last windows of the rows, and ``before`` is the watermark before
    their batch. Each counts as many times as ``rows`` has, or once.
    """
    if not len(closes):
        return NONE
    buckets = np.searchsorted(_ENDS, min(before, _LONG_AGO) - closes, "right")
    counts = np.zeros(len(NONE), np.int64)
    np.add.at(counts, buckets, 1 if rows is None else rows)
    return tuple(counts.tolist())
