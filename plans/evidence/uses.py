"""The ages at which a batch has used the rows of an operator's state tables, and their form as numbers in metrics.

>>> uses = (Uses(), Uses(hits=counts({3: 5}), misses=counts({50: 1})))
>>> decoded_uses(" ".join(map(str, encoded_uses(uses)))) == {1: uses[1]}
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hintplan.plans.evidence.ages import NONE, Counts, added, counts
from hintplan.plans.frozen import frozen

_TABLE, _MISS, _BUCKET = 56, 55, 48
"""The lowest bits of the parts of a number; the count is below them."""
_COUNT = (1 << _BUCKET) - 1


@frozen
class Uses:
    """The hits and misses of a table in one batch, by age, as in :class:`hintplan.plans.evidence.period.Period`."""

    hits: Counts = NONE
    misses: Counts = NONE

    def __add__(self, other: Uses) -> Uses:
        return Uses(hits=added(self.hits, other.hits), misses=added(self.misses, other.misses))


def encoded_uses(uses: Sequence[Uses]) -> Iterator[int]:
    """Yield a number for each bucket that is not empty: table, hit or miss, bucket and count."""
    for table, of_table in enumerate(uses):
        for is_miss, histogram in enumerate((of_table.hits, of_table.misses)):
            if histogram is not NONE:
                for bucket, count in enumerate(histogram):
                    if count:
                        yield table << _TABLE | is_miss << _MISS | bucket << _BUCKET | count


def decoded_uses(text: str) -> Mapping[int, Uses]:
    """Return the uses of each table, by its place, from the numbers of all partitions."""
    found: dict[int, Uses] = {}
    for number in map(int, text.split()):
        bucket = counts({number >> _BUCKET & (1 << _MISS - _BUCKET) - 1: number & _COUNT})
        use = Uses(misses=bucket) if number >> _MISS & 1 else Uses(hits=bucket)
        table = number >> _TABLE
        found[table] = found.get(table, Uses()) + use
    return found
