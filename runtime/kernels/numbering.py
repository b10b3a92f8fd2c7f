"""ROW_NUMBER per key before and after a batch, and the changes at the wanted numbers: top N, deduplication.

Among rows that are equal in the order, the first to arrive comes first, or the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.runtime.kernels.changelog import update_kinds
from hintplan.runtime.kernels.sorting import sorted_rows
from hintplan.runtime.operator import DELETE, INSERT, KIND
from hintplan.runtime.state.identity import Mask, encode_groups
from hintplan.runtime.state.layout import Int64s

Rows = Callable[[Int64s], pa.Table]
"""A function that returns the rows with these indexes; -1 yields a row of NULLs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The order by which rows are numbered, the numbers that are wanted, and the row kinds of the output.

    Wanted are the numbers from ``start`` to ``end``. An ``end`` that is a string is the name of an integer column with
    the same value in all rows of a key; with NULL, the key has no output. If ``latest``, the last row to arrive comes
    first among rows that are equal in the order. ``number`` is the output column with the number, or None.
    """

    order: tuple[SortKey, ...]
    start: int
    end: int | str
    number: str | None
    kinds: RowKinds
    latest: bool = False

    def sorted(self, rows: pa.Table, keys: Int64s, places: Int64s) -> Int64s:
        """Return the positions of the rows, sorted by ``keys``, then by the order; ``places`` is the arrival order."""
        return sorted_rows(rows, keys, self.order, -places if self.latest else places)

    @property
    def read(self) -> list[str]:
        """The input columns of the order, and the column of the last number, if there is one."""
        end = [self.end] if isinstance(self.end, str) else []
        return list(dict.fromkeys((*(key.column for key in self.order), *end)))

    def ends(self, rows: pa.Table, count: int) -> Int64s:
        """Return the last wanted number for the key of each of ``count`` ``rows``."""
        if isinstance(self.end, int):
            return np.full(count, self.end)
        ends: Int64s = np.asarray(pc.fill_null(rows[self.end].cast(pa.int64()), 0))
        return ends

    def output(self, columns: pa.Schema) -> pa.Schema:
        """Return the schema of the output for rows with these ``columns``."""
        number = [] if self.number is None else [pa.field(self.number, pa.int64())]
        kind = [] if self.kinds == INSERT_ONLY else [pa.field(KIND, pa.int8())]
        return pa.schema([*columns, *number, *kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrences:
    """The rows of some keys, sorted by key and order; a row occurs as often as the multiset contains it.

    ``which`` is the index of the row, ``keys`` its key. ``was`` marks the occurrences before the batch, ``is_`` those
    after it. ``given`` is the position of each occurrence before sorting. ``ends`` is the last wanted number of its
    key.
    """

    given: Int64s
    which: Int64s
    keys: Int64s
    was: Mask
    is_: Mask
    ends: Int64s

    def numbers(self, there: Mask) -> Int64s:
        """Return the number of each occurrence ``there``, from 1 per key; the others get their predecessor's number."""
        total = np.cumsum(there)
        begins = np.concatenate(([True], self.keys[1:] != self.keys[:-1]))[: len(self.keys)]
        numbers: Int64s = total - (total - there)[begins][np.cumsum(begins) - 1]
        return numbers

    def up_to_end(self) -> Mask:
        """Return a mask, in the order before sorting, of occurrences with a number up to the last wanted one.

        It refers to the numbers after the batch.
        """
        is_wanted = np.zeros(len(self.given), np.bool_)
        is_wanted[self.given] = self.is_ & (self.numbers(self.is_) <= self.ends)
        return is_wanted


def numbered_keys(rows: pa.Table, key: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return the key of each row as a number, and the index of the first row of each key."""
    if not key:
        return np.zeros(rows.num_rows, np.int64), np.zeros(min(1, rows.num_rows), np.int64)
    return encode_groups([rows[name].combine_chunks() for name in key])


def occurrences(
    numbering: Numbering, rows: pa.Table, *, which: Int64s, keys: Int64s, places: Int64s, was: Mask, is_: Mask
) -> Occurrences:
    """Sort occurrences of ``rows`` by key and order; ``places`` is the order of arrival."""
    rows = rows.combine_chunks().take(which)
    order = numbering.sorted(rows, keys, places)
    ends = numbering.ends(rows, len(which))[order]
    return Occurrences(given=order, which=which[order], keys=keys[order], was=was[order], is_=is_[order], ends=ends)


def first_of_each_key(numbering: Numbering, batch: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows of an insert-only batch that can have one of the first numbers, in their order."""
    groups, first = numbered_keys(batch, key)
    sizes = np.bincount(groups, minlength=len(first))
    ends = numbering.ends(batch.take(first), len(first))
    if bool((sizes <= ends).all()):
        return batch
    order = numbering.sorted(batch, groups, np.arange(len(groups)))
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[groups[order]]
    return batch.take(np.sort(order[rank < ends[groups[order]]]))


def emitted(numbering: Numbering, occurrences: Occurrences, rows: Rows) -> pa.Table:
    """Return the changes that a batch makes to the wanted rows, with row kinds."""
    by_number = numbering.number is not None or numbering.start == numbering.end
    return (_at_each_number if by_number else _moves)(numbering, occurrences, rows)


def _shown(numbering: Numbering, occurrences: Occurrences, there: Mask) -> tuple[Mask, Int64s]:
    """Return a mask of the occurrences ``there`` that have a wanted number, and the numbers of all occurrences."""
    numbers = occurrences.numbers(there)
    return there & (numbers >= numbering.start) & (numbers <= occurrences.ends), numbers


def _moves(numbering: Numbering, occurrences: Occurrences, rows: Rows) -> pa.Table:
    """Return the rows that leave the wanted numbers, and then the rows that enter them."""
    before, _ = _shown(numbering, occurrences, occurrences.was)
    after, _ = _shown(numbering, occurrences, occurrences.is_)
    size = int(occurrences.which.max(initial=-1)) + 1
    change = np.bincount(occurrences.which[after], minlength=size)
    change -= np.bincount(occurrences.which[before], minlength=size)
    _, at = np.unique(occurrences.which, return_index=True)
    in_order = occurrences.which[np.sort(at)]
    change = change[in_order]
    gone = np.repeat(in_order[change < 0], -change[change < 0])
    came = np.repeat(in_order[change > 0], change[change > 0])
    kinds = np.concatenate((np.full(len(gone), DELETE, np.int8), np.full(len(came), INSERT, np.int8)))
    return rows(np.concatenate((gone, came))).append_column(KIND, pa.array(kinds))


def _at_each_number(numbering: Numbering, occurrences: Occurrences, rows: Rows) -> pa.Table:
    """Return the changes at the numbers that have another row than before the batch."""
    was, was_number = _shown(numbering, occurrences, occurrences.was)
    is_, number = _shown(numbering, occurrences, occurrences.is_)
    span = max(int(was_number.max(initial=0)), int(number.max(initial=0))) + 1
    was_slot, slot = (occurrences.keys * span + was_number)[was], (occurrences.keys * span + number)[is_]
    slots = np.sort(np.concatenate((was_slot, slot)), kind="stable")  # fast: two sorted runs
    slots = slots[np.concatenate(([True], slots[1:] != slots[:-1]))[: len(slots)]]
    before, after = np.full(len(slots), -1, np.int64), np.full(len(slots), -1, np.int64)
    before[np.searchsorted(slots, was_slot)] = occurrences.which[was]
    after[np.searchsorted(slots, slot)] = occurrences.which[is_]
    changed = before != after
    before, after = before[changed], after[changed]
    was_there, is_there = before >= 0, after >= 0
    emitted, kinds = update_kinds(was_there, is_there, was_there & is_there, updates_before="-U" in numbering.kinds)
    result = rows(np.column_stack((before, after)).ravel()[emitted])
    if numbering.number is not None:
        numbers = np.repeat(slots[changed] % span, 2)[emitted]
        result = result.append_column(numbering.number, pa.array(numbers))
    return result.append_column(pa.field(KIND, pa.int8()), pa.array(kinds[emitted]))
