"""Errors for expressions that Spark rejects: one sentence that names the operator, instead of Spark's own error.

:mod:`hintplan.runtime.expressions.allowed` accepts harmless expressions that may still be invalid: wrong types, too
many arguments, constants out of range. Spark reports these when it analyses a DataFrame; on Connect, only when a
program reads its schema.
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
    """Raise RunError for an error of Spark inside the block, about an expression of ``operator`` at ``path``."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError(
            f"operator {operator}: Spark cannot evaluate the expression: {root_cause(error)}",
            hint="correct it, or compile the script again",
            path=path,
        ) from error


def analysed(frame: DataFrame) -> DataFrame:
    """Return ``frame`` after Spark has analysed it; Connect does so only when a program reads the schema."""
    _ = frame.schema
    return frame
