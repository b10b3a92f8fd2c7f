r"""Reads a block of JSON lines with Arrow, if Spark's reader reads the same values from it.

Both readers agree on a line that is one object, with numbers for numeric columns and texts for the others. Arrow itself
refuses a wrong line, a key twice and a value of another kind. What it reads differently is looked for in the bytes of
the block: several objects in a line, an object in several lines, NaN and Infinity, half a surrogate pair, and sizes
beyond the limits of Spark's parser. The answer for such a block is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from hintplan.plans.declarations.types import DataType
from hintplan.runtime.connectors.filesystem.csv_blocks import LARGEST_BLOCK
from hintplan.runtime.connectors.json_alike import columns_alike
from hintplan.runtime.connectors.text_values import (
    BINARIES,
    FLOATING,
    TEXTS,
    TIMES,
    column_of,
    has_negative_zero,
    is_exact,
    plain_form,
)
from hintplan.runtime.types import to_arrow

_LONG_LINE = 1000
"""In a shorter line, no number and no nesting is beyond the limits of Spark's parser, which are 1000."""
_LONGEST_LINE = 50_000
"""In a shorter line, no name is beyond the limit of Spark's parser."""
_NO_NUMBER = re.compile(rb"[:\[,][ \t]*-?(?:NaN|Inf|INF)")
_LONG_NUMBER = re.compile(rb"[0-9]{500}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_EXPONENT = re.compile(rb"[:\[,][ \t]*-?[0-9.]+[eE]")
_MANY_DIGITS = re.compile(rb"[:\[,][ \t]*\"?-?(?:[0-9]+[.])?[0-9]{20}")
"""With fewer digits and a scale of at most 18, every DECIMAL is within Arrow's range, which Arrow does not check."""
_MOST_SCALE = 18
_FIRST_LINES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonForm:
    """The fields whose values are converted, their types, and the fields that are returned."""

    read: tuple[str, ...]
    types: tuple[DataType, ...]
    wanted: tuple[str, ...]


def is_readable(form: JsonForm) -> bool:
    """Return true if blocks of this form can be read at all."""
    return not any(
        data_type.is_nested or (data_type.root == "DECIMAL" and (data_type.scale or 0) > _MOST_SCALE)
        for data_type in form.types
    )


def read_json_block(data: bytes | memoryview, form: JsonForm) -> pa.Table | None:
    """Return the records of ``data``, or None if Spark might read one of them differently."""
    data = bytes(data)
    schema = pa.schema([(field, to_arrow(str(kind))) for field, kind in zip(form.read, form.types, strict=True)])
    if not data:
        return schema.empty_table().select(list(form.wanted))
    plain = _plain(data)
    if plain is None:
        return None
    data, starts, ends = plain
    types = dict(zip(form.read, form.types, strict=True))
    columns = columns_alike(data, starts, ends, types, partial(_parsed, types=types))
    return None if columns is None else pa.table(columns, schema=schema).select(list(form.wanted))


def plain_record(form: JsonForm, lines: Sequence[bytes]) -> str:
    """Return a regular expression for lines that :func:`read_json_block` reads, but not for all of them.

    Keys without a column are allowed if the first of ``lines`` have them.
    """
    others: dict[str, None] = {}
    for line in lines[:_FIRST_LINES]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        others |= dict.fromkeys(found if isinstance(found, dict) else ())
    fields = []
    for name, data_type in zip(form.read, form.types, strict=True):
        others.pop(name, None)
        value = plain_form(data_type)
        is_number = data_type.is_numeric or data_type.root == "BOOLEAN"
        text = _TEXT if value is None else value if is_number else f'"{value}"'
        fields.append(f"{_key(name)}(?:{text}|null)")
    if others:
        fields.append(f"(?:{'|'.join(map(_key, others))}){_FLAT}")
    return _listed("{", "|".join(fields), "}") + r"\r?\n?"


def _key(name: str) -> str:
    return re.escape(json.dumps(name, ensure_ascii=False)) + "[ \t]*:[ \t]*"


def _listed(first: str, form: str, last: str) -> str:
    """Return a regular expression for a list of values that have a ``form``."""
    return rf"\{first}[ \t]*(?:(?:{form})(?:[ \t]*,[ \t]*(?:{form}))*)?[ \t]*\{last}"


_ESCAPED = r'\\(?:["\\/bfnrt]|u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))'
_TEXT = rf'"(?:[^"\\\x00-\x1f]|{_ESCAPED})*"'
_SCALAR = rf"(?:{_TEXT}|-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)"
_FLAT = f"(?:{_SCALAR}|{_listed('[', _SCALAR, ']')}|{_listed('{', f'{_TEXT}[ ]*:[ ]*{_SCALAR}', '}')})"
"""A value without a column, in which nothing more than scalars is nested."""


def _parsed(data: bytes, lines: int, types: Mapping[str, DataType]) -> dict[str, pa.Array] | None:
    """Return the columns as Arrow's parser reads them; None if Spark might read a value differently."""
    if _is_odd(data, decimals=any(data_type.root == "DECIMAL" for data_type in types.values())):
        return None
    read_as = pa.schema([(field, _read_as(data_type)) for field, data_type in types.items()])
    try:
        found = pa.json.read_json(
            pa.BufferReader(data),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=read_as, newlines_in_values=True, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    if found.num_rows != lines:
        return None
    columns: dict[str, pa.Array] = {}
    for field, data_type in types.items():
        column = _declared(found.column(field).combine_chunks(), data_type)
        if column is None:
            return None
        columns[field] = column
    return columns


def _read_as(data_type: DataType) -> pa.DataType:
    as_text = data_type.root in (*TIMES, *BINARIES, *TEXTS, "DATE")
    return pa.string() if as_text else to_arrow(str(data_type))


def _declared(column: pa.Array, data_type: DataType) -> pa.Array | None:
    """Return a column that Arrow has read, in its declared type."""
    if column.type == pa.string():
        return column_of(column, data_type)
    if not is_exact(column, data_type):
        return None
    # Spark reads -0 as an integer, so that its sign is lost.
    return None if data_type.root in FLOATING and has_negative_zero(column) else column


def _plain(data: bytes) -> tuple[bytes, np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    r"""Return ``data`` with ``\n`` as the line end, and where lines start and end; None if a line is odd."""
    if len(data) > LARGEST_BLOCK:
        return None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    if not _is_utf8(data):
        return None
    marks = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(marks < ord(" ")).astype(np.int32)
    if (marks[ends] != ord("\n")).any():
        return None
    starts = np.concatenate((np.zeros(1, np.int32), ends[:-1] + 1))
    # So no object is in two lines: between a closing and an opening brace inside an object, there would be a comma.
    if not ((marks[starts] == ord("{")).all() and (marks[ends - 1] == ord("}")).all()):
        return None
    sizes = ends - starts
    longest = int(sizes.max())
    if longest >= _LONGEST_LINE:
        return None
    if longest >= _LONG_LINE:
        for line in np.flatnonzero(sizes >= _LONG_LINE).tolist():
            if _is_beyond_limits(data[starts[line] : ends[line]]):
                return None
    return data, starts, ends


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        pa.array([data], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _is_odd(data: bytes, *, decimals: bool) -> bool:
    """Return true if Arrow's parser might read a number or an escape differently."""
    if b"\\u" in data and _SURROGATE.search(data):
        return True
    if (b"NaN" in data or b"Inf" in data or b"INF" in data) and _NO_NUMBER.search(data):
        return True
    return decimals and _has_odd_decimals(data)


def _has_odd_decimals(data: bytes) -> bool:
    """Return true if a number has an exponent, or so many digits that Arrow may compute another DECIMAL."""
    marks = np.frombuffer(data, np.uint8)
    digits = marks - np.uint8(ord("0")) < 10
    run = digits
    for step in (1, 2, 4, 8, 4):  # after the steps, 20 digits in a row
        run = run[step:] & run[:-step]
    if run.any() and _MANY_DIGITS.search(data) is not None:
        return True
    exponents = (marks[1:] | np.uint8(ord("e") ^ ord("E"))) == ord("e")
    exponents &= digits[:-1] | (marks[:-1] == ord("."))
    return bool(exponents.any()) and _EXPONENT.search(data) is not None


def _is_beyond_limits(line: bytes) -> bool:
    """Return true if a line may be beyond the limits of Spark's parser, of nesting and of digits in a number."""
    if line.count(b"{") + line.count(b"[") >= _LONG_LINE:
        return True
    digits = np.frombuffer(line, np.uint8)[:: _LONG_LINE // 4] - np.uint8(ord("0")) < 10
    return bool((digits[1:] & digits[:-1]).any()) and _LONG_NUMBER.search(line) is not None
