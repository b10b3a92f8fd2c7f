"""Finds the quotes of CSV records, and whether each is where RFC 4180 has it: around a field, or doubled in one."""

from __future__ import annotations

from typing import Any

import numpy as np


def regular_quotes(
    marks: np.ndarray[Any, Any], delimiter: str, quote: str, *, doubled: bool = True, cut: bool = False
) -> np.ndarray[Any, Any] | None:
    """Return the positions of ``quote`` in ``marks``, the bytes of records; None if one of them is in an odd place.

    With ``doubled``, two quotes in a field stand for one. ``cut`` allows that the data end in a field.
    """
    positions = np.flatnonzero(marks == ord(quote))
    if not positions.size:
        return positions
    if positions.size % 2 and not cut:
        return None
    opening, closing = positions[::2], positions[1::2]
    edges = np.zeros(256, bool)
    edges[[ord(delimiter), ord("\n")]] = True
    if doubled:
        edges[ord(quote)] = True
    before = marks[(opening[1:] if opening[0] == 0 else opening) - 1]
    after = marks[(closing[:-1] if closing.size and closing[-1] == marks.size - 1 else closing) + 1]
    return positions if edges[before].all() and edges[after].all() else None


def are_within_lines(quotes: np.ndarray[Any, Any], marks: np.ndarray[Any, Any]) -> bool:
    """Return true if no line end is in quotes."""
    return not (np.searchsorted(quotes, np.flatnonzero(marks == ord("\n"))) % 2).any()
