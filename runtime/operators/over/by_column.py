"""The kernel of an over aggregate in the order of a column that is no time: later rows correct earlier results.

Each row has the results of the functions over the rows of its key up to it, and all rows that are equal in the order
(RANGE), or only the rows up to it (ROWS). Among rows that are equal in the order, arrival decides. A batch emits the
net change of each key: -D for rows that left, then, in the order of the rows, +I for new rows, and -U directly followed
by +U for rows with other results. Input may be a changelog; a retraction without its row is ignored.

State layout, format 1: table ``rows`` of :mod:`hintplan.runtime.operators.rows_of_keys`. Results are not stored: the
results before a batch are computed from the rows before it. So a batch costs as much as its keys have rows.

With a TTL, each change of a key rewrites all its rows. So they expire together, one TTL after the last change, and
expiry emits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.computations import SortKey
from hintplan.runtime.kernels.changelog import changelog_between
from hintplan.runtime.kernels.sorting import sorted_by, sorted_rows
from hintplan.runtime.operator import KIND, Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operators.over.functions import DueRows, OverFunctions, results_of_keys
from hintplan.runtime.operators.rows_of_keys import ROWS, RowsOfKeys, changed_rows, rows_layout
from hintplan.runtime.state.identity import Mask, encode_groups, equal_columns, without_chunks
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import Int64s, StateLayout
from hintplan.runtime.state.manifest import StateTable
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in


@dataclass(frozen=True, slots=True, kw_only=True)
class OverChangesOperator:
    """An over aggregate in ``order``, bound to its functions; ``ttl`` is in ms, 0 never expires.

    ``changelog`` is true if the input has row kinds.
    """

    functions: OverFunctions
    order: tuple[SortKey, ...]
    changelog: bool
    ttl: int

    @property
    def layout(self) -> StateLayout:
        return rows_layout(self.functions.columns, self.functions.key)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        columns = self.functions.columns
        hashes = (self.functions.key, tuple(columns.names))
        return (InputSpec(columns=columns, hashes=hashes, changelog=self.changelog),)

    @property
    def results(self) -> pa.Schema:
        """The columns of the results."""
        calls = zip(self.functions.calls, self.functions.types, strict=True)
        return pa.schema([pa.field(call.name, kind) for call, kind in calls])

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.functions.columns, *self.results, pa.field(KIND, pa.int8())])

    @property
    def read(self) -> list[str]:
        """The input columns that the functions and the order read."""
        calls = self.functions.calls
        operands = [name for call in calls for name in (call.argument, getattr(call, "default", None)) if name]
        return list(dict.fromkeys((*self.functions.key, *(key.column for key in self.order), *operands)))

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=(self.ttl,), now=now)
        rows, output = deltas[0], self.output.empty_table()
        change = None
        if rows is not None and rows.num_rows:
            change = changed_rows(states[ROWS], rows.combine_chunks(), now)
        if change is not None:
            output = _changes(self, change)
            change.store(np.full(len(change.which), self.ttl > 0), now)
        return commit_states(states, output, rows_in(deltas))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _changes(operator: OverChangesOperator, change: RowsOfKeys) -> pa.Table:
    """Return the changes that a batch makes to the rows and their results."""
    rows = change.columns(operator.read).combine_chunks().take(pa.array(change.which))
    order = sorted_rows(rows, change.keys, operator.order, change.places)
    rows, keys, which = rows.take(pa.array(order)).combine_chunks(), change.keys[order], change.which[order]
    was, is_ = np.flatnonzero(change.was[order]), np.flatnonzero(change.is_[order])
    before, after = (_results(operator, rows, keys, places) for places in (was, is_))
    old, new = _matched(which, was, is_)
    # An occurrence before the batch is matched with one after it, or with none; and the other way around.
    gone, came = np.setdiff1d(np.arange(len(was)), old), np.setdiff1d(np.arange(len(is_)), new)
    left = np.concatenate((gone, np.full(len(came), -1), old))
    entered = np.concatenate((np.full(len(gone), -1), came, new))
    is_gone = entered < 0
    at = np.where(is_gone, 0, is_[entered] if len(is_) else 0)
    in_order = sorted_by([np.where(is_gone, 0, 1), at])
    left, entered = left[in_order], entered[in_order]
    every = _changed(before, after, left, entered)
    left, entered = left[every], entered[every]
    place = np.where(left >= 0, was[left] if len(was) else 0, is_[entered] if len(is_) else 0)
    shown = change.at(which[place])
    return changelog_between(
        _with_results(shown, before, left),
        _with_results(shown, after, entered),
        left >= 0,
        entered >= 0,
        updates_before=True,
        equal_rows=True,
    ).cast(operator.output)


def _results(operator: OverChangesOperator, rows: pa.Table, keys: Int64s, places: Int64s) -> pa.Table:
    """Return the results of the rows at ``places`` of ``rows``, which are sorted by key and order."""
    functions = operator.functions
    if not len(places):
        return operator.results.empty_table()
    rows, keys = rows.take(pa.array(places)).combine_chunks(), keys[places]
    codes, _ = encode_groups([without_chunks(rows[key.column]) for key in operator.order])
    begins = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    due = DueRows(
        rows=rows,
        order=np.arange(len(keys)),
        keys=rows.select(list(functions.key)).take(pa.array(begins)),
        hashes=np.arange(len(begins)),
        counts=np.diff(np.append(begins, len(keys))),
        times=codes,
    )
    # Results depend on nothing but these rows, so the keys have no state.
    nothing = KeyedState(
        functions.layout, StateTable(fingerprint=functions.layout.fingerprint), MemoryStore(), ttl=0, now=0
    )
    columns = results_of_keys(functions, nothing, due, 0)
    return pa.table([without_chunks(column) for column in columns], schema=operator.results)


def _matched(which: Int64s, was: Int64s, is_: Int64s) -> tuple[Int64s, Int64s]:
    """Return pairs of occurrences before and after the batch with equal rows; none is in two pairs.

    ``was`` and ``is_`` are the places of the occurrences in ``which``. Occurrences at the same place come first.
    """
    _, old, new = np.intersect1d(was, is_, assume_unique=True, return_indices=True)
    gone, came = np.setdiff1d(np.arange(len(was)), old), np.setdiff1d(np.arange(len(is_)), new)
    rows = np.concatenate((which[was[gone]], which[is_[came]]))
    side = np.repeat((0, 1), (len(gone), len(came)))
    # Of each row, the first to leave is matched with the first to enter.
    order = np.lexsort((np.arange(len(rows)), side, rows))
    starts = np.concatenate(([True], (rows[order][1:] != rows[order][:-1]) | (side[order][1:] != side[order][:-1])))
    rank = np.empty(len(rows), np.int64)
    if len(rows):
        rank[order] = np.arange(len(rows)) - np.flatnonzero(starts)[np.cumsum(starts) - 1]
    names = rows * (len(rows) + 1) + rank
    _, first, second = np.intersect1d(names[: len(gone)], names[len(gone) :], assume_unique=True, return_indices=True)
    return np.concatenate((old, gone[first])), np.concatenate((new, came[second]))


def _changed(before: pa.Table, after: pa.Table, left: Int64s, entered: Int64s) -> Mask:
    """Return False for the rows that have the same results before and after the batch."""
    both = (left >= 0) & (entered >= 0)
    changed = np.ones(len(left), np.bool_)
    old, new = before.take(pa.array(left[both])), after.take(pa.array(entered[both]))
    changed[both] = ~equal_columns(old, new)
    return changed


def _with_results(rows: pa.Table, results: pa.Table, places: Int64s) -> pa.Table:
    """Return ``rows`` with the results at ``places``; NULL for -1."""
    chosen = results.take(pa.array(places, mask=places < 0))
    return pa.table([*rows.columns, *chosen.columns], names=[*rows.column_names, *chosen.column_names])
