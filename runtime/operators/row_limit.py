"""A limit on the rows that a state keeps per key: the rows written longest ago are removed, as if they had expired.

Nothing is emitted for removed rows. Among rows of the current batch, the rows that came first are removed first. Among
rows of one earlier write, the hash decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.runtime.state.identity import encode_groups
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import HASH, SUFFIX_MASK, WRITE, Int64s
from hintplan.runtime.state.under_keys import write_again


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Distinct rows that a batch has stored, with their hashes; ``came`` are their first positions in the batch."""

    rows: pa.Table
    hashes: Int64s
    came: Int64s


def forget_oldest(state: KeyedState, added: Added, limit: int, now: int) -> int:
    """Delete the oldest rows of each key of ``added`` beyond ``limit``; return the number of deleted rows.

    ``added`` has the state's identity columns. A row counts once, however often it occurs.
    """
    names = list(state.layout.key)
    keys = added.rows.select(names)
    first = np.zeros(min(1, len(added.hashes)), np.int64)  # without key columns all rows share one key
    if names:
        _, first = encode_groups([column.combine_chunks() for column in keys.columns])
        keys = keys.take(first)
    mine = state.find(added.rows, added.hashes)
    order = np.argsort(mine)
    mine, came = mine[order], added.came[order]
    beyond = [np.empty(0, np.int64)]
    for place, code in state.scan(keys, added.hashes[first] & ~SUFFIX_MASK):
        sizes = np.bincount(place, minlength=len(first))
        if int(sizes.max(initial=0)) > limit:
            beyond.append(_beyond(state, place, code, sizes, _arrival(code, mine, came), limit))
    gone = np.concatenate(beyond)
    write_again(state, gone, now, deleted=True)
    return len(gone)


def _arrival(code: Int64s, known: Int64s, came: Int64s) -> Int64s:
    """Return the batch position of the rows with these codes, -1 for rows of earlier batches; ``known`` is sorted."""
    at = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return np.where(known[at] == code, came[at], np.int64(-1))


def _beyond(state: KeyedState, place: Int64s, code: Int64s, sizes: Int64s, arrival: Int64s, limit: int) -> Int64s:
    """Return the codes of all rows of each place except the ``limit`` newest."""
    order = np.lexsort((state.integers(code, HASH), arrival, state.integers(code, WRITE), place))
    newer = np.cumsum(sizes)[place[order]] - np.arange(len(order)) - 1
    beyond: Int64s = code[order[newer >= limit]]
    return beyond
