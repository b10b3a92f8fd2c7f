"""Each clause of a block counts wherever the block stands: the plan gives what the query says, or it is refused.

Every clause stands in every place where a query can stand, in streams and in batch jobs. The reference is DuckDB on the
query itself. A stream's operators run in this process, batch by batch; a batch plan runs in SQLite.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import duckdb

from planner.compile import compile_sql
from plans.errors import SqlError
from plans.model.plan import Plan
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.runtime.pipeline import Pipeline

Row = tuple[object, ...]
A: list[Row] = [(1, 1, 5), (2, 2, 6), (3, 1, 7), (4, None, 8), (5, 3, None), (6, 2, 4), (7, 1, 9)]
B: list[Row] = [(1, 1, 7), (2, 2, 6), (3, 1, 5), (4, None, 8), (5, 2, 4), (6, 2, 10), (7, 1, 3), (8, 3, 8)]
FILES = "WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x')"

PLACES = {
    "top": "{q}",
    "FROM": "SELECT t.x FROM ({q}) AS t",
    "JOIN": "SELECT a.id, t.x FROM a JOIN ({q}) AS t ON a.v = t.x",
    "LEFT JOIN": "SELECT a.id, t.x FROM a LEFT JOIN ({q}) AS t ON a.v = t.x",
    "parentheses": "SELECT t.x FROM (({q})) AS t",
    "WITH": "WITH w AS ({q}) SELECT x FROM w",
    "WITH below": "SELECT id FROM a WHERE v IN (WITH w AS ({q}) SELECT x FROM w)",
    "view": "SELECT x FROM seen",
    "UNION left": "({q}) UNION SELECT v FROM a",
    "UNION ALL right": "SELECT v FROM a UNION ALL ({q})",
    "INTERSECT": "SELECT v FROM a INTERSECT ({q})",
    "INTERSECT ALL": "({q}) INTERSECT ALL SELECT v FROM a",
    "EXCEPT": "SELECT v FROM a EXCEPT ({q})",
    "IN": "SELECT id FROM a WHERE v IN ({q})",
    "IN of parentheses": "SELECT id FROM a WHERE v IN (({q}))",
    "NOT IN": "SELECT id FROM a WHERE v NOT IN ({q})",
    "NOT (IN)": "SELECT id FROM a WHERE NOT (v IN ({q}))",
    "IN below AND": "SELECT id FROM a WHERE id < 7 AND (v IN ({q}) AND id > 1)",
    "IN below OR": "SELECT id FROM a WHERE id = 2 OR v IN ({q})",
    "IN below CASE": "SELECT id FROM a WHERE CASE WHEN v IN ({q}) THEN id > 2 ELSE id = 1 END",
    "IN in SELECT": "SELECT id, CASE WHEN v IN ({q}) THEN 1 WHEN v NOT IN ({q}) THEN 2 ELSE 3 END FROM a",
    "IN of columns": "SELECT id FROM a WHERE (v, k) IN ({q2})",
    "NOT IN of columns": "SELECT id FROM a WHERE (v, k) NOT IN ({q2})",
    "IN in IN": "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE v IN ({q}))",
    "EXISTS": "SELECT id FROM a WHERE EXISTS ({q})",
    "NOT EXISTS": "SELECT id FROM a WHERE NOT EXISTS ({q})",
    "EXISTS below OR": "SELECT id FROM a WHERE id = 2 OR EXISTS ({q})",
    "EXISTS in SELECT": "SELECT id, CASE WHEN EXISTS ({q}) THEN 1 ELSE 0 END FROM a",
    "= ANY": "SELECT id FROM a WHERE v = ANY ({q})",
    "> ANY": "SELECT id FROM a WHERE v > ANY ({q})",
    ">= ALL": "SELECT id FROM a WHERE v >= ALL ({q})",
    "< ALL below OR": "SELECT id FROM a WHERE id = 2 OR v < ALL ({q})",
    "scalar": "SELECT id FROM a WHERE v > ({q})",
    "scalar in SELECT": "SELECT id, ({q}) FROM a",
    "scalar in HAVING": "SELECT k FROM a GROUP BY k HAVING COUNT(*) < ({q})",
    "LATERAL": "SELECT a.id, t.x FROM a, LATERAL ({q}) AS t",
    "LEFT JOIN LATERAL": "SELECT a.id, t.x FROM a LEFT JOIN LATERAL ({q}) AS t ON TRUE",
}
CLAUSES = {
    "nothing": "SELECT {v} FROM b {w}",
    "WHERE": "SELECT {v} FROM b {w} AND v < 8",
    "DISTINCT": "SELECT DISTINCT {v} FROM b {w}",
    "GROUP BY": "SELECT {v} FROM b {w} GROUP BY v, k",
    "HAVING": "SELECT {v} FROM b {w} GROUP BY v, k HAVING MAX(b.id) < 4",
    "ORDER BY, LIMIT": "SELECT {v} FROM b {w} ORDER BY b.v LIMIT 2",
    "one row": "SELECT {v} FROM b {w} ORDER BY b.v DESC LIMIT 1",
    "LIMIT without an order": "SELECT {v} FROM b {w} LIMIT 2",
    "FETCH": "SELECT {v} FROM b {w} ORDER BY b.id DESC FETCH FIRST ROW ONLY",
    "OFFSET": "SELECT {v} FROM b {w} ORDER BY b.v LIMIT 2 OFFSET 2",
    "OFFSET of one row": "SELECT {v} FROM b {w} ORDER BY b.v LIMIT 1 OFFSET 1",
    "OFFSET beyond": "SELECT {v} FROM b {w} ORDER BY b.v LIMIT 2 OFFSET 20",
    "OFFSET 0": "SELECT {v} FROM b {w} ORDER BY b.v LIMIT 3 OFFSET 0",
    "LIMIT 0": "SELECT {v} FROM b {w} ORDER BY b.v LIMIT 0",
    "ORDER BY alone": "SELECT {v} FROM b {w} ORDER BY b.v",
    "OFFSET alone": "SELECT {v} FROM b {w} ORDER BY b.v OFFSET 2",
    "QUALIFY": "SELECT {v} FROM b {w} QUALIFY ROW_NUMBER() OVER (PARTITION BY b.k ORDER BY b.v DESC) = 1",
    "WINDOW": "SELECT {v} FROM b {w} WINDOW w AS (PARTITION BY b.k ORDER BY b.v)",
    "WITH": "WITH y AS (SELECT * FROM b WHERE id > 3) SELECT {v} FROM y AS b {w}",
    "UNION": "SELECT {v} FROM b {w} AND b.id < 3 UNION SELECT {a} FROM a WHERE id > 5",
    "LIMIT of UNION": "SELECT {v} FROM b {w} AND b.id < 3 UNION ALL SELECT {a} FROM a WHERE id > 5 ORDER BY 1 LIMIT 2",
    "LIMIT of parentheses": "(SELECT {v} FROM b {w}) ORDER BY 1 LIMIT 2",
    "join": "SELECT {v} FROM b JOIN a AS a2 ON b.k = a2.k AND a2.id < 3 {w}",
    "aggregate": "SELECT {m} FROM b {w}",
    "OFFSET of an aggregate": "SELECT {m} FROM b {w} LIMIT 1 OFFSET 1",
    "LIMIT of an aggregate": "SELECT {m} FROM b {w} LIMIT 1",
}
COMPARED = ("WHERE b.id <> 4", "WHERE b.k = a.k", "WHERE b.k = a.k AND b.id < a.id")
VALUE = "scalar", "scalar in SELECT", "scalar in HAVING"
SUB_QUERIES = tuple(
    place
    for place in PLACES
    if place.startswith(("IN", "NOT", "EXISTS", "=", ">", "<", *VALUE)) and "INTERSECT" not in place
)


def query_of(place: str, clause: str, where: str) -> tuple[str, str]:
    """The query, and the part of it that stands in the place."""
    one = CLAUSES[clause].format(v="b.v AS x", a="v", m="MAX(b.v) AS x", w=where)
    two = CLAUSES[clause].format(v="b.v AS x, b.k AS y", a="v, k", m="MAX(b.v) AS x, MAX(b.k) AS y", w=where)
    return PLACES[place].format(q=one, q2=two), two if "{q2}" in PLACES[place] else one


def compiled(query: str, view: str, mode: str) -> Plan:
    width, _ = wanted(query, view)
    columns = "id BIGINT, k BIGINT, v BIGINT"
    sink = ", ".join(f"c{i} BIGINT" for i in range(width))
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}';\n"
        f"CREATE TABLE a ({columns}) {FILES};\nCREATE TABLE b ({columns}) {FILES};\n"
        f"CREATE TABLE s ({sink}) WITH ('connector' = 'print');\n"
        + (f"CREATE VIEW seen AS {view};\n" if "FROM seen" in query else "")
        + f"INSERT INTO s {query};"
    )


@cache
def reference() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect(config={"threads": 1, "default_null_order": "nulls_first_on_asc_last_on_desc"})
    for name, rows in (("a", A), ("b", B)):
        values = ", ".join(str(row).replace("None", "NULL") for row in rows)
        found.execute(f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT)")
        found.execute(f"INSERT INTO {name} VALUES {values}")
    return found


@cache
def wanted(query: str, view: str) -> tuple[int, Counter[Row]]:
    """The number of columns of ``query``, which may read the ``view``, and its rows."""
    if "FROM seen" in query:
        reference().execute(f"CREATE OR REPLACE VIEW seen AS {view}")
    done = reference().execute(query)
    return len(done.description), Counter(done.fetchall())


def found_rows(plan: Plan, mode: str) -> Counter[Row]:
    if mode == "batch":
        return Counter(run_plan(database({n: (("id", "k", "v"), r) for n, r in (("a", A), ("b", B))}), plan)["sink_s"])
    pipeline = Pipeline(plan)
    for i in range(3):
        pipeline.batch({"a": A[3 * i : 3 * i + 3], "b": B[3 * i : 3 * i + 3]})
    return pipeline.result


def outcome(place: str, clause: str, where: str, mode: str) -> str:
    """``"same"``, or the message with which the query is refused; AssertionError for other rows."""
    query, inner = query_of(place, clause, where)
    try:
        plan = compiled(query, inner, mode)
    except SqlError as error:
        (found,) = error.diagnostics
        return found.message if found.line is not None and found.column is not None and found.hint else str(error)
    assert found_rows(plan, mode) == wanted(query, inner)[1], (mode, query)
    return "same"
