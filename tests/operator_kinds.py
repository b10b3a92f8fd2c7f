"""One small program for each kind of operator: the list from which completeness is tested.

A kind that is missing here fails :mod:`tests.test_operator_kinds`. Each program writes one table; what must be in it in
the end SQLite says, asked ``oracle`` about all rows.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hintplan
from hintplan.plans.model.plan import Plan

__all__ = ["BATCHES", "MODULES", "PROGRAMS", "Program", "compiled", "expected"]

MODULES = ("tests.runtime.functions.samples",)

_OF_TABLES: tuple[dict[str, list[dict[str, Any]]], ...] = (
    {
        "o": [
            {"id": 1, "k": 1, "v": 5, "s": "a b"},
            {"id": 2, "k": 2, "v": 3, "s": "c"},
            {"id": 3, "k": None, "v": 5, "s": None},
        ],
        "c": [{"k": 1, "name": "x"}],
        "u": [{"id": 1, "seat": "p", "v": 1}, {"id": 2, "seat": "q", "v": 2}],
    },
    {
        "o": [{"id": 4, "k": 1, "v": None, "s": "b"}, {"id": 5, "k": 3, "v": 9, "s": "a a"}],
        "c": [{"k": 2, "name": "y"}, {"k": 1, "name": "z"}],
        "u": [{"id": 1, "seat": "q", "v": 7}, {"id": 2, "op": "-D"}],
    },
    {
        "o": [{"id": 6, "k": 2, "v": 4, "s": ""}],
        "c": [{"k": 9, "name": "w"}],
        "u": [{"id": 3, "seat": "p", "v": 8}, {"id": 4, "seat": "q", "v": 6}],
    },
)
BATCHES = tuple(
    {**tables, "t": [{**row, "ts": f"2026-01-01 00:00:0{row['id']}"} for row in tables["o"]]} for tables in _OF_TABLES
)
"""The rows of each table, in the order in which they come. ``u`` has upserts: a row replaces that of its id.

``t`` has the rows of ``o`` with a time: the id in seconds.
"""

USERS = [(1, "q", 7), (3, "p", 8), (4, "q", 6)]
"""What is left of ``u`` in the end, by hand."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """``query`` writes ``columns``; ``oracle`` asks the same of SQLite, unless the query is SQLite's, too."""

    columns: str
    query: str
    oracle: str | None = None
    mode: str = "streaming"


_ALL = "id BIGINT, v BIGINT"
_EARLY = "TABLE early, DESCRIPTOR(ts)"
"""The rows of ``t`` except the last, whose time closes the windows of the others."""

PROGRAMS: dict[str, Program] = {
    "scan": Program(columns=_ALL, query="SELECT id, v FROM o"),
    "values": Program(
        columns="id BIGINT, name STRING",
        query="SELECT o.id, t.name FROM o JOIN (VALUES (1, 'one'), (2, 'two'), (1, 'uno')) AS t(k, name) ON o.k = t.k",
        oracle="SELECT o.id, t.name FROM o JOIN (SELECT 1 AS k, 'one' AS name UNION ALL SELECT 2, 'two' "
        "UNION ALL SELECT 1, 'uno') AS t ON o.k = t.k",
    ),
    "calc": Program(columns=_ALL, query="SELECT id, v + 1 FROM o WHERE v > 3"),
    "join": Program(
        columns="id BIGINT, name STRING", query="SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k AND o.v > 3"
    ),
    "lookup-join": Program(
        columns="id BIGINT, rate BIGINT",
        query="SELECT o.id, r.rate FROM (SELECT id, k, PROCTIME() AS at FROM o) AS o "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.k = r.k",
        oracle="SELECT o.id, r.rate FROM o LEFT JOIN rates AS r ON o.k = r.k",
    ),
    "correlate": Program(
        columns="id BIGINT, word STRING",
        query="SELECT o.id, w.word FROM o, LATERAL TABLE(words(s, ' ')) AS w(word, length)",
        oracle="SELECT 1, 'a' UNION ALL SELECT 1, 'b' UNION ALL SELECT 2, 'c' UNION ALL SELECT 4, 'b' "
        "UNION ALL SELECT 5, 'a' UNION ALL SELECT 5, 'a'",
    ),
    "expand": Program(
        columns="k BIGINT, v BIGINT, n BIGINT",
        query="SELECT k, v, COUNT(*) FROM o GROUP BY GROUPING SETS ((k), (v), ())",
        oracle="SELECT k, NULL, COUNT(*) FROM o GROUP BY k UNION ALL SELECT NULL, v, COUNT(*) FROM o GROUP BY v "
        "UNION ALL SELECT NULL, NULL, COUNT(*) FROM o",
    ),
    "unnest": Program(
        columns="id BIGINT, x BIGINT, n BIGINT",
        query="SELECT id, x, n FROM o CROSS JOIN UNNEST(ARRAY[v, k]) WITH ORDINALITY AS u(x, n)",
        oracle="SELECT id, v, 1 FROM o UNION ALL SELECT id, k, 2 FROM o",
    ),
    "aggregate": Program(
        columns="k BIGINT, n BIGINT, t BIGINT, d BIGINT",
        query="SELECT k, COUNT(*), SUM(v), COUNT(DISTINCT v) FROM o GROUP BY k",
    ),
    # Rows come in the order of their ids.
    "deduplicate": Program(
        columns="k BIGINT, id BIGINT, v BIGINT",
        query="SELECT k, id, v FROM (SELECT k, id, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY at DESC) AS n "
        "FROM (SELECT *, PROCTIME() AS at FROM o)) WHERE n = 1",
        oracle="SELECT k, id, v FROM o WHERE id IN (SELECT MAX(id) FROM o GROUP BY k)",
    ),
    "rank": Program(
        columns="k BIGINT, n BIGINT, id BIGINT",
        query="SELECT k, n, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM o) "
        "WHERE n <= 2",
    ),
    "changelog-normalize": Program(columns="id BIGINT, seat STRING, v BIGINT", query="SELECT id, seat, v FROM u"),
    "watermark-assigner": Program(
        columns="k BIGINT, n BIGINT",
        query=f"SELECT k, COUNT(*) FROM TABLE(TUMBLE({_EARLY}, INTERVAL '2' SECOND)) "
        "GROUP BY k, window_start, window_end",
        oracle="SELECT k, COUNT(*) FROM o WHERE id < 6 GROUP BY k, id / 2",
    ),
    "window-table-function": Program(
        columns=_ALL,
        query="SELECT id, v FROM TABLE(SESSION(TABLE early PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' SECOND))",
        oracle="SELECT id, v FROM o WHERE id < 6",
    ),
    # The first part of a window has its row of an even id; the second part has both.
    "window-aggregate": Program(
        columns="k BIGINT, n BIGINT",
        query=f"SELECT k, COUNT(*) FROM TABLE(CUMULATE({_EARLY}, INTERVAL '1' SECOND, INTERVAL '2' SECOND)) "
        "GROUP BY k, window_start, window_end",
        oracle="SELECT k, COUNT(*) FROM o WHERE id < 6 GROUP BY k, id / 2 "
        "UNION ALL SELECT k, 1 FROM o WHERE id < 6 AND id % 2 = 0",
    ),
    "window-rank": Program(
        columns=_ALL,
        query="SELECT id, v FROM (SELECT id, v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
        f"ORDER BY v DESC, id) AS n FROM TABLE(TUMBLE({_EARLY}, INTERVAL '2' SECOND))) WHERE n = 1",
        oracle="SELECT id, v FROM o WHERE id IN (1, 3, 5)",
    ),
    "window-deduplicate": Program(
        columns=_ALL,
        query="SELECT id, v FROM (SELECT id, v, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
        f"ORDER BY ts) AS n FROM TABLE(TUMBLE({_EARLY}, INTERVAL '2' SECOND))) WHERE n = 1",
        oracle="SELECT id, v FROM o WHERE id IN (1, 2, 4)",
    ),
    "window-join": Program(
        columns="a BIGINT, b BIGINT",
        query=f"SELECT a.id, b.id FROM (SELECT * FROM TABLE(TUMBLE({_EARLY}, INTERVAL '2' SECOND))) AS a "
        f"JOIN (SELECT * FROM TABLE(TUMBLE({_EARLY}, INTERVAL '2' SECOND))) AS b "
        "ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end",
        oracle="SELECT a.id, b.id FROM o AS a JOIN o AS b ON a.k = b.k AND a.id / 2 = b.id / 2 "
        "WHERE a.id < 6 AND b.id < 6",
    ),
    # The row of id 2 finds none, and comes when the watermark has passed 5 s.
    "interval-join": Program(
        columns="a BIGINT, b BIGINT",
        query="SELECT a.id, b.id FROM early AS a LEFT JOIN early AS b ON a.k = b.k "
        "AND b.ts BETWEEN a.ts + INTERVAL '1' SECOND AND a.ts + INTERVAL '3' SECOND WHERE a.id < 3",
        oracle="SELECT a.id, b.id FROM o AS a LEFT JOIN o AS b ON a.k = b.k AND b.id BETWEEN a.id + 1 AND a.id + 3 "
        "WHERE a.id < 3",
    ),
    "temporal-join": Program(
        columns="id BIGINT, version BIGINT",
        query="SELECT a.id, b.id FROM t AS a LEFT JOIN versions FOR SYSTEM_TIME AS OF a.ts AS b ON a.k = b.k",
        oracle="SELECT a.id, (SELECT MAX(b.id) FROM o AS b WHERE b.k = a.k AND b.v <> 4 AND b.id <= a.id) FROM o AS a",
    ),
    "temporal-sort": Program(
        columns=_ALL, query="SELECT id, v FROM early ORDER BY ts", oracle="SELECT id, v FROM o WHERE id < 6"
    ),
    "union": Program(columns=_ALL, query="SELECT id, v FROM o UNION ALL SELECT k, k FROM c"),
    "sort": Program(columns=_ALL, query="SELECT id, v FROM o ORDER BY id DESC LIMIT 3", mode="batch"),
    "over-aggregate": Program(
        columns="id BIGINT, n BIGINT, t BIGINT",
        query="SELECT id, RANK() OVER w, SUM(v) OVER w FROM early WINDOW w AS (PARTITION BY k ORDER BY ts)",
        oracle="SELECT id, RANK() OVER w, SUM(v) OVER w FROM o WHERE id < 6 WINDOW w AS (PARTITION BY k ORDER BY id)",
    ),
    # Of the users on one seat, the row that was added last counts.
    "sink-materialize": Program(
        columns="seat STRING, id BIGINT, PRIMARY KEY (seat) NOT ENFORCED",
        query="SELECT seat, id FROM u ON CONFLICT DO DEDUPLICATE",
        oracle="SELECT 'p', 3 UNION ALL SELECT 'q', 4",
    ),
    "sink": Program(columns="v BIGINT", query="SELECT v FROM o"),
}


def compiled(directory: Path, *ops: str) -> Plan:
    """One plan of the programs of ``ops``, all of the same mode, which write the tables ``r_<op>``.

    Upsert sinks are tables of ``result.db``, all others files below ``directory``/<op>/result.
    """
    statements = [
        _files(directory, "o", "id BIGINT, k BIGINT, v BIGINT, s STRING"),
        _files(directory, "c", "k BIGINT, name STRING"),
        _files(
            directory,
            "u",
            "id BIGINT, seat STRING, v BIGINT, PRIMARY KEY (id) NOT ENFORCED",
            ", 'source.changelog' = 'upsert'",
        ),
        _files(directory, "t", "id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"),
        "CREATE VIEW early AS SELECT id, k, v, ts FROM t WHERE id < 6;",
        "CREATE VIEW versions AS SELECT k, id, ts FROM (SELECT k, id, ts, ROW_NUMBER() OVER "
        "(PARTITION BY k ORDER BY ts DESC) AS n FROM t WHERE v <> 4) WHERE n = 1;",
        f"CREATE TABLE rates (k BIGINT, rate BIGINT) WITH ('connector' = 'jdbc', "
        f"'url' = 'jdbc:sqlite:{directory / 'rates.db'}', 'table-name' = 'rates');",
        f"CREATE FUNCTION words AS '{MODULES[0]}.Words' LANGUAGE PYTHON;",
    ]
    (mode,) = {PROGRAMS[op].mode for op in ops}
    changes = ", 'sink.changelog' = 'true'" if mode == "streaming" else ""
    for op in ops:
        program, table = PROGRAMS[op], table_of(op)
        options = (
            f"'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{directory / 'result.db'}', 'table-name' = '{table}'"
            if "PRIMARY KEY" in program.columns
            else f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / op / 'result'}'{changes}"
        )
        statements += [
            f"CREATE TABLE {table} ({program.columns}) WITH ({options});",
            f"INSERT INTO {table} {program.query};",
        ]
    config = {"parallelism.default": "2", "execution.runtime-mode": mode}
    return hintplan.compile_sql("\n".join(statements), config, name="kinds", allow_modules=MODULES)


def _files(directory: Path, name: str, columns: str, more: str = "") -> str:
    options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / name}'{more}"
    return f"CREATE TABLE {name} ({columns}) WITH ({options});"


def table_of(op: str) -> str:
    """The table that the program of ``op`` writes."""
    return f"r_{op.replace('-', '_')}"


def expected(op: str) -> Counter[tuple[Any, ...]]:
    """The rows that must be in the table in the end, by SQLite."""
    database = sqlite3.connect(":memory:")
    rates(database)
    database.execute("CREATE TABLE o (id, k, v, s)")
    database.execute("CREATE TABLE c (k, name)")
    database.execute("CREATE TABLE u (id, seat, v)")
    for batch in BATCHES:
        database.executemany("INSERT INTO o VALUES (:id, :k, :v, :s)", batch["o"])
        database.executemany("INSERT INTO c VALUES (:k, :name)", batch["c"])
    database.executemany("INSERT INTO u VALUES (?, ?, ?)", USERS)
    program = PROGRAMS[op]
    return Counter(database.execute(program.oracle or program.query).fetchall())


def rates(database: sqlite3.Connection) -> None:
    """Make the table that lookups ask."""
    database.execute("CREATE TABLE rates (k INTEGER, rate INTEGER)")
    database.execute("INSERT INTO rates VALUES (1, 10), (3, 30), (3, 31)")
    database.commit()
