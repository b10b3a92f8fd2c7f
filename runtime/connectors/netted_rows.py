"""Nets changes in Arrow: :mod:`hintplan.runtime.connectors.netting` defines the result, here as rows of the input.

>>> from hintplan.runtime.operator import INSERT
>>> table = pa.table({"k": [1, 2, 1], "v": ["a", "b", "c"], KIND: pa.array([INSERT, DELETE, INSERT], pa.int8())})
>>> net_rows(table, ("k",)).to_pylist()
[{'k': 2, 'v': 'b', '__deleted': True}, {'k': 1, 'v': 'c', '__deleted': False}]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.comparison import normalise_floats
from hintplan.runtime.operator import DELETE, KIND, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.state.identity import encode_groups, without_chunks

DELETED = "__deleted"


def net_rows(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return one row per changed ``key`` in ``table``: the row to upsert, or a row with the key to delete.

    ``DELETED`` is true for a key to delete.

    Rows must be in the order of their changes. The last column is the row kind, unless all rows are ``+I``. -0.0 equals
    0.0, and NaN equals NaN.
    """
    rows = normalise_floats(table.drop_columns([KIND]) if KIND in table.column_names else table)
    if not rows.num_rows:
        return rows.append_column(DELETED, pa.array([], pa.bool_()))
    keys, _ = encode_groups([without_chunks(rows[name]) for name in key])
    size, positions = int(keys.max()) + 1, np.arange(rows.num_rows)
    last = np.full(size, -1)
    last[keys] = positions  # numpy keeps the last of several assignments
    if KIND not in table.column_names:
        return _chosen(rows, last, np.full(size, -1))
    kinds = table[KIND].to_numpy()
    removals = np.isin(kinds, (UPDATE_BEFORE, DELETE))
    if not removals.any():
        return _chosen(rows, last, np.full(size, -1))
    by_last = _any(keys, kinds == UPDATE_AFTER, size) & ~_any(keys, kinds == UPDATE_BEFORE, size)
    equal, first = encode_groups([without_chunks(column) for column in rows.columns])
    weights = np.bincount(equal, np.where(removals, -1, 1), len(first))
    added = np.full(len(first), -1)
    added[equal[~removals]] = positions[~removals]
    upserts, deletes = np.full(size, -1), np.full(size, -1)
    np.maximum.at(upserts, keys[first[weights > 0]], added[weights > 0])
    taken = np.flatnonzero(weights < 0)
    deletes[keys[first[taken]]] = first[taken]
    deletes[upserts >= 0] = -1
    upserts[by_last] = np.where(kinds[last] != DELETE, last, -1)[by_last]
    deletes[by_last] = np.where(kinds[last] == DELETE, last, -1)[by_last]
    return _chosen(rows, upserts, deletes)


def _any(keys: np.ndarray, which: np.ndarray, size: int) -> np.ndarray:
    flags = np.zeros(size, np.bool_)
    flags[keys[which]] = True
    return flags


def _chosen(rows: pa.Table, upserts: np.ndarray, deletes: np.ndarray) -> pa.Table:
    positions = np.maximum(upserts, deletes)
    chosen = np.sort(positions[positions >= 0])
    deleted = np.isin(chosen, deletes[deletes >= 0])
    return rows.take(chosen).append_column(DELETED, pa.array(deleted))
