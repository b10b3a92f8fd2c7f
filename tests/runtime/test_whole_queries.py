"""Whole queries, SQL to result: any slicing into batches, stopped and resumed, gives what SQLite gives at once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hintplan
from tests.runtime.pipeline import Pipeline

TABLES = """
CREATE TABLE o (id BIGINT, k BIGINT, v BIGINT, s STRING)
  WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE c (k BIGINT, name STRING, w BIGINT)
  WITH ('connector' = 'filesystem', 'path' = 'c', 'format' = 'json');
"""
WIDTHS = {"o": 4, "c": 3}

# The columns of the sink, and a query that SQLite and hintplan both understand.
QUERIES = {
    "projection and filter": ("a BIGINT, b STRING", "SELECT v, s FROM o WHERE v > 1 AND s IS NOT NULL"),
    "inner join": ("a BIGINT, b STRING", "SELECT o.v, c.name FROM o JOIN c ON o.k = c.k"),
    "inner join with a condition": (
        "a BIGINT, b BIGINT",
        "SELECT o.v, c.w FROM o JOIN c ON o.k = c.k AND o.v < c.w",
    ),
    "left join": ("a BIGINT, b STRING", "SELECT o.v, c.name FROM o LEFT JOIN c ON o.k = c.k"),
    "left join with a condition": (
        "a BIGINT, b STRING",
        "SELECT o.v, c.name FROM o LEFT JOIN c ON o.k = c.k AND o.v <= c.w AND c.w > 0 AND o.v > 0",
    ),
    "right join": ("a BIGINT, b STRING", "SELECT o.v, c.name FROM o RIGHT JOIN c ON o.k = c.k"),
    "full join": ("a BIGINT, b STRING", "SELECT o.v, c.name FROM o FULL JOIN c ON o.k = c.k"),
    "filter above an outer join": (
        "a BIGINT, b STRING",
        "SELECT o.v, c.name FROM o LEFT JOIN c ON o.k = c.k WHERE c.name IS NULL OR o.v > 1",
    ),
    "semi join": ("a BIGINT, b STRING", "SELECT v, s FROM o WHERE k IN (SELECT k FROM c WHERE w > 0)"),
    "anti join": (
        "a BIGINT, b STRING",
        "SELECT v, s FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
    ),
    "aggregate": (
        "a BIGINT, b BIGINT, d BIGINT, e BIGINT, f BIGINT, g BIGINT",
        "SELECT k, COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v) FROM o GROUP BY k",
    ),
    "distinct and filtered calls": (
        "a BIGINT, b BIGINT, d BIGINT, e BIGINT",
        "SELECT k, COUNT(DISTINCT v), SUM(DISTINCT v) FILTER (WHERE s = 'x'), COUNT(*) FILTER (WHERE v > 1) "
        "FROM o GROUP BY k",
    ),
    "left join with casts in its condition": (
        "a BIGINT, b STRING",
        "SELECT o.v, c.name FROM o LEFT JOIN c ON o.k = c.k "
        "AND CAST(o.v AS DOUBLE) > CAST(c.w AS DOUBLE) AND CAST(c.w AS DECIMAL(12, 2)) > 0.5",
    ),
    "not in": ("a BIGINT, b STRING", "SELECT v, s FROM o WHERE k NOT IN (SELECT k FROM c WHERE w > 0)"),
    "correlated not in": ("a BIGINT, b STRING", "SELECT v, s FROM o WHERE v NOT IN (SELECT w FROM c WHERE c.k = o.k)"),
    "join on a null-safe equality": (
        "a BIGINT, b STRING",
        "SELECT o.v, c.name FROM o LEFT JOIN c ON o.k IS NOT DISTINCT FROM c.k",
    ),
    "join with a global aggregate": (
        "a BIGINT, b BIGINT",
        "SELECT o.v, t.m FROM o JOIN (SELECT MAX(w) AS m FROM c) AS t ON o.v < t.m",
    ),
    "intersect": ("a BIGINT", "SELECT k FROM o INTERSECT SELECT w FROM c"),
    "except": ("a BIGINT", "SELECT k FROM o WHERE v > 0 EXCEPT SELECT k FROM c"),
    "select distinct": ("a BIGINT, b STRING", "SELECT DISTINCT k, s FROM o"),
    "having": ("a BIGINT, b BIGINT", "SELECT k, SUM(v) AS t FROM o GROUP BY k HAVING COUNT(*) > 1"),
    "aggregate over an outer join retracts": (
        "a STRING, b BIGINT, d BIGINT, e BIGINT, f BIGINT",
        "SELECT c.name, COUNT(*), SUM(o.v), MIN(o.v), MAX(o.v) FROM o LEFT JOIN c ON o.k = c.k GROUP BY c.name",
    ),
    "distinct over an outer join": ("a STRING", "SELECT DISTINCT c.name FROM o LEFT JOIN c ON o.k = c.k"),
    "aggregate of an aggregate": (
        "a BIGINT, b BIGINT, d BIGINT",
        "SELECT t.n, COUNT(*), SUM(t.total) FROM (SELECT k, COUNT(*) AS n, SUM(v) AS total FROM o GROUP BY k) AS t "
        "GROUP BY t.n",
    ),
    "extremes of an aggregate": (
        "a BIGINT, b BIGINT, d BIGINT",
        "SELECT t.n, MIN(t.total), MAX(t.k) FROM (SELECT k, COUNT(*) AS n, SUM(v) AS total FROM o GROUP BY k) AS t "
        "GROUP BY t.n",
    ),
    "join over aggregates": (
        "a BIGINT, b BIGINT, d BIGINT",
        "SELECT x.k, x.n, y.total FROM (SELECT k, COUNT(*) AS n FROM o GROUP BY k) AS x "
        "FULL JOIN (SELECT k, SUM(w) AS total FROM c GROUP BY k) AS y ON x.k = y.k",
    ),
    "cascade of joins": (
        "a BIGINT, b STRING, d BIGINT",
        "SELECT o.v, c.name, p.w FROM o LEFT JOIN c ON o.k = c.k JOIN c AS p ON o.v = p.k",
    ),
    "self join": ("a BIGINT, b BIGINT", "SELECT a.id, b.id FROM o AS a JOIN o AS b ON a.k = b.k AND a.v < b.v"),
    "union all": (
        "a BIGINT, b BIGINT",
        "SELECT k, COUNT(*) FROM (SELECT k FROM o UNION ALL SELECT k FROM c WHERE w > 0) AS u GROUP BY k",
    ),
    "union of an outer join and a table": (
        "a BIGINT, b BIGINT",
        "SELECT u.k, SUM(u.x) FROM (SELECT o.k AS k, c.w AS x FROM o LEFT JOIN c ON o.k = c.k "
        "UNION ALL SELECT k, w FROM c) AS u GROUP BY u.k",
    ),
    "semi join over an aggregate": (
        "a BIGINT, b BIGINT",
        "SELECT id, v FROM o "
        "WHERE k IN (SELECT t.k FROM (SELECT k, COUNT(*) AS n FROM c GROUP BY k) AS t WHERE t.n > 1)",
    ),
    "common table expression": (
        "a BIGINT, b BIGINT",
        "WITH big AS (SELECT k, v FROM o WHERE v > 0) "
        "SELECT b.k, SUM(b.v) FROM big AS b JOIN c ON b.k = c.k GROUP BY b.k",
    ),
}
# What SQLite does not know: the columns of the sink, the query, and one for SQLite that numbers duplicates.
OTHERWISE = {
    "lateral rows": (
        "a BIGINT, b BIGINT",
        "SELECT t.id, x.w FROM o AS t LEFT JOIN LATERAL (SELECT w FROM c WHERE c.k = t.k AND c.w < t.v) AS x ON TRUE",
        "SELECT t.id, x.w FROM o AS t LEFT JOIN c AS x ON x.k = t.k AND x.w < t.v",
    ),
    "the first lateral rows": (
        "a BIGINT, b BIGINT, d BIGINT",
        "SELECT t.k, x.id, x.n FROM (SELECT k, COUNT(*) AS n FROM c GROUP BY k) AS t, "
        "LATERAL (SELECT id, v + 1 AS n FROM o WHERE o.k = t.k ORDER BY v DESC, id, s LIMIT 2) AS x",
        "SELECT t.k, x.id, x.v + 1 FROM (SELECT DISTINCT k FROM c) AS t JOIN "
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id, s) AS r FROM o) AS x "
        "ON x.k = t.k AND r <= 2",
    ),
    "intersect all": (
        "a BIGINT, b STRING",
        "SELECT k, s FROM o INTERSECT ALL SELECT w, name FROM c",
        "SELECT k, s FROM (SELECT k, s, ROW_NUMBER() OVER (PARTITION BY k, s) FROM o "
        "INTERSECT SELECT w, name, ROW_NUMBER() OVER (PARTITION BY w, name) FROM c)",
    ),
    "except all of an outer join": (
        "a BIGINT",
        "SELECT c.w FROM o LEFT JOIN c ON o.k = c.k EXCEPT ALL SELECT v FROM o",
        "SELECT w FROM (SELECT c.w, ROW_NUMBER() OVER (PARTITION BY c.w) FROM o LEFT JOIN c ON o.k = c.k "
        "EXCEPT SELECT v, ROW_NUMBER() OVER (PARTITION BY v) FROM o)",
    ),
    "aggregate of an except all": (
        "a BIGINT, b BIGINT",
        "SELECT t.k, COUNT(*) FROM (SELECT k FROM o EXCEPT ALL SELECT k FROM c) AS t GROUP BY t.k",
        "SELECT k, COUNT(*) FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY k) FROM o "
        "EXCEPT SELECT k, ROW_NUMBER() OVER (PARTITION BY k) FROM c) GROUP BY k",
    ),
}


def compiled(columns: str, query: str):
    text = f"{TABLES} CREATE TABLE r ({columns}) WITH ('connector' = 'blackhole'); INSERT INTO r {query};"
    return hintplan.compile_sql(text, name="q")


PROGRAMS = {name: (columns, query, query) for name, (columns, query) in QUERIES.items()} | OTHERWISE
PLANS = {name: compiled(columns, query) for name, (columns, query, _) in PROGRAMS.items()}
small = st.one_of(st.none(), st.integers(0, 3))
orders = st.tuples(st.integers(0, 99), small, small, st.sampled_from([None, "x", "y"]))
customers = st.tuples(small, st.sampled_from([None, "p", "q"]), small)
events = st.one_of(st.tuples(st.just("o"), orders), st.tuples(st.just("c"), customers))


def by_sqlite(query: str, rows: list) -> Counter:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE o (id, k, v, s)")
    database.execute("CREATE TABLE c (k, name, w)")
    for table, row in rows:
        database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * WIDTHS[table])})", row)
    found = Counter(database.execute(query).fetchall())
    database.close()
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(events, max_size=20), cuts=st.lists(st.integers(0, 20), max_size=19))
def test_any_slicing_gives_what_sqlite_gives_at_once(name, rows, cuts):
    pipeline = Pipeline(PLANS[name])
    places = sorted({min(cut, len(rows)) for cut in cuts} | {0, len(rows)})
    for number, (begin, end) in enumerate(pairwise([*places, len(rows)])):
        if number % 3 == 2:
            pipeline = pipeline.resumed()
        part = rows[begin:end]
        pipeline.batch({table: [row for t, row in part if t == table] for table in ("o", "c")})
    assert pipeline.result == by_sqlite(PROGRAMS[name][2], rows)
