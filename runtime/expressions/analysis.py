"""Expressions that Spark refuses: said in one sentence that names the operator, instead of an error of Spark's.

What :mod:`hintplan.runtime.expressions.allowed` lets pass is harmless, but need not mean anything: types that do not
fit, arguments that are too many, constants out of range. Spark says so when it analyses a DataFrame, or, on Connect,
when asked for its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from hintplan.plans.errors import RunError
from hintplan.runtime.spark.failure import root_cause

SPARK_ERRORS = (Py4JError, PySparkException)


@contextmanager
def refusing(operator: str, path: str) -> Iterator[None]:
    """RunError for what Spark makes nothing of inside the block: an expression of ``operator`` at ``path``."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError(
            f"operator {operator}: Spark cannot evaluate the expression: {root_cause(error)}",
            hint="correct it, or compile the script again",
            path=path,
        ) from error


def analysed(frame: DataFrame) -> DataFrame:
    """``frame``, whose columns and types Spark has found out; on Connect it does so only if asked."""
    _ = frame.schema
    return frame
