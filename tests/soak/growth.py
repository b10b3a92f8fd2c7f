"""What grows without end, and what only varies: judged from samples taken once a minute.

The first half of a run fills caches, heaps and whatever Spark keeps for a number of batches. Over the second half a
line is laid through the samples by least squares; a quantity grows if the line rises by more than ``share`` of the
samples' mean and by more than ``least``, which is what garbage collection and merges of state make it vary by.

>>> grows([1, 50, 100, 100, 101, 100], Bound(share=0.2, least=10)) is None
True
>>> grows([1, 2, 100, 140, 180, 220], Bound(share=0.2, least=10))
'rises by 120 over the second half, from 100 to 220; at most 32 is taken for variation'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.soak.windows import OPERATORS

__all__ = ["BOUNDS", "Bound", "grows"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a quantity may rise by over the second half: a share of its mean, or so much, whichever is more."""

    share: float
    least: float


BOUNDS = {
    "driver JVM": Bound(share=0.2, least=200 * MIB),
    "driver Python": Bound(share=0.15, least=30 * MIB),
    "workers": Bound(share=0.2, least=100 * MIB),
    "open files": Bound(share=0.2, least=60),
    "checkpoint files": Bound(share=0.25, least=150),
    "worker files": Bound(share=0.25, least=100),
    "batch ms": Bound(share=0.6, least=1500),
    "window files": Bound(share=0.25, least=60),
    "window bytes": Bound(share=0.25, least=256 << 10),
    "open rows": Bound(share=0.6, least=300),
    **{f"{name} rows": Bound(share=0.3, least=50) for name in OPERATORS},
    **{f"{name} bytes": Bound(share=0.3, least=8 << 10) for name in OPERATORS},
}
"""By quantity, in bytes, files, rows, or milliseconds of the median batch. The JVM's heap is bounded by its settings.

The rows and bytes of an operator are the means of a minute's batches. The open rows are counted at one moment, when a
window may have just begun or be about to close.
"""


def grows(samples: Sequence[float], bound: Bound) -> str | None:
    """Why ``samples``, equally far apart, are taken for growth; None if they are not. Four are needed."""
    half = np.asarray(samples[len(samples) // 2 :], float)
    if len(half) < 3:
        return None
    slope = np.polyfit(np.arange(len(half)), half, 1)[0]
    rise, most = slope * (len(half) - 1), max(bound.least, bound.share * float(half.mean()))
    if rise <= most:
        return None
    return (
        f"rises by {rise:,.0f} over the second half, from {half[0]:,.0f} to {half[-1]:,.0f}; "
        f"at most {most:,.0f} is taken for variation"
    )
