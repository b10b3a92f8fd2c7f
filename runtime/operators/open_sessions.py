"""The open sessions of a partition: state tables in time buckets, and their merge with the rows of a batch.

A session is a row with its key, start, end and closing time, and other columns of the operator. Start and end are wall
clocks of the window's zone in ms, and the closing time is the watermark that closes the session. A session lies in the
bucket of its closing time. When it grows into another bucket, it leaves the old one.

A merge reads the open sessions of the keys of the batch, and no other state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.windows import Window
from hintplan.runtime.kernels.sessions import merged_sessions
from hintplan.runtime.kernels.windows import closing_time
from hintplan.runtime.operators.open_windows import CLOSES, OpenWindows
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.layout import Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.under_keys import stored_under, write_again

SESSIONS = "sessions"
START, END = "__start", "__end"
_CHANGE = 86_400_000
"""More ms than a clock is ever changed by, so that the order of closing times may differ from the order of ends."""
_NOWHERE = np.iinfo(np.int64).min


def sessions_layout(keys: pa.Schema, others: pa.Schema) -> StateLayout:
    """Return the layout of the sessions of ``keys`` with ``others`` as further columns."""
    identity = pa.schema([*keys, pa.field(START, pa.int64())])
    payload = pa.schema([(END, pa.int64()), (CLOSES, pa.int64()), *others])
    return StateLayout(name=SESSIONS, identity=identity, payload=payload, key=tuple(keys.names), by_time=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedIntervals:
    """Intervals of a batch, each of a row or a part of a session: the number of its key, its start and its end.

    ``keys`` and ``hashes`` are per key.
    """

    keys: pa.Table
    hashes: Int64s
    key: Int64s
    starts: Int64s
    ends: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedSessions:
    """The sessions that intervals of a batch are part of, unless they are late.

    ``of_interval`` is the session of each interval, -1 if it is late. ``bucket`` and ``code`` are the places of the
    stored sessions that became part of a session, in the order of their starts, and ``of_stored`` this session.
    """

    of_interval: Int64s
    keys: pa.Table
    hashes: Int64s
    starts: Int64s
    ends: Int64s
    closes: Int64s
    bucket: Int64s
    code: Int64s
    of_stored: Int64s
    stored_starts: Int64s
    late_closes: Int64s


def merge(windows: OpenWindows, batch: KeyedIntervals, window: Window, before: int) -> MergedSessions:
    """Merge the intervals of a batch with the open sessions of their keys; ``before`` is the watermark before it."""
    place, start, end, bucket, code = _stored(windows, batch, window.zone)
    sessions = merged_sessions(
        np.concatenate((place, batch.key)), np.concatenate((start, batch.starts)), np.concatenate((end, batch.ends))
    )
    of_stored, of_interval = sessions.number[: len(place)], sessions.number[len(place) :]
    closes = closing_time(sessions.ends, window.zone)
    is_new = np.bincount(of_interval, minlength=len(closes)) > 0
    is_new &= closes > before  # no session that closed before the batch has a stored part
    number = np.where(is_new, np.cumsum(is_new) - 1, -1)
    new, touched = np.flatnonzero(is_new), np.flatnonzero(is_new[of_stored])
    touched = touched[np.argsort(start[touched], kind="stable")]
    key = sessions.keys[new]
    return MergedSessions(
        of_interval=number[of_interval],
        keys=batch.keys.take(pa.array(key)),
        hashes=prefixed_hash(batch.hashes[key], sessions.starts[new]),
        starts=sessions.starts[new],
        ends=sessions.ends[new],
        closes=closes[new],
        bucket=bucket[touched],
        code=code[touched],
        of_stored=number[of_stored[touched]],
        stored_starts=start[touched],
        late_closes=closes[of_interval[number[of_interval] < 0]],
    )


def _stored(windows: OpenWindows, batch: KeyedIntervals, zone: str | None) -> tuple[Int64s, ...]:
    """Return the open sessions of the keys of a batch: place of the key, start, end, bucket and code of each."""
    pieces = [[np.empty(0, np.int64)] * 5]
    earliest = int(closing_time(batch.starts.min(keepdims=True), zone)[0]) - (0 if zone is None else _CHANGE)
    for bucket in windows.buckets.ends():
        if bucket <= earliest:  # all of its sessions end before the first row
            continue
        state = windows.buckets.at(bucket)
        place, code = stored_under(state, batch.keys, batch.hashes)
        here = np.full(len(code), bucket, np.int64)
        pieces.append([place, state.integers(code, START), state.integers(code, END), here, code])
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def stored_parts(windows: OpenWindows, sessions: MergedSessions, names: list[str]) -> pa.Table:
    """Return the columns ``names`` of the stored sessions that became part of ``sessions``, in their order."""
    layout = windows.layout
    pieces = [pa.schema([layout.schema.field(name) for name in names]).empty_table()]
    places = [np.empty(0, np.int64)]
    for bucket in np.unique(sessions.bucket).tolist():
        here = np.flatnonzero(sessions.bucket == bucket)
        pieces.append(windows.buckets.at(bucket).take(sessions.code[here], names))
        places.append(here)
    order = np.argsort(np.concatenate(places))
    return pa.concat_tables(pieces).combine_chunks().take(pa.array(order))


def stored_rows(layout: StateLayout, sessions: MergedSessions, others: Sequence[pa.Array], now: int) -> pa.Table:
    """Return ``sessions`` as rows of state, with the columns ``others``."""
    size = len(sessions.starts)
    columns = [sessions.hashes, *sessions.keys.columns, sessions.starts, sessions.ends, sessions.closes, *others]
    counts, writes = np.ones(size, np.int64), np.full(size, now, np.int64)
    return pa.table([*columns, counts, writes], schema=layout.schema)


def store_sessions(windows: OpenWindows, sessions: MergedSessions, rows: pa.Table, is_open: Mask, now: int) -> None:
    """Store the ``rows`` of ``sessions`` that are open, and delete the stored sessions that became part of others."""
    bucket_of = np.where(is_open, windows.bucket_of(sessions.closes), _NOWHERE)
    of = sessions.of_stored
    is_replaced = (sessions.stored_starts == sessions.starts[of]) & (sessions.bucket == bucket_of[of])
    replaces = np.zeros(len(sessions.starts), np.bool_)
    replaces[of[is_replaced]] = True
    for bucket in np.union1d(bucket_of[is_open], sessions.bucket[~is_replaced]).tolist():
        state = windows.buckets.at(bucket)
        write_again(state, sessions.code[~is_replaced & (sessions.bucket == bucket)], now, deleted=True)
        here = np.flatnonzero(bucket_of == bucket)
        if here.size:
            state.put(rows.take(pa.array(here)), replaces[here])
