"""The kernel of a join of equal windows: rows of both sides wait for the end of their window, and are joined then.

Nothing is emitted before the watermark has passed the window, and all kinds of joins are complete then: input is
insert-only, and late rows are dropped. NULL keys never match. Rows whose window closes in the batch in which they come,
as above a window aggregate, are never stored.

State layout, format 1: tables ``left@end`` and ``right@end`` (hash of key and row; all columns; count; last write). A
row lies in the table of the time bucket of the end of its window. Rows that can neither match nor be padded are not
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import JoinType
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.evidence.ages import NONE, Counts
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.matching import matched_groups
from hintplan.runtime.kernels.pairs import JoinCondition
from hintplan.runtime.kernels.windows import closing_time, milliseconds
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.open_windows import CLOSES, OpenWindows, commit_windows, open_windows
from hintplan.runtime.state.identity import Mask
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import COUNT, HASH, SUFFIX_MASK, Int64s, StateLayout, int64s, prefixed_hash
from hintplan.runtime.state.tables import rows_in
from hintplan.runtime.state.under_keys import add_copies

_PORTION = 1 << 21
"""Pairs of rows on which the condition is evaluated at a time."""
_PADDED: dict[JoinType, tuple[bool, bool]] = {
    "inner": (False, False),
    "left": (True, False),
    "right": (False, True),
    "full": (True, True),
    "semi": (False, False),
    "anti": (True, False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoinOperator:
    """A join of equal windows bound to the columns of its inputs. ``columns`` are the output's (name, side, column)."""

    kind: JoinType
    left: pa.Schema
    right: pa.Schema
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    window: Window
    left_window: WindowColumns
    right_window: WindowColumns
    condition: JoinCondition | None
    columns: tuple[tuple[str, str, str], ...]

    @property
    def sides(self) -> tuple[pa.Schema, pa.Schema]:
        return self.left, self.right

    @property
    def windows(self) -> tuple[WindowColumns, WindowColumns]:
        return self.left_window, self.right_window

    @property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of both sides that must be equal: the keys and the window."""
        left, right = ((columns.start, columns.end) for columns in self.windows)
        return (*self.left_keys, *left), (*self.right_keys, *right)

    @property
    def layouts(self) -> tuple[StateLayout, StateLayout]:
        left, right = (
            StateLayout(name=name, identity=columns, payload=pa.schema([(CLOSES, pa.int64())]), key=keys, by_time=True)
            for name, columns, keys in zip(("left", "right"), self.sides, self.keys, strict=True)
        )
        return left, right

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return tuple(
            InputSpec(columns=columns, hashes=(keys, tuple(columns.names)), changelog=False)
            for columns, keys in zip(self.sides, self.keys, strict=True)
        )

    @property
    def output(self) -> pa.Schema:
        return pa.schema(
            [pa.field(name, self.sides[side == "right"].field(column).type) for name, side, column in self.columns]
        )

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        windows = open_windows(self.layouts, manifest, store, window=self.window, now=now)
        closed, late, passed = [], [], []
        for side, (rows, waiting) in enumerate(zip(deltas, windows.values(), strict=True)):
            of_side = [_stored_rows(self, side, waiting.take_due(watermarks.after))]
            places, of_late = np.empty(0, np.int64), NONE
            if rows is not None and rows.num_rows:
                new, places, of_late = _wait(self, side, waiting, rows.combine_chunks(), watermarks, now)
                of_side.append(new)
            late.append(places)
            passed.append(of_late)
            closed.append(_concatenated(of_side))
        return commit_windows(
            windows,
            _joined(self, *closed),
            rows_in=rows_in(deltas),
            late_rows=sum(map(len, late)),
            late_places=tuple(late),
            lateness=tuple(passed),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)

    def can_be_emitted(self, side: int) -> bool:
        """Return True if a row of ``side`` with NULL in a key is emitted."""
        return _PADDED[self.kind][side]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of one side, and the leading bits of the hashes of their keys and windows, as state keeps them."""

    rows: pa.Table
    hashes: Int64s


def _stored_rows(operator: WindowJoinOperator, side: int, stored: pa.Table) -> _Rows:
    """Return stored rows as often as they came."""
    copies = int64s(stored, COUNT)
    hashes, rows = int64s(stored, HASH) & ~SUFFIX_MASK, stored.select(operator.sides[side].names)
    if stored.num_rows and int(copies.max()) > 1:
        place = np.repeat(np.arange(len(copies)), copies)
        return _Rows(rows=rows.take(pa.array(place)), hashes=hashes[place])
    return _Rows(rows=rows, hashes=hashes)


def _concatenated(parts: Sequence[_Rows]) -> _Rows:
    rows = pa.concat_tables([part.rows for part in parts])
    return _Rows(rows=rows, hashes=np.concatenate([part.hashes for part in parts]))


def _wait(
    operator: WindowJoinOperator, side: int, waiting: OpenWindows, batch: pa.Table, watermarks: Watermarks, now: int
) -> tuple[_Rows, Int64s, Counts]:
    """Store the rows whose window stays open.

    Return the rows whose window closes, and of the late rows, their places and their lateness.
    """
    closes = closing_time(milliseconds(batch[operator.windows[side].end]), operator.window.zone)
    is_late, is_open = closes <= watermarks.before, closes > watermarks.after
    counts = ~is_late
    if not operator.can_be_emitted(side):
        for key in operator.keys[side]:
            if batch[key].null_count:
                counts &= np.asarray(pc.is_valid(batch[key]))
    open_rows = np.flatnonzero(is_open & counts)
    for bucket, places in waiting.by_bucket(closes[open_rows]):
        rows = batch.take(pa.array(open_rows[places]))
        hashes = prefixed_hash(int64s(rows, hash_name(0)), int64s(rows, hash_name(1)))
        add_copies(bucket, rows, hashes, {CLOSES: closes[open_rows[places]]}, now)
    due = batch.filter(pa.array(counts & ~is_open))
    rows = due.select(operator.sides[side].names)
    return (
        _Rows(rows=rows, hashes=int64s(due, hash_name(0)) & ~SUFFIX_MASK),
        np.flatnonzero(is_late),
        lateness(closes[is_late], watermarks.before),
    )


def _joined(operator: WindowJoinOperator, left: _Rows, right: _Rows) -> pa.Table:
    """Join the rows of windows that close together."""
    matching = matched_groups(left.rows, right.rows, operator.keys, (left.hashes, right.hashes))
    has_left, has_right = matching.count > 0, np.zeros(right.rows.num_rows, np.bool_)
    shows_pairs = operator.kind not in ("semi", "anti")
    pieces = [operator.output.empty_table()]
    if shows_pairs or operator.condition is not None:
        has_left = np.zeros(left.rows.num_rows, np.bool_)
        for of_left, of_right in matching.pairs(_PORTION):
            if operator.condition is not None:
                holds = _holds(operator.condition, left.rows, of_left, right.rows, of_right)
                of_left, of_right = of_left[holds], of_right[holds]
            has_left[of_left] = True
            has_right[of_right] = True
            if shows_pairs:
                pieces.append(_output(operator, left.rows, of_left, right.rows, of_right))
    pads_left, pads_right = _PADDED[operator.kind]
    if operator.kind == "semi":
        pieces.append(_output(operator, left.rows, np.flatnonzero(has_left), None, None))
    if pads_left:
        pieces.append(_output(operator, left.rows, np.flatnonzero(~has_left), None, None))
    if pads_right:
        pieces.append(_output(operator, None, None, right.rows, np.flatnonzero(~has_right)))
    return pa.concat_tables(pieces)


def _holds(condition: JoinCondition, left: pa.Table, of_left: Int64s, right: pa.Table, of_right: Int64s) -> Mask:
    of_both = left.select(list(condition.left)).take(of_left), right.select(list(condition.right)).take(of_right)
    return condition.holds(*of_both, len(of_left))


def _output(
    operator: WindowJoinOperator,
    left: pa.Table | None,
    of_left: Int64s | None,
    right: pa.Table | None,
    of_right: Int64s | None,
) -> pa.Table:
    """Return output rows of the places in both sides; a side that is None is NULL."""
    size = len(of_left if of_left is not None else of_right if of_right is not None else ())
    columns = []
    for (_, side, column), field in zip(operator.columns, operator.output, strict=True):
        source, places = (right, of_right) if side == "right" else (left, of_left)
        columns.append(pa.nulls(size, field.type) if source is None else source[column].take(places))
    return pa.table(columns, schema=operator.output)
