"""The kernel of rank over a changelog: the rows of each key with certain numbers, as Flink's Rank with ROW_NUMBER.

A row's number is its place among the rows of its key. Rows that are equal in the order are numbered by arrival, the
first or the last to arrive first. Of equal rows, the first to arrive is retracted first. All rows are stored, because
any may move up. A retraction without its row is ignored.

A batch emits the net change of each key. With numbers in the output, or with only one wanted number, it emits the new
row of each number that has changed (-U directly followed by +U). Otherwise it emits -D for rows that left, then +I for
rows that entered.

State layout, format 1: table ``rows`` of :mod:`hintplan.runtime.operators.rows_of_keys`.

Each change of a key rewrites all its rows up to the last wanted number. So they expire together, one TTL after the last
change, and no row moves up without a change; expiry emits nothing. A row behind the last number was never emitted, and
expires by its own last write. A change deletes the expired rows of its key, so that a longer TTL revives none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.kernels.numbering import Numbering, emitted, occurrences
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore
from hintplan.runtime.operators.rows_of_keys import ROWS, changed_rows, rows_layout
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.keyed import KeyedState
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.tables import commit_states, open_tables, rows_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOperator:
    """A rank over a changelog, bound to its input columns, key, numbering and TTL (ms, 0 never expires)."""

    columns: pa.Schema
    key: tuple[str, ...]
    numbering: Numbering
    ttl: int

    @property
    def layout(self) -> StateLayout:
        return rows_layout(self.columns, self.key)

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (self.layout,)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.columns, hashes=(self.key, tuple(self.columns.names)), changelog=True),)

    @property
    def output(self) -> pa.Schema:
        return self.numbering.output(self.columns)

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        states = open_tables(self.layouts, manifest, store, ttls=(self.ttl,), now=now)
        rows = deltas[0]
        output = self.output.empty_table()
        if rows is not None and rows.num_rows:
            output = _update(self, states[ROWS], rows.combine_chunks(), now)
        # No row is dropped: any may move up.
        return commit_states(states, output, rows_in(deltas), metrics=(0,))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _update(operator: RankOperator, state: KeyedState, batch: pa.Table, now: int) -> pa.Table:
    change = changed_rows(state, batch, now)
    if change is None:
        return operator.output.empty_table()
    ranked = occurrences(
        operator.numbering,
        change.columns(operator.numbering.read),
        which=change.which,
        keys=change.keys,
        places=change.places,
        was=change.was,
        is_=change.is_,
    )
    output = emitted(operator.numbering, ranked, change.at)
    change.store(ranked.up_to_end(), now)
    return output.select(operator.output.names)
