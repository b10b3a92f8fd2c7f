"""Rows of cells as lines of text in aligned columns, and texts whose parts may be coloured.

>>> print(*aligned_rows([("name", "rows"), ("orders", "12")], right={1}), sep="\\n")
name     rows
orders     12
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned_rows(
    rows: Sequence[Sequence[str]], *, gap: str = "   ", right: Collection[int] = (), most: int | None = None
) -> list[str]:
    """Return a line for each row, without blanks at its end. Each column is as wide as its widest cell.

    The columns at the indices ``right`` are aligned right. With ``most``, no column is wider than that; longer cells
    are kept, and move the rest of their line. A row may have fewer cells than others.
    """
    columns = max(map(len, rows), default=0)
    widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(columns)]
    widths = widths if most is None else [min(width, most) for width in widths]
    return [
        gap.join(
            f"{cell:>{widths[index]}}" if index in right else f"{cell:<{widths[index]}}"
            for index, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def unpainted(text: str, part: object) -> str:
    """Return ``text`` as it is: the default of functions that may colour the parts of their text."""
    return text
