"""How hashes are divided: each belongs to one partition, the partitions are ranges, and all are about as large."""

from __future__ import annotations

import numpy as np
import pytest

from hintplan.runtime.state.layout import SUFFIX_MASK
from hintplan.runtime.storage.place import END, Place, Scale, bounds, partitions_of

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
COUNTS = (1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 127, 200, 255, 256, 333, 500, 999, 1000)


def edges(partitions: int) -> list[tuple[int, int]]:
    return [bounds(partition, partitions) for partition in range(partitions)]


def test_ranges_follow_each_other_from_the_lowest_hash_to_beyond_the_highest() -> None:
    for partitions in range(1, 1001):
        found = edges(partitions)
        assert found[0][0] == LOWEST
        assert found[-1][1] == END == HIGHEST + 1
        assert all(low < high for low, high in found)
        assert [high for _, high in found[:-1]] == [low for low, _ in found[1:]]


def test_the_first_and_last_hash_of_a_range_belong_to_its_partition() -> None:
    for partitions in range(1, 1001):
        found = edges(partitions)
        first = np.array([low for low, _ in found], np.int64)
        last = np.array([high - 1 for _, high in found], np.int64)
        assert partitions_of(first, partitions).tolist() == list(range(partitions))
        assert partitions_of(last, partitions).tolist() == list(range(partitions))


@pytest.mark.parametrize("partitions", COUNTS)
def test_a_hash_belongs_to_the_partition_in_whose_range_it_lies(partitions: int) -> None:
    hashes = np.random.default_rng(partitions).integers(LOWEST, HIGHEST, 2000, np.int64, endpoint=True)
    hashes[:6] = [LOWEST, LOWEST + 1, -1, 0, 1, HIGHEST]
    found = edges(partitions)
    for value, partition in zip(hashes.tolist(), partitions_of(hashes, partitions).tolist(), strict=True):
        low, high = found[partition]
        assert low <= value < high


@pytest.mark.parametrize("partitions", COUNTS)
def test_all_ranges_are_as_large_but_for_a_hash_of_two_to_the_forty(partitions: int) -> None:
    sizes = [high - low for low, high in edges(partitions)]
    assert sum(sizes) == 1 << 64
    assert max(sizes) - min(sizes) <= 1 << 24


@pytest.mark.parametrize("partitions", COUNTS)
def test_hashes_of_one_key_are_in_one_partition(partitions: int) -> None:
    """State that is probed by key has the row's hash in the last bits."""
    keys = np.random.default_rng(1).integers(LOWEST, HIGHEST, 500, np.int64)
    low, high = keys & ~SUFFIX_MASK, keys | SUFFIX_MASK
    assert (partitions_of(low, partitions) == partitions_of(high, partitions)).all()


def test_the_last_scale_is_in_force() -> None:
    place = Place(root="/s", operator="join_o_c", scales=(Scale(4), Scale(8, first=12)))
    assert (place.partitions, place.scale) == (8, 1)
