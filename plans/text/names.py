"""Suggests the valid name that is nearest to a mistyped one.

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
    """The candidate with the fewest letters mistyped, swapped, added or left out, ignoring case; None if none is close.

    The first of several that are as close. If none is, the shortest that has ``name`` in it, or is in it. None, too, if
    there are absurdly many.
    """
    candidates = [candidate for candidate in candidates if len(candidate) <= _MAX_LENGTH]
    if len(name) > _MAX_LENGTH or len(candidates) > _MAX_CANDIDATES or sum(map(len, candidates)) > _MAX_LETTERS:
        return None
    best: int | None = None
    found: str | None = None
    for candidate in candidates:
        a, b = _after_common_parts(name.casefold(), candidate.casefold())
        longest = max(len(a), len(b))
        most = min(_MOST_MISTAKES, max(1, int(longest * _MISTAKES_PER_LETTER)), longest - 1)
        mistakes = distance(a, b, most if best is None else min(most, best - 1))
        if mistakes is not None:
            best, found = mistakes, candidate
    if found is None and len(name) > 2:
        found = min((each for each in candidates if _is_part(name.casefold(), each.casefold())), key=len, default=None)
    return found


def _is_part(a: str, b: str) -> bool:
    """True if one name has the other in it, or if ``a`` is ``b`` with up to half of its letters left out."""
    if a in b or (len(b) > 2 and b in a):
        return True
    rest = iter(b)
    return a[0] == b[:1] and len(a) * 2 >= len(b) and all(letter in rest for letter in a)


def distance(a: str, b: str, most: int) -> int | None:
    """How many letters were mistyped, swapped with the next, added or left out between ``a`` and ``b``; None if more
    than ``most``.

    >>> distance("cuont", "count", 2), distance("cuont", "cot", 2), distance("cuont", "sum", 2)
    (1, 2, None)
    """
    if abs(len(a) - len(b)) > most:
        return None
    if a == b:
        return 0
    far = most + 1
    # Only what is near the diagonal can be near enough: row i of the table holds columns i - most to i + most.
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
    found = last[most + len(b) - len(a)]
    return found if found <= most else None


def _after_common_parts(a: str, b: str) -> tuple[str, str]:
    """Both names without the dotted parts they begin with alike: ``x.y.one`` and ``x.y.two`` have nothing in common."""
    first, second = a.split("."), b.split(".")
    while len(first) > 1 and len(second) > 1 and first[0] == second[0]:
        del first[0], second[0]
    return ".".join(first), ".".join(second)


def did_you_mean(name: str, candidates: Iterable[str], *, what: str = "valid names") -> str:
    """A hint: the nearest candidate, or else the list of what is valid (at most twelve)."""
    known = list(candidates)
    found = nearest(name, known)
    if found is not None:
        return f"did you mean '{found}'?"
    if not known:
        return "nothing is declared" if what == "declared" else f"there are no {what}"
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"{what}: {shown}"
