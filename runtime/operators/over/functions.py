"""The functions of an over aggregate: their results for the rows of a batch, and what a key keeps for later batches.

- Aggregates over all earlier rows keep their accumulators (:mod:`hintplan.runtime.kernels.accumulators`).
- Aggregates over the last n rows, and LAG, keep the last values of their argument, as a list.
- Aggregates over the rows since a time keep these rows, which the operator passes in.

State layout of keys, format 1: table ``keys`` (hash of the key; key; ``__rows``, the number of rows so far;
``__times``, the number of different times, if DENSE_RANK needs it; accumulators; lists of last values; 1; last write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.runtime.kernels.accumulators import Accumulator, accumulators_of, contribution, known, result
from hintplan.runtime.kernels.frame_results import over_distinct, over_frames, running
from hintplan.runtime.kernels.frames import Frames, Segments, packed, spread_from
from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, HASH, SUFFIX_MASK, WRITE, Int64s, StateLayout

KEYS = "keys"
ROWS, TIMES = "__rows", "__times"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCall:
    """ROW_NUMBER, RANK, DENSE_RANK, or LAG of ``argument``, ``count`` rows before, with the column ``default``."""

    name: str
    function: str
    argument: str | None = None
    count: int = 0
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverFunctions:
    """The ``calls`` of an over aggregate, with the Arrow types of their results, bound to ``columns``.

    - ``unit`` and ``preceding``: the frame begins as many rows, or ms, before the row; None for no bound.
    - ``has_peers``: a RANGE ends with the last row of the same time. Rows in the order of arrival have no peers.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    calls: tuple[AggregateCall | RowCall, ...]
    types: tuple[pa.DataType, ...]
    unit: Literal["rows", "range"]
    preceding: int | None
    has_peers: bool

    @property
    def aggregates(self) -> tuple[AggregateCall, ...]:
        return tuple(call for call in self.calls if isinstance(call, AggregateCall))

    @property
    def accumulators(self) -> dict[str, Accumulator]:
        """The accumulators of all aggregates, by name."""
        every = (each for call in self.aggregates for each in self.needed(call))
        return {accumulator.name: accumulator for accumulator in every}

    def needed(self, call: AggregateCall) -> tuple[Accumulator, ...]:
        return accumulators_of(call, self.columns, {}, changelog=False)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns of earlier rows that later rows read."""
        calls = self.calls if self.preceding is not None else [c for c in self.calls if isinstance(c, RowCall)]
        return tuple(dict.fromkeys(call.argument for call in calls if call.argument is not None))

    @property
    def keeps_rows(self) -> bool:
        """True if the frame begins at a time, so that the rows since then are kept one by one."""
        return self.unit == "range" and self.preceding is not None

    @property
    def last_rows(self) -> int:
        """The number of last rows of a key that later rows read."""
        if self.preceding is not None:
            return self.preceding if self.unit == "rows" else 0
        return max((call.count for call in self.calls if isinstance(call, RowCall)), default=0)

    @property
    def counts_times(self) -> bool:
        return self.has_peers and any(call.function == "DENSE_RANK" for call in self.calls)

    @property
    def layout(self) -> StateLayout:
        """The layout of the table of keys."""
        payload = [pa.field(ROWS, pa.int64())]
        if self.counts_times:
            payload.append(pa.field(TIMES, pa.int64()))
        if self.preceding is None:
            payload += [pa.field(each.name, each.type) for each in self.accumulators.values()]
        if self.last_rows:
            payload += [pa.field(_last(name), pa.list_(self.columns.field(name).type)) for name in self.arguments]
        identity = pa.schema([self.columns.field(name) for name in self.key])
        return StateLayout(name=KEYS, identity=identity, payload=pa.schema(payload))


def _last(argument: str) -> str:
    return f"__earlier({argument})"  # LAST_VALUE has an accumulator called __last


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRows:
    """The rows of a batch sorted by key, and within a key in their order.

    ``order`` are their places in the output. ``keys`` has each key once, with its hash and its number of rows.
    ``times`` are in ms.
    """

    rows: pa.Table
    order: Int64s
    keys: pa.Table
    hashes: Int64s
    counts: Int64s
    times: Int64s

    @staticmethod
    def of(rows: pa.Table, key: Sequence[str], hashes: Int64s, times: Int64s) -> DueRows:
        """Sort ``rows``, which are in their order, by ``key``; only the leading bits of the key's ``hashes`` count."""
        hashes = hashes & ~SUFFIX_MASK
        group, first = hashed_groups([without_chunks(rows[name]) for name in key], hashes)
        order = np.argsort(group, kind="stable")
        return DueRows(
            rows=rows.take(pa.array(order)).combine_chunks(),
            order=order,
            keys=rows.select(list(key)).take(pa.array(first)),
            hashes=hashes[first],
            counts=np.bincount(group, minlength=len(first)),
            times=times[order],
        )

    @property
    def groups(self) -> Int64s:
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def firsts(self) -> Int64s:
        """The place of the first row of each key."""
        firsts: Int64s = np.cumsum(self.counts) - self.counts
        return firsts

    def in_output(self, values: pa.Array) -> pa.Array:
        """Return the ``values`` of the rows in the order of the output."""
        back = np.empty(len(self.order), np.int64)
        back[self.order] = np.arange(len(self.order))
        return values.take(pa.array(back))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """Earlier rows that the rows of a batch read, sorted by key: the number of each key, and their columns."""

    counts: Int64s
    columns: pa.Table
    times: Int64s | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peers:
    """The first and the last row of the time of each row, and the number of the time among the times of its key."""

    first: Int64s
    last: Int64s
    number: Int64s


def _peers(functions: OverFunctions, due: DueRows) -> _Peers:
    size = len(due.times)
    every = np.arange(size)
    begins = np.ones(size, np.bool_)
    if functions.has_peers and size:
        groups = due.groups
        begins[1:] = (groups[1:] != groups[:-1]) | (due.times[1:] != due.times[:-1])
    run, starts = np.cumsum(begins) - 1, np.flatnonzero(begins)
    ends = np.append(starts[1:], size) - 1
    number = run - np.repeat(run[due.firsts], due.counts) + 1
    return _Peers(first=starts[run], last=ends[run] if functions.has_peers else every, number=number)


def results_of_keys(functions: OverFunctions, state: KeyedState, due: DueRows, now: int) -> list[pa.Array]:
    """Return the results of the rows in the order of the output, and store what their keys keep."""
    codes = state.find(due.keys, due.hashes)
    live = state.live(codes)
    state.use(codes)
    names = functions.layout.payload.names
    stored = state.take(codes[live], names).combine_chunks()
    stored = stored.take(pa.array(np.cumsum(live) - 1, mask=~live))
    before = {name: without_chunks(stored[name]) for name in names}
    rows = np.asarray(pc.fill_null(before[ROWS], 0))
    kept = _last_rows(functions, before, np.minimum(rows, functions.last_rows))
    peers = _peers(functions, due)
    changes: dict[str, pa.Array] = {ROWS: pa.array(rows + due.counts)}
    accumulated: dict[str, pa.Array] = {}
    ends = due.firsts + due.counts - 1
    if functions.counts_times:
        times = np.asarray(pc.fill_null(before[TIMES], 0))
        changes[TIMES] = pa.array(times + peers.number[ends])
    if functions.preceding is None:
        for name, each in functions.accumulators.items():
            sums = _running(each, due, before[name], live)
            changes[name] = sums.take(pa.array(ends))
            is_range = functions.unit == "range"
            accumulated[name] = sums.take(pa.array(peers.last)) if is_range and functions.has_peers else sums
    segments = Segments.of(kept=kept.counts, fresh=due.counts)
    changes |= _new_last(functions, due, kept, segments)
    _store(functions, state, due, changes, codes >= 0, now)
    numbers = {
        "ROW_NUMBER": np.repeat(rows - due.firsts, due.counts) + np.arange(len(due.order)) + 1,
        "RANK": np.repeat(rows - due.firsts, due.counts) + peers.first + 1,
    }
    if functions.counts_times:
        numbers["DENSE_RANK"] = np.repeat(times, due.counts) + peers.number
    else:
        numbers["DENSE_RANK"] = numbers["ROW_NUMBER"]
    if functions.preceding is not None:
        accumulated = _over_frames(functions, due, kept, segments, _frames(functions, due, kept, segments, peers))
    return _results(functions, due, accumulated, numbers, kept, segments)


def results_over_kept_rows(functions: OverFunctions, due: DueRows, kept: KeptRows) -> list[pa.Array]:
    """Return the results of rows whose frame begins at a time, in the order of the output."""
    segments = Segments.of(kept=kept.counts, fresh=due.counts)
    frames = _frames(functions, due, kept, segments, _peers(functions, due))
    accumulated = _over_frames(functions, due, kept, segments, frames)
    return _results(functions, due, accumulated, {}, kept, segments)


def _running(accumulator: Accumulator, due: DueRows, before: pa.Array, live: Mask) -> pa.Array:
    """Return ``accumulator`` after each row; ``before`` are the accumulators of the keys that are ``live``."""
    segments = Segments.of(kept=live.astype(np.int64), fresh=due.counts)
    stored = known(accumulator, before, pa.array(live)).filter(pa.array(live))
    parts = pa.concat_arrays([stored, contribution(accumulator, due.rows, None).cast(stored.type)])
    return running(accumulator, parts.take(pa.array(segments.order)), segments)


def _last_rows(functions: OverFunctions, before: dict[str, pa.Array], counts: Int64s) -> KeptRows:
    """Return the last rows of each key, of which state has as many as ``counts``."""
    columns = {name: pc.list_flatten(before[_last(name)]) for name in functions.arguments if functions.last_rows}
    if not functions.last_rows:
        counts = np.zeros(len(counts), np.int64)
    table = pa.table(columns) if columns else pa.table({ROWS: pa.nulls(int(counts.sum()))})
    return KeptRows(counts=counts, columns=table)


def _new_last(functions: OverFunctions, due: DueRows, kept: KeptRows, segments: Segments) -> dict[str, pa.Array]:
    """Return the lists of last values of each key after the batch."""
    if not functions.last_rows:
        return {}
    lengths = np.minimum(segments.ends - segments.starts, functions.last_rows)
    places = pa.array(spread_from(segments.ends - lengths, lengths))
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    return {
        _last(name): pa.ListArray.from_arrays(offsets, _together(functions, name, due, kept, segments).take(places))
        for name in functions.arguments
    }


def _together(functions: OverFunctions, name: str, due: DueRows, kept: KeptRows, segments: Segments) -> pa.Array:
    """Return the column ``name`` of the kept rows and of the rows of the batch, in segments."""
    fresh = without_chunks(due.rows[name])
    has_earlier = name in kept.columns.column_names
    earlier = without_chunks(kept.columns[name]).cast(fresh.type) if has_earlier else fresh.slice(0, 0)
    parts = pa.concat_arrays([earlier, fresh])
    return parts.take(pa.array(segments.order))


def _frames(functions: OverFunctions, due: DueRows, kept: KeptRows, segments: Segments, peers: _Peers) -> Frames:
    """Return the frame of each row among the rows of ``segments``."""
    preceding = functions.preceding or 0
    starts = segments.starts[segments.group]
    if functions.unit == "rows":
        return Frames(begins=np.maximum(starts, segments.places - preceding), ends=segments.places + 1)
    earlier = np.empty(0, np.int64) if kept.times is None else kept.times
    times = np.concatenate((earlier, due.times))[segments.order]
    wanted_times = due.times - preceding
    of_segment = np.repeat(np.arange(len(segments.starts)), segments.ends - segments.starts)
    bounds = min(int(times.min()), int(wanted_times.min())), int(times.max())
    at, wanted = packed(of_segment, times, *bounds), packed(segments.group, wanted_times, *bounds)
    if at is None or wanted is None:
        distinct = np.unique(times)
        last = len(distinct)
        at = of_segment * (last + 1) + np.searchsorted(distinct, times)
        wanted = segments.group * (last + 1) + np.searchsorted(distinct, wanted_times)
    return Frames(begins=np.searchsorted(at, wanted), ends=segments.places[peers.last] + 1)


def _over_frames(
    functions: OverFunctions, due: DueRows, kept: KeptRows, segments: Segments, frames: Frames
) -> dict[str, pa.Array]:
    """Return the accumulators over each frame, by name."""
    columns = {name: _together(functions, name, due, kept, segments) for name in functions.arguments}
    rows = pa.table(columns) if columns else pa.table({ROWS: pa.nulls(len(segments.order))})
    accumulated: dict[str, pa.Array] = {}
    for name, each in functions.accumulators.items():
        parts = without_chunks(contribution(each, rows, None))
        if each.distinct and each.argument is not None:
            accumulated[name] = over_distinct(each, columns[each.argument], parts, frames, segments)
        else:
            accumulated[name] = over_frames(each, parts, frames, segments)
    return accumulated


def _results(
    functions: OverFunctions,
    due: DueRows,
    accumulated: dict[str, pa.Array],
    numbers: dict[str, Int64s],
    kept: KeptRows,
    segments: Segments,
) -> list[pa.Array]:
    def of(call: AggregateCall | RowCall, kind: pa.DataType) -> pa.Array:
        if isinstance(call, AggregateCall):
            wanted = np.ones(len(due.order), np.bool_)
            return without_chunks(result(call, kind, functions.needed(call), accumulated, wanted))
        if call.argument is None:
            return pa.array(numbers[call.function])
        return _lag(functions, call, due, kept, segments)

    return [
        due.in_output(of(call, kind).cast(kind)) for call, kind in zip(functions.calls, functions.types, strict=True)
    ]


def _lag(functions: OverFunctions, call: RowCall, due: DueRows, kept: KeptRows, segments: Segments) -> pa.Array:
    """Return the value of the row ``count`` rows before each row; the default applies only if there is no such row."""
    values = _together(functions, call.argument or "", due, kept, segments)
    places = segments.places - call.count
    exists = places >= segments.starts[segments.group]
    found = values.take(pa.array(places, mask=~exists))
    if call.default is None:
        return found
    return pc.if_else(pa.array(exists), found, without_chunks(due.rows[call.default]).cast(found.type))


def _store(
    functions: OverFunctions, state: KeyedState, due: DueRows, changes: dict[str, pa.Array], present: Mask, now: int
) -> None:
    size = len(due.hashes)
    schema = functions.layout.schema
    columns = {HASH: pa.array(due.hashes), COUNT: pa.array(np.ones(size, np.int64))}
    columns |= {WRITE: pa.array(np.full(size, now, np.int64)), **changes}
    data = [columns[f.name] if f.name in columns else due.keys[f.name] for f in schema]
    state.put(pa.table([_cast(column, f.type) for column, f in zip(data, schema, strict=True)], schema=schema), present)


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)
