"""Ends a Python callback whose query Spark stops with a short error that Spark recognises.

Spark looks for an interruption in the text of the callback's error, with a regular expression that recurses for each
character after ``Py4JJavaError: An error occurred while calling``. A Java stack trace there overflows the stack of the
query's thread, and Spark prints a StackOverflowError of a thousand lines.

>>> try:
...     raise RuntimeError("no room") from OSError(": java.lang.InterruptedException")
... except RuntimeError as error:
...     is_interruption(error)
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORDS = re.compile(
    r"java\.lang\.InterruptedException|java\.io\.InterruptedIOException|ClosedByInterruptException"
    r"|cancelled part of cancelled job group"
)
_RECOGNISED = "py4j.protocol.Py4JJavaError: An error occurred while calling a sink: java.lang.InterruptedException"
"""The text that Spark's regular expression finds."""


class BatchInterrupted(Exception):
    """The micro-batch in a Python callback was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptible:
    """``write``, a function for ``foreachBatch``, that raises a short error if Spark interrupts it."""

    write: Callable[[DataFrame, int], object]

    def __call__(self, df: DataFrame, batch: int) -> None:
        try:
            self.write(df, batch)
        except Exception as error:
            if not is_interruption(error):
                raise
            # Its frames and causes must not follow: Python would print them into the text.
            raise BatchInterrupted(f"micro-batch {batch} was interrupted: {_RECOGNISED}") from None


def is_interruption(error: BaseException) -> bool:
    """Return True if ``error``, or an error before it, comes from Spark's interruption of a query."""
    return any(_WORDS.search(str(each) + (getattr(each, "_stackTrace", None) or "")) for each in chain(error))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield ``error`` and the errors that led to it, last one first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
