"""Positions of rows that a version of a table has deleted, although the data file still contains them.

>>> import numpy as np
>>> packed = packed_places(np.array([1, 3]))
>>> not_deleted(packed, 0, 3).tolist(), not_deleted(packed, 3, 2).tolist(), not_deleted(packed, 5, 2).tolist()
([True, False, True], [False, True], [True, True])
"""

from __future__ import annotations

import zlib

import numpy as np


def packed_places(places: np.ndarray) -> bytes:
    """Return the positions of deleted rows, from 0 and in any order, packed for the tasks that read the file."""
    deleted = np.zeros(int(places.max(initial=-1)) + 1, np.bool_)
    deleted[places] = True
    return zlib.compress(np.packbits(deleted).tobytes())


def not_deleted(packed: bytes, start: int, size: int) -> np.ndarray:
    """Return a mask of the ``size`` rows from position ``start``: true for each row that is not deleted."""
    bits = np.frombuffer(zlib.decompress(packed), np.uint8)[start // 8 : (start + size) // 8 + 1]
    deleted = np.unpackbits(bits)[start % 8 : start % 8 + size].astype(np.bool_)
    return ~np.pad(deleted, (0, size - len(deleted)))
