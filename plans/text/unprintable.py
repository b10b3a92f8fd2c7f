"""Characters that do not print, as escapes that show them.

A plan can carry any character in a name, and a table in its values; printed as it stands, an escape sequence could move
the cursor or hide a line. Needs nothing but Python: sinks use it where only PySpark is.

>>> clean("join\\x1b[2K\\u202e")
'join\\\\x1b[2K\\\\u202e'
"""

from __future__ import annotations

import unicodedata


def clean(text: str) -> str:
    """``text`` with every character that is not printable, other than line ends, as an escape that shows it."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    # Other blanks, such as the no-break space, are not "printable" to Python, and harmless.
    return character.isprintable() or unicodedata.category(character) == "Zs"
