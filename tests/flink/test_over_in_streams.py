"""The refusal of a window function in a stream says that Flink runs it if, and only if, Flink has planned it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import SqlError

RECORDED: dict[str, str | None] = json.loads(
    Path(__file__).with_name("over_in_streams.json").read_text(encoding="utf-8")
)
TABLES = """CREATE TABLE t (id BIGINT, k BIGINT, v BIGINT, s STRING, ts TIMESTAMP(3), pt AS PROCTIME(),
 WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json');
CREATE TABLE r (a BIGINT, b DOUBLE) WITH ('connector' = 'print');
"""
WINDOWS = [line for line in RECORDED if not line.startswith("first rows")]


def refusal(query: str) -> str:
    with pytest.raises(SqlError) as caught:
        compile_sql(f"{TABLES}INSERT INTO r {query};")
    (found,) = caught.value.diagnostics
    assert found.hint
    assert found.line == 4
    return found.message


@pytest.mark.parametrize("window", WINDOWS)
def test_what_is_said_of_flink_is_so(window: str) -> None:
    said, recorded = refusal(f"SELECT id, {window} FROM t"), RECORDED[window]
    assert "not supported in a stream" in said
    assert ("by Flink neither" in said) == (recorded is not None), recorded
    if recorded is None:
        assert said.endswith("though Flink runs this one") or "Flink has the numbers there" in said


@pytest.mark.parametrize("function", ["RANK()", "DENSE_RANK()"])
def test_flink_numbers_by_a_rank_and_takes_no_first_rows_by_it(function: str) -> None:
    assert RECORDED[f"{function} OVER (PARTITION BY k ORDER BY v)"] is None
    assert "on streaming table is not supported" in (RECORDED[f"first rows by {function}"] or "")
    ranked = f"SELECT *, {function} OVER (PARTITION BY k ORDER BY v) AS n FROM t"
    assert "takes no first rows by them" in refusal(f"SELECT id, v FROM ({ranked}) WHERE n <= 3")
