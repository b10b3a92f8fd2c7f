"""One query for each form of SQL that has an operator or a rewriting of its own, and what it gives, by hand.

All of them are written into one changelog, each with its name, so that a run costs one query. The rows come in two
parts, so that states are read again. At the end of the second part, all windows close.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hintplan import compile_sql
from hintplan.plans.model.plan import Plan
from tests.runtime.functions.aggregates import WeightedAverage
from tests.spark.programs import add_rows, changes

__all__ = ["MODULES", "add_first", "add_second", "check", "plan_of"]

MODULES = ("tests.runtime.functions.aggregates", "tests.connectors.lookup.rates")
Row = tuple[Any, ...]
FIRST: list[dict[str, Any]] = [
    {
        "id": 1,
        "k": "a",
        "v": 10,
        "w": 1,
        "ts": "2024-01-01T00:00:03",
        "buyer": {"city": "Rom", "zip": 1},
        "tags": ["x", "y"],
    },
    {"id": 2, "k": "a", "v": 20, "w": 3, "ts": "2024-01-01T00:00:01", "buyer": {"city": "Rom", "zip": 1}, "tags": []},
    {"id": 3, "k": "b", "v": 30, "w": 1, "ts": "2024-01-01T00:00:02", "buyer": {"city": "Rom"}},
]
SECOND: list[dict[str, Any]] = [
    {"id": 4, "k": "a", "v": 40, "w": 0, "ts": "2024-01-01T00:00:02", "buyer": None, "tags": ["x"]},
    {"id": 5, "k": "b", "v": 30, "w": 1, "ts": "2024-01-01T00:00:01", "buyer": {"city": "Rom"}, "tags": [None]},
]
DIMS = [{"code": "A", "name": "One"}, {"code": "A", "name": "Two"}, {"code": "B", "name": "Two"}]
BOUNDS = "window_start, window_end"
SECONDS = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND))"
FORMS: dict[str, tuple[str, list[Row]]] = {
    "values": (
        "SELECT {}, t.id, r.n FROM t JOIN (VALUES ('a', 'first'), ('c', 'third')) AS r(k, n) ON t.k = r.k",
        [(1, "first"), (2, "first"), (4, "first")],
    ),
    "unnest": (
        "SELECT {}, t.id, CONCAT(CAST(e.place AS STRING), COALESCE(e.tag, '-')) "
        "FROM t CROSS JOIN UNNEST(t.tags) WITH ORDINALITY AS e(tag, place)",
        [(1, "1x"), (1, "2y"), (4, "1x"), (5, "1-")],
    ),
    "inequality": (
        "SELECT {}, a.id, CAST(b.id AS STRING) FROM t AS a LEFT JOIN t AS b ON a.v < b.v AND a.k <> b.k",
        [(1, "3"), (1, "5"), (2, "3"), (2, "5"), (3, "4"), (4, None), (5, "4")],
    ),
    "deduplicate": (
        "SELECT {}, id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM t) WHERE n = 1",
        [(2, "a"), (3, "b")],
    ),
    "top-n": (
        "SELECT {}, id, CAST(n AS STRING) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n "
        "FROM t) WHERE n <= 2",
        [(4, "1"), (2, "2"), (3, "1"), (5, "2")],
    ),
    "udaf": (
        "SELECT {}, COUNT(*), CONCAT(k, CAST(CAST(weighted(v, w) AS BIGINT) AS STRING)) FROM t GROUP BY k",
        [(3, "a17"), (2, "b30")],
    ),
    "nested state": (
        "SELECT {}, COUNT(*), COALESCE(buyer.city, '-') FROM t GROUP BY buyer",
        [(2, "Rom"), (2, "Rom"), (1, "-")],
    ),
    "nested join": (
        "SELECT {}, a.id, a.tags[1] FROM t AS a JOIN t AS b ON a.buyer = b.buyer AND a.id <> b.id",
        [(1, "x"), (2, None), (3, None), (5, None)],
    ),
    "scalar": (
        "SELECT {}, id, k FROM t AS o WHERE v > (SELECT AVG(v) FROM t AS p WHERE p.k = o.k AND p.id <= o.id)",
        [(2, "a"), (4, "a")],
    ),
    "exists": (
        "SELECT {}, id, CASE WHEN EXISTS (SELECT 1 FROM t AS p WHERE p.v > o.v) THEN 'less' END FROM t AS o",
        [(1, "less"), (2, "less"), (3, "less"), (4, None), (5, "less")],
    ),
    "left lookup": (
        "SELECT {}, t.id, d.name FROM t LEFT JOIN dims FOR SYSTEM_TIME AS OF PROCTIME() AS d "
        "ON d.code = UPPER(t.k) AND UPPER(d.name) = 'ONE'",
        [(1, "One"), (2, "One"), (3, None), (4, "One"), (5, None)],
    ),
    "window join": (
        f"SELECT {{}}, a.n, CONCAT(b.k, CAST(b.v AS STRING)) FROM (SELECT COUNT(*) AS n, {BOUNDS} FROM {SECONDS} "
        f"GROUP BY {BOUNDS}) AS a JOIN (SELECT k, MAX(v) AS v, {BOUNDS} FROM {SECONDS} GROUP BY k, {BOUNDS}) AS b "
        "ON a.window_start = b.window_start AND a.window_end = b.window_end",
        [(1, "a20"), (2, "a40"), (2, "b30"), (1, "a10")],
    ),
    "session": (
        f"SELECT {{}}, COUNT(*), CONCAT(k, DATE_FORMAT(window_end, 'ss')) FROM TABLE(SESSION(TABLE t PARTITION BY k, "
        f"DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY k, {BOUNDS}",
        [(1, "a02"), (2, "a04"), (2, "b03")],
    ),
    "first of a window": (
        f"SELECT {{}}, id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {BOUNDS} ORDER BY v DESC) AS n FROM "
        "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE n = 1",
        [(4, "a")],
    ),
}
"""By name a query and its rows. The watermark comes to 2 s with the first part, so row 5 is late for its
second, and row 3 has become the first row of its key."""


def plan_of(directory: Path) -> Plan:
    for name in ("t", "result"):
        (directory / name).mkdir(exist_ok=True)
    (directory / "dims.json").write_text("".join(json.dumps(row) + "\n" for row in DIMS))
    files = "'connector' = 'filesystem', 'format' = 'json'"
    queries = " UNION ALL ".join(query.replace("{}", f"'{name}'", 1) for name, (query, _) in FORMS.items())
    script = f"""
    CREATE TABLE t (
      id BIGINT, k STRING, v BIGINT, w BIGINT, ts TIMESTAMP(3), buyer ROW<city STRING, zip INT>, tags ARRAY<STRING>,
      WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
    ) WITH ({files}, 'path' = '{directory / "t"}');
    CREATE TABLE dims (code STRING, name STRING) WITH (
      'connector' = 'python',
      'class' = 'tests.connectors.lookup.rates.Rates', 'properties.path' = '{directory / "dims.json"}'
    );
    CREATE TABLE r (form STRING, n BIGINT, s STRING)
    WITH ({files}, 'path' = '{directory / "result"}', 'sink.changelog' = 'true');
    INSERT INTO r {queries};"""
    return compile_sql(script, {"parallelism.default": "2"}, functions={"weighted": WeightedAverage})


def add_first(directory: Path) -> None:
    add_rows(directory, "t", FIRST)


def add_second(directory: Path) -> None:
    add_rows(directory, "t", SECOND)


def check(directory: Path) -> None:
    """What is left of the changelog is what each form gives over all rows."""
    left: Counter[Row] = Counter()
    for row in changes(directory):
        left[row["form"], row.get("n"), row.get("s")] += 1 if row["op"] in ("+I", "+U") else -1
    assert all(count >= 0 for count in left.values())
    found: dict[str, list[Row]] = {name: [] for name in FORMS}
    for name, *row in (+left).elements():
        found[name].append(tuple(row))
    for name, (_, expected) in FORMS.items():
        assert Counter(found[name]) == Counter(expected), name
