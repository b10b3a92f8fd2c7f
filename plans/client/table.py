"""Rows as a table in the layout of Flink's SQL client: columns as wide as their values, numbers aligned right.

The first rows determine the widths; later rows are written as they arrive, so a result of any size needs little memory.
On a terminal, the widest columns are cut until the table fits, and cut values end with an ellipsis.

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

from hintplan.plans.text.escapes import clean

__all__ = ["NULL", "TableWriter", "io", "is_number"]

NULL = "<NULL>"

_MEASURED_ROWS = 1000
_NARROWEST = 5
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def is_number(type_text: str) -> bool:
    """Return True if values of a type are aligned right."""
    return type_text.partition("(")[0].partition(" ")[0] in _NUMBERS


@dataclass(slots=True, kw_only=True)
class TableWriter:
    """A writer of a table to ``out``, at most ``width`` cells wide unless that is None."""

    headings: tuple[str, ...]
    numbers: tuple[bool, ...]
    out: TextIO
    width: int | None = None
    _waiting: list[tuple[str, ...]] = field(default_factory=list)
    _widths: tuple[int, ...] = ()
    _rows: int = 0

    def add(self, rows: Sequence[tuple[str | None, ...]]) -> None:
        """Append ``rows`` to the table; None is NULL."""
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
        """Write the end of the table, and return the number of rows."""
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
    """Reduce the widest of ``widths`` until the table is at most ``width`` wide, or cannot shrink further.

    >>> fitted((3, 40, 20), 40)
    (3, 13, 14)
    """
    if width is None:
        return widths
    reduced = list(widths)
    excess = sum(reduced) + 3 * len(reduced) + 1 - width
    while excess > 0 and max(reduced) > _NARROWEST:
        reduced[reduced.index(max(reduced))] -= 1
        excess -= 1
    return tuple(reduced)


def _shown(value: str) -> str:
    return clean(value).replace("\n", "\\n")


def _padded(text: str, width: int, *, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if right else text + " " * (width - length)
