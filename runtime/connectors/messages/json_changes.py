"""Reads debezium-json, and writes debezium-json and canal-json, in batches with Arrow.

As with :mod:`hintplan.runtime.connectors.messages.json_columns`, messages that are not plain are left to the code for
rows, :mod:`hintplan.runtime.connectors.messages.change_events`, which defines their meaning and their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.connectors.messages.formats import Part
from hintplan.runtime.connectors.messages.json_columns import (
    columns_of,
    fields_of,
    objects_reader,
    objects_writer,
    types_in_bulk,
)
from hintplan.runtime.operator import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.types import to_arrow

_BEFORE, _AFTER, _OP, _PAYLOAD = "before", "after", "op", "payload"


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in some messages: the columns of their rows, their row kinds, and the position of each's message."""

    columns: list[pa.Array]
    kinds: npt.NDArray[np.int8]
    positions: npt.NDArray[np.int64]


ReadChanges = Callable[[pa.Array], Changes | None]
"""Returns the changes in messages without NULL, or None if the messages are not plain."""


def debezium_reader(part: Part, wanted: Collection[str]) -> ReadChanges | None:
    """Return a function that decodes batches of messages; None if ``part`` must be read row by row."""
    types = types_in_bulk(part, wanted)
    if part.format != "debezium-json" or types is None:
        return None
    row = pa.struct(fields_of(types))
    change = [pa.field(_BEFORE, row), pa.field(_AFTER, row), pa.field(_OP, pa.string())]
    in_payload = part.option("schema-include") == "true"
    fields = [pa.field(_PAYLOAD, pa.struct(change))] if in_payload else change
    parse, declared = objects_reader(fields, types), columns_of(part, types)

    def read(messages: pa.Array) -> Changes | None:
        if not len(messages):
            columns = [pa.nulls(0, to_arrow(column.type)) for column in part.columns]
            return Changes(columns, np.empty(0, np.int8), np.empty(0, np.int64))
        try:
            found = parse(messages)
            if found is not None and in_payload:
                found = _children(found.column(_PAYLOAD))
            return None if found is None else _changes(found, declared)
        except pa.ArrowInvalid:
            return None

    return read


def _changes(found: pa.Table, declared: Callable[[pa.Table], list[pa.Array] | None]) -> Changes | None:
    """Return the changes with the envelopes ``found``; None if one of them is invalid."""
    ops = found.column(_OP).combine_chunks()
    inserts, updates, deletes = (np.asarray(pc.is_in(ops, pa.array(codes))) for codes in (["c", "r"], ["u"], ["d"]))
    if not (inserts | updates | deletes).all():
        return None
    has_before, has_after = updates | deletes, updates | inserts
    before, after = (
        _rows(found.column(side), of_side, declared) for side, of_side in ((_BEFORE, has_before), (_AFTER, has_after))
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
    table = _children(rows)
    return None if table is None else declared(table)


def _children(objects: pa.Array | pa.ChunkedArray) -> pa.Table | None:
    """Return the fields of ``objects``; None if one of them is NULL."""
    whole = objects.combine_chunks() if isinstance(objects, pa.ChunkedArray) else objects
    if whole.null_count:
        return None
    return pa.table(whole.flatten(), names=[field.name for field in whole.type])


_AROUND = {
    "debezium-json": (('{"before":null,"after":', ',"op":"c"}'), ('{"before":', ',"after":null,"op":"d"}')),
    "canal-json": (('{"data":[', '],"type":"INSERT"}'), ('{"data":[', '],"type":"DELETE"}')),
}
"""The texts around a row that is added, and around a row that is deleted."""


def changes_writer(part: Part) -> Callable[[pa.RecordBatch, Sequence[int]], pa.Array] | None:
    """Return a function that encodes the changes of a batch; None if ``part`` must be written row by row."""
    if part.format not in _AROUND or (write := objects_writer(part)) is None:
        return None
    adding, deleting = _AROUND[part.format]

    def encode(batch: pa.RecordBatch, kinds: Sequence[int]) -> pa.Array:
        adds = pa.array(np.isin(np.asarray(kinds, np.int8), (INSERT, UPDATE_AFTER)))
        start, end = (pc.if_else(adds, *texts) for texts in zip(adding, deleting, strict=True))
        return pc.binary_join_element_wise(start, write(batch), end, "").cast(pa.binary())

    return encode
