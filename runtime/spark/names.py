"""Names of columns, as Spark's SQL has them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """``name`` as a Spark identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
