"""The ages of uses go through metrics as numbers, from several tables and partitions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hintplan.plans.evidence.ages import NONE, counts
from hintplan.plans.evidence.uses import Uses, decoded_uses, encoded_uses

HISTOGRAMS = st.dictionaries(st.integers(0, len(NONE) - 1), st.integers(1, 1 << 40), max_size=5).map(counts)
TABLES = st.lists(st.builds(Uses, hits=HISTOGRAMS, misses=HISTOGRAMS), max_size=9)


@given(st.lists(TABLES, max_size=3))
def test_partitions_add_up(partitions: list[list[Uses]]) -> None:
    # As Spark joins them: a task that has nothing to say still has its blanks.
    text = " ".join(" ".join(map(str, encoded_uses(tables))) for tables in partitions)
    expected: dict[int, list[list[int]]] = {}
    for tables in partitions:
        for place, use in enumerate(tables):
            if any(use.hits) or any(use.misses):
                sums = expected.setdefault(place, [[0] * len(NONE), [0] * len(NONE)])
                for total, histogram in zip(sums, (use.hits, use.misses), strict=True):
                    total[:] = [a + b for a, b in zip(total, histogram, strict=True)]
    found = {place: [list(use.hits), list(use.misses)] for place, use in decoded_uses(text).items()}
    assert found == expected


def test_every_number_fits_into_64_bits() -> None:
    last = counts({len(NONE) - 1: (1 << 48) - 1})
    numbers = list(encoded_uses([Uses()] * 126 + [Uses(hits=last, misses=last)]))
    assert all(0 <= number < 1 << 63 for number in numbers)
    assert decoded_uses(" ".join(map(str, numbers))) == {126: Uses(hits=last, misses=last)}
