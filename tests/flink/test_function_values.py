"""Expressions over rows of all kinds have the types and values that Flink recorded, or are refused where Flink does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.sql import functions as F

from hintplan.planner.compile import compile_script
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.spark.session import prepare_session
from tests.flink.function_values import FAILS, TABLES, ZONES
from tests.flink.test_casts import in_spark, table_of
from tests.flink.test_functions import same
from tests.flink.values import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.part(of=4, fixture="spark")

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
    # A text with an exponent is a number.
    ("texts", "s > 5"): "1e3",
    # Flink has infinity as the root of the negative one.
    ("numbers", "SQRT(d)"): "-Infinity",
    # Flink rounds the numbers of the list to INT.
    ("numbers", "i IN (1, 65.0, 0.5)"): "0",
}
"""What is meant otherwise: table, begin of the expressions, and a value of the rows."""
TAKEN = (
    "DATE_FORMAT(y, 'yyyy-MM-dd')",
    # A DATE beside a TIMESTAMP is its midnight.
    *("y = ts", "y < ts", "y IN (ts)", "ts >= y"),
)
"""Taken by us alone."""
NOT_FAILING = (
    # Flink copies more characters than there is memory for, or counts past the end of INT.
    *("OVERLAY(s PLACING r FROM 1 FOR k)", "REPEAT(r, k)"),
    # Flink fails at an entry without a value, at an empty set of characters, at what is no Base64, and at what no
    # DECIMAL is; docs/functions/numbers.md says what is computed instead.
    *("STR_TO_MAP(s)", "BTRIM(s, r)", "FROM_BASE64(s)", "ROUND(d, 1)", "ROUND(f, 1)"),
    # Flink fails at values of another type than what is to be returned, and at each DEFAULT of DOUBLE; as above.
    *(
        "JSON_VALUE(d, '$.a' RETURNING ",
        "JSON_VALUE(d, 'lax $.a' RETURNING ",
        "JSON_VALUE(d, 'lax $.b' RETURNING DOUBLE ",
    ),
)
"""Where Flink fails for a row, and we do not."""
BEFORE_1970 = re.compile(
    r"FLOOR\(|CAST\(CAST\(ts AS TIMESTAMP\(0\)|CAST\((ts|lz) AS DATE|EXTRACT\([A-Z]+ FROM (ts|lz|us)|"
    r"(YEAR|QUARTER|MONTH|WEEK|DAYOF[A-Z]+|HOUR|MINUTE|SECOND)\((ts|lz|us)\)"
)
"""Where Flink goes towards 1970."""
OF_CENTURIES = "TIMESTAMPDIFF(WEEK"
"""Flink's weeks between times that are further apart than INT has seconds."""
OTHER_TYPES = (
    # Flink makes a DATE of the time.
    "COALESCE(y, ts)",
    # Flink cuts the result of a FLOAT and a DOUBLE to a FLOAT.
    *("f * d", "f + d", "f / d"),
)
"""What has another type, as the pages of docs/functions says."""
ZERO_COUNTED = ("i % 0.7",)
"""Flink counts the zero before the point into the type of a literal; values are compared."""
READING = re.compile(
    r"(?:TO_TIMESTAMP|TO_DATE|UNIX_TIMESTAMP)\(s(?:, '(.+)')?\)|TRY_CAST\(s AS TIMESTAMP|DATE_FORMAT\(s|CONVERT_TZ\(s"
)
BEFORE_1900 = "CONVERT_TZ("
"""Java's old time zones have one offset then, Spark's the time of the sun at a place."""


def read_otherwise(sql: str, text: str | None) -> bool:
    """Whether Flink alone reads ``text``: a day that is not there, or what says more or less than the pattern."""
    found = READING.match(sql)
    if found is None or text is None:
        return False
    if "02-30" in text or ((sql.endswith("(s)") or "CAST" in sql) and text.strip() != text):
        return True
    if found[1] is None and not sql.startswith("UNIX_TIMESTAMP"):
        return False
    shape = re.sub("[yMdHms]", "[0-9]", found[1] or "yyyy-MM-dd HH:mm:ss")
    return re.fullmatch(shape, text) is None


ON_DAYS_OF_CLOCK_CHANGE = {
    # Spark counts the hours of a TIMESTAMP in the session time zone, in which this one is not there.
    "TIMESTAMPDIFF(HOUR, ts, TIMESTAMP '2024-03-11 00:00:00')": ("2024-03-10 02:30:00",),
    # Flink takes the hours since midnight as if the clock had not been changed.
    "CAST(FLOOR(lz TO DAY) AS STRING)": ("2024-03-10 02:30:00", "2024-03-10 03:00:00", "2024-11-03 06:30:00"),
    # A day is the same time on the next day; in Flink, 24 hours.
    "CAST(lz + INTERVAL '1' DAY AS STRING)": ("2024-03-10 01:59:59.999", "2024-11-03 01:30:00"),
    # Of a time that is there twice, Spark takes the first, and Flink the second.
    "UNIX_TIMESTAMP(s)": ("2024-11-03 01:30:00",),
}
"""What is otherwise for some times in America/New_York; docs/functions/times.md says so."""
_BEYOND = re.compile(r"(1[0-9]{4}|0000)-")
"""The year of a time that Python has not, and that cannot be compared."""


def meant_otherwise(table: str, sql: str, row: tuple[str | None, ...]) -> bool:
    if any(table == t and sql.startswith(begin) and value in row for (t, begin), value in OTHERWISE.items()):
        return True
    if table == "clocks" and sql in ON_DAYS_OF_CLOCK_CHANGE:
        return row[0] in ON_DAYS_OF_CLOCK_CHANGE[sql]
    if table != "times" or row[0] is None:
        return False
    old = row[0] < "1970" and "00:00:00" not in row[0]
    far = abs(int(row[0][:4]) - int((row[1] or "")[:4])) > 60
    if read_otherwise(sql, row[-1]) or (sql.startswith(BEFORE_1900) and row[0] < "1900" and "(s" not in sql):
        return True
    return (BEFORE_1970.match(sql) is not None and old) or (sql.startswith(OF_CENTURIES) and far)


def beyond(value: Any) -> bool:
    return isinstance(value, str) and _BEYOND.match(value) is not None


def refused_by_us() -> dict[str, str]:
    """Expressions that Flink takes and we do not, each with what the refusal says: functions_of_rows_refused.txt."""
    found, said = {}, ""
    for line in (Path(__file__).parent / "functions_of_rows_refused.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            said = line[1:-1]
        elif line and not line.startswith("#"):
            found[line] = said
    return found


def compiled(table: str, sql: str) -> tuple[CheckedExpression, str] | str:
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
    return check_expression(item.expression, known, operator="c", path="select"), kind


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
    own = prepare_session(spark, time_zone=ZONES.get(table, "UTC"), once=True)
    frame = rows_of(own, table)
    columns, different, refused = {}, [], refused_by_us()
    failing: dict[str, tuple[str, list[int]]] = {}
    for sql, recorded in RECORDED[table].items():
        found = compiled(table, sql)
        if "error" in recorded:
            if not isinstance(found, str) and sql not in TAKEN:
                different.append(f"{sql}: taken by us alone")
            continue
        if isinstance(found, str):
            if sql not in refused or refused[sql] not in found:
                different.append(f"{sql}: refused: {found}")
            continue
        if sql in refused:
            different.append(f"{sql}: not refused any more")
        checked, kind = found
        one, other = parse_type(kind), parse_type(recorded["type"])
        if sql in OTHER_TYPES:
            continue
        if one != other and sql not in ZERO_COUNTED and not {one.root, other.root} <= {"CHAR", "VARCHAR", "STRING"}:
            different.append(f"{sql}: {one}, not {other}")
        answered = [i for i, value in enumerate(recorded["values"]) if value != FAILS and not beyond(value)]
        if FAILS in recorded["values"] and not sql.startswith(NOT_FAILING):
            failing[sql] = checked, [i for i, value in enumerate(recorded["values"]) if value == FAILS]
        columns[sql] = F.when(F.col("n").isin(answered), spark_expression(frame, checked)).alias(sql)
    for sql, values in table_of(frame, columns).items():
        for i, (value, recorded) in enumerate(zip(values, RECORDED[table][sql]["values"], strict=True)):
            if recorded == FAILS or beyond(recorded) or meant_otherwise(table, sql, TABLES[table][1][i]):
                continue
            if not same_of(RECORDED[table][sql]["type"], plain(value), recorded):
                different.append(f"{sql} of {TABLES[table][1][i]}: {plain(value)!r}, not {recorded!r}")
    for sql, (checked, rows) in failing.items():
        for i in rows:
            if meant_otherwise(table, sql, TABLES[table][1][i]):
                continue
            alone = frame.where(F.col("n") == i).select(spark_expression(frame, checked).alias("x"))
            if table_of(alone, {"x": F.col("x")})["x"] != [FAILS]:
                different.append(f"{sql} of {TABLES[table][1][i]}: does not fail, as Flink does")
    assert not different, "\n".join(["", *different])
