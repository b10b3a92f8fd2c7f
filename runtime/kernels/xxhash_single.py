"""XXH64 of single values in Python integers, for the few values that are much longer than the others.

numpy hashes the same place of all rows at a time; for a single long row, this takes about 50 microseconds per place,
and here about one. :mod:`hintplan.runtime.kernels.xxhash` defines the bytes of each value.

>>> hash_bytes(b"", 42) == 0x98B1582B0977E704
True
"""

from __future__ import annotations

import struct
from collections.abc import Callable

_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_ALL = 0xFFFFFFFFFFFFFFFF

SingleHash = Callable[[int, int], int]
"""A function from a place in a column and a seed to the hash of the value there."""


def hash_int(value: int, seed: int) -> int:
    """Return the hash of 4 bytes, given as an unsigned number."""
    return _finished(_with_half((seed + _P5 + 4) & _ALL, value))


def hash_long(value: int, seed: int) -> int:
    """Return the hash of 8 bytes, given as an unsigned number."""
    return _finished(_with_word((seed + _P5 + 8) & _ALL, value))


def hash_bytes(data: bytes | memoryview, seed: int) -> int:
    """Return the hash of ``data``."""
    length, place = len(data), 0
    hashed = (seed + _P5) & _ALL
    if length >= 32:
        place = length - length % 32
        lanes = stripes(data[:place], [(seed + _P1 + _P2) & _ALL, (seed + _P2) & _ALL, seed, (seed - _P1) & _ALL])
        hashed = merged_lanes(lanes)
    hashed = (hashed + length) & _ALL
    while place + 8 <= length:
        hashed = _with_word(hashed, int.from_bytes(data[place : place + 8], "little"))
        place += 8
    if place + 4 <= length:
        hashed = _with_half(hashed, int.from_bytes(data[place : place + 4], "little"))
        place += 4
    for byte in data[place:]:
        hashed = _rotated(hashed ^ (byte * _P5 & _ALL), 11) * _P1 & _ALL
    return _finished(hashed)


def stripes(data: bytes | memoryview, lanes: list[int]) -> list[int]:
    """Return ``lanes`` after ``data``, a multiple of 32 bytes."""
    a, b, c, d = lanes
    for w, x, y, z in struct.iter_unpack("<4Q", data):
        a = (a + w * _P2) & _ALL
        a = ((a << 31 | a >> 33) & _ALL) * _P1 & _ALL
        b = (b + x * _P2) & _ALL
        b = ((b << 31 | b >> 33) & _ALL) * _P1 & _ALL
        c = (c + y * _P2) & _ALL
        c = ((c << 31 | c >> 33) & _ALL) * _P1 & _ALL
        d = (d + z * _P2) & _ALL
        d = ((d << 31 | d >> 33) & _ALL) * _P1 & _ALL
    return [a, b, c, d]


def merged_lanes(lanes: list[int]) -> int:
    """Merge the lanes into the hash of all whole stripes."""
    hashed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _ALL
    for lane in lanes:
        hashed = ((hashed ^ (_rotated(lane * _P2 & _ALL, 31) * _P1 & _ALL)) * _P1 + _P4) & _ALL
    return hashed


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _ALL


def _with_word(digest: int, word: int) -> int:
    digest ^= _rotated(word * _P2 & _ALL, 31) * _P1 & _ALL
    return (_rotated(digest, 27) * _P1 + _P4) & _ALL


def _with_half(digest: int, half: int) -> int:
    return (_rotated(digest ^ (half * _P1 & _ALL), 23) * _P2 + _P3) & _ALL


def _finished(digest: int) -> int:
    digest = (digest ^ digest >> 33) * _P2 & _ALL
    digest = (digest ^ digest >> 29) * _P3 & _ALL
    return digest ^ digest >> 32
