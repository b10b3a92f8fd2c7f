"""Counts, sizes and durations for messages, the first of many texts, and the beginning of a long text.

>>> count(1, "plan"), count(12, "plan")
('1 plan', '12 plans')
>>> human_bytes(3_355_443), human_duration(75_000)
('3.2 MiB', '1 min 15 s')
"""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, noun: str) -> str:
    """Return ``number`` and ``noun``, with an s for the plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def joined_with_and(texts: Sequence[str]) -> str:
    """Return ``texts`` with commas, and "and" before the last.

    >>> joined_with_and(["a"]), joined_with_and(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def first_of(texts: Sequence[str], most: int, *, between: str = ", ") -> str:
    """Return the first ``most`` of ``texts``, and the number of the others.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return between.join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut with an ellipsis if it is longer than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def human_bytes(size: int) -> str:
    """Return ``size`` in the largest binary unit of which there is at least one."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def human_duration(milliseconds: int) -> str:
    """Return milliseconds below a second, then seconds with a decimal, then minutes and seconds."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds // 60_000} min {milliseconds % 60_000 // 1000} s"
