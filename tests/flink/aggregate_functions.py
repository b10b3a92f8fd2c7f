"""Aggregate functions in Python, the same for PyFlink and for hintplan: what both call, without a base class.

Accumulators are rows by place. A row is a list to hintplan; for PyFlink record_aggregates.py makes a Row of it.
"""

from __future__ import annotations

from typing import Any


class WeightedAverage:
    """The average of a value by a weight; passes over rows in which something is NULL."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def accumulate(self, accumulator: Any, value: Any, weight: Any) -> None:
        self._add(accumulator, value, weight, 1)

    def retract(self, accumulator: Any, value: Any, weight: Any) -> None:
        self._add(accumulator, value, weight, -1)

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        for other in accumulators:
            accumulator[0] += other[0]
            accumulator[1] += other[1]

    def get_value(self, accumulator: Any) -> float | None:
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    @staticmethod
    def _add(accumulator: Any, value: Any, weight: Any, sign: int) -> None:
        if value is not None and weight is not None:
            accumulator[0] += sign * value * weight
            accumulator[1] += sign * weight


class Bag:
    """The values that are there, NULLs too, sorted, each with how often it is there: what it was called with."""

    def create_accumulator(self) -> Any:
        return [[]]

    def accumulate(self, accumulator: Any, value: Any) -> None:
        accumulator[0] = sorted([*accumulator[0], str(value)])

    def retract(self, accumulator: Any, value: Any) -> None:
        accumulator[0].remove(str(value))

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        for other in accumulators:
            accumulator[0] = sorted([*accumulator[0], *other[0]])

    def get_value(self, accumulator: Any) -> str:
        return " ".join(accumulator[0])


class Calls:
    """What it was called with, in order, retractions too."""

    def create_accumulator(self) -> Any:
        return [[]]

    def accumulate(self, accumulator: Any, value: Any, weight: Any) -> None:
        accumulator[0].append(f"+{value},{weight}")

    def retract(self, accumulator: Any, value: Any, weight: Any) -> None:
        accumulator[0].append(f"-{value},{weight}")

    def get_value(self, accumulator: Any) -> str:
        return " ".join(accumulator[0])


TYPES = {
    "weighted": (WeightedAverage, ("BIGINT", "BIGINT"), {"total": "BIGINT", "weight": "BIGINT"}, "DOUBLE"),
    "bag": (Bag, ("BIGINT",), {"values": "ARRAY<STRING>"}, "STRING"),
    "calls": (Calls, ("BIGINT", "BIGINT"), {"calls": "ARRAY<STRING>"}, "STRING"),
}
"""The functions by name: class, types of the arguments, fields of the accumulator, type of the result."""

PROGRAMS: dict[str, tuple[str, str]] = {
    "of rows that are added": ("k BIGINT, a DOUBLE", "SELECT k, weighted(v, id) FROM o GROUP BY k"),
    "of all rows": ("a DOUBLE, b STRING", "SELECT weighted(v, id), bag(v) FROM o"),
    "the calls, in order, with NULLs": ("k BIGINT, c STRING", "SELECT k, calls(v, id) FROM o GROUP BY k"),
    "beside others": (
        "k BIGINT, n BIGINT, a DOUBLE, t BIGINT, b STRING, m BIGINT",
        "SELECT k, COUNT(*), weighted(v, id), SUM(v), bag(v), MAX(v) FROM o GROUP BY k",
    ),
    "twice, with other arguments": (
        "k BIGINT, a DOUBLE, b DOUBLE",
        "SELECT k, weighted(v, id), weighted(id, v) FROM o GROUP BY k",
    ),
    "of a part of the rows": (
        "k BIGINT, a DOUBLE, b STRING",
        "SELECT k, weighted(v, id) FILTER (WHERE v > 5), bag(v) FILTER (WHERE id < 6) FROM o GROUP BY k",
    ),
    "of none of the rows": ("k BIGINT, b STRING", "SELECT k, bag(v) FILTER (WHERE id > 1000) FROM o GROUP BY k"),
    "of different values": (
        "k BIGINT, b STRING, a DOUBLE, n BIGINT",
        "SELECT k, bag(DISTINCT v), weighted(DISTINCT v, id), COUNT(DISTINCT v) FROM o GROUP BY k",
    ),
    "of different pairs, some NULL": (
        "s STRING, c STRING",
        "SELECT s, calls(DISTINCT v, k) FROM o GROUP BY s",
    ),
    "of different values in a part of the rows": (
        "k BIGINT, b STRING",
        "SELECT k, bag(DISTINCT v) FILTER (WHERE v > 5 OR v IS NULL) FROM o GROUP BY k",
    ),
    "of changes": ("k BIGINT, a DOUBLE, b STRING", "SELECT k, weighted(v, v), bag(v) FROM g GROUP BY k"),
    "of changes, all rows": ("a DOUBLE, b STRING", "SELECT weighted(v, v), bag(v) FROM g"),
    "of changes, different values": ("s STRING, b STRING", "SELECT s, bag(DISTINCT v) FROM g GROUP BY s"),
    "of changes, a part": ("s STRING, b STRING", "SELECT s, bag(v) FILTER (WHERE v > 10) FROM g GROUP BY s"),
    "of an aggregate": (
        "n BIGINT, b STRING, a DOUBLE",
        "SELECT n, bag(t), weighted(t, n) FROM (SELECT k, COUNT(*) AS n, SUM(v) AS t FROM o GROUP BY k) GROUP BY n",
    ),
    "of an outer join": (
        "name STRING, b STRING",
        "SELECT c.name, bag(o.v) FROM c LEFT JOIN o ON c.k = o.k GROUP BY c.name",
    ),
    "in HAVING, of expressions": (
        "k BIGINT, b STRING",
        "SELECT k, bag(v + 1) FROM o GROUP BY k HAVING weighted(v, 2) > 9",
    ),
    "of another one": (
        "b STRING",
        "SELECT bag(CAST(a AS BIGINT)) FROM (SELECT k, weighted(v, v) AS a FROM g GROUP BY k)",
    ),
    "in a sub-query": (
        "id BIGINT, b STRING",
        "SELECT id, (SELECT bag(v) FROM g WHERE g.k = o.k) FROM o",
    ),
}
