"""CONVERT_TZ takes zones from columns as Flink recorded it in convert_tz.json: what is no zone is UTC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.spark.session import prepare_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED: list[tuple[str | None, str | None, str | None, str | None]] = [
    tuple(row) for row in json.loads((Path(__file__).parent / "convert_tz.json").read_text(encoding="utf-8"))
]


def compiled(call: str) -> CheckedExpression:
    plan = compile_script(
        "CREATE TABLE t (s STRING, z STRING) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        f"CREATE TABLE r (x STRING) WITH ('connector' = 'print'); INSERT INTO r SELECT {call} FROM t;"
    ).plan
    ((item,),) = (operator.select for operator in plan.operators if isinstance(operator, Calc))
    assert item.expression is not None
    return check_expression(item.expression, {("s",): "s", ("z",): "z"}, operator="c", path="select")


@pytest.mark.spark
def test_a_zone_of_a_row_is_what_flink_takes_it_for(spark: SparkSession) -> None:
    own = prepare_session(spark, time_zone="America/New_York", once=True)
    rows = [(number, *row[:2]) for number, row in enumerate(RECORDED)]
    frame = own.createDataFrame(rows, "i int, s string, z string").coalesce(1)
    calls = ("CONVERT_TZ(s, 'UTC', z)", "CONVERT_TZ(s, z, 'UTC')", "CONVERT_TZ(s, z, z)")
    columns = [spark_expression(frame, compiled(call)).alias(f"c{number}") for number, call in enumerate(calls)]
    found = {row["i"]: (row["c0"], row["c1"], row["c2"]) for row in frame.select("i", *columns).collect()}
    different = {
        (text, zone): (found[number][:2], (there, back))
        for number, (text, zone, there, back) in enumerate(RECORDED)
        if found[number][:2] != (there, back)
    }
    assert different == {}
    same = [(found[i][2], row[0]) for i, row in enumerate(RECORDED) if row[2] is not None and row[1] == "Japan"]
    assert all(one == other for one, other in same)
