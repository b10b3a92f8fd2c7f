"""The hash of Iceberg's bucket transform, by its specification ("Appendix B: 32-bit Hash").

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
    """Return the hash of each integer, DATE, TIMESTAMP, DECIMAL, text or bytes value; for NULL it is arbitrary."""
    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind):
        distinct = column.dictionary_encode()
        hashes = _of_bytes([_bytes(value) for value in distinct.dictionary.to_pylist()])
        return hashes[distinct.indices.fill_null(0).to_numpy()] if len(hashes) else np.zeros(len(column), np.int32)
    numbers = (column.cast(pa.int32()) if pa.types.is_date(kind) else column).cast(pa.int64()).fill_null(0)
    return _murmur3(numbers.to_numpy().astype("<i8").view(np.uint8).reshape(-1, 8))


def unscaled(value: Decimal) -> int:
    """Return the unscaled value of a DECIMAL: its digits as an integer."""
    return int(value.scaleb(-int(value.as_tuple().exponent)))


def _bytes(value: str | bytes | Decimal) -> bytes:
    if isinstance(value, Decimal):
        number = unscaled(value)
        return number.to_bytes(max(number, ~number).bit_length() // 8 + 1, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


def _of_bytes(values: list[bytes]) -> Hashes:
    positions: dict[int, list[int]] = defaultdict(list)
    for position, value in enumerate(values):
        positions[len(value)].append(position)
    hashes = np.zeros(len(values), np.int32)
    for length, same_length in positions.items():
        rows = np.frombuffer(b"".join(values[position] for position in same_length), np.uint8)
        hashes[same_length] = _murmur3(rows.reshape(len(same_length), length))
    return hashes


def _murmur3(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> Hashes:
    """Return MurmurHash3 (x86, 32 bit, seed 0) of each row of bytes."""
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
    numbers = np.zeros(len(rows), np.uint32)
    for index in range(rows.shape[1]):
        numbers |= rows[:, index].astype(np.uint32) << np.uint32(8 * index)
    return numbers


def _mixed(k: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return _rotated(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(k: np.ndarray[Any, np.dtype[np.uint32]], bits: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return k << np.uint32(bits) | k >> np.uint32(32 - bits)
