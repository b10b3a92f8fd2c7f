"""DECIMALs at the ends of their types have the types and the values that Flink recorded in decimals.json.

Spark evaluates every expression over every row as a run writes it; digits are compared exactly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.declarations.types import parse_type
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression
from hintplan.runtime.expressions.spark_columns import spark_expression
from hintplan.runtime.types import to_spark
from tests.flink.decimals import columns, rows
from tests.flink.values import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "decimals.json").read_text(encoding="utf-8"))
ANSWERED = {sql: answer for sql, answer in RECORDED.items() if "error" not in answer}
NULL_HERE, UNIT = "CASE WHEN l_whole / r_fine IS NULL THEN 1 ELSE 0 END", "SIGN(CAST(l_part / 10 AS DECIMAL(9, 9)))"
REMAINDERS = {
    "MOD(l_whole, 7)": ("l_whole", "7"),
    "l_whole % r_number": ("l_whole", "r_number"),
    "l_whole % r_small": ("l_whole", "r_small"),
}
"""Flink cuts the left side to the type of the right one before it divides, and the result is not the remainder."""


def wanted(sql: str, given: list[dict[str, Any]]) -> list[Any]:
    """The values of ``sql`` over the rows ``given``: Flink's, or as docs/functions/numbers.md has them by hand."""
    recorded = ANSWERED[sql]["values"]
    if sql == NULL_HERE:
        return [int(value is None) for value in ANSWERED["l_whole / r_fine"]["values"]]
    if sql == UNIT:
        return [value if value == "0.000000000" else None for value in recorded]
    if sql in REMAINDERS:
        return [_remainder(*(row.get(name, name) for name in REMAINDERS[sql])) for row in given]
    return list(recorded)


def _remainder(left: Any, right: Any) -> int | None:
    if left is None or right is None:
        return None
    rest = abs(int(left)) % abs(int(right))
    return rest if left > 0 else -rest


def plan_of(expressions: list[str]) -> tuple[list[str], list[CheckedExpression]]:
    """The types of ``expressions`` and what a plan computes for them, checked as a run checks it."""
    declared = ", ".join(f"{name} {kind}" for name, kind in columns().items())
    selected = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(expressions))
    plan = compile_script(
        f"CREATE TABLE r ({declared}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
        f"CREATE TABLE s WITH ('connector' = 'blackhole') AS SELECT {selected} FROM r;"
    ).plan
    (calc,) = [operator for operator in plan.operators if isinstance(operator, Calc)]
    names = {(name,): name for name in columns()}
    texts = [
        check_expression(item.expression or item.name, names, operator=calc.id, path="select") for item in calc.select
    ]
    return [column.type for column in plan.tables["s"].columns], texts


def test_results_have_the_types_that_flink_recorded() -> None:
    types, _ = plan_of(list(ANSWERED))
    recorded = [answer["type"] for answer in ANSWERED.values()]
    different = {
        sql: (ours, flinks)
        for sql, ours, flinks in zip(ANSWERED, types, recorded, strict=True)
        if parse_type(ours) != parse_type(flinks)
    }
    assert not different, f"ours and Flink's: {different}"


@pytest.mark.spark
def test_results_have_the_digits_that_flink_recorded_and_are_null_where_it_has_null(spark: SparkSession) -> None:
    types, texts = plan_of(list(ANSWERED))
    frame = spark.sql(" UNION ALL ".join(rows())).coalesce(1).sort("nr")
    chosen = [spark_expression(frame, text).cast(to_spark(kind)) for text, kind in zip(texts, types, strict=True)]
    found: list[list[Any]] = []
    for start in range(0, len(chosen), 100):
        answers = frame.select(*(each.alias(f"c{i}") for i, each in enumerate(chosen[start : start + 100]))).collect()
        found += [[plain(value) for value in values] for values in zip(*answers, strict=True)]
    given = [row.asDict() for row in frame.collect()]
    different = {
        sql: [pair for pair in zip(ours, wanted(sql, given), strict=True) if pair[0] != pair[1]]
        for sql, ours in zip(ANSWERED, found, strict=True)
        if ours != wanted(sql, given)
    }
    assert not different, f"ours and Flink's: {different}"
