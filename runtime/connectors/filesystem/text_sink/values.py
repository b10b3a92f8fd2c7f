"""Texts of values in CSV and JSON files, as Spark writes them, for whole columns.

Arrow writes most values. The others, such as a year above 9999 or a number with an exponent, are written one by one.
NULL stays NULL. Invalid UTF-8 becomes U+FFFD, as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hintplan.runtime.connectors.filesystem.text_sink.java_floating import java_text

Texts = Callable[[pa.Array], pa.Array]
"""Returns the texts of a column, as an array of the same length."""

_SURROGATE = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]")
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
_DAY = 86_400_000_000
_AGREED = {True: (1e-35, 2.0**21), False: (1e-300, 2.0**52)}
"""The first and the end of the sizes of FLOAT, or else DOUBLE, that all versions of Java write with the fewest digits,
except powers of two below 0.001: a decimal as short cannot be halfway between two numbers there."""
_EXPONENT_BELOW, _EXPONENT_FROM = 1e-3, 1e7
"""Java writes other sizes with an exponent."""


def unquoted_texts(kind: pa.DataType, java: int) -> Texts | None:
    """Return a function that writes values of a type that is neither text nor nested; None for other types.

    ``java`` is the version of Java whose texts of floating-point numbers are wanted.
    """
    types = pa.types
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal128(kind):
        return lambda column: column.cast(pa.string())
    if types.is_float32(kind) or types.is_float64(kind):
        return partial(_floating, java=java)
    if types.is_date32(kind):
        return _dates
    if types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
        return partial(_times, zone="" if kind.tz is None else "Z")
    return None


def with_others(texts: pa.Array, others: pa.Array, write: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return ``texts`` with the result of ``write`` where ``others`` is true; it takes a mask without NULL."""
    mask = others.fill_null(False)
    return pc.replace_with_mask(texts, mask, write(mask)) if pc.any(mask).as_py() else texts


def valid_texts(column: pa.Array) -> pa.Array:
    """Return texts with U+FFFD in place of invalid UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        values = column.cast(pa.binary()).to_pylist()
        return pa.array([None if value is None else _decoded(value) for value in values], pa.string())
    return column


def _floating(column: pa.Array, java: int) -> pa.Array:
    single = pa.types.is_float32(column.type)
    size = pc.abs(column)
    agreed = _agreed(column, size, single)
    texts = column.cast(pa.string())
    fixed = pc.and_(pc.greater_equal(size, _EXPONENT_BELOW), pc.less(size, _EXPONENT_FROM))
    fixed = pc.or_(pc.and_(agreed, fixed), pc.equal(column, 0.0))
    without_point = pc.binary_join_element_wise(texts, ".0", "")
    written = pc.if_else(pc.match_substring(texts, "."), texts, without_point)
    others = pc.invert(fixed)
    for pattern, write in _WITH_EXPONENTS.items():
        chosen = pc.and_(pc.and_(agreed, others), pc.match_substring_regex(texts, pattern))
        written = with_others(written, chosen, partial(_chosen, texts=texts, write=write))
        others = pc.and_(others, pc.invert(chosen))

    def write_one_by_one(mask: pa.Array) -> pa.Array:
        one = partial(java_text, single=single, java=java)
        return pa.array(list(map(one, column.filter(mask).to_pylist())), pa.string())

    return with_others(written, others, write_one_by_one)


def _chosen(mask: pa.Array, *, texts: pa.Array, write: Texts) -> pa.Array:
    return write(texts.filter(mask))


def _agreed(column: pa.Array, size: pa.Array, single: bool) -> pa.Array:
    """Return true for the numbers that all versions of Java write with the fewest digits."""
    least, end = _AGREED[single]
    inside = pc.and_(pc.greater_equal(size, least), pc.less(size, end))
    small = pc.and_(inside, pc.less(size, _EXPONENT_BELOW))
    if not pc.any(small).as_py():
        return inside
    mantissas, _ = np.frexp(size.fill_null(0).to_numpy(zero_copy_only=False))
    return pc.and_(inside, pc.invert(pc.and_(small, pa.array(mantissas == 0.5))))


def _large(texts: pa.Array) -> pa.Array:
    """Return texts such as 123456789.5 in the form 1.234567895E8."""
    whole = pc.replace_substring_regex(texts, r"^-?([0-9]+).*$", r"\1")
    exponents = pc.subtract(pc.binary_length(whole), 1).cast(pa.string())
    moved = pc.replace_substring_regex(texts, r"^(-?[0-9])([0-9]*)\.?([0-9]*)$", r"\1.\2\3")
    return _joined(pc.replace_substring_regex(moved, r"0+$", ""), exponents, "E")


def _small(texts: pa.Array) -> pa.Array:
    """Return texts such as 0.000125 in the form 1.25E-4."""
    zeros = pc.replace_substring_regex(texts, r"^-?0\.(0*)[1-9].*$", r"\1")
    exponents = pc.add(pc.binary_length(zeros), 1).cast(pa.string())
    return _joined(pc.replace_substring_regex(texts, r"^(-?)0\.0*([1-9])", r"\1\2."), exponents, "E-")


def _tiny(texts: pa.Array) -> pa.Array:
    """Return texts such as 1.25e-07 in the form 1.25E-7."""
    mantissas = pc.replace_substring_regex(texts, r"^(-?[0-9])(?:\.([0-9]+))?e.*$", r"\1.\2")
    return _joined(mantissas, pc.replace_substring_regex(texts, r"^.*e-0*", ""), "E-")


def _joined(mantissas: pa.Array, exponents: pa.Array, sign: str) -> pa.Array:
    return pc.binary_join_element_wise(pc.replace_substring_regex(mantissas, r"\.$", ".0"), exponents, sign)


_WITH_EXPONENTS: Mapping[str, Texts] = {
    r"^-?[1-9][0-9]*(\.[0-9]+)?$": _large,
    r"^-?0\.[0-9]+$": _small,
    r"^-?[0-9](\.[0-9]+)?e-[0-9]+$": _tiny,
}
"""By pattern, functions that bring Arrow's texts into the form with Java's exponent."""


def _decoded(text: bytes) -> str:
    """Return invalid UTF-8 as Java decodes it: a surrogate becomes one sign, not three."""
    return _SURROGATE.sub("\ufffd".encode(), text).decode("utf-8", "replace")


def _dates(column: pa.Array) -> pa.Array:
    days = column.cast(pa.int32())
    plain = pc.and_(pc.greater_equal(days, _FIRST_DAY), pc.less_equal(days, _LAST_DAY))

    def write(mask: pa.Array) -> pa.Array:
        return pa.array([_date(day) for day in days.filter(mask).to_pylist()], pa.string())

    return with_others(pc.if_else(plain, column, None).cast(pa.string()), pc.invert(plain), write)


def _times(column: pa.Array, zone: str) -> pa.Array:
    micros = column.cast(pa.int64())
    plain = pc.and_(pc.greater_equal(micros, _FIRST_DAY * _DAY), pc.less(micros, (_LAST_DAY + 1) * _DAY))
    texts = pc.if_else(plain, micros, None).cast(pa.timestamp("us")).cast(pa.string())

    def write(mask: pa.Array) -> pa.Array:
        return pa.array([_time(moment) for moment in micros.filter(mask).to_pylist()], pa.string())

    written = with_others(texts, pc.invert(plain), write)
    return pc.binary_join_element_wise(written, zone, "") if zone else written


def _date(day: int) -> str:
    text = str(np.datetime64(day, "D"))
    year, rest = int(text[:-6]), text[-6:]
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}{rest}"


def _time(micros: int) -> str:
    day, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    return f"{_date(day)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"
