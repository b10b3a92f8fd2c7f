"""The length of an INTERVAL literal of days, hours, minutes, seconds or milliseconds."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

_UNITS = {"MILLISECOND": 1, "SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_NUMBER = re.compile(r"([-+]?)\s*(\d+(?:\.\d+)?)")


def interval_milliseconds(node: object) -> Decimal | None:
    """Return the milliseconds of an INTERVAL with one unit of fixed length; None for any other expression.

    >>> from sqlglot import parse_one
    >>> interval_milliseconds(parse_one("INTERVAL '1.5' SECOND"))
    Decimal('1500.0')
    >>> interval_milliseconds(parse_one("INTERVAL '1' MONTH"))
    """
    sign = 1
    while isinstance(node, exp.Neg | exp.Paren):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    unit = node.args.get("unit") if isinstance(node, exp.Interval) else None
    value = node.this.name if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) else ""
    word = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    match = _NUMBER.fullmatch(value.strip())
    if match is None or word not in _UNITS:
        return None
    return sign * (-1 if match[1] == "-" else 1) * Decimal(match[2]) * _UNITS[word]
