"""A reader of JSON documents that accepts the same texts, and yields the same values, as Jackson does for Flink.

Numbers are integers or decimals of any size, and keep the digits of the text. If an object has a key twice, the last
value counts. Text after the document is ignored.

>>> json_document('{"a": 1.50} x'), json_document("[01]") is NO_DOCUMENT
({'a': Decimal('1.50')}, True)
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from typing import NoReturn, TypeVar

_A = TypeVar("_A")
_B = TypeVar("_B")

NO_DOCUMENT = object()
"""The result for a text that is no document."""
REMEMBERED, _LONG_ONES = 1024, 8
"""The numbers of cached short and long documents; several functions often read the same document."""
_LONG = 4_000
MOST_BRACKETS = _DEEPEST = 1000
"""The levels of nesting that Jackson reads. A text with no more opening brackets is not nested too deeply."""
_MOST_DIGITS = 1000
"""The digits of an integer that Jackson reads; of any other number, including the exponent, it reads one digit more."""
_SHORT = min(_DEEPEST, _MOST_DIGITS)
"""The characters of a text that cannot be nested too deeply, and cannot have a number with too many digits."""
_RECURSION_LIMIT = 10_000
_MOST_SCALE = (1 << 31) - 1
"""The scale of Java's decimals has 32 bits."""
_BLANKS = re.compile(r"[ \t\n\r]*")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class _NoDocument(ValueError):
    """A text that is no document."""


def json_document(text: str) -> object:
    """Return the document in ``text``, or NO_DOCUMENT; the document is cached, so callers must not change it."""
    return _short_document(text) if len(text) < _LONG else _long_document(text)


def _document(text: str) -> object:
    if len(text) <= _SHORT:
        try:
            value, end = _SHORT_SCAN(text, 0)
            if end == len(text) or isinstance(value, dict | list | str):
                return value
        except StopIteration as error:
            if error.value:  # the error is not at the first character, where blanks may be
                return NO_DOCUMENT
        except RecursionError:
            pass
        except (json.JSONDecodeError, _NoDocument):
            return NO_DOCUMENT
    elif is_too_deep(text):
        return NO_DOCUMENT
    try:
        return deeply(_parsed, text)
    except _NoDocument:
        return NO_DOCUMENT


_short_document = lru_cache(maxsize=REMEMBERED)(_document)
_long_document = lru_cache(maxsize=_LONG_ONES)(_document)


def deeply(function: Callable[[_A], _B], value: _A) -> _B:
    """Call ``function`` with ``value``; on a RecursionError, call it again with a higher limit."""
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


def is_too_deep(text: str, opening: str = "[{") -> bool:
    """Return True if ``text`` is nested too deeply for Jackson; with ``[`` as ``opening``, for Jackson's writer."""
    return brackets(text) > MOST_BRACKETS and _depth(text, opening) > _DEEPEST


def brackets(text: str) -> int:
    """Return the number of opening brackets."""
    return text.count("[") + text.count("{")


def _depth(text: str, opening: str) -> int:
    """Return the maximum depth at any bracket in ``opening``, up to the end of the first document."""
    depth = most = 0
    for mark in _BRACKETS.findall(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0)
        if mark in opening:
            most = max(most, depth)
        if depth <= 0 and most:
            break
    return most


def _parsed(text: str) -> object:
    begin = _BLANKS.match(text).end()  # type: ignore[union-attr]
    value: object
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except json.JSONDecodeError:
        raise _NoDocument from None
    following = text[end : end + 1]
    if following and not isinstance(value, dict | list | str):
        # A blank must follow a number, and the character after a word must not continue the word.
        is_word = value is None or isinstance(value, bool)
        if _is_part_of_word(following) if is_word else following not in " \t\n\r":
            raise _NoDocument
    return value


def _is_part_of_word(character: str) -> bool:
    # Jackson checks no character below the digits.
    return character >= "0" and (
        f"a{character}".isidentifier() or unicodedata.category(character) in ("Sc", "Pc", "Cf")
    )


def _whole(text: str) -> int:
    if len(text.removeprefix("-")) > _MOST_DIGITS:
        raise _NoDocument
    return int(text)


def _real(text: str) -> Decimal:
    if len(text) > _MOST_DIGITS or "e" in text or "E" in text:
        _, _, exponent = text.lower().partition("e")
        if sum(map(str.isdigit, text)) > _MOST_DIGITS + 1 or abs(int(exponent or 0)) > _MOST_SCALE:
            raise _NoDocument
        if abs(int(Decimal(text).as_tuple().exponent)) > _MOST_SCALE:
            raise _NoDocument
    return unsigned_zero(Decimal(text))


def unsigned_zero(number: Decimal) -> Decimal:
    """Return ``number``, without a sign if it is zero: Java's decimals have no negative zero."""
    return number if number else number.copy_abs()


def _refused(_constant: str) -> NoReturn:
    raise _NoDocument


_DECODER = json.JSONDecoder(parse_float=_real, parse_int=_whole, parse_constant=_refused)


def _short_real(text: str) -> Decimal:
    return _real(text) if "e" in text or "E" in text else unsigned_zero(Decimal(text))


_SHORT_SCAN = json.JSONDecoder(parse_float=_short_real, parse_constant=_refused).scan_once  # type: ignore[attr-defined]
