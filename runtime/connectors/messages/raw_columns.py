"""Reads and writes raw messages in batches: each is a text, bytes, or a number with the size of its type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.connectors.messages.json_columns import ReadColumns
from hintplan.runtime.connectors.messages.text_columns_in import layout_of
from hintplan.runtime.types import to_arrow

_NUMBERS = {"TINYINT": "i1", "SMALLINT": "i2", "INT": "i4", "BIGINT": "i8", "FLOAT": "f4", "DOUBLE": "f8"}
_BOOLEAN = "BOOLEAN"


def raw_columns_reader(part: Part) -> ReadColumns | None:
    """Return a function that decodes batches of messages; None if ``part`` has another format.

    It returns None for messages that are not UTF-8, or not of the size of a number.
    """
    if part.format != "raw":
        return None
    root, kind = _kind(part)
    form = _number(part)

    def read(messages: pa.Array) -> list[pa.Array] | None:
        if form is None:
            try:
                return [messages.cast(kind)]
            except pa.ArrowInvalid:
                return None
        offsets, data = layout_of(messages)
        if (np.diff(offsets) != form.itemsize).any():
            return None
        values = np.frombuffer(data[offsets[0] : offsets[-1]].tobytes(), form)
        native = values != 0 if root == _BOOLEAN else values.astype(form.newbyteorder("="))
        return [pa.array(native, kind)]

    return read


def raw_columns_writer(part: Part) -> Callable[[pa.RecordBatch], pa.Array] | None:
    """Return a function that encodes batches; NULL stays NULL. None if ``part`` has another format."""
    if part.format != "raw":
        return None
    name, form = part.columns[0].name, _number(part)

    def write(batch: pa.RecordBatch) -> pa.Array:
        column = batch.column(name)
        if form is None:
            return column.cast(pa.binary())
        values = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
        offsets = np.arange(0, (len(column) + 1) * form.itemsize, form.itemsize, dtype=np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values.astype(form).tobytes())]
        written = pa.Array.from_buffers(pa.binary(), len(column), buffers)
        return pc.if_else(column.is_valid(), written, None) if column.null_count else written

    return write


def _kind(part: Part) -> tuple[str, pa.DataType]:
    (column,) = part.columns
    return parse_type(column.type).root, to_arrow(column.type)


def _number(part: Part) -> np.dtype[np.generic] | None:
    """Return the form of numbers in the messages of ``part``; None for text and bytes."""
    root, _ = _kind(part)
    if root == _BOOLEAN:
        return np.dtype("u1")
    order = "<" if part.option("endianness") == "little-endian" else ">"
    return np.dtype(f"{order}{_NUMBERS[root]}") if root in _NUMBERS else None
