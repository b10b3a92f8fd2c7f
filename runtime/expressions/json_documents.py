"""JSON_VALUE, JSON_QUERY, JSON_EXISTS and IS JSON: the value at a path in a document.

Flink reads documents with Jackson and follows paths with JsonPath. These functions are pure, know no Spark, and never
fail for any text. Recorded answers of Flink test them.

>>> json_value('{"a": {"b": [1e3, "x"]}}', "$.a.b[0]"), json_query('{"b": 1.50, "a": null}', "lax $")
('1E+3', '{"a":null,"b":1.50}')
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from hintplan.plans.declarations.json_paths import parse_json_path
from hintplan.runtime.expressions.json_reader import NO_DOCUMENT, is_too_deep, json_document
from hintplan.runtime.expressions.json_writer import document_text, quickly_written, scalar_text

_T = TypeVar("_T")
_FOUND, _EMPTY, _ERROR = "found", "empty", "error"


def is_document(text: str | None, kind: str) -> bool:
    """Return True if ``text`` is a document of ``kind``: ``value`` (any), ``object``, ``array`` or ``scalar``."""
    value = NO_DOCUMENT if text is None else json_document(text)
    if value is NO_DOCUMENT:
        return False
    return {
        "value": True,
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "scalar": not isinstance(value, dict | list),
    }[kind]


def json_exists(text: str | None, path: str, on_error: bool | None = False) -> bool | None:
    """Return True if ``path`` leads to a value that is not null; None for NULL."""
    if text is None:
        return None
    outcome, _ = _followed(text, path)
    return on_error if outcome == _ERROR else outcome == _FOUND


def json_value(text: str | None, path: str, on_empty: str | None = None, on_error: str | None = None) -> str | None:
    """Return the scalar at ``path`` as text.

    The functions below return other types, and treat a value of another type as an error.
    """
    return _scalar(text, path, scalar_text, on_empty, on_error)


def json_integer(text: str | None, path: str, on_empty: int | None = None, on_error: int | None = None) -> int | None:
    return _scalar(text, path, _integer_of, on_empty, on_error)


def json_double(
    text: str | None, path: str, on_empty: float | None = None, on_error: float | None = None
) -> float | None:
    return _scalar(text, path, _double_of, on_empty, on_error)


def json_boolean(
    text: str | None, path: str, on_empty: bool | None = None, on_error: bool | None = None
) -> bool | None:
    return _scalar(text, path, _boolean_of, on_empty, on_error)


def json_query(
    text: str | None,
    path: str,
    wrapper: str = "without",
    on_empty: str | None = None,
    on_error: str | None = None,
) -> str | None:
    """Return the object or array at ``path`` as a document in the ``wrapper``, with members in order of their names."""
    if text is None:
        return None
    outcome, value = _followed(text, path)
    if outcome == _FOUND:
        if wrapper == "unconditional" or (wrapper == "conditional" and not isinstance(value, list)):
            value = [value]
        if isinstance(value, dict | list):
            result = document_text(value) if "\\u" in text else quickly_written(value)
            return on_error if is_too_deep(result, "[") else result
        outcome = _ERROR if parse_json_path(path).strict else _EMPTY
    return on_empty if outcome == _EMPTY else on_error


def _scalar(
    text: str | None, path: str, convert: Callable[[object], _T | None], on_empty: _T | None, on_error: _T | None
) -> _T | None:
    if text is None:
        return None
    outcome, value = _followed(text, path)
    if outcome == _FOUND and isinstance(value, dict | list):
        outcome = _ERROR if parse_json_path(path).strict else _EMPTY
    if outcome == _FOUND:
        converted = convert(value)
        return on_error if converted is None else converted
    return on_empty if outcome == _EMPTY else on_error


def _integer_of(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << 31) <= value < 1 << 31 else None


def _double_of(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return float(Decimal(value))


def _boolean_of(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


class Scalar(NamedTuple):
    """A function that returns a scalar, and its conversion of the value; None is an error."""

    function: Callable[..., Any]
    convert: Callable[[object], Any]


SCALARS = {
    "hp_json_boolean": Scalar(json_boolean, _boolean_of),
    "hp_json_double": Scalar(json_double, _double_of),
    "hp_json_integer": Scalar(json_integer, _integer_of),
    "hp_json_value": Scalar(json_value, scalar_text),
}


def _followed(text: str, path: str) -> tuple[str, object]:
    """Follow ``path``; return found with the value, empty, or an error."""
    parsed = parse_json_path(path)
    nowhere = _ERROR if parsed.strict else _EMPTY
    value = json_document(text)
    if value is NO_DOCUMENT:
        return nowhere, None
    if value is None:  # JsonPath does not accept null as a document
        return _ERROR, None
    for step in parsed.steps:
        value = _child(value, step)
        if value is NO_DOCUMENT:
            return nowhere, None
    return (nowhere, None) if value is None else (_FOUND, value)


def _child(value: object, step: str | int) -> object:
    """Return the member or element of ``value``, or NO_DOCUMENT."""
    if isinstance(value, dict):
        return value.get(step, NO_DOCUMENT)
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return value[step]
    return NO_DOCUMENT
