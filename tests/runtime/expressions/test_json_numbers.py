"""Numbers that Spark writes into documents are the texts that the function of each single text gives."""

from __future__ import annotations

import random
import struct
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.json_numbers import numbers_in_spark
from hintplan.runtime.expressions.json_writer import json_number
from hintplan.runtime.expressions.spark_columns import sql_over

SEED = 1


def checked(text: str) -> CheckedExpression:
    return check_expression(text, {("x",): "x", ("y",): "y"}, operator="calc_t", path="filter")


@pytest.mark.parametrize(
    "text",
    [
        "hp_json_number(x)",
        "hp_json_number(CAST(upper(x) AS STRING))",
        "hp_json_number(CAST(x AS CHAR(3)))",
        "hp_json_number(CAST(x AS STRING) || '')",
        "hp_json_number(CAST(CAST(x AS FLOAT) AS STRING))",
        "hp_json_quote(CAST(x AS STRING))",
        "'hp_json_number ( CAST ( `x` AS STRING ) )'",
    ],
)
def test_another_call_stays(text: str) -> None:
    expression = checked(text)
    assert numbers_in_spark(expression, lambda texts: ["double" for _ in texts]).pieces == expression.pieces


def test_only_a_double_is_rewritten() -> None:
    expression = checked("concat(hp_json_number(CAST(x AS STRING)), hp_json_number(CAST(CAST(y AS DOUBLE) AS STRING)))")
    asked: list[str] = []

    def types(texts: object) -> list[str]:
        asked.extend(texts)  # type: ignore[arg-type]
        return ["decimal(38,18)", "double"]

    sql = numbers_in_spark(expression, types).sql
    assert asked == ["`x`", "CAST ( `y` AS DOUBLE )"]
    assert sql.startswith("concat ( hp_json_number ( CAST ( `x` AS STRING ) ) , (CASE WHEN abs(CAST ( `y` AS DOUBLE ))")


def numbers() -> list[float | None]:
    """Numbers of all sizes, with few and with many digits, around each place where the form of the text changes."""
    chance = random.Random(SEED)
    found: list[float | None] = [
        None,
        0.0,
        -0.0,
        float("nan"),
        float("inf"),
        float("-inf"),
        5e-324,
        1.7976931348623157e308,
    ]
    for exponent in range(-12, 26):
        for digits in range(1, 18):
            mantissa = chance.randrange(10 ** (digits - 1), 10**digits)
            found.append(float(f"{mantissa}e{exponent - digits + 1}"))
        for text in (f"1e{exponent}", f"9.999999999999999e{exponent}", f"1.0000000000000002e{exponent}"):
            found += [float(text), -float(text)]
    found += [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(1000)]
    return found


@pytest.mark.spark
@pytest.mark.part(of=2, fixture="spark")
def test_spark_writes_what_the_function_gives(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(each,) for each in numbers()], "x DOUBLE")
    sql = sql_over(frame, checked("hp_json_number(CAST(x AS STRING))"))
    assert "hp_json_number" not in sql
    rows = frame.selectExpr("CAST(x AS STRING) AS text", f"{sql} AS made").collect()
    different = {row.text: (row.made, json_number(row.text)) for row in rows if row.made != json_number(row.text)}
    assert different == {}
    finite = [row for row in rows if row.text not in (None, "NaN", "Infinity", "-Infinity")]
    assert all(Decimal(row.made) == Decimal(row.text) for row in finite)
