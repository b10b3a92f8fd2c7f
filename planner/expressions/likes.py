"""LIKE patterns: Flink has no escape character unless one is named, Spark always has the backslash.

>>> like_pattern("50!%_off", "!")
'50\\\\%_off'
"""

from __future__ import annotations


def like_pattern(pattern: str, escape: str | None) -> str:
    """The pattern with backslashes as escapes; ValueError if ``escape`` stands before an ordinary character."""
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
