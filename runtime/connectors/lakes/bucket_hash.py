"""The hash by which Iceberg divides rows into buckets, after its specification ("Appendix B: 32-bit Hash").

>>> bucket_hash(pa.array([34])).tolist(), bucket_hash(pa.array(["iceberg"])).tolist()
([2017239379], [1210000089])
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Hashes = np.ndarray[Any, np.dtype[np.int32]]


def bucket_hash(column: pa.Array) -> Hashes:
    """The hash of each value, any of NULL; of whole numbers, DATE, TIMESTAMP, DECIMAL, texts and bytes."""
    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind):
        distinct = column.dictionary_encode()
        hashes = _of_bytes([_bytes(value) for value in distinct.dictionary.to_pylist()])
        return hashes[distinct.indices.fill_null(0).to_numpy()] if len(hashes) else np.zeros(len(column), np.int32)
    numbers = (column.cast(pa.int32()) if pa.types.is_date(kind) else column).cast(pa.int64()).fill_null(0)
    return _murmur3(numbers.to_numpy().astype("<i8").view(np.uint8).reshape(-1, 8))


def unscaled(value: Decimal) -> int:
    """The digits of a DECIMAL as a number."""
    return int(value.scaleb(-int(value.as_tuple().exponent)))


def _bytes(value: str | bytes | Decimal) -> bytes:
    if isinstance(value, Decimal):
        number = unscaled(value)
        return number.to_bytes(max(number, ~number).bit_length() // 8 + 1, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


def _of_bytes(values: list[bytes]) -> Hashes:
    places: dict[int, list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        places[len(value)].append(place)
    found = np.zeros(len(values), np.int32)
    for length, some in places.items():
        rows = np.frombuffer(b"".join(values[place] for place in some), np.uint8)
        found[some] = _murmur3(rows.reshape(len(some), length))
    return found


def _murmur3(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> Hashes:
    """MurmurHash3 (x86, 32 bit) of each row of bytes, with the seed 0."""
    length, whole = rows.shape[1], rows.shape[1] // 4 * 4
    h = np.zeros(len(rows), np.uint32)
    for start in range(0, whole, 4):
        h = _rotated(h ^ _mixed(_little_endian(rows[:, start : start + 4])), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    if whole < length:
        h = h ^ _mixed(_little_endian(rows[:, whole:]))
    h = h ^ np.uint32(length)
    h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    h = (h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return (h ^ h >> np.uint32(16)).view(np.int32)


def _little_endian(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    found = np.zeros(len(rows), np.uint32)
    for place in range(rows.shape[1]):
        found |= rows[:, place].astype(np.uint32) << np.uint32(8 * place)
    return found


def _mixed(k: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return _rotated(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(k: np.ndarray[Any, np.dtype[np.uint32]], bits: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return k << np.uint32(bits) | k >> np.uint32(32 - bits)
