"""Expressions that make much out of little: NULL or an error by name beyond a limit, and unchanged below it."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.bounded import MOST_CHARACTERS, MOST_COPIES, MOST_DIGITS, bounded
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression


def checked(text: str) -> CheckedExpression:
    columns = {(name,): name for name in ("s", "n", "z")}
    return check_expression(text, columns, operator="calc_t", path="operators.calc_t.filter")


SMALL = [
    "repeat(s, 3)", "repeat(s, n)", "repeat(concat(s, s), n + 1)", "repeat(s, -1)", "repeat(z, 3)", "repeat(s, NULL)",
    "repeat('', 2000000000)", "repeat(NULL, 3)", "repeat(repeat(s, 2), n)",
    "repeat(s, CAST(n AS INT)) || lpad(s, n, '-')", "lpad(s, 9, 'xy')", "rpad(s, n, 'xy')", "lpad(s, 1, 'x')",
    "lpad(z, 4, 'x')", "rpad(s, NULL, 'x')", "lpad(s, -1, 'x')",
    "lpad(repeat(s, 2), n + 5, repeat('-', 2))", "array_repeat(s, n)", "array_repeat(TRUE, CAST(n AS INT))",
    "array_repeat(s, NULL)", "array_repeat(z, 2)", "format_string('%05d|%-8s|%.3f%%', n, s, 1.5D)",
    "coalesce(repeat(s, n), 'x')", "CASE WHEN n > 1 THEN repeat(s, n) ELSE s END",
    "array_repeat(s, size(array_repeat(s, n)))", "n + length(repeat(upper(s), n)) * 2",
    "-n + length(repeat(lower(s), 3))",
]  # fmt: skip
HUGE = [
    "repeat(s, 2000000000)", "repeat('ab', n * 1000000000)", "repeat(repeat(s, 1000000), 1000000)",
    "repeat('abcdefghij', 2000000000)", "lpad(s, 2000000000, 'x')", "rpad(s, n * 1000000000, 'x')",
    "lpad(lpad(s, 2000000000, 'x'), 5, 'x')", f"rpad(s, {MOST_CHARACTERS + 1}, 'x')",
    f"repeat(s, {MOST_CHARACTERS // 2 + 1})",
]  # fmt: skip
NINES = f"'%{'9' * 5_000}d'"


def test_what_is_small_is_what_spark_makes_of_it(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("ab", 2, None), ("", 0, None), (None, 3, None), ("é", None, None)], "s STRING, n INT, z STRING"
    )
    bounds = frame.select(
        *(spark_expression(frame, checked(text)).alias(f"c{i}") for i, text in enumerate(SMALL))
    ).collect()
    plain = frame.select(*(F.expr(text).alias(f"c{i}") for i, text in enumerate(SMALL))).collect()
    assert bounds == plain


def test_what_is_huge_is_null(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("ab", 2)], "s STRING, n INT")
    (row,) = frame.select(
        *(spark_expression(frame, checked(text)).alias(f"c{i}") for i, text in enumerate(HUGE))
    ).collect()
    assert dict(zip(HUGE, row, strict=True)) == dict.fromkeys(HUGE)


def test_what_just_fits_is_made(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("ab", MOST_CHARACTERS // 2)], "s STRING, n INT")
    texts = [f"lpad(s, {MOST_CHARACTERS}, 'x')", "repeat(s, n)"]
    (row,) = frame.select(*(F.length(spark_expression(frame, checked(text))) for text in texts)).collect()
    assert list(row) == [MOST_CHARACTERS, MOST_CHARACTERS]


def test_too_many_copies_fail_by_name(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(MOST_COPIES + 1,)], "n INT")
    with pytest.raises(PySparkException, match="array_repeat makes more than 10,000,000 copies"):
        frame.select(spark_expression(frame, checked("size(array_repeat(TRUE, n))"))).collect()


@pytest.mark.parametrize(
    "form",
    [
        f"'%{MOST_DIGITS + 1}d'",
        "'%2000000000d'",
        "'%-2000000000s'",
        "'%.2000000000f'",
        "'%1$2000000000d'",
        f"'%{'9' * 5_000}d'",
        "s",
    ],
)
def test_formats_that_are_wide_or_not_known_are_refused(form: str) -> None:
    with pytest.raises(RunError, match=r"format_string|not written out"):
        checked(f"format_string({form}, n)")


@pytest.mark.parametrize("text", ["array_repeat(array_repeat(s, 2), 2)", "array_repeat(concat(array_repeat(s, n)), n)"])
def test_copies_of_copies_are_refused(text: str) -> None:
    with pytest.raises(RunError, match="array_repeat on the result of array_repeat"):
        checked(text)


def test_names_of_columns_are_no_calls() -> None:
    assert bounded("`repeat` + `lpad`") == "`repeat` + `lpad`"
    assert bounded("upper ( 'repeat(a, 2)' )") == "upper ( 'repeat(a, 2)' )"


SLOW = [
    "s RLIKE '(a+)+$'", "regexp_like(s, '(a+)+$')", "rlike(s, '(a+)+$')", "split(s, '(a|a)*b')", "s RLIKE r'(a+)+$'",
    "regexp_replace(s, '(a*)*b', '')", "regexp_extract(s, '(a+)+b', 1)", "regexp_extract_all(s, '(a+)+b', 1)",
    "regexp_count(s, '(a+)+b')", "regexp_instr(s, '(a+)+b')", "regexp_substr(s, '(a+)+b')", "NOT s RLIKE '(a+)+b'",
    "str_to_map(s, '(a+)+b', ':')", "str_to_map(s, ',', '(a+)+b')", "try_parse_url(s, 'QUERY', '(a+)+b')",
]  # fmt: skip
FROM_ROWS = [
    "s RLIKE s", "regexp_like(s, s)", "regexp_count(s, z)", "split(s, concat('a', z))", "s RLIKE ('a' || 'b')",
    "s RLIKE ('(a+)+$')",
    "s RLIKE '(a' || '+)+'", "s RLIKE CAST('(a+)+' AS STRING)", "try_parse_url(s, 'QUERY', z)", "str_to_map(s, z)",
]  # fmt: skip


@pytest.mark.parametrize("text", SLOW)
def test_slow_patterns_are_refused_wherever_they_stand(text: str) -> None:
    with pytest.raises(RunError, match="repeats a part that can match the same text in several ways"):
        checked(text)


@pytest.mark.parametrize("text", FROM_ROWS)
def test_patterns_of_rows_are_refused(text: str) -> None:
    with pytest.raises(RunError, match="regular expression that is not a text literal"):
        checked(text)


@pytest.mark.parametrize(
    "text", ["s RLIKE 'a+b' AND n > 1", "split(s, '[.]')", "`split` > 1", "regexp_like(s, 'rlike')"]
)
def test_patterns_that_are_quick_are_taken(text: str) -> None:
    columns = {(name,): name for name in ("s", "n", "split")}
    assert check_expression(text, columns, operator="c", path="p").sql
