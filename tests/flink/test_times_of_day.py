"""TIME in expressions is what Flink recorded in times_of_day.json, or refused as docs/sql/types.md says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Aggregate, Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.spark.session import prepare_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "times_of_day.json").read_text(encoding="utf-8")
)
COLUMNS = {"i": "INT", "s": "STRING", "ts": "TIMESTAMP(6)", "lz": "TIMESTAMP_LTZ(3)", "d": "DATE"}
FINER = ("TIME(6)", "TIME(9)")
REFUSED = (
    *("CEIL(", " TO DAY)", "TIMESTAMPADD(MONTH", "TYPEOF(", "HASH_CODE(", "INTERVAL '0.5'"),
    # A MAP as text, and a column of text beside a TIME.
    *("MAP[", "< s"),
)
"""What is refused though Flink takes it."""
AGGREGATES = ("MIN(", "MAX(", "COUNT(", "COLLECT(", "FIRST_VALUE(", "ARRAY_AGG(")


def script(expression: str, kind: str = "STRING") -> str:
    columns = ", ".join(f"{name} {declared}" for name, declared in COLUMNS.items())
    value = f"CAST({expression} AS STRING)" if kind == "STRING" else expression
    return (
        f"CREATE TABLE t ({columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        f"CREATE TABLE r (y {kind}) WITH ('connector' = 'print'); INSERT INTO r SELECT {value} FROM t;"
    )


def compiled(expression: str) -> CheckedExpression:
    """The expression of Spark that ``expression`` becomes, as text."""
    ((item,),) = (o.select for o in compile_script(script(expression)).plan.operators if isinstance(o, Calc))
    assert item.expression is not None
    return check_expression(item.expression, {(name,): name for name in COLUMNS}, operator="c", path="select")


def is_scalar(expression: str) -> bool:
    return not expression.startswith(AGGREGATES)


TAKEN = [e for e, found in RECORDED.items() if "value" in found and not any(f in e for f in (*FINER, *REFUSED))]


@pytest.mark.parametrize("expression", TAKEN)
def test_an_expression_has_the_type_that_flink_recorded(expression: str) -> None:
    kind = RECORDED[expression]["type"].replace(" NOT NULL", "")
    compile_script(script(expression, kind))
    if kind.startswith("TIME("):
        other = {"TIME(0)": "TIME(1)", "TIME(1)": "TIME(0)", "TIME(3)": "TIME(2)"}[kind]
        if other < kind:
            with pytest.raises(SqlError, match="is TIME"):
                compile_script(script(expression, other))


@pytest.mark.parametrize("expression", [e for e in RECORDED if e not in TAKEN])
def test_what_is_not_taken_is_refused(expression: str) -> None:
    with pytest.raises(SqlError):
        compile_script(script(expression))


@pytest.mark.spark
def test_an_expression_has_the_value_that_flink_recorded(spark: SparkSession) -> None:
    own = prepare_session(spark, time_zone="Europe/Berlin", once=True)
    frame = own.sql(
        "SELECT 1 AS i, '10:11:12.345' AS s, TIMESTAMP_NTZ '2024-02-29 13:14:15.678912' AS ts, "
        "TIMESTAMP '2024-02-29 13:14:15.678' AS lz, DATE '2024-02-29' AS d"
    )
    scalars = [e for e in TAKEN if is_scalar(e)]
    columns = [spark_expression(frame, compiled(e)).alias(f"c{n}") for n, e in enumerate(scalars)]
    (row,) = frame.select(*columns).collect()
    found = dict(zip(scalars, row, strict=True))
    assert found == {e: RECORDED[e]["value"] for e in scalars}


@pytest.mark.parametrize("expression", [e for e in TAKEN if not is_scalar(e)])
def test_an_aggregate_of_times_has_its_type(expression: str) -> None:
    plan = compile_script(script(expression, RECORDED[expression]["type"].replace(" NOT NULL", ""))).plan
    ((call,),) = (operator.aggregates for operator in plan.operators if isinstance(operator, Aggregate))
    assert call.type == RECORDED[expression]["type"].replace(" NOT NULL", "")
