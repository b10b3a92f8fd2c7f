"""Texts as strings of JSON, as Jackson writes them, which both Flink and Spark do: nothing but what must be is escaped.

>>> print(json_string('a"b\\n\\x01é'))
"a\\"b\\n\\u0001é"
"""

from __future__ import annotations

import re

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_string(text: str) -> str:
    """``text`` in quotes."""
    if _ESCAPED.search(text) is None:
        return f'"{text}"'
    return '"' + _ESCAPED.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'
