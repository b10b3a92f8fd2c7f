"""Names in Spark: columns in its SQL, paths for its readers, and plans and operators on its pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_DESCRIPTION = "spark.job.description"


def quoted(name: str) -> str:
    """Return ``name`` as a Spark identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def escaped_path(path: str) -> str:
    """Return a pattern that matches only ``path``, for Spark's readers, which interpret ``[`` and ``*``.

    >>> escaped_path("/data/run[1]")
    '/data/run\\\\[1\\\\]'
    """
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def named_function(run: Callable[_Arguments, _Result], operator: str) -> Callable[_Arguments, _Result]:
    """Return ``run`` under the id of an ``operator``, which Spark shows in its plans and on its pages.

    >>> named_function(len, "join_o_c").__name__
    'join_o_c'
    """
    function = partial(run)
    function.__name__ = operator  # type: ignore[attr-defined]  # a partial takes any attribute
    return function


def shown_as(plan: str, operator: str) -> str:
    """Return the name of an ``operator`` of a ``plan`` on Spark's pages, which is also used as a query name.

    >>> shown_as("paid", "sink_paid")
    'paid · sink_paid'
    """
    return f"{plan} · {operator}"


@contextmanager
def job_description(spark: SparkSession, name: str) -> Iterator[None]:
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
