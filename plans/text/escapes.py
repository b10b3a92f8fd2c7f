"""Escapes for characters that do not print, and for JSON strings as Jackson writes them in Flink and Spark.

The names in a plan and the values in a table may contain any character. Printed literally, an escape sequence could
move the cursor or hide a line. This module needs only Python, because sinks use it where only PySpark is installed.

>>> clean("join\\x1b[2K\\u202e")
'join\\\\x1b[2K\\\\u202e'
>>> print(json_string('a"b\\n\\x01é'))
"a\\"b\\n\\u0001é"
"""

from __future__ import annotations

import re
import unicodedata

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def clean(text: str) -> str:
    """Escape every unprintable character of ``text`` except line ends."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    # Other blanks, such as the no-break space, are harmless, although Python does not count them as printable.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def json_string(text: str) -> str:
    """Return ``text`` as a JSON string, in quotes."""
    if _ESCAPED.search(text) is None:
        return f'"{text}"'
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'
