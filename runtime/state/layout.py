"""The layout of a state table: its columns, and the 64-bit hash by which its segments are sorted.

Every row has an identity (the columns that distinguish it) and a payload. It also has a count of its occurrences
(``__count``; 0 deletes it) and the time of its last write (``__write``, ms). The sort hash of a row is the hash of its
key. If a state is also probed by key prefix, it is 40 bits of the key's hash followed by 24 bits of the row's hash:

>>> import numpy as np
>>> key, row = np.array([0x1122334455667788]), np.array([0x7FFFFFFFFFABCDEF])
>>> hex(prefixed_hash(key, row)[0])
'0x1122334455abcdef'

Hashes only narrow the search. Identity is always compared on the real columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HASH, COUNT, WRITE = "__hash", "__count", "__write"

SUFFIX_MASK = np.int64((1 << 24) - 1)

Int64s = npt.NDArray[np.int64]


def prefixed_hash(key: Int64s, row: Int64s) -> Int64s:
    """Return the sort hash of rows that are found by key as well as by identity."""
    return (key & ~SUFFIX_MASK) | (row & SUFFIX_MASK)


def int64s(table: pa.Table, name: str) -> Int64s:
    """Return an int64 column of ``table`` (hash, count, write time, associations).

    It is copied only if it has several chunks.
    """
    column = table[name]
    values: Int64s = column.chunk(0).to_numpy() if column.num_chunks == 1 else column.to_numpy()
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLayout:
    """The columns of one state table. ``key`` has the identity columns for probes by prefix, if any.

    A layout ``by_time`` is of any number of tables, one for each bucket of time
    (:mod:`hintplan.runtime.state.time_buckets`).
    """

    name: str
    identity: pa.Schema
    payload: pa.Schema
    key: tuple[str, ...] = ()
    by_time: bool = False

    def at(self, end: int) -> StateLayout:
        """Return the layout of the table of the bucket that ends at ``end`` (ms)."""
        return replace(self, name=f"{self.name}@{end}", by_time=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [pa.field(HASH, pa.int64()), *self.identity, *self.payload, (COUNT, pa.int64()), (WRITE, pa.int64())]
        )

    @property
    def fingerprint(self) -> str:
        """A digest that changes whenever stored segments could no longer be read with this layout."""
        columns = [f"{field.name}:{field.type}" for field in self.schema]
        return hashlib.sha256("\n".join([*columns, f"key:{self.key}"]).encode()).hexdigest()[:16]


def bucket_end(name: str) -> int:
    """Return the end of the bucket whose table has this name."""
    return int(name.rpartition("@")[2])


def layout_of(name: str, layouts: Sequence[StateLayout]) -> StateLayout | None:
    """Return the layout of the table with this name, which may be of a bucket; None if ``layouts`` have no such table.

    >>> empty = pa.schema([])
    >>> slices = StateLayout(name="slices", identity=empty, payload=empty, by_time=True)
    >>> layout_of("slices@-5000", [slices]).name, layout_of("slices", [slices]), layout_of("slices@x", [slices])
    ('slices', None, None)
    """
    prefix, _, end = name.rpartition("@")
    for layout in layouts:
        if (layout.by_time and layout.name == prefix and _is_number(end)) or (
            not layout.by_time and layout.name == name
        ):
            return layout
    return None


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
