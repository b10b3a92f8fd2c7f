"""Decodes Avro in batches: one field of all messages at a time, so that numpy does the work for all of them.

Each message has a place, at which its next field begins. A field is read at the places of all messages, which moves
them. A field that may be NULL is read of the messages that have it.

>>> read = decoder_of({"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]})
>>> data, ends = np.frombuffer(b"\\x02\\xd8\\x04", np.uint8), np.array([1, 3])
>>> read.of(Cursor.over(data, np.array([0, 1]), ends)).to_pylist()
[{'n': 1}, {'n': 300}]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]

_PADDING = 16
_LONG_BYTES = 10
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Years 1 to 9999, in days since 1970, which Python's dates are limited to."""
_DAY_MICROS = 86_400_000_000
_DECIMAL_BYTES, _DECIMAL_DIGITS, _MOST_DIGITS = 8, 18, 38


class OddMessages(Exception):
    """A message is not of its schema, or has a value that is not read in batches."""


class UnreadableSchema(Exception):
    """A schema has a type that is not read in batches."""


@dataclass(slots=True)
class Cursor:
    """The places ``at`` which the next fields of messages begin in ``data``, and the ends of the messages."""

    data: UInt8s
    at: Int64s
    ends: Int64s

    @staticmethod
    def over(data: UInt8s, begins: Int64s, ends: Int64s) -> Cursor:
        """Return a cursor over messages in ``data``, which begin and end at these places."""
        return Cursor(np.concatenate([data, np.zeros(_PADDING, np.uint8)]), begins.astype(np.int64), ends)

    def of(self, rows: Int64s) -> Cursor:
        """Return a cursor over some of the messages."""
        return Cursor(self.data, self.at[rows], self.ends[rows])

    def longs(self) -> Int64s:
        """Read a number of each message: 7 bits in a byte, the lowest first, and the sign in the lowest bit of all."""
        first = self.data[self.at]
        values = (first & 0x7F).astype(np.uint64)
        self.at = self.at + 1
        more, shift = np.flatnonzero(first & 0x80), 7
        while len(more):
            following = self.data[self.at[more]]
            if shift > 7 * (_LONG_BYTES - 1) or (shift == 7 * (_LONG_BYTES - 1) and (following > 1).any()):
                raise OddMessages
            values[more] |= (following & 0x7F).astype(np.uint64) << np.uint64(shift)
            self.at[more] += 1
            more, shift = more[following >= 0x80], shift + 7
        self._check()
        signed: Int64s = (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)
        return signed

    def spans(self) -> tuple[Int64s, Int64s]:
        """Read a length and skip as many bytes, of each message; return where they begin, and the lengths."""
        sizes = self.longs()
        if (sizes < 0).any() or (sizes > len(self.data)).any():
            raise OddMessages
        return self.skipped(sizes), sizes

    def skipped(self, sizes: Int64s | int) -> Int64s:
        """Skip bytes of each message, and return where they begin."""
        begins = self.at
        self.at = begins + sizes
        self._check()
        return begins

    def numbers(self, kind: str) -> npt.NDArray[Any]:
        """Read numbers of a fixed size, of the numpy type ``kind``."""
        width = np.dtype(kind).itemsize
        begins = self.skipped(width)
        read: npt.NDArray[Any] = self.data[begins[:, None] + np.arange(width)].reshape(-1).view(kind)
        return read

    def _check(self) -> None:
        if (self.at > self.ends).any():
            raise OddMessages


@dataclass(frozen=True, slots=True)
class Decoder:
    """Reads the values of one schema, as an array of ``type``."""

    type: pa.DataType
    of: Callable[[Cursor], pa.Array]


def decoder_of(schema: Any, named: Mapping[str, Any] | None = None, within: tuple[str, ...] = ()) -> Decoder:
    """Return the decoder of a schema that fastavro has parsed, which refers to schemas in ``named``.

    ``within`` are the records around it. Raise UnreadableSchema for arrays, maps, other unions, records in themselves,
    and the logical types that no column has.
    """
    if isinstance(schema, list):
        return _union(schema, named, within)
    known: dict[str, Any] = {"type": schema} if isinstance(schema, str) else schema
    name, logical = known["type"], known.get("logicalType")
    if name == "record":
        return _record(known, named, within)
    if name == "enum" and logical is None:
        return _enum(tuple(known["symbols"]))
    if (name, logical) in _PLAIN:
        return _PLAIN[name, logical]
    if logical == "decimal" and name in ("bytes", "fixed"):
        return _decimal(known)
    if name == "fixed" and logical is None:
        size = int(known["size"])
        return Decoder(pa.binary(), lambda at: _taken(at, at.skipped(size), np.full(len(at.at), size), pa.binary()))
    if isinstance(name, str) and named is not None and name in named and name not in within and logical is None:
        return decoder_of(named[name], named, (*within, name))
    raise UnreadableSchema(str(name))


def _record(schema: Mapping[str, Any], named: Mapping[str, Any] | None, within: tuple[str, ...]) -> Decoder:
    inside = (*within, str(schema["name"]))
    fields = [(field["name"], decoder_of(field["type"], named, inside)) for field in schema["fields"]]
    kinds = [pa.field(name, decoder.type) for name, decoder in fields]
    if not fields:
        raise UnreadableSchema("a record without fields")

    def read(cursor: Cursor) -> pa.Array:
        return pa.StructArray.from_arrays([decoder.of(cursor) for _, decoder in fields], fields=kinds)

    return Decoder(pa.struct(kinds), read)


def _union(schema: list[Any], named: Mapping[str, Any] | None, within: tuple[str, ...]) -> Decoder:
    """Return the decoder of a value that may be NULL."""
    others = [number for number, branch in enumerate(schema) if branch != "null"]
    if len(schema) != len("?0") or len(others) != 1:
        raise UnreadableSchema("a union")
    there = others[0]
    inner = decoder_of(schema[there], named, within)

    def read(cursor: Cursor) -> pa.Array:
        branches = cursor.longs()
        is_there = branches == there
        if not (is_there | (branches == 1 - there)).all():
            raise OddMessages
        if is_there.all():
            return inner.of(cursor)
        rows = np.flatnonzero(is_there)
        some = cursor.of(rows)
        values = inner.of(some)
        cursor.at[rows] = some.at
        return values.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))

    return Decoder(inner.type, read)


def _enum(symbols: tuple[str, ...]) -> Decoder:
    texts = pa.array(symbols, pa.string())

    def read(cursor: Cursor) -> pa.Array:
        numbers = cursor.longs()
        if ((numbers < 0) | (numbers >= len(symbols))).any():
            raise OddMessages
        return texts.take(pa.array(numbers))

    return Decoder(pa.string(), read)


def _taken(cursor: Cursor, begins: Int64s, sizes: Int64s, kind: pa.DataType) -> pa.Array:
    """Return the bytes that begin at ``begins`` as an array of texts or bytes; ArrowInvalid for invalid UTF-8."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)
    data = cursor.data[places]
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    taken = pa.Array.from_buffers(kind, len(sizes), buffers)
    if kind == pa.string() and (data >= 0x80).any():
        taken.validate(full=True)
    return taken


def _spans(kind: pa.DataType) -> Decoder:
    return Decoder(kind, lambda cursor: _taken(cursor, *cursor.spans(), kind))


def _booleans(cursor: Cursor) -> pa.Array:
    values = cursor.data[cursor.skipped(1)]
    if (values > 1).any():
        raise OddMessages
    return pa.array(values == 1)


def _dates(cursor: Cursor) -> pa.Array:
    days = cursor.longs()
    if ((days < _FIRST_DAY) | (days > _LAST_DAY)).any():
        raise OddMessages
    return pa.array(days.astype(np.int32)).view(pa.date32())


def _times(unit: int) -> Decoder:
    """Return the decoder of times that count ``unit`` microseconds since 1970."""
    first, last = _FIRST_DAY * _DAY_MICROS // unit, (_LAST_DAY + 1) * _DAY_MICROS // unit

    def read(cursor: Cursor) -> pa.Array:
        counts = cursor.longs()
        if ((counts < first) | (counts >= last)).any():
            raise OddMessages
        return pa.array(counts * unit).view(pa.timestamp("us"))

    return Decoder(pa.timestamp("us"), read)


def _decimal(schema: Mapping[str, Any]) -> Decoder:
    """Return the decoder of decimals: whole numbers of up to 8 bytes, the highest first, without their scale."""
    precision, scale, size = schema.get("precision"), schema.get("scale", 0), schema.get("size")
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision <= _MOST_DIGITS:
        raise UnreadableSchema("a decimal")
    limit = 10 ** min(precision, _DECIMAL_DIGITS + 1)

    def read(cursor: Cursor) -> pa.Array:
        if size is None:
            begins, sizes = cursor.spans()
        else:
            begins, sizes = cursor.skipped(int(size)), np.full(len(cursor.at), int(size))
        longest = int(sizes.max(initial=1))
        if longest > _DECIMAL_BYTES or int(sizes.min(initial=1)) < 1:
            raise OddMessages
        numbers = np.where(cursor.data[begins] >= 0x80, -1, 0).astype(np.int64)
        for number in range(longest):
            following = (numbers << 8) | cursor.data[begins + number]
            numbers = np.where(number < sizes, following, numbers)
        if limit <= np.iinfo(np.int64).max and ((numbers <= -limit) | (numbers >= limit)).any():
            raise OddMessages
        wide = np.column_stack([numbers, numbers >> 63])
        kind = pa.decimal128(precision, scale)
        return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(wide))])

    return Decoder(pa.decimal128(precision, scale), read)


_LONGS = Decoder(pa.int64(), lambda cursor: pa.array(cursor.longs()))
_PLAIN = {
    ("boolean", None): Decoder(pa.bool_(), _booleans),
    ("int", None): _LONGS,
    ("long", None): _LONGS,
    ("float", None): Decoder(pa.float32(), lambda cursor: pa.array(cursor.numbers("<f4"))),
    ("double", None): Decoder(pa.float64(), lambda cursor: pa.array(cursor.numbers("<f8"))),
    ("string", None): _spans(pa.string()),
    ("bytes", None): _spans(pa.binary()),
    ("int", "date"): Decoder(pa.date32(), _dates),
    ("long", "timestamp-millis"): _times(1000),
    ("long", "timestamp-micros"): _times(1),
    ("long", "local-timestamp-millis"): _times(1000),
    ("long", "local-timestamp-micros"): _times(1),
}
