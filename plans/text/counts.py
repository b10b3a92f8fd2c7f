"""Counts, sizes and durations for messages, the first of many texts, and the beginning of a long text.

>>> count(1, "plan"), count(12, "plan")
('1 plan', '12 plans')
>>> human_bytes(3_355_443), human_duration(75_000)
('3.2 MiB', '1 min 15 s')
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_AGES = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


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


def parse_bytes(text: str) -> int:
    """Return a size such as ``2 GiB`` in bytes; raise ValueError for any other text.

    >>> parse_bytes("1.5 KiB"), parse_bytes("200 MiB")
    (1536, 209715200)
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(B|KiB|MiB|GiB|TiB)", text.strip())
    if match is None:
        raise ValueError(f"expected a size such as 2 GiB, found '{text}'")
    return int(float(match[1]) * 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(match[2]))


def parse_share(text: str) -> float:
    """Return a share such as ``99.9 %`` or ``99.9`` as a number between 0 and 1; raise ValueError otherwise.

    >>> parse_share("99.9%")
    0.999
    """
    match = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]{1,9})?) ?%?", text.strip())
    share = 0.0 if match is None else round(float(match[1]) / 100, 12)
    if not share:
        raise ValueError(f"expected more than 0 % and less than 100 %, found '{text}'; write such as 99.9%")
    return share


def human_duration(milliseconds: int) -> str:
    """Return milliseconds below a second, then seconds with a decimal, then minutes and seconds."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds // 60_000} min {milliseconds % 60_000 // 1000} s"


def age_text(milliseconds: int) -> str:
    """Return a length of time in its largest unit, and the rest in the next unit.

    >>> age_text(12 * 86_400_000 + 4 * 3_600_000), age_text(90_000)
    ('12 d 4 h', '1 min 30 s')
    """
    for index, (unit, size) in enumerate(_AGES):
        if milliseconds >= size:
            whole, rest = divmod(milliseconds, size)
            if index + 1 < len(_AGES) and (part := rest // _AGES[index + 1][1]):
                return f"{whole} {unit} {part} {_AGES[index + 1][0]}"
            return f"{whole} {unit}"
    return f"{milliseconds} ms"


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with commas, and its noun.

    >>> count_of(1, "row"), count_of(1_200, "match", "matches")
    ('1 row', '1,200 matches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
