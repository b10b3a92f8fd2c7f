"""Texts are cast to days and times as Flink recorded it in times_of_text.json, from columns and as constants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.spark.session import prepare_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED: dict[str, dict[str, str | None]] = json.loads(
    (Path(__file__).parent / "times_of_text.json").read_text(encoding="utf-8")
)

# What docs/functions/casts.md says is meant otherwise: days that the month has not, the hour 24, parts that are
# left out, years of other than four digits, the year 0 as a constant.
OURS: dict[str, dict[str, str | None]] = {
    "DATE": {"24-02-29": None, "2024-001-01": None, "2024-1-001": None, "02024-01-01": None},
    "TIMESTAMP": {
        "2024-02-30": None,
        "2023-02-29": None,
        "2024-04-31": None,
        "2024-02-30 10:00:00": None,
        "2024-02-29 24:00:00": None,
        "2024-02-": None,
        "0000-01-01": "0000-01-01 00:00:00.000",
    },
    # Offsets, more than two digits of a part, and what stands behind a fraction; a fraction is cut, not rounded.
    "TIME": {
        **dict.fromkeys(("10:11:12+01:00", "10:011:12", "10:11:012", "010:11:12", "10:11:12.3x")),
        "10:11:12.1234567890": None,
        "10:11:12.3456789": "10:11:12.345",
    },
}


def expected(target: str) -> dict[str, str | None]:
    own = OURS[target.partition("(")[0].removesuffix("_LTZ")]
    fraction = {"TIMESTAMP(0)": 19, "TIME(0)": 8, "TIME(1)": 10}.get(target, 23)
    return RECORDED[target] | {text: value and value[:fraction] for text, value in own.items()}


def compiled(value: str, target: str, function: str = "TRY_CAST") -> CheckedExpression:
    plan = compile_script(
        "CREATE TABLE t (x STRING) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        "CREATE TABLE s (r STRING) WITH ('connector' = 'print');"
        f"INSERT INTO s SELECT CAST({function}({value} AS {target}) AS STRING) FROM t;"
    ).plan
    ((item,),) = (o.select for o in plan.operators if isinstance(o, Calc))
    assert item.expression is not None
    return check_expression(item.expression, {("x",): "x"}, operator="c", path="select")


@pytest.mark.spark
def test_a_column_is_cast_as_flink_casts_it(spark: SparkSession) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    texts = sorted({text for texts in RECORDED.values() for text in texts})
    frame = own.createDataFrame([(text,) for text in texts], "x string").coalesce(1)
    columns = [spark_expression(frame, compiled("x", target)).alias(target) for target in RECORDED]
    found = {row["x"]: row for row in frame.select("x", *columns).collect()}
    different = {
        (target, text): (found[text][target], value)
        for target in RECORDED
        for text, value in expected(target).items()
        if found[text][target] != value
    }
    assert different == {}


@pytest.mark.parametrize("text", RECORDED["DATE"])
def test_a_constant_day_is_what_flink_says(text: str) -> None:
    day = expected("DATE")[text]
    if text.startswith("0000"):
        day = None
    shown = f"DATE '{day}'" if day else "NULL"
    assert compiled(f"'{text}'", "DATE").sql == f"CAST ( {shown} AS STRING )"
    if day is None:
        with pytest.raises(SqlError, match="is not a DATE"):
            compiled(f"'{text}'", "DATE", "CAST")


@pytest.mark.parametrize("text", ["2024-02-29T10:00:00", "2024-02-29 10:00", "2024", "2024-02-29 10:00:00Z"])
@pytest.mark.parametrize("target", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"])
def test_a_constant_that_is_no_time_is_null_or_refused(text: str, target: str) -> None:
    assert RECORDED[target].get(text) is None
    assert compiled(f"'{text}'", target).sql == "CAST ( NULL AS STRING )"
    with pytest.raises(SqlError, match=f"is not a {target.partition('(')[0]}"):
        compiled(f"'{text}'", target, "CAST")
