"""Converts columns of values to texts, as :mod:`hintplan.runtime.connectors.messages.texts_out` converts each value.

A value whose text differs in Arrow, such as DECIMAL 1E+2 or a DOUBLE below 0.001, is written separately.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hintplan.plans.declarations.types import DataType

One = Callable[[Any], str]
"""Returns the text of a single value."""

WriteTexts = Callable[[pa.Array], pa.Array]
"""Returns the texts of a column."""

_FIRST_TIME, _LAST_TIME = datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
"""Between these, years have four digits in Arrow, too."""


def texts_writer(data_type: DataType, one: One, *, iso: bool = False, quote: str = "") -> WriteTexts:
    """Return a function that converts columns of ``data_type``, which is no text, as ``one`` does; NULL stays NULL.

    ``one`` writes dates and times within ``quote``. Times are in ISO 8601 with ``iso``, otherwise in SQL's form.
    """
    if data_type.is_integer or data_type.root == "BOOLEAN":
        return lambda column: column.cast(pa.string())
    match data_type.root:
        case "DATE":
            return lambda column: pc.binary_join_element_wise(quote, column.cast(pa.string()), quote, "")
        case "DOUBLE":
            return partial(_doubles, one=one)
        case "DECIMAL":
            return partial(_decimals, one=one)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return partial(_times, one=one, iso=iso, quote=quote)
    return lambda column: pa.array([None if value is None else one(value) for value in column.to_pylist()], pa.string())


def with_others(texts: pa.Array, column: pa.Array, plain: pa.Array, one: One) -> pa.Array:
    """Return ``texts`` where they are ``plain``, and elsewhere the text that ``one`` returns; NULL stays NULL."""
    is_other = pc.and_(pc.invert(plain), column.is_valid()).fill_null(False)
    if not pc.any(is_other).as_py():
        return pc.if_else(column.is_valid(), texts, None)
    written = pa.array(list(map(one, column.filter(is_other).to_pylist())), pa.string())
    return pc.replace_with_mask(pc.if_else(column.is_valid(), texts, None), is_other, written)


def _doubles(column: pa.Array, *, one: One) -> pa.Array:
    """Return the texts of doubles as in Java: with a point, and without exponent from 0.001 to 10 million."""
    size = pc.abs(column)
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(column, 0.0))
    texts = column.cast(pa.string())
    texts = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    return with_others(texts, column, plain, one)


def _decimals(column: pa.Array, *, one: One) -> pa.Array:
    """Return the texts of decimals without trailing zeros; for 100, ``one`` writes 1E+2."""
    texts = column.cast(pa.string())
    short = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+$", r"\1")
    short = pc.replace_substring_regex(short, r"\.$", "")
    plain = pc.match_substring_regex(short, r"^-?([0-9]*[1-9]|[0-9]+\.0{0,5}[1-9][0-9]*|0)$")
    return with_others(short, column, plain, one)


def _times(column: pa.Array, *, one: One, iso: bool, quote: str) -> pa.Array:
    """Return the texts of times, with microseconds without trailing zeros; those with a zone in UTC, with ``Z``."""
    times = column.cast(pa.timestamp("us", column.type.tz)).view(pa.timestamp("us"))
    in_range = pc.and_(pc.greater_equal(times, _FIRST_TIME), pc.less_equal(times, _LAST_TIME))
    texts = pc.ascii_rtrim(pc.ascii_rtrim(pc.if_else(in_range, times, None).cast(pa.string()), "0"), ".")
    if iso:
        texts = pc.binary_replace_slice(texts, 10, 11, "T")
    written = pc.binary_join_element_wise(quote, texts, quote if column.type.tz is None else f"Z{quote}", "")
    return with_others(written, column, in_range, one)
