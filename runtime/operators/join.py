"""The kernel of the regular stream join: inner, outer, semi and anti, over changelogs, with a TTL per side.

Both sides keep their rows in state, each distinct row once with its count. Preserved sides (the outer ones, and the
left of a semi or anti join) also keep the number of partners of each row. The sides of a batch are processed one after
the other, as Flink processes record by record. The changes of a side meet the state of the other side, and are then
added to the state of their own side. The net changes of a batch are emitted as +I and -D.

- NULL keys never match, and rows with a NULL key are never stored.
- The retraction of an expired row is still emitted for its live partners.
- Nothing is retracted when rows expire.
- A match refreshes the TTL of a preserved row only.
- A side without a TTL and a row limit never forgets a row. There, a retraction without its row means broken input and
  is dropped: its effect would depend on which side's rows come first.
- Rows beyond the limit per key are removed, oldest first, as if they had expired. A limit may be added, changed or
  removed at any time.

State layout, format 1: tables ``left`` and ``right`` (hash of key and row; all columns; partners; count; last write).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import JoinType
from hintplan.runtime.kernels.changelog import overdrawn
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.row_limit import Added, forget_oldest
from hintplan.runtime.state.identity import Mask, distinct_rows, hashed_groups, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import COUNT, SUFFIX_MASK, WRITE, Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in

PARTNERS = "__partners"
COUNTS = ("rows_beyond_limit",)
"""The kernel's own metric: rows that were removed because their key had more rows than the limit."""
LEFT, RIGHT = 0, 1
_PRESERVED: dict[JoinType, tuple[bool, bool]] = {
    "inner": (False, False),
    "left": (True, False),
    "right": (False, True),
    "full": (True, True),
    "semi": (True, False),
    "anti": (True, False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOperator:
    """A join bound to the columns of its inputs. ``columns`` are the output's (name, side, input column).

    With ``in_order``, the rows that one side of a batch adds are emitted in the order of their arrival; else in any
    order. ``limits`` are the numbers of rows that each side keeps per key; None keeps all.
    """

    kind: JoinType
    left: pa.Schema
    right: pa.Schema
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    changelog: tuple[bool, bool]
    condition: JoinCondition | None
    ttls: tuple[int, int]
    columns: tuple[tuple[str, str, str], ...]
    emits_changelog: bool
    in_order: bool = False
    limits: tuple[int | None, int | None] = (None, None)

    @property
    def sides(self) -> tuple[pa.Schema, pa.Schema]:
        return self.left, self.right

    @property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.left_keys, self.right_keys

    def forgets(self, side: int) -> bool:
        """Return True if rows of ``side`` may leave its state without a retraction."""
        return bool(self.ttls[side]) or self.limits[side] is not None

    @property
    def layouts(self) -> tuple[StateLayout, StateLayout]:
        def layout(side: int, name: str) -> StateLayout:
            payload = pa.schema([(PARTNERS, pa.int64())] if _PRESERVED[self.kind][side] else [])
            return StateLayout(name=name, identity=self.sides[side], payload=payload, key=self.keys[side])

        return layout(LEFT, "left"), layout(RIGHT, "right")

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return tuple(
            InputSpec(columns=columns, hashes=(keys, tuple(columns.names)), changelog=changelog)
            for columns, keys, changelog in zip(self.sides, self.keys, self.changelog, strict=True)
        )

    @property
    def output(self) -> pa.Schema:
        fields = [pa.field(name, self.sides[side == "right"].field(column).type) for name, side, column in self.columns]
        return pa.schema([*fields, pa.field(KIND, pa.int8())] if self.emits_changelog else fields)

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=self.ttls, now=now)
        # The side whose rows are not preserved goes first, so that rows of one batch meet before they are padded.
        order = (RIGHT, LEFT) if self.kind in ("left", "semi", "anti") else (LEFT, RIGHT)
        pieces, beyond = [self.output.empty_table()], 0
        for side in order:
            rows = deltas[side]
            if rows is not None and rows.num_rows:
                emitted, gone = _apply(self, side, rows.combine_chunks(), tuple(states.values()), now)
                pieces, beyond = [*pieces, *emitted], beyond + gone
        return commit_states(states, pa.concat_tables(pieces), rows_in(deltas), metrics=(beyond,))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NetRows:
    """The distinct rows of one side of a batch, in the order of their hashes, which is the order of state.

    ``net`` is the change of each row's count, without the ``dropped`` retractions, which had no row to retract.
    ``came`` is the position in the batch at which each row first came.
    """

    side: int
    rows: pa.Table
    hashes: Int64s
    net: Int64s
    dropped: Int64s
    came: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """The rows of the other side that met rows of a batch, by their codes, with the partners ``gained`` and ``lost``.

    ``came`` is the position in the batch at which the row that they met first came.
    """

    codes: Int64s
    gained: Int64s
    lost: Int64s
    came: Int64s


class _Output:
    """Collects the output of one side's changes; deletes are emitted before inserts."""

    def __init__(self, operator: JoinOperator) -> None:
        self.operator = operator
        self.deletes: list[pa.Table] = []
        self.inserts: list[pa.Table] = []
        self.came: list[Int64s] = []

    def add(self, left: pa.Table | None, right: pa.Table | None, weights: Int64s, came: Int64s) -> None:
        """Emit row i of the given sides ``abs(weights[i])`` times; a missing side is NULL.

        ``came`` is the position in the batch of the row for which row i is emitted.
        """
        for sign, target, kind in ((-1, self.deletes, DELETE), (1, self.inserts, INSERT)):
            whole = bool((weights == sign).all())
            chosen = np.arange(len(weights)) if whole else np.flatnonzero(weights < 0 if sign < 0 else weights > 0)
            if not chosen.size:
                continue
            times = np.abs(weights[chosen])
            chosen = np.repeat(chosen, times) if int(times.max()) > 1 else chosen
            columns = []
            for (_, side, column), field in zip(self.operator.columns, self.operator.output, strict=False):
                source = right if side == "right" else left
                if source is None:
                    columns.append(pa.nulls(len(chosen), field.type))
                else:
                    columns.append(source[column] if whole else source[column].take(chosen))
            if self.operator.emits_changelog:
                columns.append(pa.array(np.full(len(chosen), kind, np.int8)))
            target.append(pa.table(columns, schema=self.operator.output))
            if sign > 0:
                self.came.append(came[chosen])

    def pieces(self) -> list[pa.Table]:
        if self.operator.in_order and self.inserts:
            order = np.argsort(np.concatenate(self.came), kind="stable")
            return [*self.deletes, pa.concat_tables(self.inserts).take(order)]
        return [*self.deletes, *self.inserts]


def _apply(
    operator: JoinOperator, side: int, batch: pa.Table, states: tuple[KeyedState, ...], now: int
) -> tuple[list[pa.Table], int]:
    """Return the output for the rows of one side, and the number of that side's rows removed by its limit."""
    output, gone = _Output(operator), 0
    weights = np.ones(batch.num_rows, np.int64)
    if operator.changelog[side]:
        kinds = batch[KIND].to_numpy()
        weights = np.where((kinds == INSERT) | (kinds == UPDATE_AFTER), np.int64(1), np.int64(-1))
    keyed = np.ones(batch.num_rows, np.bool_)
    for key in operator.keys[side]:
        if batch[key].null_count:
            keyed &= np.asarray(pc.is_valid(batch[key]))
    if not keyed.all():
        if _PRESERVED[operator.kind][side] and operator.kind != "semi":
            _pad_netted(operator, output, side, batch.filter(pa.array(~keyed)), weights[~keyed])
        batch, weights = batch.filter(pa.array(keyed)), weights[keyed]
    if batch.num_rows:
        net_rows, partners = _net(operator, side, batch, weights, states, now, output)
        if _PRESERVED[operator.kind][side]:
            shown = partners > 0 if operator.kind == "semi" else partners == 0
            _pad(output, side, net_rows.rows, np.where(shown, net_rows.net, 0), net_rows.came)
        limit = operator.limits[side]
        if limit is not None:
            added = Added(rows=net_rows.rows, hashes=net_rows.hashes, came=net_rows.came)
            gone = forget_oldest(states[side], added, limit, now)
    return output.pieces(), gone


def _pad_netted(operator: JoinOperator, output: _Output, side: int, batch: pa.Table, weights: Int64s) -> None:
    """Emit rows that cannot have a partner, netted: a row must not be deleted before it is inserted."""
    rows = batch.select(operator.sides[side].names)
    entries, first = distinct_rows(rows, batch[hash_name(1)].to_numpy())
    net = np.bincount(entries, weights=weights, minlength=len(first)).astype(np.int64)
    _pad(output, side, rows.take(first), net, first)


def _net(
    operator: JoinOperator,
    side: int,
    batch: pa.Table,
    weights: Int64s,
    states: tuple[KeyedState, ...],
    now: int,
    output: _Output,
) -> tuple[_NetRows, Int64s]:
    """Net the batch, join it with the other side's state, and add it to its own side's state.

    Returns the distinct rows, and the number of partners of each.
    """
    own = states[side]
    row_hashes = prefixed_hash(batch[hash_name(0)].to_numpy(), batch[hash_name(1)].to_numpy())
    rows = batch.select(operator.sides[side].names)
    entries, first = hashed_groups([without_chunks(column) for column in rows.columns], row_hashes)
    rows, hashes = rows.take(first), row_hashes[first]
    net = weights[first]
    if len(first) < batch.num_rows:
        net = np.bincount(entries, weights=weights, minlength=len(first)).astype(np.int64)
    codes = own.find(rows, hashes)
    live = own.live(codes)
    if operator.changelog[side]:
        own.use(codes[net < 0])
    old = np.zeros(len(first), np.int64)
    old[live] = own.integers(codes[live], COUNT)
    dropped = np.zeros(len(first), np.int64)
    if operator.changelog[side] and weights.min() < 0:
        dropped = np.bincount(entries[overdrawn(entries, weights, old)], minlength=len(first))
    if not operator.forgets(side):
        net, dropped = net + dropped, np.zeros_like(dropped)
    new = old + net + dropped
    net_rows = _NetRows(side=side, rows=rows, hashes=hashes, net=net, dropped=dropped, came=first)
    partners = _match(operator, net_rows, states[1 - side], now, output)
    stored = [pa.array(hashes), *rows.columns]
    if _PRESERVED[operator.kind][side]:
        # Flink counts the partners of a row whenever the row comes, even if it is retracted within the same batch.
        untouched = live & (np.bincount(entries[weights > 0], minlength=len(first)) == 0)
        partner_counts = partners.copy()
        partner_counts[untouched] = own.integers(codes[untouched], PARTNERS)
        stored.append(pa.array(partner_counts))
    stored += [pa.array(new), pa.array(np.full(len(first), now, np.int64))]
    own.put(pa.table(stored, schema=own.layout.schema), codes >= 0)
    return net_rows, partners


def _match(operator: JoinOperator, batch: _NetRows, other: KeyedState, now: int, output: _Output) -> Int64s:
    """Emit the pairs of ``batch`` rows with live rows of the other side; return each row's number of partners."""
    side, rows = batch.side, batch.rows
    partners = np.zeros(rows.num_rows, np.int64)
    counted, tracked = _PRESERVED[operator.kind][side], _PRESERVED[operator.kind][1 - side]
    met_codes, met_rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    keys = rows.select(list(operator.keys[side])).rename_columns(list(operator.keys[1 - side]))
    mine_shown, theirs_shown = _shown(operator, side), _shown(operator, 1 - side)
    for place, code in other.scan(keys, batch.hashes & ~SUFFIX_MASK, expired=True):
        if operator.condition is not None:
            holds = _holds(operator.condition, side, rows, place, other, code)
            place, code = place[holds], code[holds]
        other.use(code)
        if operator.ttls[1 - side]:
            live = other.live(code)
            if not live.all():
                place, code = place[live], code[live]
        if not place.size:
            continue
        copies = other.integers(code, COUNT)
        if counted:
            partners += np.bincount(place, weights=copies, minlength=len(partners)).astype(np.int64)
        if operator.kind not in ("semi", "anti"):
            mine = _taken(rows.select(mine_shown), place)
            theirs = other.take(code, theirs_shown)
            left, right = (mine, theirs) if side == LEFT else (theirs, mine)
            output.add(left, right, batch.net[place] * copies, batch.came[place])
        if tracked:
            met_codes.append(code)
            met_rows.append(place)
    if tracked:
        places = np.concatenate(met_rows)
        change = batch.net + batch.dropped
        met = _Met(
            codes=np.concatenate(met_codes),
            gained=np.maximum(change, 0)[places],
            lost=(batch.dropped + np.maximum(-change, 0))[places],
            came=batch.came[places],
        )
        _associate(operator, 1 - side, other, met, now, output)
    return partners


def _taken(rows: pa.Table, places: Int64s) -> pa.Table:
    """Return the rows at ``places``, without a copy if these are all rows in their order."""
    as_they_are = len(places) == rows.num_rows and bool((places == np.arange(len(places))).all())
    return rows if as_they_are else rows.take(places)


def _shown(operator: JoinOperator, side: int) -> list[str]:
    """Return the columns of ``side`` that the output contains, each once."""
    return list(dict.fromkeys(column for _, of, column in operator.columns if (of == "right") == (side == RIGHT)))


def _holds(condition: JoinCondition, side: int, rows: pa.Table, place: Int64s, other: KeyedState, code: Int64s) -> Mask:
    mine, theirs = (condition.left, condition.right) if side == LEFT else (condition.right, condition.left)
    my_rows = _taken(rows.select(list(mine)), place)
    their_rows = other.take(code, list(theirs)) if theirs else rows.select([])
    left, right = (my_rows, their_rows) if side == LEFT else (their_rows, my_rows)
    return condition.holds(left, right, len(place))


def _associate(operator: JoinOperator, side: int, state: KeyedState, met: _Met, now: int, output: _Output) -> None:
    """Update partner counts of the ``met`` rows of ``side``; emit rows whose count leaves or reaches zero.

    Losses count before gains, and counts never fall below zero. A partner that had expired before the preserved row
    came was never counted, so its retraction must not use up the partner that replaces it.
    """
    codes, place = np.unique(met.codes, return_inverse=True)
    if not codes.size:
        return
    old = state.integers(codes, PARTNERS)
    less = np.bincount(place, weights=met.lost, minlength=len(codes)).astype(np.int64)
    more = np.bincount(place, weights=met.gained, minlength=len(codes)).astype(np.int64)
    new = np.maximum(old - less, 0) + more
    rows = state.take(codes, state.layout.schema.names)
    copies = rows[COUNT].to_numpy()
    sign = 1 if operator.kind == "semi" else -1
    became = np.where((old == 0) & (new > 0), sign, 0) + np.where((old > 0) & (new == 0), -sign, 0)
    last = np.zeros(len(codes), np.int64)
    np.maximum.at(last, place, met.came)
    _pad(output, side, rows, became * copies, last)
    names = state.layout.schema.names
    rows = rows.set_column(names.index(PARTNERS), PARTNERS, pa.array(new))
    rows = rows.set_column(names.index(WRITE), WRITE, pa.array(np.full(len(codes), now, np.int64)))
    state.put(rows.cast(state.layout.schema), np.ones(len(codes), np.bool_))


def _pad(output: _Output, side: int, rows: pa.Table, weights: Int64s, came: Int64s) -> None:
    if side == LEFT:
        output.add(rows, None, weights, came)
    else:
        output.add(None, rows, weights, came)
