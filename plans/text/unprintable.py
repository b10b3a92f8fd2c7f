"""Escapes for characters that do not print.

The names in a plan and the values in a table may contain any character. Printed literally, an escape sequence could
move the cursor or hide a line. This module needs only Python, because sinks use it where only PySpark is installed.

>>> clean("join\\x1b[2K\\u202e")
'join\\\\x1b[2K\\\\u202e'
"""

from __future__ import annotations

import unicodedata


def clean(text: str) -> str:
    """Escape every unprintable character of ``text`` except line ends."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    # Other blanks, such as the no-break space, are harmless, although Python does not count them as printable.
    return character.isprintable() or unicodedata.category(character) == "Zs"
