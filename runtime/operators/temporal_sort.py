"""The kernel of a sort by rowtime: rows wait for the watermark, and are emitted in the order of their times.

Rows that are equal in the order keep the order of their arrival. The input is insert-only, and late rows are dropped.
Rows that the watermark passes in the batch in which they come are never stored. All rows are in one partition.

State layout, format 1: tables ``waiting@middle`` of :mod:`hintplan.runtime.operators.waiting_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.computations import SortKey
from hintplan.runtime.kernels.lateness import lateness
from hintplan.runtime.kernels.sorting import sorted_rows
from hintplan.runtime.kernels.windows import milliseconds
from hintplan.runtime.operator import Inheritance, InputSpec, Result, SegmentStore, Watermarks
from hintplan.runtime.operator import hash_column as hash_name
from hintplan.runtime.operators.waiting_rows import WaitingRows, in_order, waiting_layout
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import StateLayout, int64s
from hintplan.runtime.state.manifest import read_manifest
from hintplan.runtime.state.tables import result_of, rows_in

WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalSortOperator:
    """A sort by ``order``, whose first key is the rowtime, ascending; bound to its columns."""

    columns: pa.Schema
    order: tuple[SortKey, ...]

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return (waiting_layout(WAITING, self.columns, ()),)

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        return (InputSpec(columns=self.columns, hashes=((),), changelog=False),)

    @property
    def output(self) -> pa.Schema:
        return self.columns

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        tables = read_manifest(manifest, self.layouts)
        waiting = WaitingRows(self.layouts[0], tables, store, now=now)
        due = waiting.take_due(watermarks.after)
        late, late_times = np.empty(0, np.int64), np.empty(0, np.int64)
        rows = deltas[0]
        if rows is not None and rows.num_rows:
            times = milliseconds(rows[self.order[0].column])
            late = np.flatnonzero(times <= watermarks.before)
            late_times = times[late]
            arrived = waiting.arrived(rows.select(self.columns.names), times, int64s(rows, hash_name(0)))
            waiting.wait(arrived.filter(pa.array(times > watermarks.after)), watermarks.after)
            passes = (times > watermarks.before) & (times <= watermarks.after)
            due = pa.concat_tables([due, arrived.filter(pa.array(passes))])
        buckets = waiting.buckets.commit()
        return replace(
            result_of(buckets, _sorted(self, due.combine_chunks()), rows_in(deltas)),
            late_rows=len(late),
            late_places=(late,),
            lateness=(lateness(late_times, watermarks.before),),
            waiting_rows=sum(table.rows for table in buckets.values()),
        )

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _sorted(operator: TemporalSortOperator, rows: pa.Table) -> pa.Table:
    """Return the output for waiting ``rows``."""
    rows = in_order(rows).combine_chunks()
    order = sorted_rows(rows, np.zeros(rows.num_rows, np.int64), operator.order, np.arange(rows.num_rows))
    return rows.select(operator.columns.names).take(pa.array(order)).cast(operator.output)
