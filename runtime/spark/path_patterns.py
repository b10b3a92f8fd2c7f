"""Paths for readers of Spark's that take ``[``, ``*`` and the like for patterns."""

from __future__ import annotations

import re


def literally(path: str) -> str:
    """``path`` as the pattern that only itself fits.

    >>> literally("/data/run[1]")
    '/data/run\\\\[1\\\\]'
    """
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
