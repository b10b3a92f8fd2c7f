"""How many files the sources of a query have found and not yet read, which Spark keeps and does not report.

It looks at the list that Spark's file source works off, batch by batch, before it looks for new files; the list is
private, so where there is none, nothing is said. On classic Spark only.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

_SOURCE = "FileStreamSource"


def unread_files(query: Any) -> dict[str, int]:
    """The files that wait, by the description of their source; only of sources that are given some at a time."""
    if not hasattr(query, "_jsq"):
        return {}
    try:
        sources = query._jsq.streamingQuery().sources()
        found = [sources.apply(index) for index in range(sources.size())]
        waiting = {source.toString(): _list(source) for source in found if _is_of_files(source)}
        return {name: files.size() for name, files in waiting.items() if files is not None}
    except Py4JError:
        return {}


def _is_of_files(source: Any) -> bool:
    return bool(source.getClass().getSimpleName() == _SOURCE)


def _list(source: Any) -> Any:
    field = source.getClass().getDeclaredField("unreadFiles")
    field.setAccessible(True)
    return field.get(source)
