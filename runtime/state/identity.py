"""Row identity on real columns: NULL-safe comparison, and selection of the newest version of a row.

>>> import numpy as np, pyarrow as pa
>>> rows = pa.table({"k": [1, None, 1]})
>>> equal_rows(rows, np.array([0, 1, 0]), rows, np.array([2, 1, 1])).tolist()
[True, True, False]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.state.layout import Int64s
from hintplan.runtime.state.nested_values import nested_numbers

Mask = npt.NDArray[np.bool_]


def without_chunks(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def equal_rows(left: pa.Table, left_rows: Int64s, right: pa.Table, right_rows: Int64s) -> Mask:
    """Return True where row ``left_rows[i]`` equals row ``right_rows[i]`` in all columns of ``left``.

    NULL equals NULL, and NaN equals NaN.

    ``left`` may have several columns of one name, such as join keys that all equal the same column of ``right``.
    """
    result = np.ones(len(left_rows), np.bool_)
    for name, column in zip(left.column_names, left.columns, strict=True):
        result &= _equal(column.take(left_rows), right[name].take(right_rows))
    return result


def equal_columns(left: pa.Table, right: pa.Table) -> Mask:
    """Return True where the rows of both tables are equal, as :func:`equal_rows` defines it."""
    result = np.ones(left.num_rows, np.bool_)
    for name in left.column_names:
        result &= _equal(left[name], right[name])
    return result


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if pa.types.is_nested(left.type):
        both = nested_numbers(pa.concat_arrays([without_chunks(left), without_chunks(right).cast(left.type)]))
        left, right = both[: len(left)], both[len(left) :]
    equal = pc.fill_null(pc.equal(left, right), False)
    if left.null_count and right.null_count:
        equal = pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
        equal = pc.or_(equal, pc.fill_null(both_nan, False))
    return np.asarray(equal)


def encode_groups(columns: Sequence[pa.Array]) -> tuple[Int64s, Int64s]:
    """Assign a number to each distinct row of ``columns``, by first appearance; NULL is a value like any other.

    Returns each row's group number, and each group's first row.
    """
    groups = _codes(columns[0])
    for column in columns[1:]:
        codes = _codes(column)
        combined = groups * (int(codes.max(initial=0)) + 1) + codes
        groups = _codes(pa.array(combined))
    size = int(groups.max(initial=-1)) + 1
    first = np.empty(size, np.int64)
    first[groups[::-1]] = np.arange(len(groups) - 1, -1, -1)
    return groups, first


def hashed_groups(columns: Sequence[pa.Array], hashes: Int64s) -> tuple[Int64s, Int64s]:
    """Assign numbers to distinct rows as :func:`encode_groups` does, but by hash, so that a later sort by hash is free.

    Sorting 64-bit hashes costs a third of hashing the rows again. Equal rows have equal ``hashes``.
    """
    order = np.argsort(hashes)
    in_order = hashes[order]
    begins = np.concatenate(([True], in_order[1:] != in_order[:-1]))[: len(order)]
    repeated = np.flatnonzero(~begins)
    if repeated.size:
        these, before = pa.array(order[repeated]), pa.array(order[repeated - 1])
        same = np.ones(len(repeated), np.bool_)
        for column in columns:
            same &= _equal(column.take(these), column.take(before))
        if not same.all():
            order, begins = _told_apart(columns, hashes, order, begins, repeated[~same])
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    return groups, np.minimum.reduceat(order, starts) if len(starts) else starts


def _told_apart(
    columns: Sequence[pa.Array], hashes: Int64s, order: Int64s, begins: Mask, differ: Int64s
) -> tuple[Int64s, Mask]:
    """Return ``order`` with equal rows adjacent, even under a shared hash, and a mask of first rows.

    ``differ`` are the places in ``order`` of rows that differ from the row before, which has the same hash.
    """
    runs = np.cumsum(begins)
    is_mixed = np.zeros(int(runs[-1]) + 1, np.bool_)
    is_mixed[runs[differ]] = True
    places = np.flatnonzero(is_mixed[runs])
    rows = np.sort(order[places])
    codes, _ = encode_groups([pa.array(hashes[rows]), *(column.take(pa.array(rows)) for column in columns)])
    by_hash = np.lexsort((codes, hashes[rows]))
    order, begins, codes = order.copy(), begins.copy(), codes[by_hash]
    order[places] = rows[by_hash]
    begins[places[1:]] = codes[1:] != codes[:-1]
    return order, begins


def _codes(column: pa.Array) -> Int64s:
    if pa.types.is_nested(column.type):
        column = nested_numbers(column)
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def distinct_rows(rows: pa.Table, hashes: Int64s) -> tuple[Int64s, Int64s]:
    """Assign numbers to ``rows`` as :func:`encode_groups` does, comparing only rows with equal ``hashes``."""
    order = np.argsort(hashes)
    in_order = hashes[order]
    same = in_order[1:] == in_order[:-1]
    if not same.any():
        every = np.arange(len(hashes))
        return every, every
    shared = np.zeros(len(hashes), np.bool_)
    shared[order[1:][same]] = True
    shared[order[:-1][same]] = True
    single, several = np.flatnonzero(~shared), np.flatnonzero(shared)
    columns = [pa.array(hashes[several]), *(without_chunks(column) for column in rows.take(several).columns)]
    groups, first = encode_groups(columns)
    numbers = np.empty(len(hashes), np.int64)
    numbers[single] = np.arange(len(single))
    numbers[several] = len(single) + groups
    firsts = np.concatenate((single, several[first]))
    by_appearance = np.argsort(firsts)
    rank = np.empty(len(firsts), np.int64)
    rank[by_appearance] = np.arange(len(firsts))
    return rank[numbers], firsts[by_appearance]


def keep_newest(same_as_next: Mask, identity: Callable[[Int64s], pa.Table]) -> Mask:
    """Mark the newest version of each row, in rows sorted by hash and then from old to new.

    ``same_as_next[i]`` is True if rows i and i+1 have the same hash; it is one shorter than the rows. ``identity``
    returns the identity columns of rows. Only rows that share a hash are ever compared.
    """
    keep = np.ones(len(same_as_next) + 1, np.bool_)
    older = np.flatnonzero(same_as_next)
    if not older.size:
        return keep
    is_shared = np.zeros(len(keep), np.bool_)
    is_shared[older] = is_shared[older + 1] = True
    shared = np.flatnonzero(is_shared)
    rows = identity(shared)
    place = np.searchsorted(shared, older)
    if equal_rows(rows, place, rows, place + 1).all():
        keep[older] = False
        return keep
    # Different rows share a hash: their versions may be interleaved, so separate them by value.
    runs = np.cumsum(np.concatenate(([True], ~same_as_next)))[shared]
    columns = [pa.array(runs), *(without_chunks(column) for column in rows.columns)]
    groups, _ = encode_groups(columns)
    newest = np.zeros(int(groups.max()) + 1, np.int64)
    newest[groups] = np.arange(len(groups))
    keep[shared] = False
    keep[shared[newest]] = True
    return keep
