"""Suggests the valid name that is nearest to a mistyped one.

>>> did_you_mean("lefState", ("leftState", "rightState"))
"did you mean 'leftState'?"
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

# A hostile file can hold a million names; comparing them all would take minutes.
_MAX_LENGTH = 200
_MAX_CANDIDATES = 2000


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``name``, ignoring case; None if none is close, or there are absurdly many."""
    candidates = list(candidates)
    if len(name) > _MAX_LENGTH or len(candidates) > _MAX_CANDIDATES:
        return None
    from difflib import get_close_matches  # only ever needed to word an error

    by_folded = {candidate.casefold(): candidate for candidate in candidates if len(candidate) <= _MAX_LENGTH}
    found = get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str], *, what: str = "valid names") -> str:
    """A hint: the nearest candidate, or else the list of what is valid (at most twelve)."""
    known = list(candidates)
    found = nearest(name, known)
    if found is not None:
        return f"did you mean '{found}'?"
    if not known:
        return f"there are no {what}"
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"{what}: {shown}"
