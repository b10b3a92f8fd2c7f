"""A plan's text with git's conflict markers where two versions of it differ, for people and their tools to resolve.

The result is no valid plan on purpose: nothing can run it before someone has chosen.

>>> marked(b"a\\nb\\n", b"a\\nc\\n", labels=("HEAD", "branch")).decode().split("\\n")
['a', '<<<<<<< HEAD', 'b', '=======', 'c', '>>>>>>> branch', '']
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher


def marked(
    ours: bytes, theirs: bytes, *, labels: tuple[str, str], base: bytes | None = None, marker_size: int = 7
) -> bytes:
    """Both texts in one; the lines in which they differ between markers. ``base`` adds what stood there (diff3)."""
    first, second = ours.decode().splitlines(), theirs.decode().splitlines()
    before = None if base is None else base.decode().splitlines()
    found: list[str] = []
    for tag, a, b, c, d in _blocks(first, second):
        if tag == "equal":
            found += first[a:b]
            continue
        found.append(f"{'<' * marker_size} {labels[0]}".rstrip())
        found += first[a:b]
        if before is not None:
            found.append("|" * marker_size)
            found += _counterpart(first, before, a, b)
        found += ["=" * marker_size, *second[c:d]]
        found.append(f"{'>' * marker_size} {labels[1]}".rstrip())
    return ("\n".join(found) + "\n").encode()


def sides_of(text: str) -> tuple[str, str] | None:
    """The two texts that :func:`marked` has put into one, without their base; None if there are no markers."""
    ours: list[str] = []
    theirs: list[str] = []
    into = [ours, theirs]
    found = False
    for line in text.splitlines():
        if line.startswith("<<<<<<<"):
            found, into = True, [ours]
        elif found and line.startswith("|||||||"):
            into = []
        elif found and line.startswith("======="):
            into = [theirs]
        elif found and line.startswith(">>>>>>>"):
            into = [ours, theirs]
        else:
            for side in into:
                side.append(line)
    return ("\n".join(ours) + "\n", "\n".join(theirs) + "\n") if found else None


def _blocks(first: list[str], second: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """The equal and different stretches; what both begin and end with is set aside first, for large plans."""
    shorter = min(len(first), len(second))
    start = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    end = next((i for i in range(shorter - start) if first[-1 - i] != second[-1 - i]), shorter - start)
    yield "equal", 0, start, 0, start
    middle = SequenceMatcher(None, first[start : len(first) - end], second[start : len(second) - end])
    for tag, a, b, c, d in middle.get_opcodes():
        yield tag, a + start, b + start, c + start, d + start
    yield "equal", len(first) - end, len(first), len(second) - end, len(second)


def _counterpart(first: list[str], before: list[str], start: int, end: int) -> list[str]:
    """The lines of ``before`` that stand where lines ``start`` to ``end`` of ``first`` do."""
    found: list[str] = []
    for _, a, b, c, d in _blocks(first, before):
        if (a < end and b > start) or a == b == start == end:
            low, high = (max(a, start) - a, min(b, end) - a) if d - c == b - a else (0, d - c)
            found += before[c + low : c + high]
    return found
