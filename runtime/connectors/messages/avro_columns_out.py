"""Writes Avro in batches: a column at a time, and then the columns of each message one after the other.

:mod:`hintplan.runtime.connectors.messages.avro_values` writes the same bytes. It also writes nested columns and DECIMAL
of more than 18 digits, and refuses NULL in a NOT NULL column.

>>> _longs(np.array([0, -1, 300])).to_pylist()
[b'\\x00', b'\\x01', b'\\xd8\\x04']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.connectors.messages.format_options import CONFLUENT, DEBEZIUM_AVRO
from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.connectors.messages.avro_values import is_legacy
from hintplan.runtime.connectors.messages.registry import head_of
from hintplan.runtime.operator import INSERT, UPDATE_AFTER

Int64s = npt.NDArray[np.int64]
Write = Callable[[pa.RecordBatch, Sequence[int]], pa.Array | None]
"""Encodes the changes of a batch with their row kinds; returns None if the batch must be written row by row."""

_NULL, _THERE = b"\x00", b"\x02"
"""The first and the second branch of a union with null."""
_MOST_DIGITS, _MILLIS = 18, 3
_EMPTY = pa.scalar(b"", pa.binary())


def avro_writer(part: Part, schema: int | None) -> Write | None:
    """Return a function that encodes batches in a format of Avro; None if ``part`` must be written row by row.

    ``schema`` is the id of the schema in the registry, if the format has one.
    """
    if part.format not in ("avro", CONFLUENT, DEBEZIUM_AVRO):
        return None
    types = [parse_type(column.type) for column in part.columns]
    encoders = [_encoder(data_type, legacy=is_legacy(part)) for data_type in types]
    head = b"" if schema is None else head_of(schema)
    written = [encoder for encoder in encoders if encoder is not None]
    if not written or len(written) < len(encoders):
        return None

    def rows(batch: pa.RecordBatch) -> pa.Array | None:
        columns = [batch.column(column.name) for column in part.columns]
        parts: list[Any] = []
        for column, data_type, encode in zip(columns, types, written, strict=True):
            if column.null_count and not data_type.nullable:
                return None
            values = encode(column.drop_null() if column.null_count else column)
            if values is None:
                return None
            if data_type.nullable:
                parts.append(pc.if_else(column.is_valid(), _THERE, _NULL))
            parts.append(_spread(values, column) if column.null_count else values)
        return _joined(parts)

    if part.format == DEBEZIUM_AVRO:
        return lambda batch, kinds: _changes(rows(batch), kinds, head)
    return lambda batch, kinds: None if (found := rows(batch)) is None else _joined([pa.scalar(head), found])


def _changes(rows: pa.Array | None, kinds: Sequence[int], head: bytes) -> pa.Array | None:
    """Return ``rows`` as changes: a union with null, of before, after and op, each of which is one with null."""
    if rows is None:
        return None
    adds = pa.array(np.isin(np.asarray(kinds, np.int8), (INSERT, UPDATE_AFTER)))
    start = pc.if_else(adds, head + _THERE + _NULL + _THERE, head + _THERE + _THERE)
    end = pc.if_else(adds, _THERE + b"\x02c", _NULL + _THERE + b"\x02d")
    return _joined([start, rows, end])


def _joined(parts: Sequence[Any]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _spread(values: pa.Array, column: pa.Array) -> pa.Array:
    """Return ``values`` at the places at which ``column`` is not NULL, and nothing at the others."""
    is_there = np.asarray(column.is_valid())
    return values.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there)).fill_null(_EMPTY)


def _encoder(data_type: DataType, *, legacy: bool) -> Callable[[pa.Array], pa.Array | None] | None:
    """Return a function that encodes values without NULL; None for a type that is written row by row."""
    root = data_type.root
    if root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return lambda column: _longs(np.asarray(column.cast(pa.int64())))
    if root == "DATE":
        return lambda column: _longs(np.asarray(column.cast(pa.int32())).astype(np.int64))
    if root == "BOOLEAN":
        return lambda column: pc.if_else(column, b"\x01", b"\x00")
    if root in ("FLOAT", "DOUBLE"):
        return lambda column: _fixed(np.asarray(column), "<f4" if root == "FLOAT" else "<f8")
    if data_type.is_text or root in ("BYTES", "BINARY", "VARBINARY"):
        return _with_lengths
    if root == "DECIMAL" and (data_type.precision or 0) <= _MOST_DIGITS:
        return _decimals
    if root == "TIMESTAMP" or (root == "TIMESTAMP_LTZ" and not legacy):
        return _millis if (data_type.precision or 0) <= _MILLIS else _micros
    return None


def _longs(numbers: Int64s) -> pa.Array:
    """Return numbers in 7 bits a byte, the lowest first, with the sign in the lowest bit of all."""
    rest = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    longest = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    groups = (rest[:, None] >> (np.arange(longest, dtype=np.uint64) * np.uint64(7))) & np.uint64(0x7F)
    sizes = np.ones(len(numbers), np.int64)
    for size in range(1, longest):
        sizes += rest >> np.uint64(7 * size) > 0
    places = np.arange(longest)
    groups |= (places < sizes[:, None] - 1).astype(np.uint64) << np.uint64(7)
    return _of(groups.astype(np.uint8)[places < sizes[:, None]], sizes)


def _decimals(column: pa.Array) -> pa.Array:
    """Return the whole numbers of decimals in the bytes that they need, the highest first, after their lengths."""
    pairs = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    numbers = pairs[column.offset : column.offset + len(column), 0]
    size = np.abs(numbers)
    sizes = np.ones(len(numbers), np.int64)
    for bits in range(7, 63, 8):  # one bit is the sign
        sizes += size >= 1 << bits
    highest_first = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    digits = highest_first[np.arange(8) >= 8 - sizes[:, None]]
    return _joined([_longs(sizes), _of(digits, sizes)])


def _fixed(numbers: npt.NDArray[Any], kind: str) -> pa.Array:
    written = numbers.astype(kind)
    return _of(written.view(np.uint8), np.full(len(written), written.dtype.itemsize))


def _with_lengths(column: pa.Array) -> pa.Array:
    values = column.cast(pa.binary())
    return _joined([_longs(np.asarray(pc.binary_length(values)).astype(np.int64)), values])


def _micros(column: pa.Array) -> pa.Array:
    return _longs(np.asarray(column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())))


def _millis(column: pa.Array) -> pa.Array | None:
    counts = np.asarray(column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64()))
    return None if (counts % 1000).any() else _longs(counts // 1000)


def _of(data: npt.NDArray[np.uint8], sizes: Int64s) -> pa.Array:
    """Return ``data`` as binary values with these ``sizes``."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)
