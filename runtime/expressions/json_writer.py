"""Documents in JSON written as Flink writes them: no blanks, and the members of an object in order of their names.

>>> document_text({"b": Decimal("1.50"), "a": None}), json_number("1.0E10")
('{"a":null,"b":1.50}', '1.0E+10')
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation

from hintplan.plans.text.escapes import json_string
from hintplan.runtime.expressions.json_reader import deeply, unsigned_zero

_MARK = "\ud8ff"
"""A lone surrogate that marks decimal numbers while Python's encoder writes them as texts."""
_MARKED = re.compile(f'"{_MARK}([^"]*)"')
_HIGH = re.compile("[\ue000-\U0010ffff]")
"""Characters that Java and Python may sort in a different order."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def _marked(number: Decimal) -> str:
    return f"{_MARK}{number}"


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), sort_keys=True, default=_marked
)


def document_text(value: object) -> str:
    """Return the document ``value`` as text."""
    return without_surrogates(deeply(_written, value))


def quickly_written(value: object) -> str:
    """Return the same text faster, for a ``value`` without lone surrogates.

    A value read from a text without four-digit escapes has none.
    """
    text = deeply(_ENCODER.encode, value)
    if _MARK in text:
        text = _MARKED.sub(r"\1", text)
    return text if sorts_as_in_java(text) else document_text(value)


def sorts_as_in_java(document: str) -> bool:
    """Return True if Python sorts the names in ``document`` as Java does."""
    return document.isascii() or _HIGH.search(document) is None


def _written(value: object) -> str:
    if isinstance(value, dict):
        names = sorted(value) if "".join(value).isascii() else sorted(value, key=_in_java)
        return "{" + ",".join([f"{json_string(name)}:{_written(value[name])}" for name in names]) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return json_string(value)
    return "null" if value is None else scalar_text(value)


def _in_java(name: str) -> bytes:
    """Return a sort key with which texts sort as in Java, by their UTF-16 units."""
    return name.encode("utf-16-be", "surrogatepass")


def scalar_text(value: object) -> str:
    """Return a scalar other than null as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return without_surrogates(value) if isinstance(value, str) else str(value)


def json_number(text: str | None) -> str | None:
    """Return the decimal number in ``text`` as Flink writes it into a document; NaN and infinities become JSON strings.

    >>> json_number("1.0E10"), json_number("1.0E-5"), json_number("-0.0"), json_number("NaN")
    ('1.0E+10', '0.000010', '0.0', '"NaN"')
    """
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return scalar_text(unsigned_zero(number)) if number.is_finite() else f'"{text}"'


def without_surrogates(text: str) -> str:
    """Return ``text`` with a question mark for each lone surrogate, which UTF-8 cannot encode."""
    return _SURROGATES.sub("?", text)
