"""The values of a group that DISTINCT calls and retractable MIN and MAX must remember: value -> how often.

One state table serves all calls over the same argument and filter. As in Flink, an entry expires by its own last write,
so with a TTL a value not seen for that long counts as new again while its group lives on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from runtime.kernels.grouped import GroupedRows, RowValues
from runtime.kernels.retraction import overdrawn
from runtime.state.identity import Mask, encode_groups
from runtime.state.keyed import KeyedState
from runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, prefixed_hash

VALUE = "__value"


def values_layout(argument: str, filter_: str | None, keys: pa.Schema, kind: pa.DataType) -> StateLayout:
    """The layout of the table of values of ``argument`` where ``filter_``, by group key."""
    name = f"values({argument})" + (f" where {filter_}" if filter_ else "")
    identity = pa.schema([*keys, pa.field(VALUE, kind)])
    return StateLayout(name=name, identity=identity, payload=pa.schema([]), key=tuple(keys.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """The distinct values that a micro-batch touched: their group, value, and whether they appeared or went.

    ``transition`` is +1 where a value appeared, -1 where its last copy went, else 0; ``gone`` marks values of which no
    copy is left.
    """

    groups: Int64s
    values: pa.Array
    transition: Int64s
    gone: Mask


def update_values(state: KeyedState, batch: GroupedRows, given: RowValues, now: int) -> ValueChange:
    """Apply the values ``given`` in a batch to ``state``, and say what changed."""
    used = np.flatnonzero(np.asarray(pc.is_valid(given.values)))
    groups, values, value_hashes = batch.groups[used], given.values.take(used), given.hashes[used]
    weights = np.ones(len(used), np.int64) if batch.weights is None else batch.weights[used]
    entries, first = encode_groups([pa.array(groups), values])
    group, value = groups[first], values.take(first)
    hashes = prefixed_hash(batch.hashes[group], value_hashes[first])
    names = [*batch.keys.column_names, VALUE]
    identity = pa.table([*batch.keys.take(group).columns, value], names)  # there may be no keys
    codes = state.find(identity, hashes)
    live = state.live(codes)
    old = np.zeros(len(first), np.int64)
    old[live] = state.integers(codes[live], COUNT)
    if len(used) and weights.min() < 0:
        counted = ~overdrawn(entries, weights, old)
        entries, weights = entries[counted], weights[counted]
    new = old + np.bincount(entries, weights=weights, minlength=len(first)).astype(np.int64)
    rows = identity.add_column(0, HASH, pa.array(hashes))
    rows = rows.append_column(COUNT, pa.array(new)).append_column(WRITE, pa.array(np.full(len(new), now, np.int64)))
    state.put(rows.cast(state.layout.schema), codes >= 0)
    transition = (new > 0).astype(np.int64) - (old > 0)
    return ValueChange(groups=group, values=value, transition=transition, gone=new == 0)
