"""A micro-batch by groups, as an aggregate hands it to the kernels that keep values of each group."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hintplan.runtime.state.layout import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRows:
    """The groups of a batch: ``keys`` and their ``hashes`` per group; per row its group and its weight.

    ``weights`` is None if each row counts one.
    """

    keys: pa.Table
    hashes: Int64s
    groups: Int64s
    weights: Int64s | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """A value per row of a batch, NULL for none, and its hash."""

    values: pa.Array
    hashes: Int64s
