"""Suggestions of the valid name that is nearest to a mistyped one.

>>> did_you_mean("lefState", ("leftState", "rightState"))
"did you mean 'leftState'?"
"""

from __future__ import annotations

from collections.abc import Iterable

# A hostile file can hold a million names; comparing them all would take minutes.
_MAX_LENGTH = 200
_MAX_CANDIDATES = 2000
_MAX_LETTERS = 20_000
_MOST_MISTAKES = 4
_MISTAKES_PER_LETTER = 0.4


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate with the fewest letters mistyped, swapped, added or left out; None if none is near.

    Case is ignored, and the first of equally near candidates wins. If none is near, return the shortest that contains
    ``name`` or is contained in it. If there are absurdly many candidates, return None.
    """
    candidates = [candidate for candidate in candidates if len(candidate) <= _MAX_LENGTH]
    if len(name) > _MAX_LENGTH or len(candidates) > _MAX_CANDIDATES or sum(map(len, candidates)) > _MAX_LETTERS:
        return None
    best: int | None = None
    match: str | None = None
    for candidate in candidates:
        a, b = _after_common_parts(name.casefold(), candidate.casefold())
        longest = max(len(a), len(b))
        most = min(_MOST_MISTAKES, max(1, int(longest * _MISTAKES_PER_LETTER)), longest - 1)
        mistakes = distance(a, b, most if best is None else min(most, best - 1))
        if mistakes is not None:
            best, match = mistakes, candidate
    if match is None and len(name) > 2:
        match = min(
            (longer for longer in candidates if _is_part(name.casefold(), longer.casefold())), key=len, default=None
        )
    return match


def _is_part(a: str, b: str) -> bool:
    """Return True if one name contains the other, or if ``a`` is ``b`` without up to half of its letters."""
    if a in b or (len(b) > 2 and b in a):
        return True
    letters = iter(b)
    return a[0] == b[:1] and len(a) * 2 >= len(b) and all(letter in letters for letter in a)


def distance(a: str, b: str, most: int) -> int | None:
    """Count the letters mistyped, swapped with the next, added or left out between ``a`` and ``b``.

    Return None if there are more than ``most``.

    >>> distance("cuont", "count", 2), distance("cuont", "cot", 2), distance("cuont", "sum", 2)
    (1, 2, None)
    """
    if abs(len(a) - len(b)) > most:
        return None
    if a == b:
        return 0
    far = most + 1
    # Only cells near the diagonal can be small enough: row i of the table holds columns i - most to i + most.
    width = 2 * most + 1
    before = [far] * (width + 2)
    last = [far] * (width + 2)
    for j in range(min(most, len(b)) + 1):
        last[most + j] = j
    for i, letter in enumerate(a, 1):
        row = [far] * (width + 2)
        least = far
        if i <= most:
            row[most - i] = least = i
        for k in range(max(0, most - i + 1), min(width, most + len(b) - i + 1)):
            j = i - most + k
            if letter == b[j - 1]:
                mistakes = last[k]
            else:
                left = row[k - 1] if k else far
                mistakes = 1 + min(last[k], last[k + 1], left)
                if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == b[j - 1]:
                    mistakes = min(mistakes, before[k] + 1)
            row[k] = mistakes
            if mistakes < least:
                least = mistakes
        if least > most:
            return None
        before, last = last, row
    mistakes_at_end = last[most + len(b) - len(a)]
    return mistakes_at_end if mistakes_at_end <= most else None


def _after_common_parts(a: str, b: str) -> tuple[str, str]:
    """Remove the dotted parts with which both names begin: ``x.y.one`` and ``x.y.two`` become ``one`` and ``two``."""
    first, second = a.split("."), b.split(".")
    while len(first) > 1 and len(second) > 1 and first[0] == second[0]:
        del first[0], second[0]
    return ".".join(first), ".".join(second)


def did_you_mean(name: str, candidates: Iterable[str], *, what: str = "valid names") -> str:
    """Return a hint: the nearest candidate, or else a list of up to twelve valid names."""
    valid = list(candidates)
    suggestion = nearest(name, valid)
    if suggestion is not None:
        return f"did you mean '{suggestion}'?"
    if not valid:
        return "nothing is declared" if what == "declared" else f"there are no {what}"
    shown = ", ".join(valid[:12]) + (", ..." if len(valid) > 12 else "")
    return f"{what}: {shown}"
