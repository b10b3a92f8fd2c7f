r"""The format raw: a message is a single value, as text, bytes, or a number with the size of its type.

>>> from hintplan.plans.declarations.tables import TableColumn
>>> part = Part(format="raw", columns=(TableColumn(name="n", type="INT"),), fields=("n",), options={})
>>> raw_encoder(part)([258]), raw_decoder(part)(bytes([0, 0, 1, 2]))
(b'\x00\x00\x01\x02', [258])
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from hintplan.plans.connectors.messages.formats import Part
from hintplan.plans.declarations.types import parse_type

_FORMS = {"TINYINT": "b", "SMALLINT": "h", "INT": "i", "BIGINT": "q", "FLOAT": "f", "DOUBLE": "d", "BOOLEAN": "?"}


def raw_decoder(part: Part) -> Callable[[bytes], Sequence[Any] | None]:
    """Return a function that decodes a message to the single column of ``part``."""
    data_type, form = _form(part)
    if data_type.is_text:
        return lambda message: [message.decode(errors="replace")]
    if form is None:
        return lambda message: [message]

    def decode(message: bytes) -> Sequence[Any]:
        if len(message) != form.size:
            raise ValueError(f"it has {len(message)} bytes, and {data_type.root} has {form.size}")
        return [form.unpack(message)[0]]

    return decode


def raw_encoder(part: Part) -> Callable[[Sequence[Any]], bytes | None]:
    """Return a function that encodes the single value as a message; NULL becomes None, a message without a value."""
    data_type, form = _form(part)

    def encode(values: Sequence[Any]) -> bytes | None:
        (value,) = values
        if value is None:
            return None
        if data_type.is_text:
            return str(value).encode()
        return bytes(value) if form is None else form.pack(value)

    return encode


def _form(part: Part) -> tuple[Any, struct.Struct | None]:
    (column,) = part.columns
    data_type = parse_type(column.type)
    order = "<" if part.option("endianness") == "little-endian" else ">"
    return data_type, struct.Struct(order + _FORMS[data_type.root]) if data_type.root in _FORMS else None
