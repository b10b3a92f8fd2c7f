"""Forms that Spark computes less often have the same values, and other texts stay as they are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan.planner.compile import compile_sql
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.fewer_calls import fewer_calls
from hintplan.runtime.expressions.spark_columns import spark_expression

TEXTS = ("", "/", "a/b/c", "https://h/x/y?channel_id=7&z", "channel_id=", "&channel_id=", None, "Apple", "é/ü")
PATTERN = "'(&|^)channel_id=([^&]*)'"


def split_index(number: int, separator: str = "/") -> str:
    return f"CASE WHEN s <> '' THEN get(split(s, '{separator}'), {number}) ELSE CAST(NULL AS STRING) END"


def extracted(number: int, pattern: str = PATTERN) -> str:
    call = f"regexp_extract(s, {pattern}, {number})"
    return f"CASE WHEN regexp_like(s, {pattern}) THEN {call} ELSE CAST(NULL AS STRING) END"


REWRITTEN = [
    *(split_index(number) for number in range(4)),
    f"length({split_index(1)}) > 0 AND {split_index(0, 'h')} IS NULL",
    *(f"{extracted(number)} IS NOT NULL" for number in range(3)),
    f"NOT ({extracted(2)} IS NOT NULL)",
    f"{extracted(2)} IS NOT NULL OR lower(s) IN ('apple', 'google')",
    f"{extracted(2)} IS NOT NULL OR n > 1 OR lower(s) = 'apple' OR upper(t) <> 'B'",
]
KEPT = [
    extracted(2),
    "CASE WHEN s <> '' THEN get(split(t, '/'), 1) ELSE CAST(NULL AS STRING) END",
    "CASE WHEN s <> 'x' THEN get(split(s, '/'), 1) ELSE CAST(NULL AS STRING) END",
    "CASE WHEN s <> '' THEN get(split(s, '/'), n) ELSE CAST(NULL AS STRING) END",
    "CASE WHEN s <> '' THEN get(split(s, '/'), 1) ELSE t END",
    "CASE WHEN s <> '' THEN get(split(s, '/'), 1) WHEN n > 0 THEN t ELSE CAST(NULL AS STRING) END",
    "CASE WHEN regexp_like(s, 'a') THEN regexp_extract(s, 'b', 0) ELSE CAST(NULL AS STRING) END IS NOT NULL",
    "regexp_like(s, 'a') OR 1 / n > 0 AND lower(s) = 'x'",
    "regexp_like(s, 'a') OR lower(s) = t",
    "regexp_like(s, 'a') OR 1 / n > 0",
]


def checked(text: str) -> CheckedExpression:
    return check_expression(text, {(name,): name for name in "stn"}, operator="calc_t", path="operators.calc_t.filter")


@pytest.mark.parametrize("text", REWRITTEN)
def test_a_form_gets_other_words(text: str) -> None:
    assert fewer_calls(checked(text)).sql != checked(text).sql


@pytest.mark.parametrize("text", KEPT)
def test_another_text_stays(text: str) -> None:
    assert fewer_calls(checked(text)).sql == checked(text).sql


def test_the_compiler_writes_these_forms() -> None:
    plan = compile_sql(
        "CREATE TABLE t (s STRING) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        "CREATE TABLE r (a STRING) WITH ('connector' = 'print');"
        f"INSERT INTO r SELECT SPLIT_INDEX(s, '/', 3) FROM t WHERE REGEXP_EXTRACT(s, {PATTERN}, 2) IS NOT NULL"
    )
    texts = [text for operator in plan.operators for _, text in operator.expressions() if text is not None]
    assert texts == [split_index(3), f"{extracted(2)} IS NOT NULL"]


@pytest.mark.spark
def test_the_values_are_those_of_the_text_as_it_is(spark: SparkSession) -> None:
    rows = [(s, t, n) for s in TEXTS for t, n in (("b", 2), (None, None), ("", 1))]
    frame = spark.createDataFrame(rows, "s STRING, t STRING, n INT")
    texts = REWRITTEN
    found = frame.select(*(spark_expression(frame, checked(text)).alias(f"c{i}") for i, text in enumerate(texts)))
    plain = frame.select(*(F.expr(text).alias(f"c{i}") for i, text in enumerate(texts)))
    assert found.collect() == plain.collect()
