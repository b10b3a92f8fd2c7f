"""Columns of Spark that compute checked expressions: with Flink's arithmetic, bounded results, and own JSON functions.

To Spark, the JSON functions are Python functions: each row goes to a worker and back. Spark computes them for all rows
of a batch before it evaluates the branches of a CASE, so they never fail.

A checked expression is harmless, but may still be invalid: wrong types, too many arguments, constants out of range.
Spark reports these when it analyses a DataFrame; on Connect, only when a program reads its schema. :func:`refusing`
turns Spark's error into a sentence that names the operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.arithmetic import wrapping
from hintplan.runtime.expressions.bounded import bounded
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.fewer_calls import fewer_calls
from hintplan.runtime.expressions.json_calls import CALL, FUNCTIONS
from hintplan.runtime.expressions.json_numbers import numbers_in_spark
from hintplan.runtime.expressions.json_texts import texts_in_spark
from hintplan.runtime.spark.failure import root_cause
from hintplan.runtime.spark.shipping import in_tasks

SPARK_ERRORS = (Py4JError, PySparkException)
_KNOWN: WeakKeyDictionary[SparkSession, set[tuple[str, bool]]] = WeakKeyDictionary()


def spark_expression(frame: DataFrame, expression: CheckedExpression) -> Column:
    """Return ``expression`` over ``frame``, with Flink's arithmetic and bounded results."""
    return F.expr(sql_over(frame, expression))


def sql_over(frame: DataFrame, expression: CheckedExpression) -> str:
    """Return the same as Spark SQL; register hintplan's functions that it calls in the session of ``frame``."""

    def types(texts: Sequence[str]) -> list[str]:
        typed = frame.select(*(F.expr(text).alias(f"c{i}") for i, text in enumerate(texts)))
        return [field.dataType.simpleString() for field in typed.schema.fields]

    expression = texts_in_spark(numbers_in_spark(expression, types), types)
    register_called(frame, expression)
    return bounded(wrapping(fewer_calls(expression), types))


def register_called(frame: DataFrame, expression: CheckedExpression) -> None:
    """Register hintplan's functions that ``expression`` may call in the session of ``frame``."""
    for name in sorted({call.lower() for call in CALL.findall(expression.sql)} & FUNCTIONS.keys()):
        session = frame.sparkSession
        registered = _KNOWN.setdefault(session, set())
        if (name, frame.isStreaming) not in registered:
            function, kind = FUNCTIONS[name]
            # Without Arrow, this works in all versions of Spark, and without pandas.
            session.udf.register(name, F.udf(in_tasks(function, frame), from_arrow_type(kind), useArrow=False))
            registered.add((name, frame.isStreaming))


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
