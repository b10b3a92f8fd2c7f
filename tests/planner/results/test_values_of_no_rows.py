"""Sub-queries as values give what SQL says, over some rows and over none, in streams and in batch.

The reference is SQLite on the query itself. A stream adds rows batch by batch and takes some away again; a batch plan
runs in SQLite, operator by operator.
"""

from __future__ import annotations

from collections import Counter

import pytest

from planner.compile import compile_sql
from plans.model.plan import Plan
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.runtime.pipeline import Pipeline

Row = tuple[object, ...]
A: list[Row] = [(1, 1, 0), (2, 1, 5), (3, 2, 1), (4, None, 2), (5, 3, None), (6, 2, 0)]
B: list[Row] = [(1, 1, 3), (2, 2, None), (3, 1, 0), (4, None, 1)]
FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = 'x'"

VALUES = (
    "COUNT(*)",
    "COUNT(v)",
    "COUNT(DISTINCT v) + 1",
    "COUNT(*) * 2 - COUNT(v)",
    "SUM(v)",
    "COALESCE(SUM(v), -1)",
    "MAX(v) + COUNT(*)",
    "CASE WHEN COUNT(*) = 0 THEN -5 ELSE 7 END",
    "COALESCE(MAX(v) - MAX(v), 1)",
)
GROUPS = (
    "WHERE b.id < 9 HAVING COUNT(*) >= 0",
    "WHERE b.k = a.k HAVING COUNT(*) < 2",
    "HAVING COUNT(*) = 0",
    "HAVING COUNT(*) > 1",
    "HAVING MAX(v) > 2 OR COUNT(*) = 0",
    "WHERE b.k = a.k HAVING SUM(v) >= 0",
    "HAVING SUM(v) IS NULL",
    "WHERE b.k = a.k HAVING COUNT(v) = 1",
)
KEYED = ("WHERE b.k = a.k GROUP BY b.k", "WHERE b.k = a.k GROUP BY b.k HAVING COUNT(*) < 2")
OVER_SUBQUERY = (
    "(WITH w AS (SELECT * FROM b WHERE v > 0) SELECT COUNT(*) FROM w)",
    "(SELECT n FROM (SELECT COUNT(*) AS n FROM b) t)",
    "(SELECT n + 1 FROM (SELECT COUNT(*) AS n, SUM(v) AS s FROM b) t WHERE s IS NULL OR s > 1)",
    "(SELECT DISTINCT COUNT(*) FROM b)",
)


def queries() -> list[str]:
    found = [
        f"SELECT id, (SELECT {value} FROM b {group}) AS x FROM a"
        for value in VALUES
        for group in ("", "WHERE b.k = a.k", *GROUPS, *KEYED)
    ]
    for group in ("", "WHERE b.k = a.k", *GROUPS):
        one = f"(SELECT COUNT(*) FROM b {group})"
        found += [
            f"SELECT id, v FROM a WHERE v < {one}",
            f"SELECT id, v FROM a WHERE v IN {one}",
            f"SELECT id, v FROM a WHERE v NOT IN {one}",
            f"SELECT id, v FROM a WHERE k = 1 OR v NOT IN {one}",
            f"SELECT id, v FROM a WHERE EXISTS {one}",
            f"SELECT id, v FROM a WHERE NOT EXISTS {one}",
            f"SELECT id, v FROM a WHERE id > 4 OR NOT EXISTS {one}",
            f"SELECT id, CASE WHEN v IN {one} THEN 1 WHEN v NOT IN {one} THEN 2 ELSE 3 END AS x FROM a",
            f"SELECT id, v FROM a WHERE v IN (SELECT MIN(v) FROM b {group})",
        ]
        if "a.k" not in group:
            found.append(f"SELECT k, COUNT(*) AS n FROM a GROUP BY k HAVING COUNT(*) > {one}")
            found.append(f"SELECT k, COUNT(*) + {one} AS n FROM a GROUP BY k HAVING COUNT(*) NOT IN {one}")
    for one in OVER_SUBQUERY:
        found.append(f"SELECT id, {one} AS x FROM a")
        found.append(f"SELECT id, v FROM a WHERE v < {one} OR v IS NULL")
    return found


QUERIES = queries()


def compiled(query: str, mode: str, changelog: str = "") -> Plan:
    columns = "id BIGINT, k BIGINT, v BIGINT"
    width = database({"a": (("id", "k", "v"), []), "b": (("id", "k", "v"), [])}).execute(query).description
    sink = ", ".join(f"c{i} BIGINT" for i in range(len(width)))
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}'; CREATE TABLE a ({columns}) WITH ({FILES});"
        f"CREATE TABLE b ({columns}) WITH ({FILES}{changelog}); CREATE TABLE s ({sink}) WITH ('connector' = 'print');"
        f"INSERT INTO s {query};"
    )


def wanted(query: str, rows: list[Row]) -> Counter[Row]:
    connection = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), rows)})
    return Counter(connection.execute(query).fetchall())


@pytest.mark.parametrize("query", QUERIES)
def test_a_stream_gives_what_the_query_says_over_all_rows_some_and_none(query: str) -> None:
    pipeline = Pipeline(compiled(query, "streaming", ", 'source.changelog' = 'true'"))
    pipeline.batch({"a": A[:2]})
    pipeline.batch({"a": A[2:4], "b": [("+I", *row) for row in B[:2]]})
    pipeline.batch({"a": A[4:]})
    assert pipeline.result == wanted(query, B[:2])
    pipeline.batch({"b": [("+I", *row) for row in B[2:]]})
    assert pipeline.result == wanted(query, B)
    pipeline.batch({"b": [("-D", *row) for row in B[1:]]})
    assert pipeline.result == wanted(query, B[:1])
    pipeline.batch({"b": [("-D", *B[0])]})
    assert pipeline.result == wanted(query, [])


@pytest.mark.parametrize("query", QUERIES)
def test_a_batch_job_gives_what_the_query_says(query: str) -> None:
    plan = compiled(query, "batch")
    for rows in ([], B[:1], B):
        connection = database({"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), rows)})
        assert Counter(run_plan(connection, plan)["sink_s"]) == wanted(query, rows)
