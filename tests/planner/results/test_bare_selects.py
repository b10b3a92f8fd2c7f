"""Sub-queries without FROM give what SQL says wherever a value or condition may stand, or are refused with a place.

The reference is SQLite on the query itself.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import SqlError
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.planner.results.test_values_of_no_rows import A, B, compiled
from tests.runtime.pipeline import Pipeline

CONDITIONS = (
    "{x} IN (SELECT 1)",
    "{x} NOT IN (SELECT 1)",
    "{x} IN ((SELECT 2))",
    "{x} IN (SELECT NULL)",
    "{x} NOT IN (SELECT 1 WHERE k = 1)",
    "{x} IN (SELECT k)",
    "{x} IN (SELECT k AS y WHERE v > 0)",
    "{x} NOT IN (SELECT DISTINCT k + 1 WHERE v IS NULL)",
    "EXISTS (SELECT 1)",
    "NOT EXISTS (SELECT 1)",
    "EXISTS (SELECT 1 WHERE k = 1)",
    "NOT EXISTS (SELECT {x} WHERE k = 1)",
    "{x} > (SELECT 1)",
    "{x} > (SELECT 1 WHERE v = 0)",
    "{x} > (SELECT (SELECT 0) + (SELECT k WHERE v > 0))",
    "({x}, k) IN (SELECT 0, 1)",
    "NOT ({x}, k) IN (SELECT 0, 1 WHERE id > 0)",
    "{x} BETWEEN (SELECT 0) AND ((SELECT 1))",
    "{x} IN (SELECT (SELECT MAX(v) FROM b) WHERE EXISTS (SELECT * FROM b))",
    "(SELECT {x}) IN (SELECT v FROM b)",
    "{x} IN (SELECT v FROM b WHERE b.k IN (SELECT 1))",
    "EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND EXISTS (SELECT 1))",
)


def queries() -> list[str]:
    found = []
    for condition in CONDITIONS:
        of_v = condition.format(x="v")
        found += [
            f"SELECT id, v FROM a WHERE {of_v}",
            f"SELECT id, v FROM a WHERE id = 3 OR {of_v}",
            f"SELECT id, v FROM a WHERE NOT ({of_v})",
        ]
        if "FROM b" not in condition or "EXISTS" not in condition:
            found.append(f"SELECT id, CASE WHEN {of_v} THEN 1 WHEN NOT {of_v} THEN 2 ELSE 3 END AS x FROM a")
        if (
            not {"v", "id"} & set(condition.replace("(", " ").replace(")", " ").split())
            and "SELECT {x}" not in condition
        ):
            of_count = condition.format(x="COUNT(*)")
            found.append(f"SELECT k, COUNT(*) AS n FROM a GROUP BY k HAVING {of_count}")
    found += [
        "SELECT id, (SELECT 1) AS x, (SELECT v + 1 AS y) AS z FROM a",
        "SELECT id, COALESCE((SELECT v WHERE k = 2), (SELECT -1)) AS x FROM a",
        "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.v > (SELECT 0)",
        "SELECT k + (SELECT 1) AS x, COUNT(*) + (SELECT 2) AS n FROM a GROUP BY k + (SELECT 1)",
        "SELECT k, SUM((SELECT v)) AS n FROM a GROUP BY k",
        "SELECT id, (SELECT 1) AS x FROM a UNION ALL SELECT (SELECT 2), (SELECT id) FROM b",
        "SELECT id FROM a WHERE v IN (SELECT 1 UNION ALL SELECT 2)",
        "SELECT id FROM a WHERE v IN (WITH w AS (SELECT 1 AS x) SELECT x FROM w)",
        "SELECT id FROM a WHERE v IN (VALUES (1), (2), (3))",
        "SELECT id FROM a WHERE v NOT IN (VALUES (1), (2)) OR EXISTS (VALUES (1))",
        "SELECT id FROM a WHERE (v, k) IN (VALUES (1, 1), (5, 2), (0, 0))",
        "SELECT id, (VALUES (7)) AS x FROM a",
        "SELECT x FROM (SELECT 1 AS x) t",
        "VALUES (1, 7), (1, 7), (-2, 8)",
        "SELECT k, v FROM a UNION ALL VALUES (1, 2), (3, 4)",
        "SELECT k, v FROM a EXCEPT SELECT * FROM (VALUES (1, 2), (3, 4))",
        "WITH t(x, y) AS (VALUES (1, 2), (2, 3)) SELECT a.id, t.y FROM a LEFT JOIN t ON a.k = t.x AND a.v > t.y",
        "WITH t(x, y) AS (VALUES (1, 2), (2, 3)) SELECT y, COUNT(*) AS n FROM t JOIN a ON a.k < t.x GROUP BY y",
        "SELECT 1 AS x, 5 AS y UNION ALL SELECT 2, 6 UNION ALL SELECT 2, 6",
        "SELECT MAX(x) AS x FROM (SELECT 1 AS x UNION SELECT 3)",
    ]
    return found


REFUSED_IN_SELECT = "IN (SELECT ...) is supported only in WHERE"


@pytest.mark.parametrize("query", queries())
def test_a_sub_query_without_from_is_what_sql_says(query: str) -> None:
    rows = {"a": (("id", "k", "v"), A), "b": (("id", "k", "v"), B)}
    try:
        plan = compiled(query, query, "streaming")
    except SqlError as error:  # a reason of the rest of the query
        assert REFUSED_IN_SELECT in str(error)  # noqa: PT017
        assert "IN (SELECT v FROM b" in query
        return
    wanted = Counter(database(rows).execute(query).fetchall())
    pipeline = Pipeline(plan)
    pipeline.batch({"a": A[:3], "b": B[:1]})
    pipeline.batch({"a": A[3:], "b": B[1:]})
    assert pipeline.result == wanted
    assert Counter(run_plan(database(rows), compiled(query, query, "batch"))["sink_s"]) == wanted


@pytest.mark.parametrize(
    ("query", "message", "place"),
    [
        ("SELECT id FROM a WHERE v IN (SELECT 1, 2)", "IN compares one value with 2 columns", "v IN"),
        ("SELECT id FROM a WHERE (v, k) IN (SELECT 1)", "IN compares 2 values with 1 column", "v, k"),
        ("SELECT id FROM a WHERE v = (SELECT 1, 2)", "a scalar sub-query has one column, found 2", "SELECT 1"),
        ("SELECT id FROM a WHERE v = (SELECT *)", "'*' in a sub-query without FROM is not supported", "SELECT *"),
        ("SELECT (SELECT COUNT(*)) AS n FROM a", "an aggregate in a sub-query without FROM is not", "SELECT COUNT"),
        ("SELECT (SELECT SUM(v)) AS n FROM a", "an aggregate in a sub-query without FROM is not", "SELECT SUM"),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 HAVING 1 = 1)", "HAVING in a sub-query without FROM", "SELECT 1"),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 GROUP BY k)", "GROUP BY in a sub-query without FROM", "SELECT 1"),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 LIMIT 1)", "LIMIT in a sub-query without FROM", "SELECT 1"),
        ("SELECT id FROM a WHERE v = (SELECT nothing)", "unknown column 'nothing'", "nothing"),
        ("SELECT id FROM a WHERE v IN (SELECT 'x')", "'x' is no BIGINT", "'x'"),
        ("SELECT id FROM a WHERE v = (VALUES (1, 2))", "a scalar sub-query has one column, found 2", "VALUES"),
        # sub-queries where none can stand
        (
            "SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT MAX(v) FROM a)) AS n FROM a",
            "a sub-query inside an aggregate function is not supported",
            "EXISTS",
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE v IN (SELECT MAX(v) FROM a)) AS n FROM a",
            "IN (SELECT ...) is supported only in WHERE",
            "v IN",
        ),
        (
            "SELECT a.v FROM a, LATERAL (SELECT 1) AS t",
            "a LATERAL query without FROM is not supported",
            "SELECT 1) AS t",
        ),
        ("SELECT x FROM (SELECT 1 AS x WHERE TRUE) t", "WHERE without FROM is not supported", "WHERE"),
        ("SELECT x FROM (SELECT *) t", "SELECT * needs FROM", "*) t"),
        ("SELECT 1 JOIN a ON TRUE", "a join needs FROM", "JOIN"),
        ("SELECT /*+ LOOKUP('table' = 'a') */ 1 LEFT JOIN a FOR SYSTEM_TIME AS OF s.pt ON TRUE", "a join", "JOIN"),
        ("SELECT 1 CROSS JOIN UNNEST(ARRAY[1]) AS t (x)", "a join needs FROM", "CROSS"),
        ("SELECT x FROM (VALUES (1) WHERE TRUE) AS t(x)", "WHERE is not supported here", "WHERE"),
        ("SELECT x FROM (VALUES ((SELECT 1 FROM a))) AS t(x)", "a sub-query cannot stand in VALUES", "SELECT 1"),
        ("SELECT x FROM (VALUES (MAX(1))) AS t(x)", "MAX cannot stand in VALUES", "MAX"),
    ],
)
def test_a_sub_query_without_from_that_cannot_be_is_refused_where_it_stands(
    query: str, message: str, place: str
) -> None:
    files = "WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x')"
    text = (
        f"CREATE TABLE a (id BIGINT, k BIGINT, v BIGINT) {files};\n"
        f"CREATE TABLE s (x BIGINT) WITH ('connector' = 'print');\nINSERT INTO s\n{query};"
    )
    with pytest.raises(SqlError) as caught:
        compile_sql(text)
    (found,) = caught.value.diagnostics
    assert found.message.startswith(message)
    assert (found.line, found.column) == (4, query.index(place) + 1)
    assert found.hint
