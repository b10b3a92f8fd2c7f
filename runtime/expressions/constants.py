"""Literals and type names in expressions of a plan, converted to Arrow scalars and types; None for anything else.

>>> number_constant("0.57"), number_constant("-2147483648")
(<pyarrow.Decimal128Scalar: Decimal('0.57')>, <pyarrow.Int32Scalar: -2147483648>)
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from hintplan.runtime.kernels.coercion import MOST_DIGITS

_TYPES = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}
_EXACT = re.compile(r"(-?)(\d+)(?:\.(\d*))?")
_FLOATING = re.compile(r"-?\d+(\.\d*)?[eE][+-]?\d{1,9}")
_DOUBLE = re.compile(r"-?\d{1,400}(\.\d{0,400})?([eE][+-]?\d{1,9})?|-?Infinity|NaN")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_SPAN = re.compile(r"\d{1,8}(\.\d{1,3})?")
_SECONDS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}


def named_type(kind: exp.DataType) -> pa.DataType | None:
    """Return the target type of a CAST."""
    if kind.this == exp.DType.DECIMAL:
        sizes = [int(size.name) for size in kind.expressions if size.name.isdigit() and len(size.name) <= 2]
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        return pa.decimal128(precision, scale) if 0 < precision <= MOST_DIGITS and scale <= precision else None
    return None if kind.expressions else _TYPES.get(kind.this)


def number_constant(text: str) -> pa.Scalar | None:
    """Return a number as Spark reads it: the first of INT, BIGINT and DECIMAL that holds it; with exponent DOUBLE."""
    match = _EXACT.fullmatch(text)
    if match is None:
        return pa.scalar(float(text), pa.float64()) if _FLOATING.fullmatch(text) else None
    whole, fraction = match[2].lstrip("0"), match[3]
    if fraction is None and len(whole) < 20:
        number = int(match[1] + (whole or "0"))
        for kind, bits in ((pa.int32(), 31), (pa.int64(), 63)):
            if -(1 << bits) <= number < 1 << bits:
                return pa.scalar(number, kind)
    scale = len(fraction or "")
    precision = max(len(whole) + scale, 1)
    if precision > MOST_DIGITS:
        return None
    return pa.scalar(Decimal(text), pa.decimal128(precision, scale))


def text_constant(kind: exp.DataType, text: str) -> pa.Scalar | None:
    """Return the value of ``DATE 'text'``, ``TIMESTAMP_NTZ 'text'`` or ``CAST('text' AS DOUBLE)``.

    Return None unless the whole text is such a value.
    """
    try:
        if kind.this == exp.DType.DATE and len(text) == 10:
            return pa.scalar(date.fromisoformat(text), pa.date32())
        if kind.this == exp.DType.TIMESTAMPNTZ and _TIME.fullmatch(text):
            return pa.scalar(datetime.fromisoformat(text), pa.timestamp("us"))
    except ValueError:
        return None
    if kind.this == exp.DType.DOUBLE and _DOUBLE.fullmatch(text):
        return pa.scalar(float(text), pa.float64())
    return None


def span_of(node: exp.Expr) -> timedelta | None:
    """Return an interval of days or less, as planners write it: ``INTERVAL '4' HOUR``; None for anything else."""
    if not (isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and isinstance(node.unit, exp.Var)):
        return None
    name, match = node.unit.name.upper(), _SPAN.fullmatch(node.this.name)
    if match is None or name not in _SECONDS or (match[1] and name != "SECOND"):
        return None
    return timedelta(microseconds=int(Decimal(match[0]) * 1_000_000) * _SECONDS[name])
