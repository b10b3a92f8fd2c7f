"""How messages count and cut: so many of something, the first of many, the beginning of a long text.

>>> count(1, "plan"), count(12, "plan")
('1 plan', '12 plans')
"""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, noun: str) -> str:
    """So many of ``noun``, whose plural ends in s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_of(texts: Sequence[str], most: int, *, between: str = ", ") -> str:
    """The first ``most`` of ``texts``, and how many more there are.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return between.join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def shortened(text: str, most: int) -> str:
    """``text``, with an ellipsis for its end if it is longer than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
