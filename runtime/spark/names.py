"""Names in Spark: columns in its SQL, and plans and operators on its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"


def quoted(name: str) -> str:
    """Return ``name`` as a Spark identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def shown_as(plan: str, operator: str) -> str:
    """Return the name of an ``operator`` of a ``plan`` on Spark's pages, which is also used as a query name.

    >>> shown_as("paid", "sink_paid")
    'paid · sink_paid'
    """
    return f"{plan} · {operator}"


@contextmanager
def described(spark: SparkSession, name: str) -> Iterator[None]:
    """Set the first line of the job description of this thread to ``name`` within the block; keep the other lines.

    The other lines contain the batch of a streaming query. Only for classic Spark.
    """
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, "\n".join([name, *(before or "").split("\n")[1:]]))
    try:
        yield
    finally:
        # None removes the property, if there was none before.
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
