"""Hashes of columns against the reference implementation of XXH64, over bytes laid out by hand as Spark has them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime.kernels.xxhash import hash_rows


def xxh64(data: bytes, seed: int = 42) -> int:
    found = xxhash.xxh64_intdigest(data, seed=seed % (1 << 64))
    return found - (1 << 64) if found >> 63 else found


def packed(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(form, value)


def of_decimal(value: Decimal) -> bytes:
    digits = int(value.scaleb(4))
    return digits.to_bytes((digits if digits >= 0 else ~digits).bit_length() // 8 + 1, "big", signed=True)


CASES = {
    "bool": (pa.bool_(), st.booleans(), packed("<i")),
    "int8": (pa.int8(), st.integers(-(2**7), 2**7 - 1), packed("<i")),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1), packed("<i")),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1), packed("<i")),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), packed("<q")),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False), lambda v: struct.pack("<f", v + 0.0)),
    "double": (pa.float64(), st.floats(allow_nan=False), lambda v: struct.pack("<d", v + 0.0)),
    "string": (pa.string(), st.text(max_size=150), str.encode),
    "binary": (pa.binary(), st.binary(max_size=150), bytes),
    "short decimal": (
        pa.decimal128(18, 4),
        st.decimals(places=4, min_value=-(10**13), max_value=10**13),
        lambda v: struct.pack("<q", int(v.scaleb(4))),
    ),
    "long decimal": (pa.decimal128(38, 4), st.decimals(places=4, min_value=-(10**20), max_value=10**20), of_decimal),
}


@pytest.mark.parametrize("case", CASES)
@settings(deadline=None)
@given(data=st.data())
def test_values_hash_as_their_bytes_do(case: str, data: st.DataObject) -> None:
    kind, values, layout = CASES[case]
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=20))
    skipped = data.draw(st.integers(0, len(rows) - 1))
    expected = [42 if value is None else xxh64(layout(value)) for value in rows]
    assert hash_rows([pa.array(rows, kind)], len(rows)).tolist() == expected
    assert hash_rows([pa.array(rows, kind).slice(skipped)], len(rows) - skipped).tolist() == expected[skipped:]


def test_the_hash_of_a_column_is_the_seed_of_the_next() -> None:
    numbers, texts = pa.array([7, None, 9], pa.int64()), pa.array(["x" * 40, "y", None])
    first = [xxh64(struct.pack("<q", 7)), 42, xxh64(struct.pack("<q", 9))]
    assert hash_rows([numbers, texts], 3).tolist() == [xxh64(b"x" * 40, first[0]), xxh64(b"y"), first[2]]


def test_every_nan_hashes_as_one_and_zero_has_no_sign() -> None:
    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    hashes = hash_rows([pa.array([float("nan"), other_nan, 0.0, -0.0])], 4).tolist()
    assert hashes[0] == hashes[1] == xxh64(struct.pack("<Q", 0x7FF8000000000000))
    assert hashes[2] == hashes[3] == xxh64(bytes(8))


def test_rows_beyond_one_portion_hash_alike() -> None:
    values = pa.array([f"{number:03d}" * (number % 40) for number in range(40_000)])
    hashes = hash_rows([values], len(values)).tolist()
    assert hashes == [xxh64(str(value).encode()) for value in values.to_pylist()]


def test_rows_without_columns_hash_to_the_seed() -> None:
    assert hash_rows([], 3).tolist() == [42, 42, 42]


def chained(value: Any, layout: Callable[[Any, int], int], seed: int) -> int:
    for each in value or ():
        seed = seed if each is None else layout(each, seed)
    return seed


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("case", CASES)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_long_arrays_hash_as_their_elements_do_one_after_the_other(case: str, rows: int, data: st.DataObject) -> None:
    """However many of them are long: the longest is looked at alone."""
    kind, values, layout = CASES[case]
    elements = data.draw(st.lists(st.none() | values, min_size=1, max_size=7))
    lengths = [(row * 13) % 29 + row % 2 * 60 for row in range(rows)]
    arrays = [[elements[place % len(elements)] for place in range(length)] for length in lengths]
    column = pa.array([None, *arrays], pa.list_(kind))
    expected = [42, *(chained(array, lambda v, seed: xxh64(layout(v), seed), 42) for array in arrays)]
    assert hash_rows([column], rows + 1).tolist() == expected
    assert hash_rows([column.slice(1)], rows).tolist() == expected[1:]


@pytest.mark.parametrize("others", [0, 3, 40])
@pytest.mark.parametrize("length", [31, 32, 33, 63, 64, 1000, 4099, 100_000])
def test_long_texts_hash_as_their_bytes_do(length: int, others: int) -> None:
    texts = [bytes((7 * place + number) % 251 for place in range(length - number % 3)) for number in range(others + 1)]
    column = pa.array([b"short", *texts], pa.binary())
    assert hash_rows([column], len(column)).tolist() == [xxh64(text) for text in (b"short", *texts)]


def test_what_is_nested_in_a_long_array_hashes_alike_alone_and_among_many() -> None:
    """A ROW hashes as its fields, an ARRAY as its elements, a MAP as the sum of its entries; NULL leaves the seed."""
    kind = pa.list_(
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.map_(pa.string(), pa.int64()))])
    )
    value = [
        None if place % 11 == 0 else {"a": None if place % 7 == 0 else place, "b": ["x" * place, None][: place % 3],
                                      "c": None if place % 5 == 0 else [("k", place), ("l", None)]}
        for place in range(120)
    ]  # fmt: skip

    def expected(seed: int) -> int:
        for each in value:
            if each is None:
                continue
            seed = seed if each["a"] is None else xxh64(struct.pack("<i", each["a"]), seed)  # type: ignore[arg-type]
            seed = chained(each["b"], lambda v, s: xxh64(v.encode(), s), seed)
            if each["c"] is not None:
                entries = [
                    xxh64(key.encode()) if item is None else xxh64(struct.pack("<q", item), xxh64(key.encode()))
                    for key, item in each["c"]  # type: ignore[union-attr]
                ]
                seed = xxh64(struct.pack("<Q", sum(entries) % (1 << 64)), seed)
        return seed

    alone = hash_rows([pa.array([value], kind)], 1).tolist()
    among = hash_rows([pa.array([value] * 40, kind)], 40).tolist()
    assert alone == [expected(42)]
    assert among == alone * 40
