"""JSON_QUOTE and JSON_UNQUOTE as in Flink, whose texts consist of 16-bit units."""

from __future__ import annotations

import re

from hintplan.runtime.expressions.json_reader import NO_DOCUMENT, json_document
from hintplan.runtime.expressions.json_writer import without_surrogates

_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_QUOTED_ONES = re.compile(r'["\\/\b\f\n\r\t]|[^\x00-\x7f]')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_UNQUOTED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTED = {meant: f"\\{letter}" for letter, meant in _UNQUOTED.items()}


def json_quote(text: str | None) -> str | None:
    r"""Return ``text`` as a JSON string in ASCII, as Flink's JSON_QUOTE writes it: slashes escaped, most controls not.

    >>> print(json_quote('a/"é'))
    "a\/\"\u00e9"
    """
    if text is None:
        return None
    return '"' + _QUOTED_ONES.sub(lambda match: _quoted_character(match[0]), text) + '"'


def _quoted_character(character: str) -> str:
    if character in _QUOTED:
        return _QUOTED[character]
    # Flink writes the whole character, and then its second surrogate again.
    return "".join(f"\\u{ord(unit):04x}" for unit in dict.fromkeys((character, _units(character)[-1])))


def json_unquote(text: str | None) -> str | None:
    """Return a quoted document without quotes, with escapes resolved; any other text unchanged, as in Flink.

    Return NULL where Flink fails: for a document that is followed by text with a backslash that escapes nothing.
    """
    if text is None or len(text) < 2 or text[0] != '"' or text[-1] != '"' or json_document(text) is NO_DOCUMENT:
        return text
    inside = text[1:-1]
    if "\\" in inside:
        try:
            inside = _ESCAPE.sub(_unescaped, _units(inside))
        except _NoEscape:
            return None
        if _SURROGATES.search(inside):
            inside = inside.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return without_surrogates(inside)


class _NoEscape(ValueError):
    """A backslash that escapes nothing."""


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if not escape:  # the last quote is escaped, in text after the document
        return "\\"
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape not in _UNQUOTED:
        raise _NoEscape
    return _UNQUOTED[escape]


def _units(text: str) -> str:
    """Return ``text`` with each character beyond 16 bits as two surrogates, as in Java."""
    return _BEYOND.sub(lambda match: _halves(ord(match[0]) - 0x10000), text)


def _halves(beyond: int) -> str:
    return chr(0xD800 + (beyond >> 10)) + chr(0xDC00 + (beyond & 0x3FF))
