"""Rows joined with what their keys found: padding, conditions, row kinds and order, against a loop over rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.condition import compile_filter
from hintplan.runtime.lookup.join import LookupRows
from hintplan.runtime.lookup.rows import distinct_keys, keyed_rows
from hintplan.runtime.operator import KIND
from tests.runtime.expressions.checking import checked_over
from tests.sample import sampled

INPUT = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("ask", pa.bool_()), (KIND, pa.int8())])
FOUND = pa.schema([("x", pa.int64()), ("y", pa.string())])


def rows(**changes: Any) -> LookupRows:
    plain = LookupRows(
        keys=("a", "b"),
        pre_filter=None,
        fetched=FOUND,
        padded=True,
        conditions=(),
        output=pa.schema([("id", pa.int64()), ("y", pa.string()), ("x", pa.int64()), (KIND, pa.int8())]),
        origins=(("left", "id"), ("right", "y"), ("right", "x"), ("left", KIND)),
    )
    return replace(plain, **changes)


def dimension(random: Random) -> dict[tuple[int, str], list[tuple[int | None, str]]]:
    keys = [(a, b) for a in range(3) for b in "pq"]
    return {
        key: [(random.choice((None, 1, 5, 9)), f"{key}{n}") for n in range(random.choice((0, 1, 1, 3)))] for key in keys
    }


@pytest.mark.parametrize("seed", sampled(range(150), keep=50))
def test_a_batch_is_joined_as_row_by_row(seed: int) -> None:
    random = Random(seed)
    source = dimension(random)
    padded, asks = random.random() < 0.5, random.choice((None, "ask"))
    conditions = (compile_filter(checked_over("x > 3", ["x"]), FOUND),) if random.random() < 0.5 else ()
    tested = rows(padded=padded, pre_filter=asks, conditions=conditions)
    size = random.randint(0, 12)
    values = [
        (n, random.choice((None, 0, 1, 2)), random.choice((None, "p", "q")), random.choice((None, True, False)), n % 4)
        for n in range(size)
    ]
    table = pa.table([[row[c] for row in values] for c in range(5)], schema=INPUT)
    asked = tested.key_batch(table)
    assert len(set(asked.keys)) == len(asked.keys)
    found = keyed_rows([source[key] for key in asked.keys], FOUND, where="test")
    expected: list[tuple[Any, ...]] = []
    for number, a, b, ask, kind in values:
        looked_up = a is not None and b is not None and (asks is None or ask is True)
        matches = source[a, b] if looked_up and a is not None and b is not None else []
        kept = [(x, y) for x, y in matches if not conditions or (x is not None and x > 3)]
        expected += [(number, y, x, kind) for x, y in kept]
        if not kept and padded:
            expected.append((number, None, None, kind))
    joined = tested.join(asked.table, asked.codes, found)
    assert list(zip(*(column.to_pylist() for column in joined.columns), strict=True)) == expected
    assert joined.schema == tested.output


def test_keys_are_python_values_of_their_types() -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    columns = [
        pa.array([1, 1], pa.int32()),
        pa.array([Decimal("1.50")] * 2, pa.decimal128(10, 2)),
        pa.array([moment] * 2, pa.timestamp("us", "UTC")),
        pa.array([date(2020, 1, 2)] * 2),
        pa.array([True, True]),
        pa.array([b"\x00"] * 2),
    ]
    codes, keys = distinct_keys(columns)
    assert (codes.tolist(), keys) == ([0, 0], [(1, Decimal("1.50"), moment, date(2020, 1, 2), True, b"\x00")])


def test_a_row_of_a_source_must_fit_the_columns() -> None:
    with pytest.raises(RunError, match="lookup_t: the source returned a row of 1 values, expected 2"):
        keyed_rows([[(1,)]], FOUND, where="lookup_t")
    with pytest.raises(RunError, match="lookup_t: the source returned values for column 'x' that are no int64"):
        keyed_rows([[("one", "a")]], FOUND, where="lookup_t")


def test_rows_of_each_key_stay_together_whatever_the_source_yields_them_as() -> None:
    found = keyed_rows([iter([(1, "a")]), (), [(2, "b"), (3, "c")]], FOUND, where="test")
    assert (found.start.tolist(), found.count.tolist()) == ([0, 1, 1], [1, 0, 2])
    assert np.all(found.table["x"].to_numpy() == [1, 2, 3])
