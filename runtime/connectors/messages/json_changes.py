"""Reads debezium-json, and writes debezium-json and canal-json, in batches with Arrow.

As with :mod:`hintplan.runtime.connectors.messages.json_columns`, messages that are not plain are left to the code for
rows, :mod:`hintplan.runtime.connectors.messages.change_events`, which defines their meaning and their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.connectors.messages.formats import Part
from hintplan.runtime.connectors.messages.envelopes import (
    AFTER,
    BEFORE,
    OP,
    Changes,
    ReadChanges,
    changes_of,
    children_of,
)
from hintplan.runtime.connectors.messages.json_columns import (
    columns_of,
    fields_of,
    objects_reader,
    objects_writer,
    types_in_bulk,
)
from hintplan.runtime.operator import INSERT, UPDATE_AFTER
from hintplan.runtime.types import to_arrow

_PAYLOAD = "payload"


def debezium_reader(part: Part, wanted: Collection[str]) -> ReadChanges | None:
    """Return a function that decodes batches of messages; None if ``part`` must be read row by row."""
    types = types_in_bulk(part, wanted)
    if part.format != "debezium-json" or types is None:
        return None
    in_payload = part.option("schema-include") == "true"

    def fields(quoted: Collection[str]) -> list[pa.Field]:
        row = pa.struct(fields_of(types, quoted))
        change = [pa.field(BEFORE, row), pa.field(AFTER, row), pa.field(OP, pa.string())]
        return [pa.field(_PAYLOAD, pa.struct(change))] if in_payload else change

    parse, declared = objects_reader(fields, types), columns_of(part, types)

    def read(messages: pa.Array) -> Changes | None:
        if not len(messages):
            columns = [pa.nulls(0, to_arrow(column.type)) for column in part.columns]
            return Changes(columns, np.empty(0, np.int8), np.empty(0, np.int64))
        try:
            found = parse(messages)
            if found is not None and in_payload:
                found = children_of(found.column(_PAYLOAD))
            return None if found is None else changes_of(found, declared)
        except pa.ArrowInvalid:
            return None

    return read


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
