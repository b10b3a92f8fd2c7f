"""Nested values have the hashes that Spark has, and the same numbers exactly where Python finds them equal."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.state.nested_values import nested_numbers

INTEGERS = st.none() | st.integers(0, 2)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "array": (pa.list_(pa.int32()), st.none() | st.lists(INTEGERS, max_size=3)),
    "row": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.none() | st.fixed_dictionaries({"a": INTEGERS, "b": st.none() | st.sampled_from(["", "x"])}),
    ),
    "array of arrays": (
        pa.list_(pa.list_(pa.int64())),
        st.none() | st.lists(st.none() | st.lists(INTEGERS, max_size=2), max_size=2),
    ),
    "map": (
        pa.map_(pa.string(), pa.int32()),
        st.none() | st.dictionaries(st.sampled_from("ab"), INTEGERS).map(lambda entries: list(entries.items())),
    ),
}


def same(value: Any) -> str:
    """Text that is the same for equal values; the entries of a map have no order."""
    entries = isinstance(value, list) and value and isinstance(value[0], tuple)
    return json.dumps(sorted(value, key=repr) if entries else value, sort_keys=True)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data())
def test_values_are_numbered_and_hashed_alike_exactly_if_they_are_equal(kind: str, data: st.DataObject) -> None:
    arrow, values = KINDS[kind]
    rows = data.draw(st.lists(values, min_size=1, max_size=12))
    skipped = data.draw(st.integers(0, len(rows) - 1))
    column = pa.array(rows, arrow).slice(skipped)
    numbers, hashes = nested_numbers(column).to_pylist(), hash_rows([column], len(column)).tolist()
    for i, one in enumerate(rows[skipped:]):
        assert (numbers[i] is None) == (one is None)
        for j, other in enumerate(rows[skipped:]):
            if one is not None and other is not None:
                assert (numbers[i] == numbers[j]) == (same(one) == same(other))
            assert hashes[i] == hashes[j] or same(one) != same(other)


def test_floats_inside_of_a_value_are_told_apart_as_those_of_a_column() -> None:
    column = pa.array([[0.0, float("nan")], [-0.0, -float("nan")], [0.0, 1.0]])
    assert nested_numbers(column).to_pylist() == [0, 0, 1]
    first, second, third = hash_rows([column], 3).tolist()
    assert first == second != third


def test_hashes_are_those_of_spark() -> None:
    """Measured: xxhash64(i, a, r) of Spark 4.3."""
    columns = [
        pa.array([1, 2, 3], pa.int64()),
        pa.array([[1, 2, None], [], None], pa.list_(pa.int32())),
        pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "x"}, None], pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
    assert hash_rows(columns, 3).tolist() == [7485603250096469965, 3397233593300689021, 3188756510806108107]
