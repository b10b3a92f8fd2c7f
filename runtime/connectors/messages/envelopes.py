"""Changes of a database in batches: the rows of envelopes as Debezium writes them, in JSON and in Avro."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

BEFORE, AFTER, OP = "before", "after", "op"


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in some messages: the columns of their rows, their row kinds, and the position of each's message."""

    columns: list[pa.Array]
    kinds: npt.NDArray[np.int8]
    positions: npt.NDArray[np.int64]


ReadChanges = Callable[[pa.Array], Changes | None]
"""Returns the changes in messages without NULL, or None if the messages are not plain."""


def changes_of(found: pa.Table, declared: Callable[[pa.Table], list[pa.Array] | None]) -> Changes | None:
    """Return the changes with the envelopes ``found``; None if one of them is invalid."""
    ops = found.column(OP).combine_chunks()
    inserts, updates, deletes = (np.asarray(pc.is_in(ops, pa.array(codes))) for codes in (["c", "r"], ["u"], ["d"]))
    if not (inserts | updates | deletes).all():
        return None
    has_before, has_after = updates | deletes, updates | inserts
    before, after = (
        _rows(found.column(side), of_side, declared) for side, of_side in ((BEFORE, has_before), (AFTER, has_after))
    )
    if before is None or after is None:
        return None
    olds, news = np.flatnonzero(has_before), np.flatnonzero(has_after)
    kinds = np.concatenate(
        [np.where(updates[olds], UPDATE_BEFORE, DELETE), np.where(updates[news], UPDATE_AFTER, INSERT)]
    ).astype(np.int8)
    positions = np.concatenate([olds, news])
    if not len(olds):
        return Changes(after, kinds, positions)
    order = np.argsort(positions, kind="stable")  # the old row of an update before the new one
    taken = pa.array(order)
    columns = [pa.concat_arrays(sides).take(taken) for sides in zip(before, after, strict=True)]
    return Changes(columns, kinds[order], positions[order])


def _rows(
    side: pa.ChunkedArray, is_there: npt.NDArray[np.bool_], declared: Callable[[pa.Table], list[pa.Array] | None]
) -> list[pa.Array] | None:
    """Return the columns of the rows of ``side`` that must be there; None if one is NULL, or has another form."""
    rows = side.combine_chunks().filter(pa.array(is_there))
    table = children_of(rows)
    return None if table is None else declared(table)


def children_of(objects: pa.Array | pa.ChunkedArray) -> pa.Table | None:
    """Return the fields of ``objects``; None if one of them is NULL."""
    whole = objects.combine_chunks() if isinstance(objects, pa.ChunkedArray) else objects
    if whole.null_count:
        return None
    return pa.table(whole.flatten(), names=[field.name for field in whole.type])
