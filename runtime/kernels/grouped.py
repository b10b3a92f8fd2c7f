"""A micro-batch by group, as an aggregate passes it to the kernels that keep the values of each group."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.state.layout import Int64s


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
