"""The text of a session with comments and hints blanked out: the pieces that were read, each at its offset.

A piece is found by binary search, so that reading a statement costs what the statement is long, not the session.

>>> text = Blanked()
>>> text.add(9, "SELECT 1")
>>> text[9:15], text.find("1", 9)
('SELECT', 16)
"""

from __future__ import annotations

from bisect import bisect_right


class Blanked:
    """Pieces of text by the offsets at which they start, in their order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._texts: list[str] = []

    def add(self, start: int, text: str) -> None:
        """Add the piece at ``start``, behind all others."""
        self._starts.append(start)
        self._texts.append(text)

    def __getitem__(self, place: slice) -> str:
        """Return the part of one piece between two offsets."""
        start, text = self._piece(place.start)
        return text[place.start - start : max(place.stop - start, 0)]

    def __len__(self) -> int:
        """Return where the last piece ends."""
        return self._starts[-1] + len(self._texts[-1]) if self._starts else 0

    def find(self, mark: str, offset: int) -> int:
        """Return where ``mark`` stands in the piece at ``offset``, at or after that; -1 if it does not."""
        start, text = self._piece(offset)
        found = text.find(mark, offset - start)
        return found if found < 0 else start + found

    def _piece(self, offset: int) -> tuple[int, str]:
        at = bisect_right(self._starts, offset) - 1
        return (self._starts[at], self._texts[at]) if at >= 0 else (offset, "")
