"""CAST and TRY_CAST of each type to each other give in Spark what Flink recorded in casts.json, or are refused."""

from __future__ import annotations

import json
from datetime import datetime, time
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.spark.session import prepare_session
from tests.flink.casts import COLUMNS, FAILS, TARGETS
from tests.flink.values import plain
from tests.sample import sampled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "casts.json").read_text(encoding="utf-8"))
_SPARK = {"TIMESTAMP_LTZ": "timestamp", "TIMESTAMP": "timestamp_ntz", "VARCHAR": "string", "CHAR": "string"}


def in_spark(kind: str) -> str:
    root, _, rest = kind.partition("(")
    return _SPARK.get(root) or {"BYTES": "binary"}.get(kind) or (f"decimal({rest}" if rest else kind.lower())


def compiled(name: str, cast: str) -> CheckedExpression | None:
    """The expression of a plan for ``CAST(name AS target)``; None if it is refused as no cast that there is."""
    function, _, target = cast.partition(" ")
    try:
        plan = compile_script(
            f"CREATE TABLE t (x {COLUMNS[name][0]}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
            f"CREATE TABLE s (r {target}) WITH ('connector' = 'print');"
            f"INSERT INTO s SELECT {function}(x AS {target}) FROM t;"
        ).plan
    except SqlError as error:
        if "CAST" not in error.diagnostics[0].message:
            raise
        return None
    calcs = [o for o in plan.operators if isinstance(o, Calc)]
    if not calcs:
        return "`x`"
    ((item,),) = (calc.select for calc in calcs)
    assert item.expression is not None
    return check_expression(item.expression, {("x",): "x"}, operator="c", path="select")


def same(ours: Any, flinks: Any, target: str) -> bool:
    if target == "FLOAT" and ours is not None and flinks is not None:
        return bool(np.array_equal(np.float32(ours), np.float32(flinks), equal_nan=True))
    return bool(plain(ours) == flinks)


def ours(value: Any) -> dict[str, Any]:
    """The casts of ``value`` that are meant otherwise than Flink has them."""
    found: dict[str, Any] = {}
    if isinstance(value, float) and not isfinite(value):
        # NULL, as whatever does not fit into a DECIMAL; in Flink even TRY_CAST fails.
        found = {target: None for target in TARGETS if target.startswith("DECIMAL")}
    if isinstance(value, datetime) and value.year < 1970 and value.time() != time.min:
        # The day and the second that it is in; Flink goes towards 1970.
        found = {"DATE": plain(value.date()), "TIMESTAMP(0)": plain(value.replace(microsecond=0))}
    return {f"{function} {target}": one for target, one in found.items() for function in ("CAST", "TRY_CAST")}


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.parametrize("name", sampled(RECORDED, keep=5))
def test_casts_give_what_flink_recorded(spark: SparkSession, name: str) -> None:
    own = prepare_session(spark, time_zone="UTC", once=True)
    kind, values = COLUMNS[name]
    rows = [(i, value) for i, value in enumerate([*values, None])]
    frame = own.createDataFrame(rows, f"i int, x {in_spark(kind)}").coalesce(1).localCheckpoint()
    columns: dict[str, Column] = {}
    different: dict[str, Any] = {}
    for cast, outcome in RECORDED[name].items():
        text = compiled(name, cast)
        if text is None or outcome is None:
            if text is not None:
                different[cast] = "taken by us alone"
            continue
        columns[cast] = spark_expression(frame, text)
    guarded = {
        cast: F.when(F.col("i").isin([i for i, _ in rows if RECORDED[name][cast][i] != FAILS]), column).alias(cast)
        for cast, column in columns.items()
    }
    found = table_of(frame, guarded)
    for cast, column in columns.items():
        for i, value in rows:
            recorded = RECORDED[name][cast][i]
            if cast in (own := ours(value)):
                recorded = own[cast]
            if recorded == FAILS:
                if (given := table_of(frame.where(F.col("i") == i), {cast: column})[cast][0]) != FAILS:
                    different[f"{cast}: {value!r}"] = (plain(given), "fails")
            elif not same(found[cast][i], recorded, cast.partition(" ")[2]):
                different[f"{cast}: {value!r}"] = (plain(found[cast][i]), recorded)
    lines = [f"{cast} is {found}" for cast, found in different.items()]
    assert not different, "\n".join(["ours and Flink's:", *lines])


def table_of(frame: DataFrame, columns: dict[str, Column]) -> dict[str, list[Any]]:
    """The values of each column; of one that fails, FAILS for each row."""
    try:
        rows = frame.select(*columns.values()).collect()
    except PySparkException:
        if len(columns) == 1:
            return {name: [FAILS] * frame.count() for name in columns}
        return {name: one for name, column in columns.items() for one in table_of(frame, {name: column}).values()}
    return {name: [row[name] for row in rows] for name in columns}
