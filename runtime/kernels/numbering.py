"""Rows of keys numbered in an order, before and after a batch, and what a batch changes at the numbers that are wanted.

Of rows that the order does not tell apart the one that arrived first comes first, or the one that arrived last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind
from hintplan.runtime.kernels.replacement import replaced
from hintplan.runtime.kernels.sorting import sorted_rows
from hintplan.runtime.operator import DELETE, INSERT, KIND
from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.layout import Int64s

Rows = Callable[[Int64s], pa.Table]
"""The rows of these, NULL for -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """What rows are numbered by, and which numbers, from ``start`` to ``end``, are put out as which row kinds.

    ``latest`` says that of rows that the order does not tell apart the one that arrived last comes first.
    An ``end`` that is a name is a column of whole numbers, the same in all rows of a key; NULL wants none. ``number``
    is the column with the number, None if it has none.
    """

    order: tuple[SortKey, ...]
    start: int
    end: int | str
    number: str | None
    kinds: tuple[RowKind, ...]
    latest: bool = False

    def sorted(self, rows: pa.Table, keys: Int64s, places: Int64s) -> Int64s:
        """Where the rows stand, by their ``keys``, then in the order; ``places`` are those in the order of arrival."""
        return sorted_rows(rows, keys, self.order, -places if self.latest else places)

    @property
    def read(self) -> list[str]:
        """The columns of the order, and the one with the last number."""
        end = [self.end] if isinstance(self.end, str) else []
        return list(dict.fromkeys((*(key.column for key in self.order), *end)))

    def ends(self, rows: pa.Table, count: int) -> Int64s:
        """The last number that is wanted of the key of each of ``rows``, which are ``count``."""
        if isinstance(self.end, int):
            return np.full(count, self.end)
        ends: Int64s = np.asarray(pc.fill_null(rows[self.end].cast(pa.int64()), 0))
        return ends

    def output(self, columns: pa.Schema) -> pa.Schema:
        """The columns that are put out for rows with these ``columns``."""
        number = [] if self.number is None else [pa.field(self.number, pa.int64())]
        kind = [] if self.kinds == INSERT_ONLY else [pa.field(KIND, pa.int8())]
        return pa.schema([*columns, *number, *kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrences:
    """The rows of some keys, each as often as it occurs, in their order: ``which`` row it is, and its key.

    ``was`` says which were there before the batch, ``is_`` which are after it; ``given`` is where each stood before
    they were sorted, and ``ends`` the last number that is wanted of its key.
    """

    given: Int64s
    which: Int64s
    keys: Int64s
    was: Mask
    is_: Mask
    ends: Int64s

    def numbers(self, there: Mask) -> Int64s:
        """The number of each among those that are ``there``, from 1; what is not there has that of the one before."""
        total = np.cumsum(there)
        begins = np.concatenate(([True], self.keys[1:] != self.keys[:-1]))[: len(self.keys)]
        found: Int64s = total - (total - there)[begins][np.cumsum(begins) - 1]
        return found

    def up_to_end(self) -> Mask:
        """Whether each has a number up to the last that is wanted after the batch, as they were given."""
        found = np.zeros(len(self.given), np.bool_)
        found[self.given] = self.is_ & (self.numbers(self.is_) <= self.ends)
        return found


def keys_of(rows: pa.Table, key: Sequence[str]) -> tuple[Int64s, Int64s]:
    """The key of each row as a number, and the first row of each key."""
    if not key:
        return np.zeros(rows.num_rows, np.int64), np.zeros(min(1, rows.num_rows), np.int64)
    return encode_groups([rows[name].combine_chunks() for name in key])


def occurrences(
    numbering: Numbering, rows: pa.Table, *, which: Int64s, keys: Int64s, places: Int64s, was: Mask, is_: Mask
) -> Occurrences:
    """Occurrences of ``rows`` in their order; ``places`` are those in the order of arrival."""
    rows = rows.combine_chunks().take(which)
    order = numbering.sorted(rows, keys, places)
    ends = numbering.ends(rows, len(which))[order]
    return Occurrences(given=order, which=which[order], keys=keys[order], was=was[order], is_=is_[order], ends=ends)


def first_of_each_key(numbering: Numbering, batch: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows of a batch, which are only added, that can have one of the first numbers; in their order."""
    groups, first = keys_of(batch, key)
    sizes = np.bincount(groups, minlength=len(first))
    ends = numbering.ends(batch.take(first), len(first))
    if bool((sizes <= ends).all()):
        return batch
    order = numbering.sorted(batch, groups, np.arange(len(groups)))
    behind = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[groups[order]]
    return batch.take(np.sort(order[behind < ends[groups[order]]]))


def emitted(numbering: Numbering, found: Occurrences, rows: Rows) -> pa.Table:
    """What a batch does to the rows that are wanted, with row kinds."""
    by_number = numbering.number is not None or numbering.start == numbering.end
    return (_at_each_number if by_number else _moves)(numbering, found, rows)


def _shown(numbering: Numbering, found: Occurrences, there: Mask) -> tuple[Mask, Int64s]:
    """Which of those that are ``there`` have a number that is wanted, and all numbers."""
    numbers = found.numbers(there)
    return there & (numbers >= numbering.start) & (numbers <= found.ends), numbers


def _moves(numbering: Numbering, found: Occurrences, rows: Rows) -> pa.Table:
    """The rows that are no longer among those wanted, and then those that now are."""
    before, _ = _shown(numbering, found, found.was)
    after, _ = _shown(numbering, found, found.is_)
    size = int(found.which.max(initial=-1)) + 1
    change = np.bincount(found.which[after], minlength=size) - np.bincount(found.which[before], minlength=size)
    _, at = np.unique(found.which, return_index=True)
    in_order = found.which[np.sort(at)]
    change = change[in_order]
    gone = np.repeat(in_order[change < 0], -change[change < 0])
    came = np.repeat(in_order[change > 0], change[change > 0])
    kinds = np.concatenate((np.full(len(gone), DELETE, np.int8), np.full(len(came), INSERT, np.int8)))
    return rows(np.concatenate((gone, came))).append_column(KIND, pa.array(kinds))


def _at_each_number(numbering: Numbering, found: Occurrences, rows: Rows) -> pa.Table:
    """What stands at the numbers at which another row stood before."""
    was, was_number = _shown(numbering, found, found.was)
    is_, number = _shown(numbering, found, found.is_)
    span = max(int(was_number.max(initial=0)), int(number.max(initial=0))) + 1
    was_slot, slot = (found.keys * span + was_number)[was], (found.keys * span + number)[is_]
    slots = np.sort(np.concatenate((was_slot, slot)), kind="stable")  # each of the two is sorted already
    slots = slots[np.concatenate(([True], slots[1:] != slots[:-1]))[: len(slots)]]
    before, after = np.full(len(slots), -1, np.int64), np.full(len(slots), -1, np.int64)
    before[np.searchsorted(slots, was_slot)] = found.which[was]
    after[np.searchsorted(slots, slot)] = found.which[is_]
    changed = before != after
    before, after = before[changed], after[changed]
    old, new = rows(before), rows(after)
    if numbering.number is not None:
        numbers = pa.array(slots[changed] % span)
        old, new = old.append_column(numbering.number, numbers), new.append_column(numbering.number, numbers)
    return replaced(
        old,
        new,
        before >= 0,
        after >= 0,
        updates_before="-U" in numbering.kinds,
        equal_rows=True,
    )
