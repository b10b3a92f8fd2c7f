"""Values of text files in Arrow: a column of texts, converted to its declared type as Spark's readers convert it.

A text that Spark might read differently, or not at all, makes the whole column None. So a number is digits without
blanks, a plus sign or NaN, a date is ``2024-05-01``, and a time has seconds. TIMESTAMP_LTZ has a zone in its text.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.types import DataType
from hintplan.runtime.types import to_arrow

FLOATING = ("FLOAT", "DOUBLE")
TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
BINARIES = ("BYTES", "BINARY", "VARBINARY")
TEXTS = ("STRING", "CHAR", "VARCHAR")

_MINUS, _DOT, _SLASH, _ZERO, _NINE = (np.uint8(ord(mark)) for mark in "-./09")
_OF_INTEGERS = b"-0123456789"
_OF_DECIMALS = b"+-.0123456789"
_OF_NUMBERS = b"+-.0123456789Ee"
_MOST_DIGITS = 38
_DIGITS_OF_64_BITS = 18
_POWERS = 10 ** np.arange(_DIGITS_OF_64_BITS + 1)
_FIRST_DAY = -719162
"""The first day of the year 1, in days since 1970."""
_FIRST_MICROSECOND = _FIRST_DAY * 86_400_000_000
_SECONDS_END = 19
_SECOND_COLON = 16
_DAY = "[12][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_MOMENT = _DAY + "[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?"
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_ZONE = "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])$"


def column_of(texts: pa.Array, data_type: DataType) -> pa.Array | None:
    """Return ``texts`` as a column of ``data_type``; None if Spark might read one of them differently."""
    try:
        return _converted(texts, data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def plain_form(data_type: DataType) -> str | None:
    """Return a regular expression for texts that :func:`column_of` converts, but not for all of them; None for text.

    It contains no group, and finds most values of another form.

    >>> plain_form(DataType(root="DECIMAL", precision=4, scale=2))
    '-?[0-9]{1,2}(?:[.][0-9]{1,2})?'
    """
    root = data_type.root
    if root in TEXTS:
        return None
    if bits := _INTEGER_BITS.get(root):
        largest = str(2 ** (bits - 1) - 1)
        smaller = (
            f"{largest[:at]}[0-{int(digit) - 1}][0-9]{{{len(largest) - at - 1}}}"
            for at, digit in enumerate(largest)
            if digit != "0"
        )
        return f"-?(?:[0-9]{{1,{len(largest) - 1}}}|{'|'.join(smaller)}|{largest})"
    match root:
        case "BOOLEAN":
            return "(?:true|false)"
        case "DATE":
            return _DAY
        case "TIMESTAMP":
            return _MOMENT
        case "TIMESTAMP_LTZ":
            return _MOMENT + _ZONE.replace("(", "(?:").removesuffix("$")
        case "DECIMAL":
            precision, scale = data_type.precision or 10, data_type.scale or 0
            fraction = f"(?:[.][0-9]{{1,{scale}}})?" if scale else ""
            return f"-?[0-9]{{1,{max(precision - scale, 1)}}}{fraction}"
    if root in BINARIES:
        return "(?:[A-Za-z0-9+/]{4})*"
    return "-?[0-9]{1,30}(?:[.][0-9]{1,30})?(?:[eE][-+]?[0-9])?"


def are_of_form(data: bytes, ends: np.ndarray[Any, Any], form: str) -> np.ndarray[Any, Any]:
    """Return which of the records of ``data``, one to each of ``ends``, have the ``form``, a regular expression."""
    offsets = np.concatenate((np.zeros(1, np.int32), ends.astype(np.int32)))
    records = pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    are_plain: np.ndarray[Any, Any] = pc.match_substring_regex(records, f"^(?:{form})$").to_numpy(zero_copy_only=False)
    return are_plain


def is_exact(column: pa.Array, data_type: DataType) -> bool:
    """Return true if numbers that Arrow has parsed are within the range of ``data_type``."""
    if data_type.root in FLOATING:
        return bool(np.isfinite(_floats(column)).all())
    if data_type.root == "DECIMAL":
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return False
    return True


def are_plain_numbers(texts: pa.Array) -> bool:
    """Return true if all ``texts`` are JSON numbers without an exponent, or NULL; a NULL without a text of its own."""
    starts, characters = _characters(texts)
    first = int(starts[0])
    starts, found = starts - first, characters[first : int(starts[-1])]
    if texts.null_count:
        is_given = texts.is_valid().to_numpy(zero_copy_only=False)
        if (np.diff(starts)[~is_given] > 0).any():
            return False
        starts = np.append(starts[:-1][is_given], starts[-1])
    begins, sizes = starts[:-1], np.diff(starts)
    if not sizes.size:
        return True
    if not sizes.min() or (found - _MINUS > _NINE - _MINUS).any() or (found == _SLASH).any():
        return False
    leading = found[begins]
    is_negative = leading == _MINUS
    negative = int(np.count_nonzero(is_negative))
    if np.count_nonzero(found == _MINUS) != negative:
        return False
    if negative:
        if sizes[is_negative].min() == 1:
            return False
        begins, sizes = begins + is_negative, sizes - is_negative
        leading = found[begins]
    if (leading < _ZERO).any():
        return False
    dots = np.flatnonzero(found == _DOT)
    if dots.size:
        with_dot = begins, sizes
        if dots.size != sizes.size:
            of = np.searchsorted(starts, dots, side="right") - 1
            if (of[1:] == of[:-1]).any():
                return False
            with_dot = begins[of], sizes[of]
        if not ((dots > with_dot[0]) & (dots < with_dot[0] + with_dot[1] - 1)).all():
            return False
    is_zero = (leading == _ZERO) & (sizes > 1)
    return not is_zero.any() or bool((found[begins[is_zero] + 1] == _DOT).all())


def has_negative_zero(column: pa.Array) -> bool:
    """Return true if a floating-point column has the value -0.0."""
    values = _floats(column)
    return bool(((values == 0) & np.signbit(values)).any())


def _converted(texts: pa.Array, data_type: DataType) -> pa.Array | None:
    kind = to_arrow(str(data_type))
    root = data_type.root
    if root in TEXTS:
        return texts
    if root in BINARIES:
        return _decoded(texts)
    if root == "BOOLEAN":
        yes = pc.equal(texts, "true")
        return yes if pc.all(pc.or_(yes, pc.equal(texts, "false"))).as_py() is not False else None
    if root == "DATE":
        days = texts.cast(kind)
        return days if _is_since(days.view(pa.int32()), _FIRST_DAY) else None
    if root in TIMES:
        return _moments(texts, kind, zoned=root == "TIMESTAMP_LTZ")
    allowed = _OF_INTEGERS if data_type.is_integer else _OF_DECIMALS if root == "DECIMAL" else _OF_NUMBERS
    if not _has_only(texts, allowed):
        return None
    numbers = _short_decimals(texts, kind) if root == "DECIMAL" else None
    if numbers is not None:
        return numbers
    if root == "DECIMAL" and not _is_in_range(texts, data_type.scale or 0):
        return None
    numbers = texts.cast(kind)
    return numbers if is_exact(numbers, data_type) else None


def _short_decimals(texts: pa.Array, kind: pa.Decimal128Type) -> pa.Array | None:
    """Return texts of digits, signs and dots as decimals, by way of 64 bits; None if one of them needs Arrow's cast.

    This takes half of the time of the cast.
    """
    starts, characters = _characters(texts)
    first = int(starts[0])
    starts, found = starts - first, characters[first : int(starts[-1])]
    dots = np.flatnonzero(found == _DOT)
    fractions = np.zeros(len(texts), np.int64)
    if dots.size == len(texts):
        if (dots < starts[:-1]).any():
            return None
        fractions += starts[1:] - 1 - dots
        starts -= np.arange(len(starts), dtype=np.int32)
    elif dots.size:
        of = np.searchsorted(starts, dots, side="right") - 1
        if (of[1:] == of[:-1]).any():
            return None
        fractions[of] = starts[1:][of] - 1 - dots
        starts = (starts - np.searchsorted(dots, starts)).astype(np.int32)
    sizes = np.diff(starts)
    is_short = (sizes - fractions).max(initial=0) + kind.scale <= _DIGITS_OF_64_BITS
    if not is_short or fractions.min(initial=0) < 0 or fractions.max(initial=0) > kind.scale or texts.offset:
        return None
    if ((found[:-1] == _DOT) & (found[1:] == _MINUS)).any():
        return None
    digits, validity = pa.py_buffer(found.tobytes().translate(None, b".")), texts.buffers()[0]
    try:
        whole = pa.StringArray.from_buffers(len(texts), pa.py_buffer(starts), digits, validity).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    values = (whole.fill_null(0) if whole.null_count else whole).to_numpy() * _POWERS[kind.scale - fractions]
    if np.abs(values).max(initial=0) >= 10**kind.precision:
        return None
    halves = np.stack([values, values >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(texts), [validity, pa.py_buffer(halves)])


def _is_in_range(texts: pa.Array, scale: int) -> bool:
    """Return true if no number without exponent overflows in Arrow, which does not check it."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest + scale <= _MOST_DIGITS:
        return True
    if longest > _MOST_DIGITS + len("-."):
        return False
    whole = f"^[+-]?[0-9]{{0,{_MOST_DIGITS - scale}}}([.]|$)"
    return pc.all(pc.match_substring_regex(texts, whole)).as_py() is not False


def _moments(texts: pa.Array, kind: pa.DataType, *, zoned: bool) -> pa.Array | None:
    """Return the moments of texts such as ``2024-05-01 12:30:00.5``, with a zone at their end if ``zoned``."""
    given = texts.drop_null() if texts.null_count else texts
    if not len(given):
        return texts.cast(kind)
    starts, characters = _characters(given)
    if int((starts[1:] - starts[:-1]).min()) < _SECONDS_END + zoned:
        return None
    if not (characters[starts[:-1] + _SECOND_COLON] == ord(":")).all():
        return None
    if zoned:
        ends_with_z = (characters[starts[1:] - 1] == ord("Z")).all()
        if not ends_with_z and not pc.all(pc.match_substring_regex(given, _ZONE)).as_py():
            return None
    moments = texts.cast(kind)  # refuses a zone in a type without one
    return moments if _is_since(moments.view(pa.int64()), _FIRST_MICROSECOND) else None


def _decoded(texts: pa.Array) -> pa.Array | None:
    """Return the bytes of texts in base64, each in its canonical form."""
    values: list[bytes | None] = []
    for text in texts.cast(pa.binary()).to_pylist():
        try:
            value = None if text is None else a2b_base64(text, strict_mode=True)
        except Error:
            return None
        if value is not None and b2a_base64(value, newline=False) != text:
            return None
        values.append(value)
    return pa.array(values, pa.binary())


def _is_since(values: pa.Array, first: int) -> bool:
    least = pc.min(values).as_py()
    return least is None or least >= first


def _has_only(texts: pa.Array, allowed: bytes) -> bool:
    """Return true if all characters of ``texts`` are ``allowed``."""
    starts, characters = _characters(texts.drop_null() if texts.null_count else texts)
    found = characters[int(starts[0]) : int(starts[-1])]
    if not found.size:
        return True
    # Arrow refuses the slash, the only other character from minus to nine, and the comma, that from plus.
    lowest, highest = allowed[0], ord("9")
    if int((found - np.uint8(lowest)).max()) <= highest - lowest:
        return True
    return not bytes(found).translate(None, allowed)


def _characters(texts: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the offsets of ``texts``, and the bytes into which they point."""
    _, offsets, values = texts.buffers()
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return starts, np.frombuffer(values if values is not None else b"", np.uint8)


def _floats(column: pa.Array) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = (column.drop_null() if column.null_count else column).to_numpy(zero_copy_only=False)
    return values
