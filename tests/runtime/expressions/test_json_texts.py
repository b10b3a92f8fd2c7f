"""A text in a document is what Spark's ``btrim`` leaves of an array of it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.json_texts import texts_in_spark
from hintplan.runtime.expressions.spark_columns import sql_over

TEXT = "btrim(to_json(array(x)), '[]')"
VALUES = [
    (None, "y"), ("", "y"), ("[", None), ("]]", ""), ("[]", "["), ('"]', "\\]"), ("größer", "日本"),
    ("\U0001f600]", "\n"), ("null", "a" * 5000), ("\u2028\x7f", "\x00\x1f"),
]  # fmt: skip


def checked(text: str) -> CheckedExpression:
    return check_expression(text, {("x",): "x", ("y",): "y", ("n",): "n"}, operator="calc_t", path="filter")


@pytest.mark.parametrize(
    "text",
    [
        "btrim(to_json(array(upper(x))), '[]')",
        "btrim(to_json(array(x, y)), '[]')",
        "btrim(to_json(array(x)), '[')",
        "btrim(to_json(array(x)))",
        "ltrim(to_json(array(x)), '[]')",
        "to_json(array(x))",
    ],
)
def test_another_call_stays(text: str) -> None:
    expression = checked(text)
    assert texts_in_spark(expression, lambda texts: ["string" for _ in texts]).pieces == expression.pieces


def test_only_texts_are_rewritten() -> None:
    expression = checked(f"concat({TEXT}, {TEXT.replace('x', 'n')}, 'end')")
    sql = texts_in_spark(expression, lambda texts: ["string" if text == "`x`" else "int" for text in texts]).sql
    assert sql.startswith("concat ( substring(to_json(array(`x`)), 2, length(to_json(array(`x`))) - 2) , btrim (")
    assert sql.endswith(", 'end' )")


@pytest.mark.spark
def test_spark_writes_the_same_texts(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(x, y, 1) for x, y in VALUES], "x STRING, y STRING, n INT")
    document = (
        f"concat('{{\"x\":', {TEXT}, ',\"y\":', {TEXT.replace('x', 'y')}, ',\"n\":', {TEXT.replace('x', 'n')}, '}}')"
    )
    sql = sql_over(frame, checked(document))
    assert sql.count("btrim") == 1
    rows = frame.selectExpr(f"{document} AS wanted", f"{sql} AS made").collect()
    assert [row.made for row in rows] == [row.wanted for row in rows]
