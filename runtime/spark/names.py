"""Names of ours as Spark has them: columns in its SQL, plans and operators on its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"


def quoted(name: str) -> str:
    """``name`` as a Spark identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def shown_as(plan: str, operator: str) -> str:
    """What Spark's pages call the work for an ``operator`` of a ``plan``, which a query may be named after.

    >>> shown_as("paid", "sink_paid")
    'paid · sink_paid'
    """
    return f"{plan} · {operator}"


@contextmanager
def described(spark: SparkSession, name: str) -> Iterator[None]:
    """What Spark's pages call the jobs of this thread: ``name`` is the first line, the others stay as they are.

    Those of a streaming query say which batch it is. On classic Spark only.
    """
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, "\n".join([name, *(before or "").split("\n")[1:]]))
    try:
        yield
    finally:
        # As if it had never been there, if there was none.
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
