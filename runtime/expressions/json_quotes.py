"""JSON_QUOTE and JSON_UNQUOTE as in Flink, whose texts are of units of 16 bits."""

from __future__ import annotations

import re

from hintplan.runtime.expressions.json_reader import NO_DOCUMENT, document
from hintplan.runtime.expressions.json_writer import plain

_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_QUOTED_ONES = re.compile(r'["\\/\b\f\n\r\t]|[^\x00-\x7f]')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_UNQUOTED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTED = {plain: f"\\{letter}" for letter, plain in _UNQUOTED.items()}


def json_quote(text: str | None) -> str | None:
    r"""``text`` as a string of JSON in ASCII, as Flink's JSON_QUOTE writes it: slashes escaped, most controls not.

    >>> print(json_quote('a/"é'))
    "a\/\"\u00e9"
    """
    if text is None:
        return None
    return '"' + _QUOTED_ONES.sub(lambda found: _quoted_character(found[0]), text) + '"'


def _quoted_character(character: str) -> str:
    if character in _QUOTED:
        return _QUOTED[character]
    # Flink writes the whole character, and then its second half again.
    return "".join(f"\\u{ord(each):04x}" for each in dict.fromkeys((character, _units(character)[-1])))


def json_unquote(text: str | None) -> str | None:
    """A document in quotes without them, escapes read; any other text stays as it is, as in Flink.

    NULL where Flink fails: a document that something follows with a backslash that escapes nothing.
    """
    if text is None or len(text) < 2 or text[0] != '"' or text[-1] != '"' or document(text) is NO_DOCUMENT:
        return text
    inside = text[1:-1]
    if "\\" in inside:
        try:
            inside = _ESCAPE.sub(_unescaped, _units(inside))
        except _NoEscape:
            return None
        if _SURROGATES.search(inside):
            inside = inside.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return plain(inside)


class _NoEscape(ValueError):
    """A backslash that escapes nothing."""


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if not escape:  # the last quote is escaped, of a text that follows a document
        return "\\"
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape not in _UNQUOTED:
        raise _NoEscape
    return _UNQUOTED[escape]


def _units(text: str) -> str:
    """``text`` with characters beyond 16 bits in two halves, as Java has them."""
    return _BEYOND.sub(lambda found: _halves(ord(found[0]) - 0x10000), text)


def _halves(beyond: int) -> str:
    return chr(0xD800 + (beyond >> 10)) + chr(0xDC00 + (beyond & 0x3FF))
