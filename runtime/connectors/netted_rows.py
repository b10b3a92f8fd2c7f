"""What :mod:`hintplan.runtime.connectors.netting` says of rows, for rows that are in Arrow: which of them stand for
their keys.

>>> from hintplan.runtime.operator import INSERT
>>> table = pa.table({"k": [1, 2, 1], "v": ["a", "b", "c"], KIND: pa.array([INSERT, DELETE, INSERT], pa.int8())})
>>> net_rows(table, ("k",)).to_pylist()
[{'k': 2, 'v': 'b', '__deleted': True}, {'k': 1, 'v': 'c', '__deleted': False}]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hintplan.runtime.kernels.floats import normal_floats
from hintplan.runtime.operator import DELETE, KIND, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.state.identity import encode_groups, without_chunks

DELETED = "__deleted"


def net_rows(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """A row for each ``key`` that ``table`` changes: what replaces its row, or with ``DELETED`` any that names the key.

    Rows come in the order of their changes, and have a kind in the last column if they are not all ``+I``. -0.0 is 0.0,
    and NaN one value.
    """
    rows = normal_floats(table.drop_columns([KIND]) if KIND in table.column_names else table)
    if not rows.num_rows:
        return rows.append_column(DELETED, pa.array([], pa.bool_()))
    keys, _ = encode_groups([without_chunks(rows[name]) for name in key])
    size, places = int(keys.max()) + 1, np.arange(rows.num_rows)
    last = np.full(size, -1)
    last[keys] = places  # of several assignments, the last one stays
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
    added[equal[~removals]] = places[~removals]
    upserts, deletes = np.full(size, -1), np.full(size, -1)
    np.maximum.at(upserts, keys[first[weights > 0]], added[weights > 0])
    taken = np.flatnonzero(weights < 0)
    deletes[keys[first[taken]]] = first[taken]
    deletes[upserts >= 0] = -1
    upserts[by_last] = np.where(kinds[last] != DELETE, last, -1)[by_last]
    deletes[by_last] = np.where(kinds[last] == DELETE, last, -1)[by_last]
    return _chosen(rows, upserts, deletes)


def _any(keys: np.ndarray, which: np.ndarray, size: int) -> np.ndarray:
    found = np.zeros(size, np.bool_)
    found[keys[which]] = True
    return found


def _chosen(rows: pa.Table, upserts: np.ndarray, deletes: np.ndarray) -> pa.Table:
    places = np.maximum(upserts, deletes)
    chosen = np.sort(places[places >= 0])
    deleted = np.isin(chosen, deletes[deletes >= 0])
    return rows.take(chosen).append_column(DELETED, pa.array(deleted))
