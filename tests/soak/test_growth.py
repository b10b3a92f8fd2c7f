"""What the soak takes for growth: a rise over the second half, not one while caches fill, nor what only varies."""

from __future__ import annotations

import pytest

from tests.soak.growth import Bound, grows

BOUND = Bound(share=0.2, least=10)


@pytest.mark.parametrize(
    ("samples", "growth"),
    [
        ([10, 40, 80, 100, 100, 100, 100, 100], False),
        ([100, 100, 100, 100, 90, 115, 85, 110], False),
        ([100, 100, 100, 100, 100, 130, 160, 190], True),
        ([0, 0, 0, 0, 1, 3, 5, 7], False),
        ([300, 200, 100, 100, 90, 80, 70, 60], False),
        ([1, 9, 30], False),
    ],
)
def test_only_what_still_rises_in_the_second_half_grows(samples: list[float], growth: bool) -> None:
    assert (grows(samples, BOUND) is not None) == growth
