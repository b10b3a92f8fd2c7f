"""The location of an operator's state, its division into partitions, and the run that writes it.

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
"""The number of leading bits of a hash that determine its partition. They are equal in all hashes of a key's rows."""
_REST = 64 - _PREFIX
END = 1 << 63
"""The end of the range of hashes."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The number of ``partitions`` of the state from the batch ``first`` on."""

    partitions: int
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The state of ``operator`` with ``lineage``, below ``root``, a path or a URL that all workers reach.

    ``run`` is higher than the number of any earlier run. ``scales`` are the partition counts over time; the last one is
    in force. ``begun`` is true if each partition had a manifest before the run. Where Spark does not pass the batch
    number to tasks, the query passes it under the name ``batch_key``.
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
    """Return the folder of a partition, relative to the root."""
    return f"{scale}/{partition}"


def partitions_of(hashes: Int64s, partitions: int) -> Int64s:
    """Return the partition of each hash. Each partition owns a range of hashes, so its part of a segment is a slice."""
    import numpy as np  # imported here, because a check of a checkpoint does not need it

    prefixes = (hashes.view(np.uint64) ^ np.uint64(END)) >> np.uint64(_REST)
    indexes: Int64s = (prefixes * np.uint64(partitions) >> np.uint64(_PREFIX)).view(np.int64)
    return indexes


def bounds(partition: int, partitions: int) -> tuple[int, int]:
    """Return the hashes of a partition: from the first to before the second."""

    def begin(number: int) -> int:
        return (-(-(number << _PREFIX) // partitions) << _REST) - END

    return begin(partition), begin(partition + 1)
