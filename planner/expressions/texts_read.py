"""Comparisons of text with a number, date or time: Flink converts the text, except for ``=`` and ``<>``.

Flink does so for ``<``, ``<=``, ``>``, ``>=`` and ``BETWEEN``, and in the list of ``IN``. A text that cannot be
converted makes the query fail, in Flink as here. The planner refuses such a literal.

>>> from hintplan.planner.expressions.typed import INT, literal
>>> read_texts(Source(text=""), "IN", (literal(1, INT), literal(" 2 ", STRING)))[1].text
'2'
"""

from __future__ import annotations

import re

from hintplan.planner.expressions.casts import castable, flink_cast
from hintplan.planner.expressions.coercion import cast, decimal_type
from hintplan.planner.expressions.literals import number_literal, temporal_literal
from hintplan.planner.expressions.typed import STRING, Expr, Literal, literal
from hintplan.planner.syntax.source import Source
from hintplan.plans.declarations.types import DataType

READING = ("<", "<=", ">", ">=", "BETWEEN", "IN")
"""The operators that convert text."""
_TEMPORAL = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_WIDEST = DataType(root="DECIMAL", precision=38, scale=18)
"""The type of converted text next to a DECIMAL, and also next to an integer, since Flink cuts off a fraction."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


def read_texts(source: Source, what: str, values: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Convert text in ``values`` to the type of the other values, if the operator ``what`` converts text."""
    if what not in READING or (what == "IN" and values[0].type.is_text):
        return values
    kinds = [v.type.as_nullable() for v in values if v.type.is_numeric or v.type.root in _TEMPORAL]
    if not kinds or not any(v.type.is_text for v in values):
        return values
    target = kinds[0]
    if any(kind != target for kind in kinds):
        return values
    if what == "IN" and target.root == "DECIMAL" and not all(isinstance(v, Literal) for v in values[1:]):
        return values  # here Flink returns FALSE for text that is not a number
    return tuple(_read(source, value, target) if value.type.is_text else value for value in values)


def _read(source: Source, value: Expr, target: DataType) -> Expr:
    if not isinstance(value, Literal) or value.text is None:
        if target.is_integer or target.root == "DECIMAL":
            number = cast(value, _WIDEST, value.offset)
            return cast(number, target, value.offset) if target.is_integer else number
        return flink_cast(value, target, value.offset) if castable(value, target) else value
    if target.root in _TEMPORAL:
        return temporal_literal(source, target.root, value.text, value.offset)
    text = value.text.strip()
    negative = text.startswith("-")
    if not _NUMBER.fullmatch(text.removeprefix("-")):
        raise source.error(f"'{value.text}' is no {target}", value.offset, "write a number, without quotes")
    if not target.is_integer and target.root != "DECIMAL":
        return flink_cast(literal(text, STRING, value.offset), target, value.offset)
    digits = text.removeprefix("-")
    if target.is_integer:
        whole = int(digits.partition(".")[0]) * (-1 if negative else 1)  # Flink cuts off a fraction
        if not -(1 << (_BITS[target.root] - 1)) <= whole < 1 << (_BITS[target.root] - 1):
            message = f"'{value.text}' does not fit into {target}"
            raise source.error(message, value.offset, "write a number, without quotes")
        return literal(whole, target, value.offset)
    number = number_literal(source, digits, value.offset)
    if number.type.root != "DECIMAL":
        number = literal(number.text, decimal_type(number.type), value.offset)
    return literal(f"-{number.text}" if negative else number.text, number.type, value.offset)
