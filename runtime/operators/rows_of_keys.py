"""All rows of some keys, before and after a batch of changes: the state of operators that number or sort the rows.

Rows are stored once, with their places in the order of arrival in their key. Of equal rows, the first to arrive is
retracted first. A retraction without its row is ignored.

State layout, format 1: table ``rows`` (hash of key and row; all columns; its places in the order of arrival; count;
last write).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.changelog import overdrawn, weights_of
from hintplan.runtime.kernels.numbering import numbered_keys
from hintplan.runtime.kernels.ordered_values import PLACES, by_entry, oldest_out
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.state.identity import Mask, distinct_rows
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, SUFFIX_MASK, Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.under_keys import rows_at, stored_under, write_again

ROWS = "rows"


def rows_layout(columns: pa.Schema, key: tuple[str, ...]) -> StateLayout:
    """Return the layout of rows with these ``columns``, which are found by their ``key``."""
    return StateLayout(name=ROWS, identity=columns, payload=pa.schema([(PLACES, pa.list_(pa.int64()))]), key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfKeys:
    """The rows of the keys that a batch changes. A row occurs as often as its key contains it.

    Rows are the stored ones that the batch does not touch, by code, and then the distinct rows of the batch. For each
    occurrence, ``which`` is its row, ``keys`` the number of its key and ``places`` its place in the order of arrival.
    ``was`` marks the occurrences before the batch, ``is_`` those after it. The first ``untouched`` occurrences are of
    rows that the batch does not touch. ``changes`` are the new versions of the rows of the batch, of which ``present``
    are stored. ``expired`` are the codes of expired rows of the keys.
    """

    state: KeyedState
    codes: Int64s
    rows: pa.Table
    which: Int64s
    keys: Int64s
    places: Int64s
    was: Mask
    is_: Mask
    untouched: int
    changes: pa.Table
    present: Mask
    expired: Int64s

    def columns(self, names: list[str]) -> pa.Table:
        """Return the columns ``names`` of all rows."""
        return pa.concat_tables([self.state.take(self.codes, names), self.rows.select(names)])

    def at(self, chosen: Int64s) -> pa.Table:
        """Return the rows with these numbers; -1 yields a row of NULLs."""
        return rows_at(self.state, self.codes, self.rows, chosen)[0]

    def store(self, occurrences: Mask, now: int) -> None:
        """Store the changes, and write the untouched rows with some of these ``occurrences`` again: their TTL restarts.

        Expired rows are deleted, so that a longer TTL revives none of them.
        """
        self.state.put(self.changes, self.present)
        chosen = np.unique(self.which[: self.untouched][occurrences[: self.untouched]])
        write_again(self.state, self.codes[chosen], now)
        write_again(self.state, self.expired, now, deleted=True)


def changed_rows(state: KeyedState, batch: pa.Table, now: int) -> RowsOfKeys | None:
    """Return all rows of the keys that a batch changes, to be stored by the caller; None if the batch changes nothing.

    The columns ``__hash0`` and ``__hash1`` of the batch are the hashes of key and row.
    """
    layout = state.layout
    weights = weights_of(batch)
    if weights is None:
        weights = np.ones(batch.num_rows, np.int64)
    hashes = prefixed_hash(batch[hash_name(0)].to_numpy(), batch[hash_name(1)].to_numpy())
    entries, first = distinct_rows(batch.select(layout.identity.names), hashes)
    rows, hashes = batch.select(layout.identity.names).take(first), hashes[first]
    codes = state.find(rows, hashes)
    live = state.live(codes)
    old = np.zeros(len(first), np.int64)
    old[live] = state.integers(codes[live], COUNT)
    if weights.min(initial=1) < 0:
        idle = overdrawn(entries, weights, old)
        if idle.any():
            return changed_rows(state, batch.filter(pa.array(~idle)), now)
    if not len(first):
        return None

    key_of, first_of_key = numbered_keys(rows, layout.key)
    keys = rows.select(list(layout.key))
    keys = keys.take(first_of_key) if layout.key else keys
    key, code = stored_under(state, keys, hashes[first_of_key] & ~SUFFIX_MASK, expired=True)
    there = state.live(code)
    state.use(code)
    expired = code[~there & ~np.isin(code, codes)]
    key, code = key[there], code[there]
    places = state.take(code, [PLACES])[PLACES].combine_chunks()
    lengths, place = np.asarray(pc.list_value_length(places)).astype(np.int64), np.asarray(places.flatten())
    stored = np.repeat(np.arange(len(code)), lengths)
    beyond = np.zeros(len(first_of_key), np.int64)
    np.maximum.at(beyond, key[stored], place + 1)

    mine = _places_of(codes[live], code)
    entry_of = np.full(len(code), -1, np.int64)
    entry_of[mine] = np.flatnonzero(live)
    untouched = np.flatnonzero(entry_of < 0)
    touched = entry_of[stored] >= 0
    entry, entry_place, kept = oldest_out(
        entry_of[stored[touched]], place[touched], entries, (beyond[key_of])[entries] + np.arange(len(entries)), weights
    )
    is_new = entry_place >= beyond[key_of[entry]]
    rank_of_other = np.cumsum(entry_of < 0) - 1
    others = np.ones(int((~touched).sum()), np.bool_)
    count = np.bincount(entry[kept], minlength=len(first))
    changes = [pa.array(hashes), *rows.columns, by_entry(entry[kept], entry_place[kept], len(first)), pa.array(count)]
    changes.append(pa.array(np.full(len(first), now, np.int64)))
    return RowsOfKeys(
        state=state,
        codes=code[untouched],
        rows=rows,
        which=np.concatenate((rank_of_other[stored[~touched]], len(untouched) + entry)),
        keys=np.concatenate((key[stored[~touched]], key_of[entry])),
        places=np.concatenate((place[~touched], entry_place)),
        was=np.concatenate((others, ~is_new)),
        is_=np.concatenate((others, kept)),
        untouched=len(others),
        changes=pa.table(changes, schema=layout.schema),
        present=codes >= 0,
        expired=expired,
    )


def _places_of(codes: Int64s, among: Int64s) -> Int64s:
    """Return the position of each of ``codes`` in ``among``."""
    order = np.argsort(among)
    positions: Int64s = order[np.searchsorted(among[order], codes)]
    return positions
