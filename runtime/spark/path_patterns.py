"""Escapes paths for Spark readers that interpret characters such as ``[`` and ``*`` as patterns."""

from __future__ import annotations

import re


def literally(path: str) -> str:
    """Return a pattern that matches only ``path``.

    >>> literally("/data/run[1]")
    '/data/run\\\\[1\\\\]'
    """
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
