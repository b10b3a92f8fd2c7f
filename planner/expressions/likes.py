"""Patterns of LIKE and SIMILAR TO in Spark's form.

In LIKE, Flink has no escape character without ESCAPE, whereas Spark always has the backslash. SIMILAR TO becomes a Java
regular expression in both.

>>> like_pattern("50!%_off", "!")
'50\\\\%_off'
"""

from __future__ import annotations

import re

_SIMILAR = re.compile(r"(?:[\w %|()*+?,:;@#/=<>!\"'~-]|\{\d+(?:,\d*)?\}|\[\^?(?:[A-Za-z0-9 ](?:-[A-Za-z0-9])?|,)+\])*")


def like_pattern(pattern: str, escape: str | None) -> str:
    """Return the pattern with backslashes as escapes; raise ValueError if ``escape`` precedes an ordinary character."""
    if escape is not None and len(escape) != 1:
        raise ValueError("ESCAPE needs exactly one character")
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("%", "_", escape):
                raise ValueError(f"'{escape}' escapes nothing in this pattern")
            parts.append("\\" + following if following in ("%", "_", "\\") else following)
        elif character == "\\":
            parts.append("\\\\")
        else:
            parts.append(character)
    return "".join(parts)


def similar_pattern(pattern: str) -> str:
    """Return the regular expression for a pattern of SIMILAR TO; raise ValueError for signs that only Flink interprets.

    >>> similar_pattern("(a|b)_%")
    '\\\\A(?:(a|b).(?s:.*))\\\\z'
    """
    if not _SIMILAR.fullmatch(pattern):
        raise ValueError("SIMILAR TO takes letters, digits, blanks, % _ | ( ) * + ? {n} and sets such as [a-z]")
    body = pattern.replace("_", ".").replace("%", "(?s:.*)")
    try:
        re.compile(body)
    except re.error:
        raise ValueError("this is no pattern of SIMILAR TO") from None
    return f"\\A(?:{body})\\z"
