"""Spark's ``xxhash64`` over Arrow columns: the hash that routes rows to partitions and sorts state.

It is XXH64 with seed 42. Each column's hash is the seed of the next; NULL leaves the seed unchanged.

- Integers up to 32 bits and dates hash as 4 bytes, other integers and timestamps as 8 bytes.
- Decimals of more than 18 digits hash as the fewest bytes of a signed big-endian number.
- -0.0 hashes as 0.0, and every NaN as the same NaN.
- A ROW hashes as its fields, an ARRAY as its elements, one after the other.
- A MAP hashes as the sum of its entries; Spark does not hash maps.

State in checkpoints is sorted by this hash, so it never changes. Source:
org.apache.spark.sql.catalyst.expressions.XXH64 and HashExpression, https://xxhash.com for the algorithm.

>>> hash_rows([pa.array([1, None])], 2).tolist()
[-7001672635703045582, 42]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hintplan.runtime.kernels.xxhash_single import SingleHash, hash_bytes, hash_int, hash_long, stripes
from hintplan.runtime.state.layout import Int64s

UInt64s = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_SEED = 42
_PORTION = 1 << 14
"""The rows hashed at a time, so that intermediate results stay in the processor's cache."""
_FEW = 16
"""If at most this many rows still have longer values than the others, the rest of them is hashed row by row."""


def hash_rows(columns: Sequence[pa.Array], rows: int) -> Int64s:
    """Return the hash of each of ``rows`` rows over ``columns``; 42 if there are no columns."""
    hashes = np.full(rows, _SEED, np.uint64)
    for begin in range(0, rows, _PORTION):
        part = hashes[begin : begin + _PORTION]
        for column in columns:
            piece = column.slice(begin, _PORTION)
            hashed = _hash(piece, part)
            if piece.null_count:
                hashed = np.where(piece.is_valid().to_numpy(zero_copy_only=False), hashed, part)
            part[:] = hashed
    return hashes.view(np.int64)


def _hash(column: pa.Array, seeds: UInt64s) -> UInt64s:
    """Return the hash of each value under its seed; the result for NULL is arbitrary."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_bytes(*_bytes_of(column), seeds)
    if pa.types.is_decimal128(kind) and kind.precision > 18:
        return _hash_bytes(*_decimal_bytes(column), seeds)
    if pa.types.is_struct(kind):
        return _with_all(column.flatten(), seeds)
    if pa.types.is_list(kind):
        return _hash_lists(column, seeds)
    if pa.types.is_map(kind):
        return _hash_maps(column, seeds)
    words = _words(column)
    return _hash_long(words, seeds) if words.itemsize == 8 else _hash_int(words, seeds)


def _words(column: pa.Array) -> npt.NDArray[Any]:
    """Return the 4 or 8 bytes that are hashed for each value, as signed numbers."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return _numbers(column.cast(pa.int8())).astype(np.int32)
    if pa.types.is_date32(kind):
        return _numbers(column.view(pa.int32()))
    if pa.types.is_timestamp(kind):
        return _numbers(column.view(pa.int64()))
    if pa.types.is_integer(kind):
        numbers = _numbers(column)
        return numbers if kind.bit_width == 64 else numbers.astype(np.int32)
    if pa.types.is_floating(kind):
        numbers = _numbers(column) + kind.to_pandas_dtype()(0)  # -0.0 + 0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan
        words: npt.NDArray[Any] = numbers.view(np.int32 if kind.bit_width == 32 else np.int64)
        return words
    if pa.types.is_decimal128(kind):
        return np.ascontiguousarray(_decimal_words(column)[:, 0]).view(np.int64)
    raise TypeError(f"values of type {kind} are not hashed")


def _with_all(columns: Sequence[pa.Array], seeds: UInt64s) -> UInt64s:
    """Return ``seeds`` after a value of each column; NULL leaves them unchanged."""
    hashes = seeds.copy()
    for column in columns:
        hashed = _hash(column, hashes)
        if column.null_count:
            hashed = np.where(column.is_valid().to_numpy(zero_copy_only=False), hashed, hashes)
        hashes = hashed
    return hashes


def _hash_lists(column: pa.Array, seeds: UInt64s) -> UInt64s:
    """Hash the elements one after the other; each step hashes the elements at one place of all rows that have one."""
    column = column.take(pa.array(np.arange(len(column))))
    offsets = np.asarray(column.offsets).astype(np.int64)
    elements, lengths, hashes = column.flatten(), np.diff(offsets), seeds.copy()
    place, rows = 0, np.flatnonzero(lengths > 0)
    while rows.size > _FEW:
        hashes[rows] = _with_all([elements.take(pa.array(offsets[rows] + place))], hashes[rows])
        place += 1
        rows = rows[lengths[rows] > place]
    for row in rows.tolist():
        begin, end = int(offsets[row]) + place, int(offsets[row + 1])
        single, hashed = _single(elements.slice(begin, end - begin)), int(hashes[row])
        for at in range(end - begin):
            hashed = single(at, hashed)
        hashes[row] = hashed
    return hashes


def _single(column: pa.Array) -> SingleHash:
    """Return a function that hashes the value at a place of ``column`` under a seed, which NULL leaves unchanged."""
    hashed = _single_value(column)
    if not column.null_count:
        return hashed
    valid = column.is_valid().to_pylist()
    return lambda at, seed: hashed(at, seed) if valid[at] else seed


def _single_value(column: pa.Array) -> SingleHash:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or (pa.types.is_decimal128(kind) and kind.precision > 18):
        content, starts, lengths = _decimal_bytes(column) if pa.types.is_decimal128(kind) else _bytes_of(column)
        data, bounds = content.data, list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))
        return lambda at, seed: hash_bytes(data[bounds[at][0] : bounds[at][1]], seed)
    if pa.types.is_struct(kind):
        fields = [_single(field) for field in column.flatten()]

        def row(at: int, seed: int) -> int:
            for field in fields:
                seed = field(at, seed)
            return seed

        return row
    if pa.types.is_list(kind):
        column = column.take(pa.array(np.arange(len(column))))
        offsets, element = np.asarray(column.offsets).tolist(), _single(column.flatten())

        def elements(at: int, seed: int) -> int:
            for place in range(offsets[at], offsets[at + 1]):
                seed = element(place, seed)
            return seed

        return elements
    if pa.types.is_map(kind):
        return _of_numbers(_sums_of_maps(column))
    return _of_numbers(_words(column))


def _of_numbers(numbers: npt.NDArray[Any]) -> SingleHash:
    hashed = hash_long if numbers.itemsize == 8 else hash_int
    values = numbers.view(np.uint64 if numbers.itemsize == 8 else np.uint32).tolist()
    return lambda at, seed: hashed(values[at], seed)


def _hash_maps(column: pa.Array, seeds: UInt64s) -> UInt64s:
    return _hash_long(_sums_of_maps(column), seeds)


def _sums_of_maps(column: pa.Array) -> Int64s:
    """Return the sum of the hashes of all entries, because their order has no meaning; Spark itself hashes no MAP."""
    column = column.take(pa.array(np.arange(len(column))))
    offsets: Int64s = np.asarray(column.offsets).astype(np.int64)
    lengths = offsets[1:] - offsets[:-1]
    sums = np.zeros(len(column), np.uint64)
    if len(column.keys):
        entries = _with_all([column.keys, column.items], np.full(len(column.keys), _SEED, np.uint64))
        np.add.at(sums, np.repeat(np.arange(len(column)), lengths), entries)
    return sums.view(np.int64)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """Return the values of a column of numbers without a copy; the value for NULL is whatever the buffer holds."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


def _rotated(values: UInt64s, bits: int) -> UInt64s:
    left, right = np.uint64(bits), np.uint64(64 - bits)
    return (values << left) | (values >> right)


def _finished(hashes: UInt64s) -> UInt64s:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _with_word(hashes: UInt64s, words: UInt64s) -> UInt64s:
    """Return ``hashes`` after 8 more bytes."""
    words = words * _P2
    hashes = hashes ^ (_rotated(words, 31) * _P1)
    return _rotated(hashes, 27) * _P1 + _P4


def _with_half(hashes: UInt64s, halves: UInt64s) -> UInt64s:
    """Return ``hashes`` after 4 more bytes."""
    return _rotated(hashes ^ (halves * _P1), 23) * _P2 + _P3


def _with_byte(hashes: UInt64s, single: UInt64s) -> UInt64s:
    return _rotated(hashes ^ (single * _P5), 11) * _P1


def _hash_int(values: npt.NDArray[np.int32], seeds: UInt64s) -> UInt64s:
    return _finished(_with_half(seeds + (_P5 + np.uint64(4)), values.view(np.uint32).astype(np.uint64)))


def _hash_long(values: npt.NDArray[np.int64], seeds: UInt64s) -> UInt64s:
    return _finished(_with_word(seeds + (_P5 + np.uint64(8)), values.view(np.uint64)))


def _decimal_words(column: pa.Array) -> UInt64s:
    return np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), 16 * column.offset).reshape(-1, 2)


def _decimal_bytes(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    """Return all numbers as big-endian bytes, with start and length of each, without bytes that repeat the sign."""
    digits = np.ascontiguousarray(_decimal_words(column).view(np.uint8)[:, ::-1])
    signs = np.where(digits[:, :1] >> 7, np.uint8(0xFF), np.uint8(0))
    repeats = (digits == signs)[:, :15] & (((digits[:, 1:] ^ digits[:, :-1]) >> 7) == 0)
    dropped = np.minimum.accumulate(repeats, axis=1).sum(axis=1)
    starts = np.arange(len(column), dtype=np.int64) * 16 + dropped
    return digits.reshape(-1), starts, 16 - dropped


def _bytes_of(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    """Return the bytes of all texts, and start and length of each; the length for NULL is 0."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64)
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return content, bounds[:-1], np.diff(bounds)


def _hash_bytes(content: npt.NDArray[np.uint8], starts: Int64s, lengths: Int64s, seeds: UInt64s) -> UInt64s:
    """Return the XXH64 of ``lengths[i]`` bytes from ``starts[i]`` on.

    Each step of a loop hashes the next bytes of all rows that have any left.
    """
    begin = int(starts[0])
    content = np.concatenate((content[begin : int(starts[-1] + lengths[-1])], np.zeros(8, np.uint8)))
    starts = starts - begin
    words = np.ndarray(len(content) - 7, "<u8", content, strides=(1,))
    hashes = seeds + _P5
    place = starts.copy()
    end = starts + lengths
    long = np.flatnonzero(lengths >= 32)
    if long.size:
        hashes[long], place[long] = _stripes(content, words, starts[long], lengths[long], seeds[long])
    hashes += lengths.view(np.uint64)
    rows = np.flatnonzero(place + 8 <= end)
    while rows.size:
        hashes[rows] = _with_word(hashes[rows], words[place[rows]])
        place[rows] += 8
        rows = rows[place[rows] + 8 <= end[rows]]
    rows = np.flatnonzero(place + 4 <= end)
    if rows.size:
        hashes[rows] = _with_half(hashes[rows], words[place[rows]] & np.uint64(0xFFFFFFFF))
        place[rows] += 4
    rows = np.flatnonzero(place < end)
    while rows.size:
        hashes[rows] = _with_byte(hashes[rows], content[place[rows]].astype(np.uint64))
        place[rows] += 1
        rows = rows[place[rows] < end[rows]]
    return _finished(hashes)


def _stripes(
    content: npt.NDArray[np.uint8], words: UInt64s, starts: Int64s, lengths: Int64s, seeds: UInt64s
) -> tuple[UInt64s, Int64s]:
    """Hash the whole 32-byte stripes of texts of at least 32 bytes; return the hashes and the ends of the stripes."""
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
    place = starts.copy()
    last = starts + lengths - 32
    rows = np.arange(len(starts))
    while rows.size > _FEW:
        at = place[rows]
        for number, lane in enumerate(lanes):
            lane[rows] = _rotated(lane[rows] + words[at + 8 * number] * _P2, 31) * _P1
        place[rows] += 32
        rows = rows[place[rows] <= last[rows]]
    for row in rows.tolist():
        begin = int(place[row])
        whole = (int(last[row]) - begin) // 32 + 1
        data = content[begin : begin + 32 * whole].tobytes()
        for lane, new_lane in zip(lanes, stripes(data, [int(lane[row]) for lane in lanes]), strict=True):
            lane[row] = new_lane
        place[row] = begin + 32 * whole
    hashes = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for lane in lanes:
        hashes = (hashes ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    return hashes, place
