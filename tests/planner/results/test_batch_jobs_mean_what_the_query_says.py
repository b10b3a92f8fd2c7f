"""A batch plan gives the rows of its query, in its order: both run in SQLite, whose NULLs are smallest as in Flink."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.analysis.validate import plan_problems
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.planner.results.test_plans_mean_what_the_query_says import DECLARATIONS, compiled, tables

pytestmark = pytest.mark.slow

BATCH = "SET 'execution.runtime-mode' = 'batch';"

ORDERED = [
    "SELECT a_id, a_v FROM a ORDER BY a_v DESC, a_k, a_s, a_id LIMIT 5",
    "SELECT a_v, a_s FROM a ORDER BY 2 DESC, 1 LIMIT 4 OFFSET 2",
    "SELECT a_v, a_s FROM a ORDER BY a_s NULLS LAST, a_v DESC NULLS FIRST",
    "SELECT a_v AS a_k FROM a ORDER BY a_k",
    "SELECT a_v AS n FROM a ORDER BY n * n - 4 * n, n",
    "SELECT a_s FROM a ORDER BY a_v + a_k DESC, a_id, a_s, a_v",
    "SELECT a_k, COUNT(*) AS n FROM a GROUP BY a_k ORDER BY n DESC, a_k LIMIT 3",
    "SELECT a_k FROM a GROUP BY a_k HAVING COUNT(*) > 1 ORDER BY MAX(a_v), SUM(a_v) DESC, a_k",
    "SELECT DISTINCT a_s, a_v FROM a ORDER BY a_v, a_s DESC LIMIT 6",
    "SELECT a_k, a_s FROM a UNION SELECT b_v, b_s FROM b ORDER BY 1 DESC, a_s LIMIT 7",
    "SELECT a_k FROM a UNION ALL SELECT b_k FROM b ORDER BY a_k OFFSET 3",
    "SELECT k FROM (SELECT a_k AS k, a_v FROM a ORDER BY a_v, a_k, a_id LIMIT 6) t WHERE k > 1 ORDER BY k",
    "SELECT MAX(k), COUNT(*) FROM (SELECT a_k AS k FROM a ORDER BY a_k DESC LIMIT 4) t",
    "SELECT a_id, b_id FROM a JOIN b ON a_k = b_k ORDER BY a_id, b_id DESC, a_v, b_v LIMIT 5",
    "SELECT t.k, b_id FROM (SELECT a_k AS k FROM a ORDER BY a_k LIMIT 3) t LEFT JOIN b ON t.k = b_k ORDER BY b_id, k",
    "SELECT a_id FROM a WHERE a_k IN (SELECT b_k FROM b ORDER BY b_k DESC LIMIT 2) ORDER BY a_id",
    "SELECT a_id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b_k = a_k ORDER BY b_v DESC LIMIT 1) ORDER BY a_id",
    "SELECT a_k FROM a INTERSECT SELECT b_k FROM b ORDER BY a_k DESC LIMIT 2",
    "WITH w AS (SELECT a_id, a_v FROM a ORDER BY a_id, a_v LIMIT 8) SELECT a_v FROM w ORDER BY a_v DESC LIMIT 3",
    "SELECT a_id FROM (SELECT a_id FROM a ORDER BY a_v, a_k, a_s, a_id) t LIMIT 3",
    "SELECT a_id FROM a ORDER BY a_id LIMIT 0",
    "SELECT CASE WHEN a_v > 3 THEN 1 ELSE 0 END AS big, a_id FROM a ORDER BY big DESC, a_id, a_v",
]


@pytest.mark.parametrize("query", ORDERED)
def test_an_ordered_query_gives_its_rows_in_their_order(query: str) -> None:
    # SQLite has no OFFSET without LIMIT.
    reference = query.replace("OFFSET 3", "LIMIT -1 OFFSET 3")
    for seed in range(12):
        connection = database(tables(seed))
        cursor = connection.execute(reference)
        names = [column[0] for column in cursor.description]
        wanted = cursor.fetchall()
        plan = compiled(query, names, BATCH)
        assert plan_problems(plan) == ()
        assert run_plan(connection, plan)["sink_s"] == wanted, seed


OVER = [
    "SELECT a_id, a_v, RANK() OVER (PARTITION BY a_k ORDER BY a_v DESC) FROM a",
    "SELECT a_id, n FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY a_k ORDER BY a_v) AS n FROM a) t WHERE n <= 2",
    "SELECT a_v, n FROM (SELECT *, RANK() OVER (ORDER BY a_v) AS n FROM a) t WHERE n IN (1, 3) OR n > a_id",
    "SELECT a_v, n FROM (SELECT a_v, ROW_NUMBER() OVER (PARTITION BY a_k ORDER BY a_v) AS n FROM a) t WHERE n >= 2",
    "SELECT a_v, n FROM (SELECT a_v, ROW_NUMBER() OVER (PARTITION BY a_k ORDER BY a_v) AS n FROM a) t WHERE n <= 2",
    *(
        f"SELECT n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a_k, a_v ORDER BY a_id) AS n FROM a) t WHERE {c}"
        for c in ("n <= a_v", "n < a_v", "n = a_v", "n > 1 AND a_v >= n", "n <= a_v AND n <= a_k", "n <= a_id")
    ),
    "SELECT a_id, SUM(a_v) OVER (PARTITION BY a_k), COUNT(*) OVER (), MAX(a_v) OVER (ORDER BY a_v) FROM a",
    "SELECT a_v, SUM(a_v) OVER (ORDER BY a_v RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM a",
    "SELECT a_v, SUM(a_v) OVER (ORDER BY a_v ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) FROM a",
    "SELECT a_v, LAG(a_v, 2, -1) OVER (ORDER BY a_v), LEAD(a_v) OVER (ORDER BY a_v) - a_v FROM a",
    "SELECT a_v, NTILE(3) OVER (ORDER BY a_v) FROM a WHERE a_v > 1",
    "SELECT a_v FROM (SELECT a_v, SUM(a_v) OVER w AS s FROM a WINDOW w AS (PARTITION BY a_k)) t WHERE s > 3",
    "SELECT DISTINCT a_k, MIN(a_v) OVER (PARTITION BY a_k) FROM a",
    "SELECT a_k, COUNT(*) AS n, SUM(SUM(a_v)) OVER (ORDER BY a_k), RANK() OVER (ORDER BY COUNT(*)) FROM a GROUP BY a_k",
    "SELECT a_k + 1, MAX(a_v), COUNT(*) OVER (PARTITION BY MAX(a_v)) FROM a GROUP BY a_k + 1 HAVING COUNT(*) > 1",
]
AS_VALUES = [
    "SELECT a_id, CASE a_v IN (SELECT b_v FROM b) WHEN TRUE THEN 1 WHEN FALSE THEN 0 END FROM a",
    "SELECT a_id, CASE a_k NOT IN (SELECT b_k FROM b WHERE b_k > 1) WHEN TRUE THEN 1 WHEN FALSE THEN 0 END FROM a",
    "SELECT a_id, CASE a_v IN (SELECT b_v FROM b WHERE b_v > 1000) WHEN TRUE THEN 1 WHEN FALSE THEN 0 END FROM a",
    "SELECT a_id, CASE WHEN a_k IN (SELECT b_k FROM b) THEN 'y' ELSE 'n' END FROM a",
    "SELECT a_id, a_v FROM a WHERE a_v > 2 OR a_k NOT IN (SELECT b_k FROM b WHERE b_k > 1)",
    "SELECT a_k, COUNT(*) FROM a GROUP BY a_k HAVING a_k IN (SELECT b_k FROM b WHERE b_v > 1)",
]


@pytest.mark.parametrize("query", [*OVER, *AS_VALUES])
def test_functions_of_rows_around_a_row_and_comparisons_with_sub_queries_are_those_of_sql(query: str) -> None:
    for seed in range(12):
        connection = database(tables(seed))
        cursor = connection.execute(query)
        names = [f"c{place}" for place, _ in enumerate(cursor.description)]
        wanted = sorted(cursor.fetchall(), key=repr)
        found = run_plan(connection, compiled(query, names, BATCH))["sink_s"]
        assert sorted(found, key=repr) == wanted, seed


def test_a_cached_view_gives_each_of_its_readers_what_the_query_says() -> None:
    view = "SELECT a_id, a_v, b_v, b_s FROM a LEFT JOIN b ON a_k = b_k WHERE a_v > 1"
    readers = {
        "s": "SELECT a_id, b_v FROM v WHERE b_s = 'x'",
        "t": "SELECT b_v, COUNT(*) AS n FROM v GROUP BY b_v",
        "u": "SELECT x.a_id, y.b_v FROM v x JOIN v y ON x.b_v = y.a_v",
    }
    sinks = " ".join(f"CREATE TABLE {s} (x BIGINT, y BIGINT) WITH ('connector' = 'print');" for s in readers)
    inserts = " ".join(f"INSERT INTO {sink} {query};" for sink, query in readers.items())
    plan = compile_script(f"{BATCH} {DECLARATIONS} {sinks} CACHE TABLE v AS {view}; {inserts}").plan
    assert [o.id for o in plan.operators if o.cached is not None] == ["join_a_b"]
    assert sum("join_a_b" in o.inputs for o in plan.operators) == 3
    for seed in range(12):
        connection = database(tables(seed))
        wanted = {
            f"sink_{sink}": connection.execute(f"WITH v AS ({view}) {query}").fetchall()
            for sink, query in readers.items()
        }
        found = run_plan(connection, plan)
        assert {sink: sorted(rows, key=repr) for sink, rows in found.items()} == {
            sink: sorted(rows, key=repr) for sink, rows in wanted.items()
        }
