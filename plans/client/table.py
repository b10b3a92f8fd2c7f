"""Rows as a table, as Flink's SQL client draws it: columns as wide as their values, numbers to the right.

The first rows decide on the widths, and the others are written as they come, so a result of any size needs little
memory. On a terminal the widest columns are cut until the table fits; what is cut ends in an ellipsis.

>>> out = io.StringIO()
>>> table = TableWriter(headings=("name", "n"), numbers=(False, True), out=out)
>>> table.add([("Bob", "5"), (None, "12")])
>>> table.end()
2
>>> print(out.getvalue(), end="")
+--------+----+
| name   |  n |
+--------+----+
| Bob    |  5 |
| <NULL> | 12 |
+--------+----+
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from hintplan.plans.text.unprintable import clean

__all__ = ["NULL", "TableWriter", "io", "is_number"]

NULL = "<NULL>"

_MEASURED_ROWS = 1000
_NARROWEST = 5
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def is_number(type_text: str) -> bool:
    """Whether values of a type stand to the right."""
    return type_text.partition("(")[0].partition(" ")[0] in _NUMBERS


@dataclass(slots=True, kw_only=True)
class TableWriter:
    """Writes a table to ``out``, at most ``width`` cells wide if there is a width."""

    headings: tuple[str, ...]
    numbers: tuple[bool, ...]
    out: TextIO
    width: int | None = None
    _waiting: list[tuple[str, ...]] = field(default_factory=list)
    _widths: tuple[int, ...] = ()
    _rows: int = 0

    def add(self, rows: Sequence[tuple[str | None, ...]]) -> None:
        """Write ``rows`` below the others; None is NULL."""
        for row in rows:
            self._rows += 1
            cells = tuple(NULL if value is None else _shown(value) for value in row)
            if self._widths:
                self._line(cells)
            else:
                self._waiting.append(cells)
                if len(self._waiting) >= _MEASURED_ROWS:
                    self._begin()

    def end(self) -> int:
        """Write what is left of the table; how many rows it has."""
        if not self._widths:
            self._begin()
        self._rule()
        self.out.flush()
        return self._rows

    def _begin(self) -> None:
        lines = [tuple(map(_shown, self.headings)), *self._waiting]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        self._widths = fitted(tuple(widths), self.width)
        self._rule()
        self._line(lines[0])
        self._rule()
        for line in lines[1:]:
            self._line(line)
        self._waiting.clear()

    def _rule(self) -> None:
        self.out.write("+" + "+".join("-" * (width + 2) for width in self._widths) + "+\n")

    def _line(self, cells: tuple[str, ...]) -> None:
        parts = [
            _padded(text, width, right=right)
            for text, width, right in zip(cells, self._widths, self.numbers, strict=True)
        ]
        self.out.write(f"| {' | '.join(parts)} |\n")


def fitted(widths: tuple[int, ...], width: int | None) -> tuple[int, ...]:
    """``widths``, the widest of them reduced until the table is at most ``width`` wide, as far as it can be.

    >>> fitted((3, 40, 20), 40)
    (3, 13, 14)
    """
    if width is None:
        return widths
    found = list(widths)
    excess = sum(found) + 3 * len(found) + 1 - width
    while excess > 0 and max(found) > _NARROWEST:
        found[found.index(max(found))] -= 1
        excess -= 1
    return tuple(found)


def _shown(value: str) -> str:
    return clean(value).replace("\n", "\\n")


def _padded(text: str, width: int, *, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if right else text + " " * (width - length)
