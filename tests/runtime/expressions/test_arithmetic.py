"""Integers of expressions wrap around in Spark as in Java, and what cannot overflow is left as the plan says it."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.arithmetic import wrapping
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from tests.runtime.expressions.checking import checked_over
from tests.runtime.integers import ROWS, number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.part(of=2, fixture="spark")

COLUMNS = {(name,): name for name in "tsibxd"}


def checked(text: str) -> CheckedExpression:
    return check_expression(text, COLUMNS, operator="calc_t", path="operators.calc_t")


def typed(**types: str) -> Callable[[Sequence[str]], list[str]]:
    """Types as Spark would tell them: of columns as given, of arithmetic the last of those in it."""
    order = ("tinyint", "smallint", "int", "bigint", "decimal(10,2)", "timestamp_ntz")

    def of(text: str) -> str:
        if text.startswith("CAST"):
            return "bigint"
        found = [kind for name, kind in types.items() if f"`{name}`" in text]
        return max([*found, *(["int"] if any(c.isdigit() for c in text) else [])], key=order.index)

    return lambda texts: [of(text) for text in texts]


def test_integers_of_all_widths_wrap_around(spark: SparkSession) -> None:
    rng = random.Random(5)
    found = [number(rng) for _ in range(60)]
    frame = spark.createDataFrame([tuple(row.values()) for row in ROWS], "t tinyint, s smallint, i int, b bigint")
    computed = [spark_expression(frame, checked(each.text)).alias(f"c{i}") for i, each in enumerate(found)]
    rows = frame.coalesce(1).select(*computed).collect()
    different = {
        each.text: (ours, each.values)
        for i, each in enumerate(found)
        if (ours := tuple(row[i] for row in rows)) != each.values
    }
    assert different == {}


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "t * 1000 + s",
        "CAST(i AS BIGINT) * i + s",
        "CAST(i AS BIGINT) - i div 2",
        "d * 2 + 1",
        "x + INTERVAL '5' DAY - INTERVAL 3 HOURS",
        "i div 7",
        "t * (s - 1)",
    ],
)
def test_what_cannot_overflow_is_as_the_plan_says(text: str) -> None:
    types = typed(t="tinyint", s="smallint", i="int", d="decimal(10,2)", x="timestamp_ntz")
    assert wrapping(checked(text), types).replace(" ", "") == checked(text).sql.replace(" ", "")


def test_only_the_part_that_may_overflow_is_written_anew() -> None:
    text = checked("CASE WHEN s = 'a - 1' THEN i + 1 ELSE -1 END IN (1, 2) AND NOT x IS NULL")
    assert wrapping(text, typed(i="int")) == (
        "CASE WHEN `s` = 'a - 1' THEN CAST(shiftright(shiftleft(CAST(`i` AS BIGINT) + 1, 32), 32) AS INT) "
        "ELSE -1 END IN ( 1 , 2 ) AND NOT `x` IS NULL"
    )


def test_arithmetic_that_would_be_written_too_often_is_refused() -> None:
    text = checked("abs(1 + " * 40 + "b" + ")" * 40)
    with pytest.raises(RunError, match="nested too deeply"):
        wrapping(text, lambda texts: ["bigint"] * len(texts))


@pytest.mark.parametrize("scale", [0, 2, 10, 34, 37, 38])
def test_signs_of_long_decimals_are_exact(spark: SparkSession, scale: int) -> None:
    digits = [0, 1, 10**34 - 1, 10**34, 10**34 + 1, 12345678901234567890123456789012345678, 10**38 - 1]
    values = [Decimal((sign, Decimal(n).as_tuple().digits, -scale)) for n in digits for sign in (0, 1)]
    frame = spark.createDataFrame([(value,) for value in [*values, None]], f"d decimal(38,{scale})").coalesce(1)
    found = frame.select(*(spark_expression(frame, checked(text)) for text in ("-d", "abs(d)", "-abs(-d)"))).collect()
    short = spark.createDataFrame([(Decimal(10) ** 34,)], "d decimal(36,0)")
    assert {f.dataType.simpleString() for f in short.select(spark_expression(short, checked("-d"))).schema} == {
        "decimal(36,0)"
    }
    exact = [(v.copy_negate(), v.copy_abs(), v.copy_abs().copy_negate()) for v in values]
    assert [tuple(row) for row in found] == [*exact, (None, None, None)]


def test_decimals_of_too_many_digits_are_null_and_division_by_zero_fails(spark: SparkSession) -> None:
    """By hand: ``w * w`` has 76 digits, ``w / 0.1`` 39, and ``w / 10`` 37 before the point, where 32 have room."""
    most = Decimal("9" * 38)
    types = "w decimal(38,0), d decimal(38,37), z decimal(38,37)"
    frame = spark.createDataFrame([(most, Decimal("0.1"), Decimal(0))], types).coalesce(1)

    def value(text: str) -> Decimal | None:
        row = frame.select(spark_expression(frame, checked_over(text, "wdz"))).first()
        assert row is not None
        return row[0]

    assert [value(text) for text in ("w + w", "w - (-w)", "w * w", "w / d", "-(w / d) + 1", "w / d / d", "w / 10")] == [
        None
    ] * 7
    assert value("coalesce(w / d, 7)") == 7
    assert value("1 / d") == 10
    assert value("CAST(NULL AS DECIMAL(38, 0)) / z") is None
    assert value("w / d / z") is None
    for text in ("w / z", "w / (z * 1)", "1 / z"):
        with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
            value(text)


def test_only_quotients_that_may_have_too_many_digits_are_written_anew() -> None:
    quotient = checked_over("a / b", "ab")
    assert wrapping(quotient, lambda texts: ["decimal(38,7)"] * len(texts)) == "`a` / `b`"
    assert wrapping(quotient, lambda texts: ["double"] * len(texts)) == "`a` / `b`"
    assert wrapping(checked_over("1 - a / b", "ab"), lambda texts: ["decimal(38,6)"] * len(texts)) == (
        "try_subtract(1, CASE WHEN `b` = 0 THEN `a` / `b` ELSE try_divide(`a`, `b`) END)"
    )
