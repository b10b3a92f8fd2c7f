"""Steps of programs as the connector of the recorder reads them."""

from __future__ import annotations

import re

DAY = "2024-01-01"
TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d+)?)?")


def value(word: str) -> str:
    """A value of a step as the connector reads it: a time of day is a time of 2024-01-01.

    >>> value("00:00:05"), value("NULL"), value("a"), value("2024-01-01_00:00:05")
    ('2024-01-01T00:00:05', '\\\\N', 'a', '2024-01-01 00:00:05')
    """
    if word == "NULL":
        return "\\N"
    if TIME.fullmatch(word):
        return f"{DAY}T{word if word.count(':') == 2 else word + ':00'}"
    return word.replace("_", " ") if word[:2] == "20" else word


def timeline(steps: str) -> list[list[str]]:
    """The steps of a program as the connector reads them: ``s@1 +I a`` is a row of the second subtask of ``s``.

    >>> timeline("s +I a 1 -- a row")
    [['row', 's', '0', '+I', 'a', '1']]
    """
    result = []
    for line in steps.strip().splitlines():
        words = line.split("--")[0].split()
        if words and words[0] in ("sleep", "align", "end"):
            result.append(words)
        elif words:
            table, _, subtask = words[0].partition("@")
            result.append(["row", table, subtask or "0", words[1], *map(value, words[2:])])
    return result
