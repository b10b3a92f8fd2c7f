"""A sink that takes inserts only refuses what first rows take back, and says so."""

from __future__ import annotations

import pytest

import hintplan
from hintplan.plans.errors import SqlError

TABLES = """
CREATE TABLE t (k INT, v INT) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json');
CREATE TABLE r (k INT, v INT) WITH ('connector' = 'filesystem', 'path' = 'r', 'format' = 'json');
"""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM t) WHERE n = 1",
        "SELECT k, v FROM t ORDER BY v LIMIT 3",
    ],
)
def test_what_takes_rows_back_is_named(query: str) -> None:
    found = r"takes inserts only, but the choice of first rows \(ROW_NUMBER or LIMIT\) updates and deletes rows"
    with pytest.raises(SqlError, match=found):
        hintplan.compile_sql(f"{TABLES}INSERT INTO r {query};")
