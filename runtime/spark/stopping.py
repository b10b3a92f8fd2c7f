"""Stops a streaming query reliably, even if it misses the first interrupt.

Spark interrupts the thread of the query once, and waits. Code in that thread may consume the interrupt. In one of four
cases, a query that was stopped in its first second continued, until the end of its batch if it had one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
"""The time that Spark waits for a query after it has interrupted it."""


def stop_query(query: StreamingQuery) -> None:
    """Stop ``query`` now, even within a batch, and wait until it has ended."""
    while not _has_ended(query):
        pass


def _has_ended(query: StreamingQuery) -> bool:
    """Interrupt a query, and return whether it has ended within the timeout."""
    try:
        query.stop()
    except (Py4JJavaError, PySparkException) as error:
        if STOP_TIMEOUT not in str(error):
            raise
        return False
    return True
