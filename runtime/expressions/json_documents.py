"""Documents in JSON, read and written as Flink's functions of JSON do: a parser's small print, paths, and texts.

Flink reads with Jackson and follows paths with JsonPath. Numbers are whole or decimal, of any size, and keep the digits
that they were written with; of a key that is there twice the last value counts; what follows the document is not looked
at. Pure functions: no Spark, and nothing that fails for any text. Recorded answers of Flink are what this is held to.

>>> json_value('{"a": {"b": [1e3, "x"]}}', "$.a.b[0]"), json_query('{"b": 1.50, "a": null}', "lax $")
('1E+3', '{"a":null,"b":1.50}')
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, TypeVar

from plans.declarations.json_paths import parse_json_path
from plans.text.json_strings import json_string

__all__ = [
    "is_json",
    "json_boolean",
    "json_double",
    "json_exists",
    "json_integer",
    "json_number",
    "json_query",
    "json_quote",
    "json_unquote",
    "json_value",
]

_T = TypeVar("_T")
_DEEPEST = 1000
"""Levels of nesting that Jackson reads."""
_MOST_DIGITS = 1000
"""Digits of a whole number that Jackson reads; of any other, with those of its exponent, it reads one more."""
_RECURSION_LIMIT = 10_000
_MOST_SCALE = (1 << 31) - 1
"""Java's decimals have a scale of 32 bits."""
_BLANKS = re.compile(r"[ \t\n\r]*")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_HEX = re.compile("[0-9a-fA-F]{4}")
_UNQUOTED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTED = {plain: f"\\{letter}" for letter, plain in _UNQUOTED.items()}
_FOUND, _EMPTY, _ERROR = "found", "empty", "error"


class _NoDocument(ValueError):
    """A text that is no document."""


def is_json(text: str | None, kind: str) -> bool:
    """Whether ``text`` is a document of ``kind``: ``value``, that is any, ``object``, ``array`` or ``scalar``."""
    if text is None:
        return False
    try:
        found = _document(text)
    except _NoDocument:
        return False
    return {
        "value": True,
        "object": isinstance(found, dict),
        "array": isinstance(found, list),
        "scalar": not isinstance(found, dict | list),
    }[kind]


def json_exists(text: str | None, path: str, on_error: bool | None = False) -> bool | None:
    """Whether ``path`` leads to a value that is not null."""
    if text is None:
        return None
    outcome, _ = _followed(text, path)
    return on_error if outcome == _ERROR else outcome == _FOUND


def json_value(text: str | None, path: str, on_empty: str | None = None, on_error: str | None = None) -> str | None:
    """The scalar at ``path`` as text; the others below are the same for other types, and an error for what is none."""
    return _scalar(text, path, _text_of, on_empty, on_error)


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
    """The object or array at ``path`` as a document, its members in order of their names, in the ``wrapper``."""
    if text is None:
        return None
    outcome, value = _followed(text, path)
    if outcome == _FOUND:
        if wrapper == "unconditional" or (wrapper == "conditional" and not isinstance(value, list)):
            value = [value]
        if isinstance(value, dict | list):
            found = _plain(_deeply(_written, value))
            return on_error if _is_too_deep(found) else found
        outcome = _ERROR if parse_json_path(path).strict else _EMPTY
    return on_empty if outcome == _EMPTY else on_error


def json_number(text: str | None) -> str | None:
    """The decimal number that ``text`` says as Flink writes it into a document; NaN and infinities as texts.

    >>> json_number("1.0E10"), json_number("1.0E-5"), json_number("-0.0"), json_number("NaN")
    ('1.0E+10', '0.000010', '0.0', '"NaN"')
    """
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return _text_of(_unsigned_zero(number)) if number.is_finite() else f'"{text}"'


def json_quote(text: str | None) -> str | None:
    r"""``text`` as a string of JSON in ASCII, as Flink's JSON_QUOTE writes it: slashes escaped, most controls not.

    >>> print(json_quote('a/"é'))
    "a\/\"\u00e9"
    """
    if text is None:
        return None
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    if character in _QUOTED or character <= "\x7f":
        return _QUOTED.get(character, character)
    # Flink writes the whole character, and then its second half again.
    return "".join(f"\\u{ord(each):04x}" for each in dict.fromkeys((character, _units(character)[-1])))


def json_unquote(text: str | None) -> str | None:
    """A document in quotes without them, escapes read; any other text stays as it is, as in Flink.

    NULL where Flink fails: a document that something follows with a backslash that escapes nothing.
    """
    if text is None or len(text) < 2 or text[0] != '"' or text[-1] != '"' or not is_json(text, "value"):
        return text
    units, found, at = _units(text), "", 1
    while at < len(units) - 1:
        unit = units[at]
        at += 1
        if unit == "\\":
            unit = units[at]
            at += 1
            if unit == "u":
                digits = units[at : at + 4]
                if not _HEX.fullmatch(digits):
                    return None
                unit = chr(int(digits, 16))
                at += 4
            elif unit in _UNQUOTED:
                unit = _UNQUOTED[unit]
            else:
                return None
        found += unit
    return _plain(found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))


def _units(text: str) -> str:
    """``text`` with characters beyond 16 bits in two halves, as Java has them."""
    return _BEYOND.sub(lambda found: _halves(ord(found[0]) - 0x10000), text)


def _halves(beyond: int) -> str:
    return chr(0xD800 + (beyond >> 10)) + chr(0xDC00 + (beyond & 0x3FF))


def _scalar(
    text: str | None, path: str, convert: Callable[[Any], _T | None], on_empty: _T | None, on_error: _T | None
) -> _T | None:
    if text is None:
        return None
    outcome, value = _followed(text, path)
    if outcome == _FOUND and isinstance(value, dict | list):
        outcome = _ERROR if parse_json_path(path).strict else _EMPTY
    if outcome == _FOUND:
        found = convert(value)
        return on_error if found is None else found
    return on_empty if outcome == _EMPTY else on_error


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _plain(value) if isinstance(value, str) else str(value)


def _integer_of(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and -(1 << 31) <= value < 1 << 31 else None


def _double_of(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return float(Decimal(value))


def _boolean_of(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _followed(text: str, path: str) -> tuple[str, Any]:
    """What becomes of following ``path``: found with the value, empty, or an error."""
    parsed = parse_json_path(path)
    nowhere = _ERROR if parsed.strict else _EMPTY
    try:
        value = _document(text)
    except _NoDocument:
        return nowhere, None
    if value is None:  # JsonPath takes no null for a document
        return _ERROR, None
    for step in parsed.steps:
        if isinstance(value, dict):
            there = step in value
        else:
            there = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not there:
            return nowhere, None
        value = value[step]
    return (nowhere, None) if value is None else (_FOUND, value)


@lru_cache(maxsize=8)
def _document(text: str) -> Any:
    """The document in ``text``, which nobody may change; several functions are often asked of one."""
    if _is_too_deep(text):
        raise _NoDocument
    return _deeply(_parsed, text)


def _deeply(function: Callable[[Any], Any], value: Any) -> Any:
    """``function`` of ``value``, again with room for deeper recursion if there was too little."""
    try:
        return function(value)
    except RecursionError:
        with _room():
            return function(value)


@contextmanager
def _room() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _is_too_deep(text: str) -> bool:
    """Whether Jackson neither reads nor writes ``text``."""
    return text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST


def _depth(text: str) -> int:
    """The most brackets that are open at once, up to the end of the first document."""
    depth = most = 0
    for mark in _BRACKETS.findall(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0)
        most = max(most, depth)
        if depth <= 0 and most:
            break
    return most


def _parsed(text: str) -> Any:
    begin = _BLANKS.match(text).end()  # type: ignore[union-attr]
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except json.JSONDecodeError:
        raise _NoDocument from None
    following = text[end : end + 1]
    if following and not isinstance(value, dict | list | str):
        # What follows a number must be a blank, and what follows a word must not go on with it.
        is_word = value is None or isinstance(value, bool)
        if _is_part_of_word(following) if is_word else following not in " \t\n\r":
            raise _NoDocument
    return value


def _is_part_of_word(character: str) -> bool:
    # Jackson asks of no character before the digits.
    return character >= "0" and (
        f"a{character}".isidentifier() or unicodedata.category(character) in ("Sc", "Pc", "Cf")
    )


def _whole(text: str) -> int:
    if len(text.removeprefix("-")) > _MOST_DIGITS:
        raise _NoDocument
    return int(text)


def _real(text: str) -> Decimal:
    _, _, exponent = text.lower().partition("e")
    if sum(map(str.isdigit, text)) > _MOST_DIGITS + 1 or abs(int(exponent or 0)) > _MOST_SCALE:
        raise _NoDocument
    number = Decimal(text)
    if abs(int(number.as_tuple().exponent)) > _MOST_SCALE:
        raise _NoDocument
    return _unsigned_zero(number)


def _unsigned_zero(number: Decimal) -> Decimal:
    """``number``; Java's decimals have no negative zero."""
    return number if number else number.copy_abs()


def _constant(text: str) -> Any:
    raise _NoDocument


_DECODER = json.JSONDecoder(parse_float=_real, parse_int=_whole, parse_constant=_constant)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        # Java compares texts by their units of UTF-16.
        names = sorted(value, key=lambda name: str(name).encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{json_string(name)}:{_written(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return json_string(value)
    return "null" if value is None else _text_of(value)


def _plain(text: str) -> str:
    """``text`` with a question mark for each half of a character, which no text in UTF-8 can have."""
    return _SURROGATES.sub("?", text)
