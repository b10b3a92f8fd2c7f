"""Each clause of a block counts wherever the block stands: the plan gives what the query says, or it is refused.

Every clause stands in every place where a query can stand, in streams and in batch jobs. The reference is DuckDB on the
query itself. A stream's operators run in this process, batch by batch; a batch plan runs in SQLite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

import duckdb
import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.errors import SqlError
from hintplan.plans.model.plan import Plan
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.runtime.pipeline import Pipeline

pytestmark = pytest.mark.slow

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
APART, COMPARED, BELOW = "WHERE b.id <> 4", "WHERE b.k = a.k", "WHERE b.k = a.k AND b.id < a.id"
ONE_ROW = ("one row", "FETCH", "OFFSET of one row", "aggregate", "OFFSET of an aggregate", "LIMIT of an aggregate")
"""Clauses of which a sub-query has one row, or none."""
OF_ROWS = ("ORDER BY, LIMIT", "one row", "LIMIT without an order", "FETCH", "OFFSET", "OFFSET of one row", "LIMIT 0")
"""Clauses that count rows."""
FROM = tuple(PLACES)[: tuple(PLACES).index("IN")]
SCALAR = ("scalar", "scalar in SELECT", "scalar in HAVING")
LATERAL = ("LATERAL", "LEFT JOIN LATERAL")
JOINED = ("IN", "NOT IN", "NOT (IN)", "IN of columns", "NOT IN of columns", "EXISTS", "NOT EXISTS", "> ANY", ">= ALL")
"""Places of sub-queries that become semi and anti joins."""
SAME_IN_DUCKDB = {
    # DuckDB compares rows with NULLs in them as values.
    "IN of columns": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM ({q2}) AS z WHERE v = z.x AND k = z.y)",
    "NOT IN of columns": "SELECT id FROM a WHERE NOT EXISTS "
    "(SELECT 1 FROM ({q2}) AS z WHERE (v = z.x) IS NOT FALSE AND (k = z.y) IS NOT FALSE)",
}


def query_of(place: str, clause: str, where: str, places: Mapping[str, str] = PLACES) -> tuple[str, str]:
    """The query, and the part of it that stands in the place."""
    one = CLAUSES[clause].format(v="b.v AS x", a="v", m="MAX(b.v) AS x", w=where)
    two = CLAUSES[clause].format(v="b.v AS x, b.k AS y", a="v, k", m="MAX(b.v) AS x, MAX(b.k) AS y", w=where)
    return places[place].format(q=one, q2=two), two if "{q2}" in PLACES[place] else one


def compiled(query: str, view: str, width: int, mode: str) -> Plan:
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
    width, rows = wanted(query_of(place, clause, where, {**PLACES, **SAME_IN_DUCKDB})[0], inner)
    try:
        plan = compiled(query, inner, width, mode)
    except SqlError as error:
        (found,) = {each.message: each for each in error.diagnostics}.values()  # a clause may stand in two sub-queries
        return found.message if found.line is not None and found.column is not None and found.hint else str(error)
    assert found_rows(plan, mode) == rows, (mode, query)
    return "same"


def check(place: str, clauses: Iterable[str], where: str, mode: str, refused: Mapping[str, str]) -> None:
    """``refused`` has the beginning of the message for each of the ``clauses`` that cannot be in the place."""
    found = {clause: outcome(place, clause, where, mode) for clause in clauses}
    wanted = {clause: refused.get(clause, "same") for clause in found}
    assert {clause: message[: len(wanted[clause])] for clause, message in found.items()} == wanted


IN_A_STREAM = {"OFFSET alone": "OFFSET is not supported in streaming"}
AT_THE_TOP = dict.fromkeys(("ORDER BY alone", "OFFSET alone"), "ORDER BY is not supported in streaming")
BEHIND = {"LIMIT of parentheses": "ORDER BY and LIMIT behind a query in parentheses are not supported here"}


def refused_in(place: str, mode: str) -> dict[str, str]:
    """The clauses that a place refuses."""
    found = dict(IN_A_STREAM) if mode == "streaming" else {}
    if mode == "streaming" and place in ("top", "view"):
        found |= AT_THE_TOP
    if place in FROM and place not in ("WITH below",):
        return found
    if any(word in place for word in ("EXISTS", "ANY", "ALL")):
        found |= BEHIND
    return found


@pytest.mark.part(of=4)
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("place", [p for p in PLACES if p not in (*SCALAR, *LATERAL)])
def test_clauses_of_a_query_that_stands_for_itself(place: str, mode: str) -> None:
    clauses = [clause for clause in CLAUSES if (clause, place) != ("WINDOW", "IN in SELECT")]
    if place in FROM or mode == "batch":
        clauses = [*OF_ROWS, "QUALIFY", "LIMIT of parentheses", "OFFSET of an aggregate"]
    check(place, clauses, APART, mode, refused_in(place, mode))


@pytest.mark.part(of=2)
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("place", SCALAR)
def test_clauses_of_a_scalar_sub_query(place: str, mode: str) -> None:
    check(place, ONE_ROW, APART, mode, {})


@pytest.mark.parametrize("place", LATERAL)
def test_clauses_of_a_lateral_query(place: str) -> None:
    one_row = "ORDER BY and LIMIT in a LATERAL query that has one row are not supported"
    refused = {
        **IN_A_STREAM,
        "ORDER BY alone": "ORDER BY without LIMIT has no effect in LATERAL",
        **dict.fromkeys(
            ("UNION", "LIMIT of UNION", "LIMIT of parentheses"), "this query is not supported after LATERAL"
        ),
        **dict.fromkeys(("OFFSET of an aggregate", "LIMIT of an aggregate"), one_row),
        **{clause: f"{clause} is not supported here" for clause in ("QUALIFY", "WINDOW", "WITH")},
    }
    check(place, CLAUSES, COMPARED, "streaming", refused)


@pytest.mark.part(of=2)
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("place", JOINED)
def test_clauses_of_a_sub_query_that_refers_to_the_block_around_it(place: str, mode: str) -> None:
    refused = refused_in(place, mode)
    if mode == "batch":
        refused |= {
            "LIMIT without an order": "" if "EXISTS" in place else "rows of a batch job have no order of arrival"
        }
    clauses = CLAUSES if mode == "streaming" else (*OF_ROWS, "QUALIFY", "DISTINCT", "HAVING")
    check(place, [clause for clause in clauses if not skips(place, clause)], COMPARED, mode, refused)


def skips(place: str, clause: str) -> bool:
    """Clauses whose order has no meaning, and those of which others are the example."""
    return clause in ("LIMIT of an aggregate", "aggregate") and "of columns" in place


@pytest.mark.parametrize(
    ("place", "clause", "where", "message"),
    [
        ("IN below OR", "ORDER BY, LIMIT", COMPARED, "same"),
        ("IN below OR", "GROUP BY", COMPARED, "same"),
        ("IN below CASE", "nothing", COMPARED, "same"),
        ("< ALL below OR", "OFFSET", COMPARED, "same"),
        ("EXISTS below OR", "OFFSET", COMPARED, "same"),
        ("EXISTS below OR", "QUALIFY", COMPARED, "same"),
        ("scalar", "OFFSET of an aggregate", COMPARED, "same"),
        ("scalar", "one row", COMPARED, "same"),
        ("scalar", "LIMIT of an aggregate", COMPARED, "same"),
        ("IN below OR", "DISTINCT", COMPARED, "same"),
        ("EXISTS below OR", "DISTINCT", BELOW, "same"),
        ("EXISTS", "DISTINCT", BELOW, "same"),
        ("NOT EXISTS", "ORDER BY, LIMIT", BELOW, "same"),
        ("IN", "ORDER BY, LIMIT", BELOW, "same"),
        ("EXISTS", "OFFSET", BELOW, "same"),
        ("IN", "HAVING", BELOW, "same"),
    ],
)
def test_a_sub_query_that_is_a_value_or_compared_by_more_than_equality(
    place: str, clause: str, where: str, message: str
) -> None:
    for mode in ("streaming", "batch"):
        assert outcome(place, clause, where, mode).startswith(message)


@pytest.mark.parametrize(
    ("condition", "message", "place"),
    [
        ("EXISTS (SELECT v FROM b ORDER BY nosuch LIMIT 1)", "unknown column 'nosuch' in 'b'", "nosuch"),
        ("EXISTS (SELECT nosuch FROM b)", "unknown column 'nosuch' in 'b'", "nosuch"),
        ("id = 1 OR EXISTS (SELECT nosuch FROM b)", "unknown column 'nosuch' in 'b'", "nosuch"),
        ("EXISTS (SELECT (SELECT nosuch FROM a) FROM b)", "unknown column 'nosuch' in 'a'", "nosuch"),
        ("EXISTS (SELECT nosuch)", "unknown column 'nosuch' in 'a'", "nosuch"),
        ("EXISTS (SELECT v FROM b ORDER BY 2 LIMIT 1)", "ORDER BY 2 names no column", "2 LIMIT"),
        ("v > (SELECT MAX(v) FROM b ORDER BY nosuch LIMIT 1)", "unknown column 'nosuch' in 'b'", "nosuch"),
        ("v IN (SELECT v FROM b WINDOW w AS (PARTITION BY nosuch))", "unknown column 'nosuch' in 'b'", "nosuch"),
        ("v IN ((SELECT v FROM b) TABLESAMPLE (10 PERCENT))", "TABLESAMPLE is not supported here", "TABLESAMPLE"),
        (
            "v IN (SELECT v FROM b UNION BY NAME SELECT k FROM b UNION SELECT k FROM b)",
            "UNION BY NAME is not",
            "SELECT k",
        ),
        (
            "v IN (WITH y AS (SELECT v FROM b WHERE b.k = a.nosuch) SELECT v FROM y)",
            "unknown column 'nosuch' in",
            "a.no",
        ),
    ],
)
def test_what_a_sub_query_does_not_need_is_read_nevertheless(condition: str, message: str, place: str) -> None:
    query = f"SELECT id FROM a WHERE {condition}"
    for mode in ("streaming", "batch"):
        with pytest.raises(SqlError) as caught:
            compiled(query, "", 1, mode)
        (found,) = caught.value.diagnostics
        assert found.message.startswith(message)
        assert (found.line, found.column) == (5, len("INSERT INTO s ") + query.index(place) + 1)
        assert found.hint
