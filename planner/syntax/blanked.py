"""The text of a session with comments and hints blanked out, as pieces with their offsets.

A binary search finds the piece at an offset, so the cost of reading a statement depends on its own length only.

>>> text = Blanked()
>>> text.add(9, "SELECT 1")
>>> text[9:15], text.find("1", 9)
('SELECT', 16)
"""

from __future__ import annotations

from bisect import bisect_right


class Blanked:
    """Pieces of text, ordered by the offsets at which they start."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._texts: list[str] = []

    def add(self, start: int, text: str) -> None:
        """Append the piece at ``start``."""
        self._starts.append(start)
        self._texts.append(text)

    def __getitem__(self, place: slice) -> str:
        """Return the part of one piece between two offsets."""
        start, text = self._piece(place.start)
        return text[place.start - start : max(place.stop - start, 0)]

    def __len__(self) -> int:
        """Return the offset at which the last piece ends."""
        return self._starts[-1] + len(self._texts[-1]) if self._starts else 0

    def find(self, mark: str, offset: int) -> int:
        """Return the offset of ``mark`` at or after ``offset``, within the piece there, or -1."""
        start, text = self._piece(offset)
        index = text.find(mark, offset - start)
        return index if index < 0 else start + index

    def _piece(self, offset: int) -> tuple[int, str]:
        index = bisect_right(self._starts, offset) - 1
        return (self._starts[index], self._texts[index]) if index >= 0 else (offset, "")
