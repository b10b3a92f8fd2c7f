"""The kernel of a temporal join: a left row meets the version of its key at its time, when the watermark reaches it.

- A right row is a version of its key from its time on, until the next one; a deletion is a version without a row. Of
  equal times, the last row to come counts. Rows that only withdraw an older version (-U) are ignored.
- Rows of both sides wait until the watermark reaches their time. When it moves, the left rows that are due meet the
  last version that is not later. They come out in the order in which they came.
- Late rows of both sides are due when the watermark next moves. A late left row meets what is left: the last version
  that the watermark has reached is always there, unless its TTL has expired. Older ones are gone.
- With ``ascending``, a right row that is earlier than one before it is no version, as below a Deduplicate of Flink.
- The TTL concerns the last version of a key. It begins again when the version is met, at most once in a quarter of
  the TTL. Waiting rows have no TTL.
- NULL keys never match.

State layout, format 1: tables ``left@middle`` and ``versions@middle`` of waiting rows
(:mod:`hintplan.runtime.operators.waiting_rows`), and ``right`` (hash of the key; key; the other columns; time; for
``ascending``, the latest time of all rows; 1, or 0 if there is no row since that time; 1; last write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.errors import RunError
from hintplan.plans.evidence.uses import Uses
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.kernels.windows import milliseconds
from hintplan.runtime.operator import (
    DELETE,
    KIND,
    NEVER,
    UPDATE_BEFORE,
    Inheritance,
    InputSpec,
    Result,
    SegmentStore,
    Watermarks,
)
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.waiting_rows import TIME, WaitingRows, in_order, waiting_layout
from hintplan.runtime.state.identity import Mask, hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, HASH, SUFFIX_MASK, WRITE, Int64s, StateLayout, int64s
from hintplan.runtime.state.manifest import read_manifest, write_manifest
from hintplan.runtime.state.observation import Observation
from hintplan.runtime.state.tables import rows_in
from hintplan.runtime.state.under_keys import rows_at, write_again

LEFT, RIGHT, VERSIONS = "left", "right", "versions"
LATEST, EXISTS = "__latest", "__exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoinOperator:
    """A temporal join bound to the columns of its inputs. ``columns`` are the output's (name, side, column).

    ``changelog`` is True for a side with row kinds; the output has them if the left side does. ``ttl`` is in ms.
    """

    operator: str
    kind: Literal["inner", "left"]
    left: pa.Schema
    right: pa.Schema
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    left_time: str
    right_time: str
    changelog: tuple[bool, bool]
    ascending: bool
    condition: JoinCondition | None
    ttl: int
    columns: tuple[tuple[str, str, str], ...]

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        left, right = (
            pa.schema([*columns, *([(KIND, pa.int8())] if changes else [])])
            for columns, changes in zip((self.left, self.right), self.changelog, strict=True)
        )
        numbers = (TIME, *((LATEST,) if self.ascending else ()), EXISTS)
        last = StateLayout(
            name=RIGHT,
            identity=pa.schema([self.right.field(name) for name in dict.fromkeys(self.right_keys)]),
            payload=pa.schema(
                [
                    *(field for field in self.right if field.name not in self.right_keys),
                    *((name, pa.int64()) for name in numbers),
                ]
            ),
        )
        return waiting_layout(LEFT, left, self.left_keys), last, waiting_layout(VERSIONS, right, self.right_keys)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (
            InputSpec(columns=self.left, hashes=(self.left_keys,), changelog=self.changelog[0]),
            InputSpec(columns=self.right, hashes=(self.right_keys,), changelog=self.changelog[1]),
        )

    @property
    def output(self) -> pa.Schema:
        sides = {"left": self.left, "right": self.right}
        fields = [pa.field(name, sides[side].field(column).type) for name, side, column in self.columns]
        return pa.schema([*fields, *([(KIND, pa.int8())] if self.changelog[0] else [])])

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        of_left, of_right, of_versions = self.layouts
        tables = read_manifest(manifest, self.layouts)
        left, versions = (WaitingRows(layout, tables, store, now=now) for layout in (of_left, of_versions))
        table = tables[RIGHT]
        observation = Observation(table.observed, ttl=self.ttl, now=now)
        last = KeyedState(of_right, table, store, ttl=self.ttl, now=now, observation=observation)
        new_left, new_versions = _left_rows(self, left, deltas[0]), _new_versions(self, versions, last, deltas[1], now)
        output = self.output.empty_table()
        if watermarks.after > watermarks.before:
            due_left, due_versions = (
                in_order(pa.concat_tables([waiting.take_due(watermarks.after), _until(rows, watermarks.after)]))
                for waiting, rows in ((left, new_left), (versions, new_versions))
            )
            new_left, new_versions = (_after(rows, watermarks.after) for rows in (new_left, new_versions))
            output = _join(self, due_left, due_versions, last, now)
        left.wait(new_left, watermarks.after)
        versions.wait(new_versions, watermarks.after)
        return _committed(left, versions, last, output, rows_in(deltas))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _committed(left: WaitingRows, versions: WaitingRows, last: KeyedState, output: pa.Table, rows: int) -> Result:
    waiting = {**left.buckets.commit(), **versions.buckets.commit()}
    tables = {**waiting, RIGHT: last.commit()}
    segments = [segment for table in tables.values() for segment in table.segments]
    return Result(
        output=output,
        manifest=write_manifest(tables),
        rows_in=rows,
        state_rows=sum(table.rows for table in tables.values()),
        state_bytes=sum(segment.size for segment in segments),
        oldest_write=min((segment.first_write for segment in segments), default=None),
        waiting_rows=sum(table.rows for table in waiting.values()),
        uses=(Uses(), last.uses()),
    )


def _until(rows: pa.Table, time: int) -> pa.Table:
    return rows.filter(pa.array(int64s(rows, TIME) <= time))


def _after(rows: pa.Table, time: int) -> pa.Table:
    return rows.filter(pa.array(int64s(rows, TIME) > time))


def _left_rows(operator: TemporalJoinOperator, waiting: WaitingRows, delta: pa.Table | None) -> pa.Table:
    """Return the left rows of a batch in the form in which they wait; rows that can have no output are left out."""
    if delta is None or not delta.num_rows:
        return waiting.layout.schema.empty_table()
    rows = delta.combine_chunks()
    if operator.kind == "inner":
        rows = _with_keys(rows, operator.left_keys)
    return waiting.arrived(
        rows.drop_columns(hash_name(0)), _times(operator, rows, operator.left_time), int64s(rows, hash_name(0))
    )


def _with_keys(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Return the rows without a NULL in ``keys``."""
    for key in keys:
        if rows[key].null_count:
            rows = rows.filter(pc.is_valid(rows[key]))
    return rows.combine_chunks()


def _times(operator: TemporalJoinOperator, rows: pa.Table, column: str) -> Int64s:
    if rows[column].null_count:  # the rowtime of other rows was checked at their table
        raise RunError(
            f"operator {operator.operator} cannot join: '{column}' is NULL in a row that is deleted",
            hint=f"write the time of the deletion into '{column}': the version of its key ends then",
        )
    return milliseconds(rows[column])


def _new_versions(
    operator: TemporalJoinOperator, waiting: WaitingRows, last: KeyedState, delta: pa.Table | None, now: int
) -> pa.Table:
    """Return the versions that a batch adds, in the form in which they wait."""
    if delta is None or not delta.num_rows:
        return waiting.layout.schema.empty_table()
    rows = _with_keys(delta, operator.right_keys)
    if KIND in rows.column_names:
        rows = rows.filter(pc.not_equal(rows[KIND], UPDATE_BEFORE)).combine_chunks()
    times, hashes = _times(operator, rows, operator.right_time), int64s(rows, hash_name(0))
    rows = rows.drop_columns(hash_name(0))
    if operator.ascending and len(times):
        kept = _not_earlier(operator, last, rows, times, hashes & ~SUFFIX_MASK, now)
        rows, times, hashes = rows.filter(pa.array(kept)).combine_chunks(), times[kept], hashes[kept]
    return waiting.arrived(rows, times, hashes)


def _not_earlier(
    operator: TemporalJoinOperator, last: KeyedState, rows: pa.Table, times: Int64s, hashes: Int64s, now: int
) -> Mask:
    """Return True for rows that are not earlier than a row of their key before them, and store the latest times."""
    keys = rows.select(last.layout.identity.names)
    groups, first = hashed_groups([without_chunks(column) for column in keys.columns], hashes)
    codes = last.find(keys.take(pa.array(first)), hashes[first])
    live = last.live(codes)
    latest = np.full(len(first), NEVER, np.int64)
    latest[live] = last.integers(codes[live], LATEST)
    order = np.argsort(groups, kind="stable")
    # In order of key and arrival, a running maximum of ranks, which begins again at each key.
    known, in_order_of_key = np.unique(np.concatenate((latest, times)), return_inverse=True)
    rank = in_order_of_key[len(latest) :][order] + groups[order] * len(known)
    before = in_order_of_key[: len(latest)][groups[order]] + groups[order] * len(known)
    running = np.maximum.accumulate(np.maximum(rank, before))
    kept = np.empty(len(times), np.bool_)
    kept[order] = rank >= running
    np.maximum.at(latest, groups, times)
    stored, _ = rows_at(last, codes, _no_rows(last), np.where(live, np.arange(len(codes)), -1))
    columns = dict(zip(stored.column_names, stored.columns, strict=True))
    columns |= dict(zip(keys.column_names, keys.take(pa.array(first)).columns, strict=True))
    columns[TIME] = pc.fill_null(stored[TIME], NEVER)
    columns[EXISTS] = pc.fill_null(stored[EXISTS], 0)
    columns[LATEST] = pa.array(latest)
    _put(last, columns, hashes[first], codes >= 0, now)
    return kept


def _no_rows(last: KeyedState) -> pa.Table:
    layout = last.layout
    return pa.schema([*layout.identity, *layout.payload]).empty_table()


def _put(last: KeyedState, columns: dict[str, pa.Array], hashes: Int64s, present: Mask, now: int) -> None:
    size = len(hashes)
    columns |= {
        HASH: pa.array(hashes),
        COUNT: pa.array(np.ones(size, np.int64)),
        WRITE: pa.array(np.full(size, now, np.int64)),
    }
    schema = last.layout.schema
    last.put(pa.table([columns[name] for name in schema.names], schema=schema), present)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """The distinct keys of due rows, with the code of the last version of each, -1 for none.

    ``left`` and ``right`` have the number of the key of each row. A version that has expired is not ``live``.
    """

    rows: pa.Table
    hashes: Int64s
    left: Int64s
    right: Int64s
    codes: Int64s
    live: Mask


def _keys_of(operator: TemporalJoinOperator, left: pa.Table, right: pa.Table, last: KeyedState) -> _Keys:
    pairs = dict(zip(operator.right_keys, operator.left_keys, strict=True))
    columns = {
        theirs: pa.concat_arrays([without_chunks(right[theirs]), without_chunks(left[mine]).cast(right[theirs].type)])
        for theirs, mine in pairs.items()
    }
    hashes = np.concatenate([int64s(rows, HASH) for rows in (right, left)]) & ~SUFFIX_MASK
    groups, first = hashed_groups([*columns.values()], hashes)
    rows = pa.table(columns).take(pa.array(first))
    codes = last.find(rows.select(last.layout.identity.names), hashes[first])
    return _Keys(
        rows=rows,
        hashes=hashes[first],
        left=groups[right.num_rows :],
        right=groups[: right.num_rows],
        codes=codes,
        live=last.live(codes),
    )


def _join(operator: TemporalJoinOperator, left: pa.Table, right: pa.Table, last: KeyedState, now: int) -> pa.Table:
    """Join the due rows, and store the last version of each key."""
    if not left.num_rows and not right.num_rows:
        return operator.output.empty_table()
    keys = _keys_of(operator, left, right, last)
    stored = np.flatnonzero(keys.live)
    stored_times = last.integers(keys.codes[stored], TIME)
    # All versions by key and time. Of equal times, the stored one comes first, then the others by arrival.
    key = np.concatenate((stored, keys.right))
    time = np.concatenate((stored_times, int64s(right, TIME)))
    order = np.lexsort((np.arange(len(key)), time, key))
    chosen = _last_until(key[order], time[order], keys.left, int64s(left, TIME))
    version = np.where(chosen >= 0, order[chosen] if len(order) else -1, -1)
    _observe(last, keys, version, time, int64s(left, TIME))
    exists = np.concatenate((last.integers(keys.codes[stored], EXISTS) > 0, _is_row(right)))
    version[version >= 0] = np.where(exists[version[version >= 0]], version[version >= 0], -1)
    version = _where_valid(left, operator.left_keys, version)
    used = np.unique(version[(version >= 0) & (version < len(stored))])
    output = _output(operator, left, right, last, keys.codes[stored], version)
    replaced = _store_last(operator, right, last, keys, key, time, order, now)
    if operator.ttl:
        codes = keys.codes[stored[used[~np.isin(stored[used], replaced)]]]
        write_again(last, codes[last.integers(codes, WRITE) + max(operator.ttl // 4, 1) <= now], now)
    return output


def _last_until(key: Int64s, time: Int64s, left_key: Int64s, left_time: Int64s) -> Int64s:
    """Return the place of the last version of each left row's key that is not later than the row; -1 for none.

    The versions are sorted by key and time.
    """
    known = np.unique(time)
    ranks = key * (len(known) + 1) + np.searchsorted(known, time)
    wanted = left_key * (len(known) + 1) + np.searchsorted(known, left_time, "right")
    place = np.searchsorted(ranks, wanted) - 1
    has = place >= 0
    has[has] = key[place[has]] == left_key[has]
    return np.where(has, place, -1)


def _is_row(rows: pa.Table) -> Mask:
    if KIND not in rows.column_names:
        return np.ones(rows.num_rows, np.bool_)
    kinds: Mask = rows[KIND].to_numpy() != DELETE
    return kinds


def _where_valid(left: pa.Table, keys: tuple[str, ...], version: Int64s) -> Int64s:
    for key in keys:
        if left[key].null_count:
            version = np.where(np.asarray(pc.is_valid(left[key])), version, -1)
    return version


def _observe(last: KeyedState, keys: _Keys, version: Int64s, time: Int64s, left_time: Int64s) -> None:
    """Observe the stored versions that left rows meet, or would meet if they had not expired."""
    count = int(keys.live.sum())
    stored = np.flatnonzero(keys.live)
    met = version[(version >= 0) & (version < count)]
    last.use(keys.codes[stored[met]])
    expired = (keys.codes >= 0) & ~keys.live
    if not expired.any():
        return
    rows = np.flatnonzero(expired[keys.left])
    codes = keys.codes[keys.left[rows]]
    times = last.integers(codes, TIME)
    found = np.where(version[rows] >= 0, time[version[rows]] if len(time) else NEVER, NEVER)
    last.use(codes[(times <= left_time[rows]) & (times > found)])


def _output(
    operator: TemporalJoinOperator,
    left: pa.Table,
    right: pa.Table,
    last: KeyedState,
    stored: Int64s,
    version: Int64s,
) -> pa.Table:
    """Return the output of the ``left`` rows with their versions; -1 is none."""
    shown = [name for name in operator.right.names if _is_read(operator, name)]
    added = right.select(shown)

    def versions_at(chosen: Int64s) -> pa.Table:
        return rows_at(last, stored, added, chosen)[0] if shown else added

    if operator.condition is not None and len(version):
        places = np.flatnonzero(version >= 0)
        of_right = versions_at(version[places])
        of_left = left.select(list(operator.condition.left)).take(pa.array(places))
        holds = operator.condition.holds(of_left, of_right.select(list(operator.condition.right)), len(places))
        version = version.copy()
        version[places[~holds]] = -1
    if operator.kind == "inner":
        places = np.flatnonzero(version >= 0)
        left, version = left.take(pa.array(places)), version[places]
    sides = {"left": left, "right": versions_at(version)}
    columns = [sides[side][column] for _, side, column in operator.columns]
    return pa.table([*columns, *([left[KIND]] if operator.changelog[0] else [])], schema=operator.output)


def _is_read(operator: TemporalJoinOperator, name: str) -> bool:
    in_condition = operator.condition is not None and name in operator.condition.right
    return in_condition or any(side == "right" and column == name for _, side, column in operator.columns)


def _store_last(
    operator: TemporalJoinOperator,
    right: pa.Table,
    last: KeyedState,
    keys: _Keys,
    key: Int64s,
    time: Int64s,
    order: Int64s,
    now: int,
) -> Int64s:
    """Store the last due version of each key, and return the keys that have a new one."""
    stored = len(key) - right.num_rows
    ends = np.flatnonzero(np.append(key[order][1:] != key[order][:-1], True)) if len(order) else np.empty(0, np.int64)
    newest = order[ends]
    newest = newest[newest >= stored]
    places: Int64s = key[newest]
    if not len(newest):
        return places
    rows = right.take(pa.array(newest - stored))
    columns = {name: rows[name] for name in operator.right.names}
    columns[TIME] = pa.array(time[newest])
    columns[EXISTS] = pa.array(_is_row(rows).astype(np.int64))
    if operator.ascending:
        latest = time[newest].copy()
        live = keys.live[places]
        latest[live] = np.maximum(latest[live], last.integers(keys.codes[places[live]], LATEST))
        columns[LATEST] = pa.array(latest)
    _put(last, columns, keys.hashes[places], keys.codes[places] >= 0, now)
    return places
