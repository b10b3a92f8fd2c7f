"""Expressions over rows of all kinds have the types and values that Flink recorded, or are refused where Flink does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.sql import functions as F

from planner.compile import compile_script
from plans.declarations.types import parse_type
from plans.errors import SqlError
from plans.operators import Calc
from runtime.expressions.allowed import check_expression
from runtime.expressions.arithmetic import spark_expression
from runtime.spark.session import prepare_session
from tests.flink.function_values import FAILS, TABLES
from tests.flink.test_casts import in_spark, table_of
from tests.flink.test_functions import same
from tests.flink.values import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "functions_of_rows.json").read_text(encoding="utf-8")
)
OTHERWISE = {
    # Flink counts a character beyond the first 65,536 as two, and divides it.
    ("texts", "OVERLAY("): "\U0001f600x\U0001f600",
    # A text with a fraction is no integer.
    ("texts", "TRY_CAST(s AS INT)"): "-7.5",
    # NaN is greater than all numbers.
    ("numbers", "d NOT BETWEEN SYMMETRIC"): "NaN",
    # Flink has infinity as the root of the negative one.
    ("numbers", "SQRT(d)"): "-Infinity",
    # Flink rounds the numbers of the list to INT.
    ("numbers", "i IN (1, 65.0, 0.5)"): "0",
}
"""What is meant otherwise: table, begin of the expressions, and a value of the rows."""
TAKEN = ("DATE_FORMAT(y, 'yyyy-MM-dd')",)
"""Taken by us alone."""
BEFORE_1970 = ("CAST(CAST(ts AS TIMESTAMP(0))", "FLOOR(", "EXTRACT(SECOND FROM us)")
"""Where Flink goes towards 1970."""
OF_CENTURIES = "TIMESTAMPDIFF(WEEK"
"""Flink's weeks between times that are further apart than INT has seconds."""
READING = ("TO_TIMESTAMP(s", "TO_DATE(s", "UNIX_TIMESTAMP(s")
"""Flink reads texts that say more or less than the pattern, or the last day of a month for a later one."""


def meant_otherwise(table: str, sql: str, row: tuple[str | None, ...]) -> bool:
    if any(table == t and sql.startswith(begin) and value in row for (t, begin), value in OTHERWISE.items()):
        return True
    if table != "times" or row[0] is None:
        return False
    old = row[0] < "1970" and "00:00:00" not in row[0]
    far = abs(int(row[0][:4]) - int((row[1] or "")[:4])) > 60
    return (sql.startswith(BEFORE_1970) and old) or (sql.startswith(OF_CENTURIES) and far) or sql.startswith(READING)


def refused_by_us() -> set[str]:
    """Expressions that Flink takes and we do not, each with the reason: functions_of_rows_refused.txt."""
    text = (Path(__file__).parent / "functions_of_rows_refused.txt").read_text(encoding="utf-8")
    return {line for line in text.splitlines() if line and not line.startswith("#")}


def compiled(table: str, sql: str) -> tuple[str, str] | str:
    """The checked expression of a plan with its type, or the message of a refusal."""
    columns = ", ".join(f"{name} {kind}" for name, kind in TABLES[table][0].items())
    script = f"CREATE TABLE t ({columns}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
    try:
        compile_script(f"{script} CREATE TABLE x (r MAP<INT, INT>) WITH ('connector' = 'print');"
                       f"INSERT INTO x SELECT {sql} FROM t;")  # fmt: skip
        raise AssertionError("nothing is a MAP")
    except SqlError as error:
        message = error.diagnostics[0].message
    if not message.startswith("column 'r' of sink"):
        return message
    kind = message.rpartition(" is ")[2]
    plan = compile_script(
        f"{script} CREATE TABLE x (r {kind}) WITH ('connector' = 'print'); INSERT INTO x SELECT {sql} FROM t;"
    ).plan
    ((item,),) = (o.select for o in plan.operators if isinstance(o, Calc))
    assert item.expression is not None
    known = {(name,): name for name in TABLES[table][0]}
    return check_expression(item.expression, known, operator="c", path="select").sql, kind


def same_of(kind: str, ours: Any, flinks: Any) -> bool:
    if kind == "FLOAT" and None not in (ours, flinks):
        return bool(np.array_equal(np.float32(ours), np.float32(flinks), equal_nan=True))
    return same(ours, flinks)


def rows_of(spark: SparkSession, table: str) -> DataFrame:
    columns, rows = TABLES[table]
    made = spark.createDataFrame(
        [(i, *row) for i, row in enumerate(rows)], ", ".join(("n int", *(f"`{c}` string" for c in columns)))
    )
    typed = (f"CAST(`{name}` AS {in_spark(kind)}) AS `{name}`" for name, kind in columns.items())
    return made.coalesce(1).selectExpr("n", *typed).localCheckpoint()


@pytest.mark.spark
@pytest.mark.parametrize("table", RECORDED)
def test_expressions_over_rows_have_the_values_that_flink_recorded(spark: SparkSession, table: str) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    frame = rows_of(own, table)
    columns, different, refused = {}, [], refused_by_us()
    for sql, recorded in RECORDED[table].items():
        found = compiled(table, sql)
        if "error" in recorded:
            if not isinstance(found, str) and sql not in TAKEN:
                different.append(f"{sql}: taken by us alone")
            continue
        if isinstance(found, str):
            if sql not in refused:
                different.append(f"{sql}: refused: {found}")
            continue
        if sql in refused:
            different.append(f"{sql}: not refused any more")
        text, kind = found
        one, other = parse_type(kind), parse_type(recorded["type"])
        if one != other and not {one.root, other.root} <= {"CHAR", "VARCHAR", "STRING"}:
            different.append(f"{sql}: {one}, not {other}")
        answered = [i for i, value in enumerate(recorded["values"]) if value != FAILS]
        columns[sql] = F.when(F.col("n").isin(answered), spark_expression(frame, text)).alias(sql)
    for sql, values in table_of(frame, columns).items():
        for i, (value, recorded) in enumerate(zip(values, RECORDED[table][sql]["values"], strict=True)):
            if recorded == FAILS or meant_otherwise(table, sql, TABLES[table][1][i]):
                continue
            if not same_of(RECORDED[table][sql]["type"], plain(value), recorded):
                different.append(f"{sql} of {TABLES[table][1][i]}: {plain(value)!r}, not {recorded!r}")
    assert not different, "\n".join(["", *different])
