"""A batch plan that reads what it writes is refused, however the place is written; a stream is not."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.errors import Diagnostic, SqlError

FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = "
DATABASE = "'connector' = 'jdbc', 'url' = 'jdbc:sqlite:x.db', 'table-name' = "
LOOKED_UP = ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '5'"


def problems(source: str, sink: str, query: str = "SELECT k FROM v", mode: str = "batch") -> tuple[Diagnostic, ...]:
    script = (
        f"SET 'execution.runtime-mode' = '{mode}';"
        f"CREATE TABLE o (k BIGINT, p AS PROCTIME()) WITH ({FILES}'o');"
        f"CREATE TABLE a (k BIGINT) WITH ({source}); CREATE TABLE b (k BIGINT) WITH ({sink});"
        f"CREATE VIEW v AS SELECT k FROM a WHERE k > 0; INSERT INTO b {query};"
    )
    try:
        return plan_problems(compile_sql(script))
    except SqlError as error:
        return error.diagnostics


@pytest.mark.parametrize(
    ("read", "written", "refused"),
    [
        ("data/a", "data/a", True),
        ("data/a", "./data//a/", True),
        ("/data", "file:///data/a", True),
        ("/data/a", "file:/data/b/../a", True),
        ("data", "data/x/y", True),
        (".", "anything", True),
        ("data/a", "data/ab", False),
        ("data/a", "data/b", False),
        ("data/a/b", "data/a", False),
        ("s3://bucket/a", "s3://bucket/a/b", True),
        ("s3://bucket/a", "s3://other/a", False),
    ],
)
def test_files_that_a_batch_job_reads_and_writes(read: str, written: str, refused: bool) -> None:
    found = problems(f"{FILES}'{read}'", f"{FILES}'{written}'")
    assert [d.path for d in found] == (["operators.sink_b.table"] if refused else [])
    assert all(
        "is written while table 'a', which is at the same place, is read by 'scan_a'" in d.message for d in found
    )
    assert all(d.hint for d in found)
    assert problems(f"{FILES}'{read}'", f"{FILES}'{written}'", mode="streaming") == ()


def test_one_table_that_is_read_and_written() -> None:
    (found,) = problems(f"{FILES}'a'", f"{FILES}'b'", "SELECT k + 1 FROM b")
    assert "table 'b' is written while table 'b' is read by 'scan_b'" in found.message


@pytest.mark.parametrize(("table", "refused"), [("t", True), ("u", False)])
def test_a_table_of_a_database_that_is_looked_up_and_written(table: str, refused: bool) -> None:
    query = "SELECT a.k FROM o JOIN a FOR SYSTEM_TIME AS OF o.p ON o.k = a.k"
    found = problems(f"{DATABASE}'t'{LOOKED_UP}", f"{DATABASE}'{table}'", query)
    assert [d.path for d in found] == (["operators.sink_b.table"] if refused else [])
