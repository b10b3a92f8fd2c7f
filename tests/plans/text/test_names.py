"""Suggestions of names: the nearest by letters that are mistyped, swapped, added or left out."""

from __future__ import annotations

import random

import pytest

from hintplan.plans.text.names import distance, nearest


def model(a: str, b: str) -> int:
    """The distance by the whole table, of which nothing is left out."""
    table = [[max(i, j) if 0 in (i, j) else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


def test_the_distance_is_that_of_the_whole_table() -> None:
    letters = random.Random(7)
    for _ in range(3000):
        a, b = ("".join(letters.choices("abc", k=letters.randint(0, 8))) for _ in range(2))
        most, wanted = letters.randint(0, 5), model(a, b)
        assert distance(a, b, most) == (wanted if wanted <= most else None), (a, b, most)


@pytest.mark.parametrize(
    ("name", "candidates", "found"),
    [
        ("CUONT", ("COT", "SUM", "COUNT"), "COUNT"),
        ("ordres", ("orders", "order"), "orders"),
        ("idd", ("id", "total"), "id"),
        ("ORDERS", ("orders",), "orders"),
        ("a", ("b",), None),
        ("earliest", ("latest-offset", "earliest-offset"), "earliest-offset"),
        ("sink.buffer-flush.interval", ("sink.buffer-flush.max-rows",), None),
        ("nothing", ("like", "it"), None),
        ("x" * 300, ("x" * 299,), None),
    ],
)
def test_the_nearest_name_is_found(name: str, candidates: tuple[str, ...], found: str | None) -> None:
    assert nearest(name, candidates) == found
