"""Expressions over a row of all types: what the planner makes of them, and the row in Spark."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc
from hintplan.runtime.expressions.allowed import check_expression
from hintplan.runtime.expressions.checked import CheckedExpression

# one row: the columns of the table, their types and their values in Spark
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
    "v": ("VARCHAR(10)", "' a\\\\b '"),
    "w": ("STRING", "''"),
    "u": ("STRING", "CAST(NULL AS STRING)"),
    "x": ("STRING", "'größer'"),
    "o": ("BOOLEAN", "true"),
    "y": ("DATE", "DATE '2024-02-29'"),
    "ts": ("TIMESTAMP(3)", "TIMESTAMP_NTZ '2024-02-29 13:14:15.678'"),
    "ld": ("DATE", "DATE '2024-01-31'"),
    "lt": ("TIMESTAMP(3)", "TIMESTAMP_NTZ '2024-01-31 10:00:00'"),
    "ms": ("BIGINT", "CAST(1500 AS BIGINT)"),
}


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


def expression_of(sql: str, data_type: str) -> tuple[CheckedExpression, str]:
    """What the plan computes for ``sql``, with the type it says; checked as a run checks it."""
    (calc,) = [o for o in plan_of(sql, data_type).operators if isinstance(o, Calc)]
    (item,) = calc.select
    assert item.expression is not None
    assert item.type is not None
    columns = {(name,): name for name in ROW}
    checked = check_expression(item.expression, columns, operator=calc.id, path="select")
    return checked, item.type
