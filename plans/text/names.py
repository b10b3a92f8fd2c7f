"""Suggests the valid name that is nearest to a mistyped one.

>>> did_you_mean("lefState", ("leftState", "rightState"))
"did you mean 'leftState'?"
"""

from __future__ import annotations

from collections.abc import Iterable

# A hostile file can hold a million names; comparing them all would take minutes.
_MAX_LENGTH = 200
_MAX_CANDIDATES = 2000
_CLOSE = 0.6


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``name``, ignoring case; None if none is close, or there are absurdly many."""
    candidates = list(candidates)
    if len(name) > _MAX_LENGTH or len(candidates) > _MAX_CANDIDATES:
        return None
    from difflib import SequenceMatcher  # only ever needed to word an error

    best, found = _CLOSE, None
    for candidate in candidates:
        if len(candidate) <= _MAX_LENGTH:
            alike = SequenceMatcher(None, *_after_common_parts(name.casefold(), candidate.casefold())).ratio()
            if alike >= best and (alike > best or found is None):
                best, found = alike, candidate
    return found


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
