"""Below the top of a stream an order means nothing; a name that a derived table has twice is its first column.

Flink drops the order, and takes the first column. The reference is SQLite on the query itself.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.runtime.pipeline import Pipeline

A = [(1, 1, 5), (2, 2, 6), (3, 1, None), (4, None, 2), (5, 3, 5)]
B = [(1, 1, 7), (2, 2, 6), (3, 1, 5), (4, None, 8), (5, 2, 4)]

ORDERED = [
    "SELECT id, v FROM (SELECT id, v FROM a ORDER BY v DESC, k + 1) AS t WHERE v > 2",
    "WITH w AS (SELECT id, v FROM a ORDER BY 2) SELECT id, v FROM w",
    "SELECT id, v FROM a WHERE v IN (SELECT v FROM b ORDER BY v)",
    "SELECT id, v FROM a WHERE v IN (SELECT v FROM b WHERE b.k = a.k ORDER BY id)",
    "SELECT id, v FROM a WHERE k = 3 OR v IN (SELECT DISTINCT v FROM b ORDER BY v)",
    "SELECT id, v FROM a WHERE EXISTS (SELECT v FROM b WHERE b.k = a.k ORDER BY v)",
    "SELECT id, (SELECT MAX(v) FROM b ORDER BY MAX(v)) FROM a",
    "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k ORDER BY n DESC) AS t",
    "SELECT v, v FROM (SELECT v FROM a UNION SELECT v FROM b ORDER BY v) AS t",
    "SELECT a.id, t.v FROM a JOIN (SELECT k, v FROM b ORDER BY v) AS t ON a.k = t.k",
    "SELECT id, v FROM (SELECT id, v FROM (SELECT * FROM a ORDER BY id) AS t ORDER BY v LIMIT 2) AS u",
]

NAMED = [
    "SELECT id, v FROM (SELECT * FROM a JOIN b ON a.k = b.k) AS t",
    "SELECT t.id, SUM(t.v) FROM (SELECT * FROM a LEFT JOIN b ON a.id = b.id) AS t GROUP BY t.id",
    "SELECT t.k, b.v FROM (SELECT * FROM a JOIN b AS c ON a.id = c.id) AS t JOIN b ON t.k = b.k AND t.v > 2",
    "WITH w AS (SELECT * FROM a JOIN b ON a.id = b.id) SELECT id, v FROM w WHERE k = 1",
    "SELECT x, x FROM (SELECT id AS x, v AS x FROM a) AS t",
]


def compiled(query: str, mode: str) -> Plan:
    tables = "".join(
        f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'x', "
        "'format' = 'json');"
        for name in "ab"
    )
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}'; {tables} CREATE TABLE s (x BIGINT, y BIGINT) WITH "
        f"('connector' = 'print'); INSERT INTO s {query};"
    )


@pytest.mark.parametrize("query", [*ORDERED, *NAMED])
def test_a_query_gives_what_sqlite_gives(query: str) -> None:
    connection = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), B)})
    wanted = Counter(connection.execute(query).fetchall())
    pipeline = Pipeline(compiled(query, "streaming"))
    pipeline.batch({"a": A[:2], "b": B[:3]})
    pipeline.batch({"a": A[2:], "b": B[3:]})
    assert pipeline.result == wanted
    assert Counter(run_plan(connection, compiled(query, "batch"))["sink_s"]) == wanted


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT id, v FROM a ORDER BY v", "ORDER BY is not supported in streaming"),
        ("SELECT id, v FROM (SELECT id, v FROM a ORDER BY v) AS t ORDER BY id", "ORDER BY is not supported"),
        ("(SELECT id, v FROM a ORDER BY v)", "ORDER BY is not supported"),
        ("SELECT id, v FROM (SELECT id, v FROM a ORDER BY w) AS t", "unknown column 'w'"),
        ("SELECT id, v FROM (SELECT id, v FROM a OFFSET 3) AS t", "OFFSET is not supported in streaming"),
        ("SELECT id, v FROM a JOIN b ON a.id = b.id", "column 'id' is ambiguous"),
    ],
)
def test_what_stays_refused(query: str, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        compiled(query, "streaming")
