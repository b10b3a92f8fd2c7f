"""Column values of the datagen connector, computed from the row number, so that a replay generates the same rows.

Pure and vectorised: no clock, no session. A random value is a 64-bit hash (splitmix64) of the column name and the row
number; a sequence counts up from its start. Time columns hold the time of the batch, which the caller passes in.

>>> specs = (FieldSpec(name="id", type="INT", kind="sequence", start=10, end=19),)
>>> batch(specs, 2, 5, time_ms=0).to_pydict()
{'id': [12, 13, 14]}
"""

from __future__ import annotations

import hashlib
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hintplan.plans.connectors.datagen import FieldSpec
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.runtime.types import to_arrow

_U64 = npt.NDArray[np.uint64]
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def batch(specs: tuple[FieldSpec, ...], start: int, end: int, *, time_ms: int) -> pa.RecordBatch:
    """Return the rows from ``start`` to ``end``, exclusive, with one column per spec; time columns hold ``time_ms``."""
    rows = np.arange(start, end, dtype=np.uint64)
    schema = pa.schema([pa.field(spec.name, to_arrow(spec.type)) for spec in specs])
    return pa.record_batch([_column(spec, rows, time_ms) for spec in specs], schema=schema)


def row_width(specs: tuple[FieldSpec, ...]) -> int:
    """Return the approximate number of bytes per row, at least 1, by which callers limit their batches."""
    return max(1, sum(max(16, spec.length) for spec in specs))


def _column(spec: FieldSpec, rows: _U64, time_ms: int) -> pa.Array:
    data_type = parse_type(spec.type)
    arrow_type = to_arrow(spec.type)
    if data_type.root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        moment = pa.scalar(time_ms * 1000, pa.int64()).cast(pa.timestamp("us"))
        return pa.repeat(moment.cast(arrow_type), len(rows))
    if spec.kind == "sequence":
        return _sequence(spec, data_type, rows)
    if data_type.root == "BOOLEAN":
        return pa.array((_hash(spec.name, rows, 0) & np.uint64(1)).astype(bool))
    if data_type.root == "DECIMAL":
        return _random_decimal(spec, data_type, rows)
    if data_type.is_integer:
        return _random_integer(spec, rows, arrow_type)
    if data_type.is_numeric:
        share = (_hash(spec.name, rows, 0) >> np.uint64(11)).astype(np.float64) / float(1 << 53)
        # Weighting both ends cannot overflow; adding a fraction of the range to the lower end could.
        values = float(spec.minimum) * (1 - share) + float(spec.maximum) * share
        return pa.array(values.astype(np.float32) if data_type.root == "FLOAT" else values)
    return _random_bytes(spec, rows, arrow_type)


def _sequence(spec: FieldSpec, data_type: DataType, rows: _U64) -> pa.Array:
    values = rows.astype(np.int64) + spec.start
    if data_type.root == "DECIMAL":
        return pa.array([Decimal(int(value)) for value in values], to_arrow(spec.type))
    return pa.array(values).cast(to_arrow(spec.type), safe=data_type.root not in ("FLOAT", "DOUBLE"))


def _random_integer(spec: FieldSpec, rows: _U64, arrow_type: pa.DataType) -> pa.Array:
    low = int(spec.minimum)
    size = int(spec.maximum) - low + 1
    hashes = _hash(spec.name, rows, 0)
    offsets = hashes if size == 1 << 64 else hashes % np.uint64(size)
    # The range may span zero: unsigned addition wraps around, which gives the right result in two's complement.
    values = (offsets + np.uint64(low % (1 << 64))).view(np.int64)
    return pa.array(values).cast(arrow_type)


def _random_decimal(spec: FieldSpec, data_type: DataType, rows: _U64) -> pa.Array:
    scale = data_type.scale or 0
    with localcontext(prec=80):
        low, high = (int(bound.scaleb(scale).to_integral_value()) for bound in (spec.minimum, spec.maximum))
        size = high - low + 1
        halves = zip(_hash(spec.name, rows, 0).tolist(), _hash(spec.name, rows, 1).tolist(), strict=True)
        values = [Decimal(low + (upper << 64 | lower) % size).scaleb(-scale) for upper, lower in halves]
    return pa.array(values, to_arrow(spec.type))


def _random_bytes(spec: FieldSpec, rows: _U64, arrow_type: pa.DataType) -> pa.Array:
    """Return random bytes of a fixed length; for text, hexadecimal digits, as Flink's generator does."""
    text = pa.types.is_string(arrow_type)
    words = [_hash(spec.name, rows, index) for index in range(-(-spec.length // 8))]
    data = np.stack(words, axis=1).view(np.uint8)[:, : spec.length] if words else np.empty((len(rows), 0), np.uint8)
    data = np.ascontiguousarray(_HEX[data & 15] if text else data)
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(spec.length)
    return pa.Array.from_buffers(arrow_type, len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _hash(name: str, rows: _U64, index: int) -> _U64:
    """Return the ``index``-th block of 64 random bits of each row, for column ``name``."""
    digest = hashlib.sha256(f"{index}:{name}".encode()).digest()
    bits = rows * np.uint64(0x9E3779B97F4A7C15) + np.uint64(int.from_bytes(digest[:8], "big"))
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
