"""JSON strings as Jackson writes them in Flink and Spark, with a minimum of escapes.

>>> print(json_string('a"b\\n\\x01é'))
"a\\"b\\n\\u0001é"
"""

from __future__ import annotations

import re

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_string(text: str) -> str:
    """Return ``text`` as a JSON string, in quotes."""
    if _ESCAPED.search(text) is None:
        return f'"{text}"'
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'
