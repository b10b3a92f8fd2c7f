"""Where the state of an operator is, how it is divided, and which run writes it.

>>> bounds(0, 2) == (-(1 << 63), 0), bounds(1, 2) == (0, 1 << 63)
(True, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int64s = npt.NDArray[np.int64]

_PREFIX = 40
"""Bits of a hash that decide on its partition: those that are the same in all hashes of a key's rows."""
_REST = 64 - _PREFIX
END = 1 << 63
"""Beyond all hashes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From the batch ``first`` on, the state has so many ``partitions``."""

    partitions: int
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The state of ``operator`` with ``lineage``, below ``root``, a path or a URL that all workers reach.

    ``run`` is a number higher than that of any run before; ``scales`` are the numbers of partitions that there were,
    the last one is in force. ``begun`` says that each partition had a manifest there before the run,
    ``batch_key`` under which name the query tells tasks its batch where Spark does not.
    """

    root: str
    operator: str
    lineage: str | None = None
    run: int = 1
    scales: tuple[Scale, ...] = field(default=(Scale(1),))
    begun: bool = False
    batch_key: str = ""

    @property
    def partitions(self) -> int:
        return self.scales[-1].partitions

    @property
    def scale(self) -> int:
        return len(self.scales) - 1


def folder_of(scale: int, partition: int) -> str:
    """The folder of a partition, below the root."""
    return f"{scale}/{partition}"


def partitions_of(hashes: Int64s, partitions: int) -> Int64s:
    """The partition of each hash: each partition owns a range of them, so that a segment's part of it is a slice."""
    import numpy as np  # here, for who checks a checkpoint has no use for it

    prefixes = (hashes.view(np.uint64) ^ np.uint64(END)) >> np.uint64(_REST)
    found: Int64s = (prefixes * np.uint64(partitions) >> np.uint64(_PREFIX)).view(np.int64)
    return found


def bounds(partition: int, partitions: int) -> tuple[int, int]:
    """The hashes of a partition: from the first to before the second."""

    def begin(number: int) -> int:
        return (-(-(number << _PREFIX) // partitions) << _REST) - END

    return begin(partition), begin(partition + 1)
