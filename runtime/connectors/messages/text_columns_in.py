"""Converts columns of texts to their declared types, as :func:`json_in.text_decoder` converts each text.

If Arrow rejects a text of a column, or might convert it differently, the column is left to the code for rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.types import DataType
from hintplan.runtime.types import to_arrow

Int32s = npt.NDArray[np.int32]

_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
_DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_MOST_SCALE = 18
_NUMBERS = {
    **dict.fromkeys(_WHOLE, r"^-?[0-9]{1,18}$"),
    "DECIMAL": r"^-?([0-9]{1,18}(\.[0-9]{0,%d})?|[0-9]{1,10}(\.[0-9]{0,8})?[eE][-+]?[0-9])$",
    **dict.fromkeys(("FLOAT", "DOUBLE"), r"^-?[0-9]{1,20}(\.[0-9]{1,30})?([eE]-?[0-9]{1,2})?$"),
}
"""Patterns of numbers that Arrow reads as Python does, with the scale of a DECIMAL."""


def is_in_bulk(data_type: DataType) -> bool:
    """Return true if :func:`as_declared` converts to ``data_type``.

    With a scale of at most 18, every DECIMAL of 18 digits before the point is within the range of Arrow, which checks
    no overflow.
    """
    if data_type.root == "DECIMAL":
        return (data_type.scale or 0) <= _MOST_SCALE
    return data_type.is_text or data_type.root in (*_NUMBERS, *_TIMES, "BOOLEAN", "DATE")


def number_as(data_type: DataType) -> pa.DataType:
    """Return the type as which Arrow reads a number; a FLOAT is read as a DOUBLE, and then rounded, as in rows."""
    return pa.float64() if data_type.root == "FLOAT" else to_arrow(str(data_type))


def as_declared(column: pa.Array, data_type: DataType, *, iso: bool = False) -> pa.Array | None:
    """Return texts as a column of ``data_type``; None, or ArrowInvalid, if they are left to the code for rows.

    Times are in ISO 8601 with ``iso``, otherwise in SQL's form. Numbers and BOOLEAN may have been read already.
    """
    root = data_type.root
    if data_type.is_text:
        return column
    if pa.types.is_string(column.type):
        if root == "BOOLEAN":
            return _booleans(column)
        if data_type.is_numeric:
            pattern = _NUMBERS[root]
            if not _all_match(column, pattern % data_type.scale if root == "DECIMAL" else pattern):
                return None
            column = column.cast(number_as(data_type))
    if root == "FLOAT":
        column = column.cast(pa.float32(), safe=False)
    elif root == "DATE":
        if not _all_match(column, f"^{_DAY}$"):
            return None
        column = column.cast(pa.date32())
    elif root in _TIMES:
        zoned = root == "TIMESTAMP_LTZ"
        if not _all_match(column, f"^{_DAY}{'T' if iso else ' '}{_CLOCK}{'Z' if zoned else ''}$"):
            return None
        moments = (pc.utf8_rtrim(column, "Z") if zoned else column).cast(pa.timestamp("us"))
        column = (pc.assume_timezone(moments, "UTC") if zoned else moments).cast(to_arrow(str(data_type)))
    column.validate(full=True)
    return column


def is_utf8(text: bytes) -> bool:
    """Return true if ``text`` is valid UTF-8."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def layout_of(column: pa.Array) -> tuple[Int32s, npt.NDArray[np.uint8]]:
    """Return the offsets of the values of a binary or text column, and the bytes to which they point."""
    if not len(column):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    _, offsets, data = column.buffers()
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1], values


def _booleans(texts: pa.Array) -> pa.Array | None:
    lower = pc.ascii_lower(texts)
    yes = pc.equal(lower, "true")
    return yes if pc.all(pc.or_(yes, pc.equal(lower, "false"))).as_py() is not False else None


def _all_match(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False
