r"""Writes a plan with git's conflict markers where two versions differ, for people and their tools to resolve.

The result is intentionally not a valid plan: nothing can run it before someone resolves the conflict.

>>> with_conflict_markers(b"a\nb\n", b"a\nc\n", labels=("HEAD", "branch")).decode().split("\n")
['a', '<<<<<<< HEAD', 'b', '=======', 'c', '>>>>>>> branch', '']
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher


def with_conflict_markers(
    ours: bytes, theirs: bytes, *, labels: tuple[str, str], base: bytes | None = None, marker_size: int = 7
) -> bytes:
    """Return both texts as one, with markers around lines that differ; ``base`` adds the original lines (diff3)."""
    first, second = ours.decode().splitlines(), theirs.decode().splitlines()
    before = None if base is None else base.decode().splitlines()
    lines: list[str] = []
    for tag, a, b, c, d in _blocks(first, second):
        if tag == "equal":
            lines += first[a:b]
            continue
        lines.append(f"{'<' * marker_size} {labels[0]}".rstrip())
        lines += first[a:b]
        if before is not None:
            lines.append("|" * marker_size)
            lines += _counterpart(first, before, a, b)
        lines += ["=" * marker_size, *second[c:d]]
        lines.append(f"{'>' * marker_size} {labels[1]}".rstrip())
    return ("\n".join(lines) + "\n").encode()


def sides_of(text: str) -> tuple[str, str] | None:
    """Return the two texts of :func:`with_conflict_markers`, without their base; None if there are no markers."""
    ours: list[str] = []
    theirs: list[str] = []
    into = [ours, theirs]
    has_markers = False
    for line in text.splitlines():
        if line.startswith("<<<<<<<"):
            has_markers, into = True, [ours]
        elif has_markers and line.startswith("|||||||"):
            into = []
        elif has_markers and line.startswith("======="):
            into = [theirs]
        elif has_markers and line.startswith(">>>>>>>"):
            into = [ours, theirs]
        else:
            for side in into:
                side.append(line)
    return ("\n".join(ours) + "\n", "\n".join(theirs) + "\n") if has_markers else None


def _blocks(first: list[str], second: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the equal and different blocks; a common start and end is split off first, for large plans."""
    shorter = min(len(first), len(second))
    start = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    end = next((i for i in range(shorter - start) if first[-1 - i] != second[-1 - i]), shorter - start)
    yield "equal", 0, start, 0, start
    middle = SequenceMatcher(None, first[start : len(first) - end], second[start : len(second) - end])
    for tag, a, b, c, d in middle.get_opcodes():
        yield tag, a + start, b + start, c + start, d + start
    yield "equal", len(first) - end, len(first), len(second) - end, len(second)


def _counterpart(first: list[str], before: list[str], start: int, end: int) -> list[str]:
    """Return the lines of ``before`` that correspond to the lines ``start`` to ``end`` of ``first``."""
    lines: list[str] = []
    for _, a, b, c, d in _blocks(first, before):
        if (a < end and b > start) or a == b == start == end:
            low, high = (max(a, start) - a, min(b, end) - a) if d - c == b - a else (0, d - c)
            lines += before[c + low : c + high]
    return lines
