"""A plan gives the rows of its query: both are run in SQLite over the same tables, with NULLs and duplicates."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.analysis.validate import plan_problems
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.planner.results.random_queries import random_query
from tests.sample import sampled

pytestmark = pytest.mark.slow

COLUMNS = {
    "a": ("a_id", "a_k", "a_v", "a_s"),
    "b": ("b_id", "b_k", "b_v", "b_s"),
    "c": ("c_id", "c_k", "c_v", "c_s"),
}


def declaration(name: str, columns: tuple[str, ...]) -> str:
    typed = ", ".join(f"{c} {'STRING' if c.endswith('s') else 'BIGINT'}" for c in columns)
    return f"CREATE TABLE {name} ({typed}) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"


DECLARATIONS = " ".join(declaration(*t) for t in COLUMNS.items())

QUERIES = [
    "SELECT a_id, a_v FROM a WHERE a_v > 3 AND a_s = 'x'",
    "SELECT a_id, a_v + 1, -a_v, a_v * 2 - 1, a_v / 2, a_v % 3 FROM a",
    "SELECT a_id, b_v FROM a JOIN b ON a_k = b_k",
    "SELECT a_id, b_v FROM a, b WHERE a_k = b_k AND a_v > 2 AND b_s = 'y' AND a_v < b_v",
    "SELECT a_id, b_v, a_s FROM a LEFT JOIN b ON a_k = b_k AND a_v > b_v AND b_s = 'x'",
    "SELECT a_id, b_v, a_s FROM a LEFT JOIN b ON a_k = b_k AND a_v > 3",
    "SELECT a_id, b_v FROM a LEFT JOIN b ON a_k = b_k AND a_s = 'x' WHERE a_v > 2 AND b_v IS NULL",
    "SELECT a_id, b_v FROM a RIGHT JOIN b ON a_k = b_k AND a_s = 'x' AND b_s = 'y' WHERE b_v > 2",
    "SELECT a_id, b_v FROM a FULL JOIN b ON a_k = b_k AND a_s = 'x' AND b_s = 'y'",
    "SELECT a_id, b_v FROM a FULL JOIN b ON a_k = b_k WHERE a_v > 2",
    "SELECT a_id, b_v FROM a FULL JOIN b ON a_k = b_k WHERE a_v > 2 OR b_v IS NULL",
    "SELECT a_id, b_id, c_id FROM a JOIN b ON a_k = b_k LEFT JOIN c ON b_v = c_k AND c_s <> a_s",
    "SELECT a_id, b_id, c_id FROM a LEFT JOIN b ON a_k = b_k LEFT JOIN c ON a_v = c_k WHERE a_s = 'x' AND c_v > 1",
    "SELECT a_id, b_id, c_id FROM a JOIN (b JOIN c ON b_v = c_k) ON a_k = b_k WHERE c_v > 2",
    "SELECT a_id, b_id, c_id FROM a, b, c WHERE a_k = b_k AND b_v = c_k AND a_v + 1 > c_v",
    "SELECT x.a_id, y.a_id FROM a x JOIN a y ON x.a_k = y.a_v",
    "SELECT a_id, b_id FROM a JOIN b ON a_k + 1 = b_k AND a_k = b_k + a_v - a_v - 1",
    "SELECT a_id, b_id FROM a LEFT JOIN b ON a_k = b_k AND UPPER(a_s) = UPPER(b_s)",
    "SELECT a_id, b_id FROM a LEFT JOIN b ON a_k = b_k AND UPPER(a_s) = 'X' AND LOWER(b_s) = 'y'",
    "SELECT a_id, b_id FROM a LEFT JOIN b ON a_k = b_k AND (a_v > b_v OR UPPER(a_s) = 'X')",
    "SELECT a_k, COUNT(*), SUM(a_v), MIN(a_s), MAX(a_v) FROM a GROUP BY a_k",
    "SELECT a_k, a_s, COUNT(a_v) FROM a GROUP BY a_s, a_k HAVING COUNT(*) > 1 AND a_k > 2",
    "SELECT COUNT(*), SUM(a_v), COUNT(DISTINCT a_k) FROM a",
    "SELECT COUNT(*) FROM a WHERE a_v > 3",
    "SELECT a_v % 2, SUM(a_v + a_k) FROM a GROUP BY a_v % 2",
    "SELECT a_v % 2 + 1, SUM(a_v) * 2 FROM a GROUP BY a_v % 2 HAVING SUM(a_v) > 3",
    "SELECT a_k, COUNT(*) FILTER (WHERE a_v > 3), SUM(DISTINCT a_v) FILTER (WHERE a_s = 'x') FROM a GROUP BY a_k",
    "SELECT UPPER(a_s), COUNT(*) FROM a GROUP BY UPPER(a_s)",
    "SELECT DISTINCT a_k, a_s FROM a",
    "SELECT DISTINCT a_k, COUNT(*) FROM a GROUP BY a_k, a_s",
    "SELECT a_k FROM a UNION ALL SELECT b_v FROM b WHERE b_k > 2",
    "SELECT a_k, a_s FROM a UNION SELECT b_v, b_s FROM b",
    "SELECT a_k FROM a UNION SELECT b_k FROM b UNION ALL SELECT c_k FROM c",
    "SELECT k, SUM(v) FROM (SELECT a_k AS k, a_v AS v FROM a UNION ALL SELECT b_k, b_v FROM b) t "
    "WHERE v > 1 AND k < 5 GROUP BY k",
    "SELECT a_id FROM a WHERE a_k IN (SELECT b_k FROM b WHERE b_v > 2)",
    "SELECT a_id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b_k = a_k AND b_v > a_v)",
    "SELECT a_id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b_k = a_k AND a_v > 2)",
    "SELECT a_id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b_k = a_k AND b_v > 2) AND a_v > 1",
    "SELECT a_id FROM a WHERE a_k IN (SELECT b_k FROM b GROUP BY b_k HAVING COUNT(*) > 1) AND a_s = 'x'",
    "SELECT a_id, b_id FROM a JOIN b ON a_k = b_k WHERE EXISTS (SELECT 1 FROM c WHERE c_k = b_v AND c_v <> a_v)",
    "SELECT a_id FROM a WHERE a_k IN (SELECT b_k FROM b WHERE b_v = a_v)",
    "SELECT a_id FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b_v = c_k WHERE b_k = a_k AND c_v > 1)",
    "SELECT a_id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b_k = a_k AND EXISTS (SELECT 1 FROM c WHERE c_k = b_v))",
    "SELECT t.k, b_v, n FROM (SELECT a_k AS k, COUNT(*) AS n FROM a GROUP BY a_k) t LEFT JOIN b ON t.k = b_k "
    "WHERE t.k > 1",
    "SELECT t.k, n, m FROM (SELECT a_k AS k, COUNT(*) AS n FROM a GROUP BY a_k) t "
    "JOIN (SELECT b_k AS k, SUM(b_v) AS m FROM b GROUP BY b_k) u ON t.k = u.k AND n < m",
    "SELECT n, COUNT(*) FROM (SELECT a_k, COUNT(*) AS n FROM a GROUP BY a_k) t GROUP BY n",
    "WITH x AS (SELECT a_k AS k, a_v AS v FROM a WHERE a_s = 'x'), y AS (SELECT k, MAX(v) AS m FROM x GROUP BY k) "
    "SELECT x.k, v, m FROM x JOIN y ON x.k = y.k",
    "SELECT t.*, b.b_v FROM (SELECT * FROM a WHERE a_v > 1) t JOIN b ON t.a_k = b.b_k WHERE t.a_s = 'x'",
    "SELECT a_id, CASE WHEN a_v > 3 THEN 'hi' WHEN a_v IS NULL THEN 'none' ELSE a_s END FROM a",
    "SELECT a_id, CASE a_s WHEN 'x' THEN 1 ELSE 2 END, COALESCE(a_v, a_k, 0), NULLIF(a_v, 3) FROM a",
    "SELECT a_id FROM a WHERE a_v BETWEEN 2 AND 4 OR a_s IN ('x', 'z') AND NOT a_k = 3",
    "SELECT a_id FROM a WHERE a_v IS DISTINCT FROM a_k",
    "SELECT a_id FROM a WHERE NOT (a_v > 2 AND a_s = 'x') OR a_s LIKE '%y%'",
    "SELECT a_id, b_id FROM a JOIN b ON a_k = b_k AND (a_v IS NOT DISTINCT FROM b_v)",
    "SELECT a_id, b_id FROM a LEFT JOIN b ON a_k = b_k AND (a_v IS NOT DISTINCT FROM b_v)",
    "SELECT a_id, b_id FROM a JOIN b ON a_k IS NOT DISTINCT FROM b_k",
    "SELECT a_id, b_id FROM a LEFT JOIN b ON a_s IS NOT DISTINCT FROM b_s AND a_v > b_v",
    "SELECT a_id, b_id FROM a FULL JOIN b ON b_k IS NOT DISTINCT FROM a_k AND a_s IS NOT DISTINCT FROM b_s",
    "SELECT a_id FROM a WHERE a_k NOT IN (SELECT b_k FROM b)",
    "SELECT a_id FROM a WHERE a_k NOT IN (SELECT b_k FROM b WHERE b_k IS NOT NULL)",
    "SELECT a_id FROM a WHERE NOT a_k IN (SELECT b_v + 1 FROM b WHERE b_v > 4) AND a_s = 'x'",
    "SELECT a_id FROM a WHERE a_v NOT IN (SELECT b_v FROM b WHERE b_k = a_k)",
    "SELECT a_id FROM a WHERE a_k IS NOT NULL AND a_k NOT IN (SELECT b_k FROM b WHERE b_k IS NOT NULL AND b_v > 3)",
    "SELECT a_id FROM a WHERE a_k NOT IN (SELECT b_k FROM b WHERE b_v > 3 GROUP BY b_k HAVING COUNT(*) > 1)",
    "SELECT a_id, m FROM a, (SELECT MAX(b_v) AS m FROM b) t WHERE a_v < m",
    "SELECT a_id, m FROM a JOIN (SELECT MAX(b_v) AS m FROM b) t ON a_v >= m",
    "SELECT a_id, m FROM (SELECT MIN(b_v) AS m FROM b) t RIGHT JOIN a ON a_v > m",
    "SELECT n, m FROM (SELECT COUNT(a_v) AS n FROM a) t CROSS JOIN (SELECT SUM(b_v) + 1 AS m FROM b) u",
    "SELECT a_k, a_s FROM a INTERSECT SELECT b_v, b_s FROM b",
    "SELECT a_k, a_s FROM a EXCEPT SELECT b_k, b_s FROM b WHERE b_v > 2",
    "SELECT a_k FROM a WHERE a_v > 1 EXCEPT SELECT b_k FROM b EXCEPT SELECT c_k FROM c",
    "SELECT a_k, COUNT(*) FROM a GROUP BY a_k INTERSECT SELECT b_k, COUNT(*) FROM b GROUP BY b_k",
    "SELECT a_s || '-' || COALESCE(a_s, 'n'), a_v - (a_k - 1), a_v - a_k - 1, (a_v + 1) * 2 FROM a",
]

SAME = [
    (
        "SELECT a_k, a_s, COUNT(*), SUM(a_v) FROM a GROUP BY ROLLUP (a_k, a_s)",
        "SELECT a_k, a_s, COUNT(*), SUM(a_v) FROM a GROUP BY a_k, a_s UNION ALL "
        "SELECT a_k, NULL, COUNT(*), SUM(a_v) FROM a GROUP BY a_k UNION ALL "
        "SELECT NULL, NULL, COUNT(*), SUM(a_v) FROM a GROUP BY 1 + 1",
    ),
    (
        "SELECT a_k, a_s, COUNT(*), GROUPING(a_s), GROUPING_ID(a_s, a_k), GROUPING_ID(a_k, a_s), GROUP_ID() FROM a "
        "WHERE a_v > 1 GROUP BY CUBE (a_k, a_s)",
        "SELECT a_k, a_s, COUNT(*), 0, 0, 0, 0 FROM a WHERE a_v > 1 GROUP BY a_k, a_s UNION ALL "
        "SELECT a_k, NULL, COUNT(*), 1, 2, 1, 0 FROM a WHERE a_v > 1 GROUP BY a_k UNION ALL "
        "SELECT NULL, a_s, COUNT(*), 0, 1, 2, 0 FROM a WHERE a_v > 1 GROUP BY a_s UNION ALL "
        "SELECT NULL, NULL, COUNT(*), 1, 3, 3, 0 FROM a WHERE a_v > 1 GROUP BY 1 + 1",
    ),
    (
        "SELECT a_k, SUM(a_k), COUNT(DISTINCT a_k) FILTER (WHERE a_k > 2) FROM a GROUP BY GROUPING SETS ((), a_k)",
        "SELECT a_k, SUM(a_k), COUNT(DISTINCT a_k) FILTER (WHERE a_k > 2) FROM a GROUP BY a_k UNION ALL "
        "SELECT NULL, SUM(a_k), COUNT(DISTINCT a_k) FILTER (WHERE a_k > 2) FROM a GROUP BY 1 + 1",
    ),
    (
        "SELECT a_v, a_k + 1, a_s, MAX(a_k) FROM a GROUP BY a_v, ROLLUP (a_k + 1, a_s) "
        "HAVING a_v > 2 AND GROUPING(a_s) = 1",
        "SELECT a_v, a_k + 1, NULL, MAX(a_k) FROM a WHERE a_v > 2 GROUP BY a_v, a_k + 1 UNION ALL "
        "SELECT a_v, NULL, NULL, MAX(a_k) FROM a WHERE a_v > 2 GROUP BY a_v",
    ),
    (
        "SELECT a_k, a_v, a_s, COUNT(*) FROM a GROUP BY GROUPING SETS (ROLLUP ((a_k, a_v)), a_s)",
        "SELECT a_k, a_v, NULL, COUNT(*) FROM a GROUP BY a_k, a_v UNION ALL "
        "SELECT NULL, NULL, NULL, COUNT(*) FROM a GROUP BY 1 + 1 UNION ALL "
        "SELECT NULL, NULL, a_s, COUNT(*) FROM a GROUP BY a_s",
    ),
    (
        "SELECT a_k, a_s, COUNT(*) FROM a GROUP BY DISTINCT CUBE (a_k), ROLLUP (a_k, a_s)",
        "SELECT a_k, a_s, COUNT(*) FROM a GROUP BY a_k, a_s UNION ALL "
        "SELECT a_k, NULL, COUNT(*) FROM a GROUP BY a_k UNION ALL "
        "SELECT NULL, NULL, COUNT(*) FROM a GROUP BY 1 + 1",
    ),
    (
        "SELECT n, COUNT(*) FROM (SELECT a_k AS n, COUNT(*) AS m FROM a GROUP BY ROLLUP (a_k)) AS t "
        "WHERE n IS NOT NULL GROUP BY CUBE (n)",
        "SELECT a_k, 1 FROM a WHERE a_k IS NOT NULL GROUP BY a_k UNION ALL "
        "SELECT NULL, COUNT(DISTINCT a_k) FROM a WHERE a_k IS NOT NULL GROUP BY 1 + 1",
    ),
    ("SELECT a_k, GROUPING(a_k), COUNT(*) FROM a GROUP BY (a_k)", "SELECT a_k, 0, COUNT(*) FROM a GROUP BY a_k"),
    ("SELECT COUNT(*) FROM a GROUP BY ()", "SELECT COUNT(*) FROM a"),
    (
        "SELECT a_k, a_s FROM a INTERSECT ALL SELECT b_v, b_s FROM b",
        "SELECT a_k, a_s FROM (SELECT a_k, a_s, ROW_NUMBER() OVER (PARTITION BY a_k, a_s) FROM a "
        "INTERSECT SELECT b_v, b_s, ROW_NUMBER() OVER (PARTITION BY b_v, b_s) FROM b)",
    ),
    (
        "SELECT a_k, a_s FROM a EXCEPT ALL SELECT b_k, b_s FROM b WHERE b_v > 2",
        "SELECT a_k, a_s FROM (SELECT a_k, a_s, ROW_NUMBER() OVER (PARTITION BY a_k, a_s) FROM a "
        "EXCEPT SELECT b_k, b_s, ROW_NUMBER() OVER (PARTITION BY b_k, b_s) FROM b WHERE b_v > 2)",
    ),
    (
        "SELECT s, COUNT(*) FROM (SELECT a_s AS s FROM a EXCEPT ALL SELECT b_s FROM b) t WHERE s <> 'y' GROUP BY s",
        "SELECT a_s, COUNT(*) FROM (SELECT a_s, ROW_NUMBER() OVER (PARTITION BY a_s) FROM a "
        "EXCEPT SELECT b_s, ROW_NUMBER() OVER (PARTITION BY b_s) FROM b) t WHERE a_s <> 'y' GROUP BY a_s",
    ),
]
"""Queries that SQLite does not know, and others with the same meaning that it does."""


def tables(seed: int) -> dict[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]:
    dice = Random(seed)

    def value(column: str) -> object:
        if dice.random() < 0.15:
            return None
        return dice.choice("xyzX") if column.endswith("s") else dice.randint(0, 6)

    return {
        name: (columns, [(i % 9, *map(value, columns[1:])) for i in range(dice.randint(0, 14))])
        for name, columns in COLUMNS.items()
    }


def sink(width: dict[int, str]) -> str:
    columns = ", ".join(f"o{i} {t}" for i, t in width.items())
    return f"CREATE TABLE s ({columns}) WITH ('connector' = 'print');"


def compiled(  # type: ignore[no-untyped-def]
    query: str, names: list[str], settings: str = "", functions: dict[str, type | str] | None = None
):
    """The plan of the query into a sink of fitting types, found by trying STRING where BIGINT does not fit."""
    from hintplan.plans.errors import SqlError

    types = dict.fromkeys(range(len(names)), "BIGINT")
    for _ in range(len(names) + 1):
        try:
            script = f"{settings}{DECLARATIONS}\n{sink(types)}\nINSERT INTO s {query};"
            return compile_script(script, functions=functions).plan
        except SqlError as error:
            text = error.diagnostics[0].message
            if not text.startswith("column 'o"):
                raise
            types[int(text.split("'")[1][1:])] = "STRING"
    raise AssertionError(query)


@pytest.mark.parametrize("query", QUERIES)
def test_plan_gives_the_rows_of_its_query(query: str) -> None:
    plan = None
    for seed in range(12):
        connection = database(tables(seed))
        cursor = connection.execute(query)
        expected = cursor.fetchall()
        if plan is None:
            plan = compiled(query, [d[0] for d in cursor.description])
            assert plan_problems(plan) == ()
        assert Counter(run_plan(connection, plan)["sink_s"]) == Counter(expected), f"seed {seed}"


@pytest.mark.parametrize(("query", "same"), SAME)
def test_plan_gives_the_rows_of_a_query_that_is_written_out(query: str, same: str) -> None:
    plan = None
    for seed in range(12):
        connection = database(tables(seed))
        cursor = connection.execute(same)
        expected = cursor.fetchall()
        if plan is None:
            plan = compiled(query, [d[0] for d in cursor.description])
            assert plan_problems(plan) == ()
        assert Counter(run_plan(connection, plan)["sink_s"]) == Counter(expected), f"seed {seed}"


@pytest.mark.parametrize("seed", sampled(range(150), keep=50))
def test_plan_of_a_random_query_gives_its_rows(seed: int) -> None:
    query, names = random_query(Random(seed))
    plan = compiled(query, list(names))
    assert plan_problems(plan) == ()
    for data in range(3):
        connection = database(tables(1000 * data + seed))
        expected = connection.execute(query).fetchall()
        assert Counter(run_plan(connection, plan)["sink_s"]) == Counter(expected), query
