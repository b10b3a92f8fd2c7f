"""The kernel of the group aggregate: accumulators per group, and values tables for arguments that it must remember.

It emits Flink's changelog: +I for a new group, -U/+U for a changed group, -D when the last row of a group is retracted.
With a TTL it also emits unchanged results, so that state downstream stays alive (the behaviour of Flink's engine under
FLIP-373). An expired group starts again with +I, and the kernel drops retractions of its expired rows.

The state is laid out as in :mod:`hintplan.runtime.operators.accumulation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.settings.phases import PhaseStrategy
from hintplan.runtime.kernels.accumulators import UsersCalls
from hintplan.runtime.kernels.changelog import weights_of
from hintplan.runtime.kernels.partial import WEIGHT, rows_behind
from hintplan.runtime.operator import (
    DELETE,
    INSERT,
    KIND,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Inheritance,
    InputSpec,
    Result,
    SegmentStore,
)
from hintplan.runtime.operators.accumulation import Accumulation, GroupChange, change_groups
from hintplan.runtime.state.identity import Mask, equal_columns
from hintplan.runtime.state.inherit import inherit_tables
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.tables import commit_states, open_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateOperator:
    """A group aggregate bound to its input columns, result types, TTL (ms, 0 for ever) and row kinds."""

    columns: pa.Schema
    changelog: bool
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    types: tuple[pa.DataType, ...]
    ttl: int
    kinds: RowKinds
    phases: PhaseStrategy = "AUTO"
    users: Mapping[str, UsersCalls] = field(default_factory=dict)
    """The adapters that call the user's aggregate functions, by function name."""

    @property
    def accumulation(self) -> Accumulation:
        return Accumulation(
            columns=self.columns, changelog=self.changelog, keys=self.keys, calls=self.calls, users=self.users
        )

    @property
    def layouts(self) -> tuple[StateLayout, ...]:
        return self.accumulation.layouts

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        accumulation = self.accumulation
        hashes = (self.keys, *accumulation.hashes)
        presum = accumulation.presum(self.phases)
        return (InputSpec(columns=self.columns, hashes=hashes, changelog=self.changelog, presum=presum),)

    @property
    def output(self) -> pa.Schema:
        keys = [self.columns.field(key) for key in self.keys]
        calls = (pa.field(call.name, kind) for call, kind in zip(self.calls, self.types, strict=True))
        kind = [] if self.kinds == INSERT_ONLY else [pa.field(KIND, pa.int8())]
        return pa.schema([*keys, *calls, *kind])

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        layouts = self.layouts
        states = open_tables(layouts, manifest, store, ttls=[self.ttl] * len(layouts), now=now)
        rows = deltas[0]
        output = self.output.empty_table()
        if rows is not None and rows.num_rows:
            batch = rows.combine_chunks()
            weights = batch[WEIGHT].to_numpy() if WEIGHT in batch.column_names else weights_of(batch)
            output = _emit(self, change_groups(self.accumulation, states, batch, weights, now))
        return commit_states(states, output, rows_behind(rows))

    def inherit(self, store: Inheritance) -> bytes | None:
        return inherit_tables(store, self.layouts)


def _emit(operator: AggregateOperator, change: GroupChange) -> pa.Table:
    """Return the changes of the groups, in their order."""
    keys, old, new, was, is_, order, _ = change
    if not len(was):
        return operator.output.empty_table()
    before = _results(operator, keys, old, was)
    after = _results(operator, keys, new, is_)
    changed = was | is_
    if "+U" not in operator.kinds:
        changed &= ~(was & is_)
    elif not operator.ttl:
        same = equal_columns(before.drop_columns(list(operator.keys)), after)
        changed &= ~(was & is_ & same)
    emit_old = changed & was & (~is_ | ("-U" in operator.kinds))
    emit_new = changed & is_
    if emit_old.any():
        size = len(was)
        # Row 2i is group i before, row 2i+1 after: an update's -U directly precedes its +U.
        emitted = np.column_stack((emit_old, emit_new))[order].ravel()
        place = np.column_stack((order, order + size)).ravel()[emitted]
        rows = pa.concat_tables([before, after]).combine_chunks().take(place)
        both = np.column_stack((np.where(is_, UPDATE_BEFORE, DELETE), np.where(was, UPDATE_AFTER, INSERT)))
        kinds = both[order].ravel()[emitted]
    else:
        place = order if emit_new.all() else order[emit_new[order]]
        rows = after.take(place)
        kinds = np.where(was, UPDATE_AFTER, INSERT)[place]
    if KIND not in operator.output.names:
        return rows
    return rows.append_column(operator.output.field(KIND), pa.array(kinds.astype(np.int8)))


def _results(operator: AggregateOperator, keys: pa.Table, state: Mapping[str, pa.Array], there: Mask) -> pa.Table:
    """Return the keys and results of all groups; results of groups that are not ``there`` are arbitrary."""
    columns = operator.accumulation.results(operator.types, state, there)
    schema = pa.schema([field for field in operator.output if field.name != KIND])
    return pa.table([*keys.columns, *columns], names=schema.names).cast(schema)
