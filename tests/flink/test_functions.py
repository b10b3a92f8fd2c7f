"""Expressions have the type and the value that Flink recorded for them in functions.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planner.compile import compile_script
from plans.errors import SqlError
from plans.model import Calc, Plan
from plans.types import parse_type
from runtime.expressions import check_expression
from tests.flink.values import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "functions.json").read_text(encoding="utf-8"))
# The row of record_functions.py: the types of its columns, and their values in Spark.
ROW = {
    "t": ("TINYINT", "CAST(7 AS TINYINT)"),
    "i": ("INT", "7"),
    "m": ("INT", "-7"),
    "z": ("INT", "0"),
    "n": ("INT", "CAST(NULL AS INT)"),
    "b": ("BIGINT", "CAST(10 AS BIGINT)"),
    "f": ("FLOAT", "CAST(1.5 AS FLOAT)"),
    "d": ("DOUBLE", "2.5D"),
    "e": ("DOUBLE", "-2.5D"),
    "p": ("DECIMAL(10, 2)", "CAST(12.35 AS DECIMAL(10, 2))"),
    "q": ("DECIMAL(5, 1)", "CAST(-2.5 AS DECIMAL(5, 1))"),
    "s": ("STRING", "'Hello'"),
    "v": ("STRING", "' a\\\\b '"),
    "w": ("STRING", "''"),
    "u": ("STRING", "CAST(NULL AS STRING)"),
    "x": ("STRING", "'größer'"),
    "o": ("BOOLEAN", "true"),
    "y": ("DATE", "DATE '2024-02-29'"),
    "ts": ("TIMESTAMP(3)", "TIMESTAMP_NTZ '2024-02-29 13:14:15.678'"),
    "ld": ("DATE", "DATE '2024-01-31'"),
    "lt": ("TIMESTAMP(3)", "TIMESTAMP_NTZ '2024-01-31 10:00:00'"),
}
# Flink counts the length of what it computed into a type; with us, all of them are STRING.
_TEXT = ("CHAR", "VARCHAR", "STRING")


def plan_of(sql: str, data_type: str) -> Plan:
    columns = ", ".join(f"`{name}` {declared}" for name, (declared, _) in ROW.items())
    return compile_script(
        f"CREATE TABLE row1 ({columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        f"CREATE TABLE s (r {data_type}) WITH ('connector' = 'print');"
        f"INSERT INTO s SELECT {sql} FROM row1;"
    ).plan


def type_of(sql: str) -> str:
    """The type of ``sql`` before it is fitted to a sink, which the refusal of a sink of another type tells."""
    with pytest.raises(SqlError) as caught:
        plan_of(sql, "MAP<INT, INT>")
    return caught.value.diagnostics[0].message.rpartition(" is ")[2]


def expression_of(sql: str) -> str:
    """What the plan computes for ``sql``, checked as a run checks it."""
    (calc,) = [o for o in plan_of(sql, type_of(sql)).operators if isinstance(o, Calc)]
    (item,) = calc.select
    checked = check_expression(item.expression or "", {(name,): name for name in ROW}, operator=calc.id, path="select")
    return checked.sql


@pytest.mark.parametrize("sql", RECORDED)
def test_an_expression_has_the_type_that_flink_recorded(sql: str) -> None:
    found, recorded = parse_type(type_of(sql)), parse_type(RECORDED[sql]["type"])
    assert found == recorded or {found.root, recorded.root} <= set(_TEXT)


@pytest.mark.spark
def test_expressions_have_in_spark_the_values_that_flink_recorded(spark: SparkSession) -> None:
    row = spark.range(1).selectExpr(*(f"{value} AS `{name}`" for name, (_, value) in ROW.items()))
    found = row.selectExpr(*(f"{expression_of(sql)} AS c{i}" for i, sql in enumerate(RECORDED))).first()
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
