"""Sub-queries of every form give what the query says, wherever they stand and wherever they refer to the block around.

The reference is DuckDB on the query itself, or SQLite where DuckDB cannot, over small random tables with NULLs and
duplicates. A stream's operators run in this process, batch by batch, and rows are taken back again; a batch plan runs
in SQLite.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from random import Random

import duckdb
import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.model.plan import Plan
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.runtime.pipeline import Pipeline
from tests.sample import sampled

pytestmark = pytest.mark.slow

Row = tuple[object, ...]
NAMES = ("a", "b", "c")
FILES = "'connector' = 'filesystem', 'format' = 'json', 'path' = 'x'"

BLOCKS = {
    "GROUP BY what is compared": "SELECT MAX(b.v) AS x FROM b WHERE b.k = a.k GROUP BY b.k",
    "GROUP BY": "SELECT MAX(b.v) AS x FROM b WHERE b.k = a.k GROUP BY b.id % 3",
    "GROUP BY beside another comparison": "SELECT MAX(b.v) AS x FROM b WHERE b.v < a.v GROUP BY b.k",
    "GROUP BY without a comparison": "SELECT b.k AS x FROM b GROUP BY b.k HAVING COUNT(*) > a.k",
    "HAVING": "SELECT SUM(b.v) AS x FROM b WHERE b.k = a.k GROUP BY b.id % 3 HAVING COUNT(*) > a.id % 2",
    "GROUP BY an outer column": "SELECT COUNT(*) AS x FROM b WHERE b.k <= a.k GROUP BY a.v, b.v",
    "an aggregate of an outer column": "SELECT MAX(b.v + a.k) AS x FROM b WHERE b.id > 2 GROUP BY b.k",
    "GROUPING SETS": "SELECT MAX(b.v) AS x FROM b WHERE b.k = a.k GROUP BY GROUPING SETS ((b.id), (b.v))",
    "one group": "SELECT COUNT(b.v) AS x FROM b WHERE b.k = a.k",
    "one group beside another comparison": "SELECT COUNT(*) AS x FROM b WHERE b.k < a.k",
    "one group of a sub-query": "SELECT COUNT(*) AS x FROM (SELECT v FROM b WHERE b.k = a.k) AS t",
    "one group in FROM": "SELECT n + 1 AS x FROM (SELECT COUNT(*) AS n FROM b WHERE b.k = a.k) AS t",
    "one group with an outer column": "SELECT SUM(b.v) + a.k AS x FROM b HAVING MAX(b.v) > a.v",
    "a join": "SELECT c.v AS x FROM b JOIN c ON b.k = c.k WHERE b.v = a.v",
    "a join of what is compared": "SELECT b.v AS x FROM b JOIN (SELECT k FROM c WHERE c.v = a.v) AS t ON b.k = t.k",
    "a join of both sides": "SELECT t.x FROM (SELECT k, v AS x FROM b WHERE b.v > a.v) AS t "
    "JOIN (SELECT k FROM c WHERE c.k <= a.k) AS u ON t.k = u.k",
    "ON": "SELECT b.v AS x FROM b JOIN c ON b.k = c.k AND c.v < a.v",
    "ON of a LEFT JOIN": "SELECT c.v AS x FROM b LEFT JOIN c ON b.k = c.k AND c.v < a.v WHERE b.id > 2",
    "LEFT JOIN, left": "SELECT c.v AS x FROM (SELECT k FROM b WHERE b.v = a.v) AS t LEFT JOIN c ON t.k = c.k",
    "LEFT JOIN, right": "SELECT t.v AS x FROM b LEFT JOIN (SELECT k, v FROM c WHERE c.v = a.v) AS t ON b.k = t.k",
    "RIGHT JOIN, left": "SELECT t.v AS x FROM (SELECT k, v FROM b WHERE b.v < a.v) AS t RIGHT JOIN c ON t.k = c.k",
    "RIGHT JOIN, right": "SELECT t.v AS x FROM b RIGHT JOIN (SELECT k, v FROM c WHERE c.v = a.v) AS t ON b.k = t.k",
    "FULL JOIN, left": "SELECT t.v AS x FROM (SELECT k, v FROM b WHERE b.v = a.v) AS t FULL JOIN c ON t.k = c.k",
    "FULL JOIN, both": "SELECT t.v AS x FROM (SELECT k, v FROM b WHERE b.v > a.v) AS t "
    "FULL JOIN (SELECT k FROM c WHERE c.v = a.k) AS u ON t.k = u.k",
    "WITH": "WITH w AS (SELECT k, v FROM b WHERE b.v < a.v) SELECT w.v AS x FROM w JOIN c ON w.k = c.k",
    "WITH, read twice": "WITH w AS (SELECT k, v FROM b WHERE b.k = a.k) SELECT l.v AS x "
    "FROM w AS l JOIN w AS r ON l.v = r.k",
    "an outer column": "SELECT a.v AS x FROM b WHERE b.k = a.k",
    "an outer column alone": "SELECT a.k AS x FROM b WHERE b.v > 2",
    "an expression with an outer column": "SELECT b.v + a.k AS x FROM b WHERE b.id > 3",
    "an outer condition": "SELECT b.v AS x FROM b WHERE a.k > 1",
    "OR": "SELECT b.v AS x FROM b WHERE b.k = a.k OR a.v IS NULL",
    "UNION": "SELECT b.v AS x FROM b WHERE b.k = a.k UNION SELECT c.v FROM c WHERE c.id > 3",
    "UNION ALL": "SELECT b.v AS x FROM b WHERE b.k < a.k UNION ALL SELECT c.k FROM c WHERE c.v = a.v",
    "INTERSECT": "SELECT b.v AS x FROM b WHERE b.k = a.k INTERSECT SELECT c.v FROM c",
    "EXCEPT": "SELECT b.v AS x FROM b EXCEPT SELECT c.v FROM c WHERE c.k = a.k",
    "DISTINCT": "SELECT DISTINCT b.v AS x FROM b WHERE b.k < a.k",
    "ORDER BY and LIMIT": "SELECT b.v AS x FROM b WHERE b.k < a.k ORDER BY b.v DESC NULLS LAST LIMIT 2",
    "ORDER BY and LIMIT beside an equality": "SELECT b.v AS x FROM b WHERE b.k = a.k ORDER BY "
    "b.v NULLS FIRST, b.id LIMIT 2",
    "LIMIT in FROM": "SELECT v AS x FROM (SELECT v FROM b WHERE b.k <= a.k ORDER BY v NULLS FIRST LIMIT 3) AS t",
    "QUALIFY": "SELECT b.v AS x FROM b WHERE b.k <= a.k QUALIFY ROW_NUMBER() OVER "
    "(PARTITION BY b.k ORDER BY b.id) <= 1",
    "EXISTS": "SELECT b.v AS x FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.k = b.k AND c.v < a.v)",
    "NOT IN": "SELECT b.v AS x FROM b WHERE b.k = a.k AND b.v NOT IN (SELECT c.v FROM c WHERE c.id <> a.id)",
    "an outer column IN": "SELECT b.v AS x FROM b WHERE a.k IN (SELECT c.k FROM c WHERE c.v = b.v)",
    "two levels": "SELECT b.v AS x FROM b WHERE b.v > (SELECT MIN(c.v) FROM c WHERE c.k = a.k)",
    "two levels, both": "SELECT b.v AS x FROM b WHERE EXISTS (SELECT c.k FROM c WHERE c.k <> "
    "b.k GROUP BY c.k HAVING MAX(c.v) > a.v)",
    "a value": "SELECT (SELECT MAX(c.v) FROM c WHERE c.k = b.k AND c.id <> a.id) AS x FROM b WHERE b.k <= a.k",
}

IN_BATCH = {
    "OVER": "SELECT MAX(b.v) OVER () AS x FROM b WHERE b.k = a.k",
    "OVER beside another comparison": "SELECT SUM(b.v) OVER (PARTITION BY b.k ORDER BY b.id) "
    "AS x FROM b WHERE b.v <> a.v",
    "OVER in FROM": "SELECT x FROM (SELECT RANK() OVER (ORDER BY b.v NULLS FIRST) AS x, k FROM b) AS t WHERE t.k < a.k",
    "OVER of groups": "SELECT MAX(b.v) OVER () AS x FROM b WHERE b.k = a.k GROUP BY b.v",
    "OVER of an outer column": "SELECT MAX(b.v) OVER (PARTITION BY b.v > a.v) AS x FROM b",
    "OVER of aggregates": "SELECT SUM(COUNT(*)) OVER (ORDER BY b.v NULLS FIRST) AS x FROM b WHERE b.k = a.k "
    "GROUP BY b.v",
    "OVER of one group": "SELECT CAST(SUM(MAX(b.v)) OVER () AS BIGINT) AS x FROM b WHERE b.k = a.k",
}

OF_SQLITE = ("ON of a LEFT JOIN", "FULL JOIN, left", "FULL JOIN, both", "OVER of an outer column")
"""The blocks that DuckDB does not take in a sub-query."""

PLACES = {
    "IN": "SELECT id FROM a WHERE v IN ({q})",
    "NOT IN": "SELECT id FROM a WHERE v NOT IN ({q})",
    "IN below AND": "SELECT id FROM a WHERE id < 7 AND (v IN ({q}) AND id > 1)",
    "IN below OR": "SELECT id FROM a WHERE id = 2 OR v IN ({q})",
    "IN below NOT AND": "SELECT id FROM a WHERE NOT (id > 2 AND v IN ({q}))",
    "NOT IN below OR": "SELECT id FROM a WHERE id = 2 OR v NOT IN ({q})",
    "IN IS TRUE": "SELECT id FROM a WHERE (v IN ({q})) IS TRUE",
    "IN IS NOT FALSE": "SELECT id FROM a WHERE (v IN ({q})) IS NOT FALSE",
    "IN in SELECT": "SELECT id, CASE WHEN v IN ({q}) THEN 1 WHEN v NOT IN ({q}) THEN 2 ELSE 3 END FROM a",
    "EXISTS": "SELECT id FROM a WHERE EXISTS ({q})",
    "NOT EXISTS": "SELECT id FROM a WHERE NOT EXISTS ({q})",
    "EXISTS below OR": "SELECT id FROM a WHERE id = 2 OR EXISTS ({q})",
    "EXISTS IS TRUE": "SELECT id FROM a WHERE (EXISTS ({q})) IS TRUE",
    "EXISTS in SELECT": "SELECT id, CASE WHEN EXISTS ({q}) THEN 1 ELSE 0 END FROM a",
    "> ANY": "SELECT id FROM a WHERE v > ANY ({q})",
    "< ALL": "SELECT id FROM a WHERE v < ALL ({q})",
    "a count": "SELECT id, (SELECT COUNT(*) FROM ({q}) AS z) FROM a",
    "a sum in WHERE": "SELECT id FROM a WHERE id > (SELECT SUM(z.x) FROM ({q}) AS z)",
    "HAVING": "SELECT id, k, v FROM a GROUP BY id, k, v HAVING EXISTS ({q})",
    "IN of HAVING": "SELECT id, k, v FROM a GROUP BY id, k, v HAVING v IN ({q})",
    "IN of an aggregate": "SELECT k, MAX(v) FROM a GROUP BY k HAVING MAX(v) IN ({g})",
    "NOT IN of an aggregate": "SELECT k, MAX(v) FROM a GROUP BY k HAVING MAX(v) NOT IN ({g})",
    "IN of an aggregate in SELECT": "SELECT k, CASE WHEN SUM(v) IN ({g}) THEN 1 WHEN SUM(v) NOT IN ({g}) THEN 2 END "
    "FROM a GROUP BY k",
    "IN of a sub-query": "SELECT id FROM a WHERE (SELECT MAX(c.v) FROM c WHERE c.k = a.k) IN ({q})",
    "NOT IN of a sub-query": "SELECT id FROM a WHERE (SELECT MAX(c.v) FROM c WHERE c.k = a.k) NOT IN ({q})",
    "IN of a sub-query below OR": "SELECT id FROM a WHERE id = 2 OR (SELECT MAX(c.v) FROM c) IN ({q})",
    "IN of a sub-query in SELECT": "SELECT id, CASE WHEN (SELECT MAX(c.v) FROM c WHERE c.k = a.k) IN ({q}) THEN 1 "
    "WHEN (SELECT MAX(c.v) FROM c WHERE c.k = a.k) NOT IN ({q}) THEN 2 ELSE 3 END FROM a",
    "IN of CASE with IN": "SELECT id FROM a WHERE (CASE WHEN k IN (SELECT c.k FROM c WHERE "
    "c.id = a.id) THEN 1 ELSE v END) "
    "IN ({q})",
    "NOT IN of CASE with IN": "SELECT id FROM a WHERE CASE WHEN v NOT IN (SELECT c.v FROM c) THEN 1 ELSE 2 END "
    "NOT IN ({q})",
    "> ANY of a sub-query": "SELECT id FROM a WHERE (SELECT MAX(c.v) FROM c WHERE c.k = a.k) > ANY ({q})",
    "below a join": "SELECT a.id, c.id FROM a JOIN c ON a.k = c.k WHERE a.v IN ({q})",
    "IN in ON": "SELECT a.id, o.id FROM a JOIN c AS o ON a.k = o.k AND a.v IN ({q})",
    "EXISTS in ON": "SELECT a.id, o.id FROM a JOIN c AS o ON NOT EXISTS ({q}) LEFT JOIN b AS p ON p.id = o.id",
}


def cases(*blocks: str) -> list[tuple[str, str]]:
    """Each block in each place; beside GROUP BY it can refer to what is grouped by only."""
    return [
        (block, place)
        for block in blocks
        for place, text in PLACES.items()
        if not ("{g}" in text and set(re.findall(r"a\.(\w+)", FORMS[block])) - {"k"})
        if not (block in OF_SQLITE and ("ANY" in text or "ALL" in text))
        if not (block == "one group with an outer column" and place == "> ANY of a sub-query")
    ]


FORMS = {**BLOCKS, **IN_BATCH}
UNREAD = [(block, place) for block, place in cases(*IN_BATCH) if "EXISTS" in place and block != "OVER in FROM"]
"""Window functions that a stream does not compute, for nobody reads them."""


def query_of(block: str, place: str) -> str:
    return PLACES[place].format(q=FORMS[block], g=FORMS[block])


def compiled(block: str, query: str, mode: str) -> Plan:
    declared = "".join(
        f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT) WITH ({FILES}, 'source.changelog' = 'true');"
        if mode == "streaming"
        else f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT) WITH ({FILES});"
        for name in NAMES
    )
    sink = ", ".join(f"c{i} BIGINT" for i in range(width(block, query)))
    return compile_sql(
        f"SET 'execution.runtime-mode' = '{mode}'; {declared} CREATE TABLE s ({sink}) WITH ('connector' = 'print');"
        f"INSERT INTO s {query};"
    )


def asked(block: str, query: str, tables: dict[str, list[Row]]) -> duckdb.DuckDBPyConnection | sqlite3.Cursor:
    if block in OF_SQLITE:
        return database({name: (("id", "k", "v"), rows) for name, rows in tables.items()}).execute(query)
    connection = duckdb.connect()
    for name, rows in tables.items():
        connection.execute(f"CREATE TABLE {name} (id BIGINT, k BIGINT, v BIGINT)")
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    return connection.execute(query)


def width(block: str, query: str) -> int:
    return len(asked(block, query, {name: [] for name in NAMES}).description)


def answer(block: str, query: str, tables: dict[str, list[Row]]) -> Counter[Row]:
    return Counter(asked(block, query, tables).fetchall())


def random_rows(dice: Random, count: int) -> list[Row]:
    return [(i, dice.choice([None, 1, 1, 2, 3]), dice.choice([None, 1, 2, 3, 4])) for i in range(1, count + 1)]


def added(rows: list[Row]) -> list[Row]:
    return [("+I", *row) for row in rows]


@pytest.mark.parametrize(("block", "place"), sampled(cases(*FORMS), keep=25))
def test_a_batch_job_gives_what_the_query_says(block: str, place: str) -> None:
    query = query_of(block, place)
    plan = compiled(block, query, "batch")
    for seed in range(3):
        dice = Random(f"{block} {place} {seed}")
        tables = {name: random_rows(dice, 0 if seed == 0 and name != "a" else 7) for name in NAMES}
        connection = database({name: (("id", "k", "v"), rows) for name, rows in tables.items()})
        assert Counter(run_plan(connection, plan)["sink_s"]) == answer(block, query, tables)


@pytest.mark.parametrize(("block", "place"), sampled([*cases(*BLOCKS), *UNREAD], keep=25))
def test_a_stream_gives_what_the_query_says_as_rows_come_and_go(block: str, place: str) -> None:
    query, dice = query_of(block, place), Random(f"{block} {place}")
    tables = {name: random_rows(dice, 7) for name in NAMES}
    pipeline = Pipeline(compiled(block, query, "streaming"))
    pipeline.batch({"a": added(tables["a"][:4]), "b": added(tables["b"][:2])})
    pipeline.batch({"c": added(tables["c"]), "a": added(tables["a"][4:])})
    assert pipeline.result == answer(block, query, {**tables, "b": tables["b"][:2]})
    pipeline.batch({"b": added(tables["b"][2:])})
    assert pipeline.result == answer(block, query, tables)
    pipeline.batch({name: [("-D", *row) for row in tables[name][3:]] for name in NAMES})
    assert pipeline.result == answer(block, query, {name: rows[:3] for name, rows in tables.items()})
    pipeline.batch({name: [("-D", *row) for row in tables[name][:3]] for name in ("b", "c")})
    assert pipeline.result == answer(block, query, {"a": tables["a"][:3], "b": [], "c": []})
