"""The values of a group, with counts, that DISTINCT calls and MIN and MAX under retraction need: value -> count.

One state table serves all calls with the same argument and filter. As in Flink, an entry expires by its own last write.
So with a TTL, a value that was not seen for that long counts as new again, while its group still exists. An aggregate
passes a micro-batch as :class:`GroupedRows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.kernels.changelog import overdrawn
from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.layout import COUNT, HASH, WRITE, Int64s, StateLayout, prefixed_hash
from hintplan.runtime.state.stored_rows import StoredRows

VALUE = "__value"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRows:
    """The groups of a batch: ``keys`` and ``hashes`` per group, ``groups`` and ``weights`` per row.

    ``weights`` is None if each row counts as one.
    """

    keys: pa.Table
    hashes: Int64s
    groups: Int64s
    weights: Int64s | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """A value and its hash per row of a batch; NULL stands for no value."""

    values: pa.Array
    hashes: Int64s


def values_layout(arguments: str, filter_: str | None, keys: pa.Schema, kinds: Sequence[pa.DataType]) -> StateLayout:
    """Return the layout of the state table of values of ``arguments`` where ``filter_``, by group key.

    ``kinds`` are the types of the arguments.
    """
    name = f"values({arguments})" + (f" where {filter_}" if filter_ else "")
    identity = pa.schema(
        [*keys, *(pa.field(name, kind) for name, kind in zip(value_names(len(kinds)), kinds, strict=True))]
    )
    return StateLayout(name=name, identity=identity, payload=pa.schema([]), key=tuple(keys.names))


def value_names(number: int) -> list[str]:
    """Return the column names for tuples of ``number`` values."""
    return [VALUE, *(f"{VALUE}{index}" for index in range(1, number))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """The distinct values that a micro-batch touched: their group, the value, and whether they appeared or disappeared.

    ``transition`` is +1 where a value appeared, -1 where its last copy went, else 0; ``gone`` marks values of which no
    copy is left.
    """

    groups: Int64s
    columns: tuple[pa.Array, ...]
    transition: Int64s
    gone: Mask

    @property
    def values(self) -> pa.Array:
        """The values, if each is a single value and not a tuple."""
        (values,) = self.columns
        return values


def update_values(state: StoredRows, batch: GroupedRows, given: RowValues, now: int) -> ValueChange:
    """Apply the values ``given`` in a batch to ``state`` and return the change; NULL is no value."""
    used = np.asarray(pc.is_valid(given.values))
    return update_value_rows(state, batch, (given.values,), used, given.hashes, now)


def update_value_rows(
    state: StoredRows, batch: GroupedRows, given: Sequence[pa.Array], is_used: Mask, given_hashes: Int64s, now: int
) -> ValueChange:
    """Apply the tuples of values of the rows that are used to ``state``; return the change.

    The tuples are in several columns. In contrast to :func:`update_values`, NULL is a value like any other.
    """
    used = np.flatnonzero(is_used)
    groups, value_hashes = batch.groups[used], given_hashes[used]
    columns = [values.take(used) for values in given]
    weights = np.ones(len(used), np.int64) if batch.weights is None else batch.weights[used]
    entries, first = encode_groups([pa.array(groups), *columns])
    group = groups[first]
    columns = [values.take(first) for values in columns]
    hashes = prefixed_hash(batch.hashes[group], value_hashes[first])
    names = [*batch.keys.column_names, *value_names(len(columns))]
    identity = pa.table([*batch.keys.take(group).columns, *columns], names)  # there may be no keys
    codes = state.find(identity, hashes)
    live = state.live(codes)
    state.use(codes)
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
    return ValueChange(groups=group, columns=tuple(columns), transition=transition, gone=new == 0)
