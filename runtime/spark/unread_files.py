"""Counts the files that the sources of a query have found and not yet read, which Spark does not report.

The count comes from the private list of Spark's file source, which it processes batch by batch before it lists new
files. If the list does not exist, there is no count. Only for classic Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql.streaming.query import StreamingQuery

_SOURCE = "FileStreamSource"


def unread_files(query: StreamingQuery) -> dict[str, int]:
    """Return the number of unread files by the description of their source, if the source limits files per batch."""
    if not hasattr(query, "_jsq"):
        return {}
    try:
        sources = query._jsq.streamingQuery().sources()
        all_sources = [sources.apply(index) for index in range(sources.size())]
        waiting = {source.toString(): _list(source) for source in all_sources if _is_of_files(source)}
        return {name: files.size() for name, files in waiting.items() if files is not None}
    except Py4JError:
        return {}


def _is_of_files(source: JavaObject) -> bool:
    return bool(source.getClass().getSimpleName() == _SOURCE)


def _list(source: JavaObject) -> JavaObject | None:
    field = source.getClass().getDeclaredField("unreadFiles")
    field.setAccessible(True)
    return field.get(source)
