"""Expressions over ROW, ARRAY and MAP have the type and the value that Flink recorded for them in nested.json.

Those at which Flink's job failed fail in Spark, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from hintplan.planner.compile import compile_script
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.results.text import cell
from hintplan.runtime.spark.session import prepare_session
from hintplan.runtime.types import to_arrow, to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ANSWERS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "nested.json").read_text(encoding="utf-8"))
RECORDED = {sql: answer for sql, answer in _ANSWERS.items() if "error" not in answer}
FAILING = [sql for sql in _ANSWERS if sql not in RECORDED]
COLUMNS = {
    "i": ("INT", "7"),
    "n": ("INT", "NULL"),
    "b": ("BIGINT", "10"),
    "d": ("DOUBLE", "2.5"),
    "s": ("STRING", "'Hello'"),
    "u": ("STRING", "NULL"),
    "o": ("BOOLEAN", "true"),
    "ai": ("ARRAY<INT>", "array(3, 1, 2, 1)"),
    "an": ("ARRAY<INT>", "array(1, NULL, 3)"),
    "ae": ("ARRAY<INT>", "array()"),
    "au": ("ARRAY<INT>", "NULL"),
    "ast": ("ARRAY<STRING>", "array('b', 'a', 'b')"),
    "asn": ("ARRAY<STRING>", "array('a', NULL, 'c')"),
    "aa": ("ARRAY<ARRAY<INT>>", "array(array(1, 2), array(3))"),
    "mp": ("MAP<STRING, INT>", "map('a', 1, 'b', 2)"),
    "mu": ("MAP<STRING, INT>", "NULL"),
    "r": (
        "ROW<a INT, b STRING, c ROW<d DOUBLE>>",
        "named_struct('a', 1, 'b', 'x', 'c', named_struct('d', 2.5D))",
    ),
    "rn": ("ROW<a INT, b STRING>", "named_struct('a', 7, 'b', CAST(NULL AS STRING))"),
    "ru": ("ROW<a INT, b STRING>", "NULL"),
    "ar": ("ARRAY<ROW<a INT, b STRING>>", "array(named_struct('a', 1, 'b', 'x'), named_struct('a', 2, 'b', 'y'))"),
}
"""The columns of the row that nested.txt lists, with their values in Spark."""
_TEXT = ("CHAR", "VARCHAR", "STRING")


def compiled(sql: str, data_type: str) -> Plan:
    columns = ", ".join(f"`{name}` {declared}" for name, (declared, _) in COLUMNS.items())
    return compile_script(
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        f"CREATE TABLE result (x {data_type}) WITH ('connector' = 'print');"
        f"INSERT INTO result SELECT {sql} FROM t;"
    ).plan


def type_of(sql: str) -> str:
    """The type of ``sql`` before it is fitted to a sink, which the refusal of a sink of another type tells."""
    with pytest.raises(SqlError) as caught:
        compiled(sql, "MAP<BYTES, BYTES>")
    return caught.value.diagnostics[0].message.rpartition(" is ")[2]


def alike(one: DataType, other: DataType) -> bool:
    """Whether two types are the same but for the lengths of text and for NULL."""
    if {one.root, other.root} <= set(_TEXT):
        return True
    if not one.is_nested:
        return one.as_nullable() == other.as_nullable()
    same = one.root == other.root and one.names == other.names and len(one.children) == len(other.children)
    return same and all(map(alike, one.children, other.children))


@pytest.mark.parametrize("sql", RECORDED)
def test_an_expression_has_the_type_that_flink_recorded(sql: str) -> None:
    assert alike(parse_type(type_of(sql)), parse_type(RECORDED[sql]["type"])), type_of(sql)


def row_in_spark(spark: SparkSession) -> DataFrame:
    session = prepare_session(spark, time_zone="UTC", once=True)
    return session.range(1).selectExpr(
        *(f"CAST({value} AS {to_spark(kind).simpleString()}) AS {name}" for name, (kind, value) in COLUMNS.items())
    )


def in_spark(sql: str, data_type: str, row: DataFrame) -> Column:
    """What the plan of ``sql`` computes of ``row``."""
    items = [item for o in compiled(sql, data_type).operators if isinstance(o, Calc) for item in o.select]
    known: dict[tuple[str, ...], str] = {(name,): name for name in COLUMNS}
    checked = check_expression(items[0].expression or items[0].name if items else sql, known, operator="c", path="s")
    return spark_expression(row, checked)


@pytest.mark.spark
def test_expressions_have_in_spark_the_values_that_flink_recorded(spark: SparkSession) -> None:
    row = row_in_spark(spark)
    types = {sql: type_of(sql) for sql in RECORDED}
    selected = [
        in_spark(sql, types[sql], row).cast(to_spark(types[sql])).alias(f"c{place}")
        for place, sql in enumerate(RECORDED)
    ]
    found = row.select(*selected).toArrow()
    different = {}
    for place, (sql, recorded) in enumerate(RECORDED.items()):
        value = found.column(place).cast(to_arrow(types[sql])).to_pylist()[0]
        shown = cell(types[sql], "UTC")(value)
        if shown != recorded["value"]:
            different[sql] = (shown, recorded["value"])
    assert different == {}, "ours and Flink's"


@pytest.mark.spark
@pytest.mark.parametrize("sql", FAILING)
def test_what_fails_in_flink_fails_in_spark(spark: SparkSession, sql: str) -> None:
    row = row_in_spark(spark)
    with pytest.raises(PySparkException) as caught:
        row.select(in_spark(sql, type_of(sql), row)).collect()
    assert "ELEMENT is given an array that has more than one element" in str(caught.value)
