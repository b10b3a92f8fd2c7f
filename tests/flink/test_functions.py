"""Expressions have the type and the value that Flink recorded for them in functions.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hintplan.plans.declarations.types import parse_type
from hintplan.runtime.expressions.spark_columns import spark_expression
from tests.flink.values import plain
from tests.planner.expressions.one_expression import ROW, expression_of, type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "functions.json").read_text(encoding="utf-8"))
# Flink counts the length of what it computed into a type; with us, all of them are STRING.
_TEXT = ("CHAR", "VARCHAR", "STRING")


@pytest.mark.parametrize("sql", RECORDED)
def test_an_expression_has_the_type_that_flink_recorded(sql: str) -> None:
    found, recorded = parse_type(type_of(sql)), parse_type(RECORDED[sql]["type"])
    assert found == recorded or {found.root, recorded.root} <= set(_TEXT)


@pytest.mark.spark
def test_expressions_have_in_spark_the_values_that_flink_recorded(spark: SparkSession) -> None:
    row = spark.range(1).selectExpr(*(f"{value} AS `{name}`" for name, (_, value) in ROW.items()))
    texts = [expression_of(sql, type_of(sql))[0] for sql in RECORDED]
    found = row.select(*(spark_expression(row, text).alias(f"c{i}") for i, text in enumerate(texts))).first()
    assert found is not None
    different = {
        sql: (plain(value), recorded["value"])
        for (sql, recorded), value in zip(RECORDED.items(), found, strict=True)
        if not same(plain(value), recorded["value"])
    }
    assert different == {}, "ours and Flink's"


def same(ours: Any, flinks: Any) -> bool:
    """Equal; doubles that both compute with a library of their own, up to the last digits."""
    try:
        return ours == flinks or float(ours) == pytest.approx(float(flinks), rel=1e-14, nan_ok=True)
    except (TypeError, ValueError):
        return bool(ours == flinks)
