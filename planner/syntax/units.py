"""Splits a text into statements: at each ``;``, and for a statement set at its ``END;``.

The split does not depend on the parser, so that a wrong statement does not hide the next one. This module only knows
the words that begin and end a statement set.

>>> unit = next_unit(Source(text="SET 'a' = ';'; SELECT"), 0)
>>> unit.end, unit.closed
(14, True)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hintplan.planner.syntax.lexer import statement_end
from hintplan.planner.syntax.source import Source

_SKIPPED = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*(?!\+).*?\*/|;)*", re.DOTALL)
_BLANK = r"(?:\s|--[^\n]*\n|/\*.*?\*/)+"
_OPENS = re.compile(
    rf"(?:EXECUTE|BEGIN|EXPLAIN\b[\w\s,]*?|COMPILE\b[\w\s]*'(?:[^']|'')*'[\w\s]*?){_BLANK}STATEMENT{_BLANK}SET\b",
    re.DOTALL | re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:INSERT|UPSERT)\b", re.IGNORECASE)
_CLOSES = re.compile(r"END\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One statement. ``pieces`` are the ranges between its semicolons, and ``end`` follows the last semicolon.

    ``closed`` is true if neither the last ``;`` nor the ``END`` of a statement set is missing.
    """

    pieces: tuple[tuple[int, int], ...]
    end: int
    closed: bool

    @property
    def start(self) -> int:
        return self.pieces[0][0]


def next_unit(source: Source, position: int) -> Unit | None:
    """Return the first statement at or after ``position``, or None if only blanks and comments follow."""
    text = source.text
    start = _skip(text, position)
    if start >= len(text):
        return None
    stop = statement_end(text, start)
    pieces = [(start, len(text) if stop is None else stop)]
    if _OPENS.match(text, start, pieces[0][1]):
        while stop is not None:
            start = _skip(text, stop + 1)
            if start >= len(text):
                return Unit(pieces=tuple(pieces), end=len(text), closed=False)
            stop = statement_end(text, start)
            pieces.append((start, len(text) if stop is None else stop))
            if not _GOES_ON.match(text, start):
                break
        if stop is not None and not _CLOSES.match(text, pieces[-1][0]):
            # This piece does not belong to a statement set. The parser reports the error.
            return Unit(pieces=tuple(pieces), end=stop + 1, closed=True)
    return Unit(pieces=tuple(pieces), end=len(text) if stop is None else stop + 1, closed=stop is not None)


def units(source: Source, position: int = 0) -> Iterator[Unit]:
    """Yield all statements from ``position`` on."""
    while (unit := next_unit(source, position)) is not None:
        yield unit
        position = unit.end


def is_complete(text: str) -> bool:
    """Return True if every statement in ``text`` is closed.

    >>> is_complete("SELECT 1;"), is_complete("BEGIN STATEMENT SET; INSERT INTO s SELECT 1;"), is_complete("SELECT ';")
    (True, False, False)
    """
    return all(unit.closed for unit in units(Source(text=text)))


def _skip(text: str, position: int) -> int:
    match = _SKIPPED.match(text, position)
    return match.end() if match else position
