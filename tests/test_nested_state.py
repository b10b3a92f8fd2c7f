"""Every kind of operator with state keeps ROW, ARRAY, MAP and MULTISET, in its rows and in its keys.

SQLite says what must be left: it is given a number for each value, equal numbers for equal values.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Mode, Plan
from hintplan.plans.operators import KINDS, Stateful
from hintplan.runtime.run.execute import execute
from hintplan.runtime.types import to_arrow
from tests.runtime.changelog import hashable
from tests.runtime.pipeline import Pipeline
from tests.sample import sampled
from tests.spark.programs import add_rows, changes
from tests.test_operator_kinds import DEADLINE_SECONDS, latest

TYPES: dict[str, tuple[Any, Any, Any, Any]] = {
    "ROW<a INT, b STRING>": ({"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": None}, {"a": 1, "b": "x"}),
    "ARRAY<STRING>": (["x", None], ["x"], [], ["x", None]),
    "MAP<STRING, INT>": ({"x": 1, "y": None}, {"x": 1}, {}, {"y": None, "x": 1}),
    "MULTISET<STRING>": ({"x": 2, "y": 1}, {"x": 1}, {}, {"y": 1, "x": 2}),
    "ROW<a ARRAY<INT>, m MAP<STRING, ROW<c INT>>>": (
        {"a": [1, None], "m": {"x": {"c": 1}, "y": {"c": None}}},
        {"a": [1], "m": {"x": None}},
        {"a": None, "m": None},
        {"a": [1, None], "m": {"y": {"c": None}, "x": {"c": 1}}},
    ),
    "ARRAY<MAP<STRING, ARRAY<INT>>>": (
        [{"x": [1], "y": []}, None],
        [{"x": [1]}],
        [None],
        [{"y": [], "x": [1]}, None],
    ),
    "MAP<STRING, ROW<a ARRAY<INT>>>": (
        {"x": {"a": [1, 2]}, "y": None},
        {"x": {"a": [2, 1]}},
        {"x": {"a": None}},
        {"y": None, "x": {"a": [1, 2]}},
    ),
}
"""Four values of each type; the last is equal to the first, if written otherwise."""
SAME = {0: 0, 1: 1, 2: 2, 3: 0, None: None}

O_ROWS = [
    (1, 1, 0, 5), (2, 2, 1, 3), (3, None, None, 5), (4, 1, 3, None), (5, 3, 2, 9), (6, 2, None, 4), (7, 1, 2, 5),
    (8, 3, 3, 2), (9, 2, 1, 3),
]  # fmt: skip
P_ROWS = [(11, 1, 3), (12, 2, 2), (13, 1, None), (14, 9, 0)]
U_ROWS = [("+U", 1, "p", 0), ("+U", 2, "q", 1), ("+U", 1, "q", 3), ("-D", 2, None, None), ("+U", 3, "p", 2),
          ("+U", 3, "p", 1), ("+U", 4, "q", None)]  # fmt: skip
U_LEFT = [(1, "q", 0), (3, "p", 1), (4, "q", None)]
"""What is left of ``u`` in the end, by hand; of a seat, the row that was added last counts."""

_TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '9' SECOND))"
_HOP = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '8' SECOND))"
_SESSION = "TABLE(SESSION(TABLE t PARTITION BY x, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
_SESSIONS = """(SELECT *, SUM(is_first) OVER (PARTITION BY x ORDER BY id) AS w FROM
(SELECT *, COALESCE(id - LAG(id) OVER (PARTITION BY x ORDER BY id) > 5, 0) AS is_first FROM o))"""
_JOIN = f"""FROM {_TUMBLE} AS a {{kind}} JOIN TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '9' SECOND)) AS b
ON a.{{key}} = b.{{key}} AND a.window_start = b.window_start AND a.window_end = b.window_end"""
_JOINED = "FROM o AS a {kind} JOIN p AS b ON a.{key} = b.{key} AND a.id / 9 = (b.id - 9) / 9"
_NEAR = """FROM t AS a {kind} JOIN s AS b
ON a.{key} = b.{key} AND a.ts BETWEEN b.ts - INTERVAL '4' SECOND AND b.ts + INTERVAL '4' SECOND"""
_NEARLY = "FROM o AS a {kind} JOIN p AS b ON a.{key} = b.{key} AND a.id - (b.id - 9) BETWEEN -4 AND 4"
"""``t`` has the rows of ``o``, its time is the id in seconds; ``s`` has those of ``p``, at 9 seconds less than the id.

All of these windows are open at the stop, except HOP's first; the second batch closes some, and the end the others.
"""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A query of the kind ``op``; ``nested`` are the places of the columns of its result that are nested."""

    op: str
    columns: str
    query: str
    nested: tuple[int, ...]
    oracle: str = ""


PROGRAMS: dict[str, Program] = {
    "join of keys": Program(
        op="join", columns="a BIGINT, b BIGINT", query="SELECT o.id, p.id FROM o JOIN p ON o.x = p.x", nested=()
    ),
    "join of rows": Program(
        op="join",
        columns="id BIGINT, x {t}, y {t}",
        query="SELECT o.id, o.x, p.x FROM o LEFT JOIN p ON o.k = p.k",
        nested=(1, 2),
    ),
    "groups": Program(
        op="aggregate",
        columns="x {t}, n BIGINT, t BIGINT",
        query="SELECT x, COUNT(*), SUM(v) FROM o GROUP BY x",
        nested=(0,),
    ),
    "different values": Program(op="aggregate", columns="x {t}", query="SELECT DISTINCT x FROM o", nested=(0,)),
    "last values": Program(
        op="aggregate",
        columns="k BIGINT, x {t}, n BIGINT",
        query="SELECT k, LAST_VALUE(x), COUNT(x) FROM o GROUP BY k",
        nested=(1,),
        oracle="SELECT k, (SELECT x FROM o AS i WHERE i.k IS o.k AND x IS NOT NULL ORDER BY id DESC LIMIT 1), COUNT(x) "
        "FROM o GROUP BY k",
    ),
    "last rows": Program(
        op="deduplicate",
        columns="k BIGINT, id BIGINT, x {t}",
        query="SELECT k, id, x FROM (SELECT k, id, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY at DESC) AS n "
        "FROM (SELECT *, PROCTIME() AS at FROM o)) WHERE n = 1",
        nested=(2,),
        oracle="SELECT k, id, x FROM o WHERE id IN (SELECT MAX(id) FROM o GROUP BY k)",
    ),
    "first rows at the watermark": Program(
        op="deduplicate",
        columns="x {t}, id BIGINT",
        query="SELECT x, id FROM (SELECT x, id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY ts) AS n FROM t) "
        "WHERE n = 1",
        nested=(0,),
        oracle="SELECT x, MIN(id) FROM o GROUP BY x",
    ),
    "rows in order of time": Program(
        op="temporal-sort",
        columns="id BIGINT, x {t}",
        query="SELECT id, x FROM t ORDER BY ts",
        nested=(1,),
        oracle="SELECT id, x FROM o",
    ),
    "last rows of values": Program(
        op="deduplicate",
        columns="x {t}, id BIGINT",
        query="SELECT x, id FROM (SELECT x, id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY at DESC) AS n "
        "FROM (SELECT *, PROCTIME() AS at FROM o)) WHERE n = 1",
        nested=(0,),
        oracle="SELECT x, MAX(id) FROM o GROUP BY x",
    ),
    "first rows": Program(
        op="rank",
        columns="k BIGINT, id BIGINT, x {t}",
        query="SELECT k, id, x FROM (SELECT k, id, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n "
        "FROM o) WHERE n <= 2",
        nested=(2,),
    ),
    "first rows of values": Program(
        op="rank",
        columns="x {t}, id BIGINT",
        query="SELECT x, id FROM (SELECT x, id, ROW_NUMBER() OVER (PARTITION BY x ORDER BY v DESC, id) AS n "
        "FROM o) WHERE n <= 2",
        nested=(0,),
    ),
    "upserts": Program(
        op="changelog-normalize", columns="id BIGINT, x {t}", query="SELECT id, x FROM u", nested=(1,)
    ),
    "sink": Program(
        op="sink-materialize",
        columns="seat STRING, x {t}, PRIMARY KEY (seat) NOT ENFORCED",
        query="SELECT seat, x FROM u ON CONFLICT DO DEDUPLICATE",
        nested=(1,),
        oracle="SELECT 'p', 1 UNION ALL SELECT 'q', NULL",
    ),
    "rows of sessions": Program(
        op="window-table-function",
        columns="k BIGINT, id BIGINT, x {t}",
        query="SELECT k, id, x FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) "
        "WHERE v > 2",
        nested=(2,),
        oracle="SELECT k, id, x FROM o WHERE v > 2",
    ),
    "sessions of values": Program(
        op="window-table-function",
        columns="x {t}, a BIGINT, b BIGINT, n BIGINT",
        query=f"SELECT x, MIN(id), MAX(id), COUNT(*) FROM {_SESSION} GROUP BY x, window_start",
        nested=(0,),
        oracle=f"SELECT x, MIN(id), MAX(id), COUNT(*) FROM {_SESSIONS} GROUP BY x, w",
    ),
    "groups of windows": Program(
        op="window-aggregate",
        columns="x {t}, n BIGINT, t BIGINT",
        query=f"SELECT x, COUNT(*), SUM(v) FROM {_HOP} GROUP BY x, window_start, window_end",
        nested=(0,),
        oracle="SELECT x, COUNT(*), SUM(v) FROM (SELECT *, id / 4 AS w FROM o UNION ALL SELECT *, id / 4 + 1 FROM o) "
        "GROUP BY x, w",
    ),
    "groups of sessions": Program(
        op="window-aggregate",
        columns="x {t}, n BIGINT, t BIGINT",
        query=f"SELECT x, COUNT(*), SUM(v) FROM {_SESSION} GROUP BY x, window_start, window_end",
        nested=(0,),
        oracle=f"SELECT x, COUNT(*), SUM(v) FROM {_SESSIONS} GROUP BY x, w",
    ),
    "last values of windows": Program(
        op="window-aggregate",
        columns="k BIGINT, x {t}, n BIGINT",
        query=f"SELECT k, LAST_VALUE(x), COUNT(x) FROM {_TUMBLE} GROUP BY k, window_start, window_end",
        nested=(1,),
        oracle="SELECT k, (SELECT x FROM o AS i WHERE i.k IS o.k AND i.id / 9 = o.id / 9 AND x IS NOT NULL "
        "ORDER BY id DESC LIMIT 1), COUNT(x) FROM o GROUP BY k, id / 9",
    ),
    "first rows of windows": Program(
        op="window-rank",
        columns="id BIGINT, x {t}, n BIGINT",
        query="SELECT id, x, n FROM (SELECT id, x, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
        f"ORDER BY v DESC, id) AS n FROM {_TUMBLE}) WHERE n <= 2",
        nested=(1,),
        oracle="SELECT id, x, n FROM (SELECT id, x, ROW_NUMBER() OVER (PARTITION BY id / 9 ORDER BY v DESC, id) AS n "
        "FROM o) WHERE n <= 2",
    ),
    "first rows of values in windows": Program(
        op="window-rank",
        columns="x {t}, id BIGINT",
        query="SELECT x, id FROM (SELECT x, id, ROW_NUMBER() OVER (PARTITION BY x, window_start, window_end "
        f"ORDER BY v DESC, id) AS n FROM {_HOP}) WHERE n <= 1",
        nested=(0,),
        oracle="SELECT x, id FROM (SELECT x, id, ROW_NUMBER() OVER (PARTITION BY x, w ORDER BY v DESC, id) AS n "
        "FROM (SELECT *, id / 4 AS w FROM o UNION ALL SELECT *, id / 4 + 1 FROM o)) WHERE n <= 1",
    ),
    "last rows of windows": Program(
        op="window-deduplicate",
        columns="k BIGINT, id BIGINT, x {t}",
        query="SELECT k, id, x FROM (SELECT k, id, x, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end "
        f"ORDER BY ts DESC) AS n FROM {_TUMBLE}) WHERE n = 1",
        nested=(2,),
        oracle="SELECT k, id, x FROM o WHERE id IN (SELECT MAX(id) FROM o GROUP BY k, id / 9)",
    ),
    "last rows of values in windows": Program(
        op="window-deduplicate",
        columns="x {t}, id BIGINT",
        query="SELECT x, id FROM (SELECT x, id, ROW_NUMBER() OVER (PARTITION BY x, window_start, window_end "
        f"ORDER BY ts DESC) AS n FROM {_TUMBLE}) WHERE n = 1",
        nested=(0,),
        oracle="SELECT x, MAX(id) FROM o GROUP BY x, id / 9",
    ),
    "rows before a row": Program(
        op="over-aggregate",
        columns="id BIGINT, x {t}, y {t}",
        query="SELECT id, LAG(x) OVER w, LAG(x, 2, x) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)",
        nested=(1, 2),
        oracle="SELECT id, LAG(x) OVER w, LAG(x, 2, x) OVER w FROM o WINDOW w AS (PARTITION BY k ORDER BY id)",
    ),
    "last value of some time": Program(
        op="over-aggregate",
        columns="id BIGINT, x {t}, n BIGINT",
        query="SELECT id, LAST_VALUE(x) OVER w, COUNT(x) OVER w FROM t "
        "WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '4' SECOND PRECEDING AND CURRENT ROW)",
        nested=(1,),
        oracle="SELECT id, (SELECT x FROM o AS i WHERE i.k IS o.k AND i.id BETWEEN o.id - 4 AND o.id "
        "AND x IS NOT NULL ORDER BY id DESC LIMIT 1), (SELECT COUNT(x) FROM o AS i "
        "WHERE i.k IS o.k AND i.id BETWEEN o.id - 4 AND o.id) FROM o",
    ),
    "sums by value": Program(
        op="over-aggregate",
        columns="x {t}, t BIGINT",
        query="SELECT x, SUM(v) OVER (PARTITION BY x ORDER BY ts) FROM t",
        nested=(0,),
        oracle="SELECT x, SUM(v) OVER (PARTITION BY x ORDER BY id) FROM o",
    ),
    "join of keys in windows": Program(
        op="window-join",
        columns="a BIGINT, b BIGINT",
        query=f"SELECT a.id, b.id {_JOIN.format(kind='FULL', key='x')}",
        nested=(),
        oracle=f"SELECT a.id, b.id {_JOINED.format(kind='FULL', key='x')}",
    ),
    "join of rows in windows": Program(
        op="window-join",
        columns="id BIGINT, x {t}, y {t}",
        query=f"SELECT a.id, a.x, b.x {_JOIN.format(kind='LEFT', key='k')}",
        nested=(1, 2),
        oracle=f"SELECT a.id, a.x, b.x {_JOINED.format(kind='LEFT', key='k')}",
    ),
    "join of keys by time": Program(
        op="interval-join",
        columns="a BIGINT, b BIGINT",
        query=f"SELECT a.id, b.id {_NEAR.format(kind='FULL', key='x')}",
        nested=(),
        oracle=f"SELECT a.id, b.id {_NEARLY.format(kind='FULL', key='x')}",
    ),
    "join of rows by time": Program(
        op="interval-join",
        columns="id BIGINT, x {t}, y {t}",
        query=f"SELECT a.id, a.x, b.x {_NEAR.format(kind='LEFT', key='k')}",
        nested=(1, 2),
        oracle=f"SELECT a.id, a.x, b.x {_NEARLY.format(kind='LEFT', key='k')}",
    ),
    "versions": Program(
        op="temporal-join",
        columns="id BIGINT, x {t}, y {t}",
        query="WITH v AS (SELECT k, x, ts FROM (SELECT k, x, ts, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) "
        "AS n FROM s) WHERE n = 1) SELECT a.id, a.x, b.x FROM t AS a LEFT JOIN v FOR SYSTEM_TIME AS OF a.ts AS b "
        "ON a.k = b.k",
        nested=(1, 2),
        oracle="SELECT a.id, a.x, (SELECT b.x FROM p AS b WHERE b.k = a.k AND b.id - 9 <= a.id ORDER BY b.id DESC "
        "LIMIT 1) FROM o AS a",
    ),
}  # fmt: skip
ON_SPARK = [name for name, program in PROGRAMS.items() if program.op != "sink-materialize"]
_AT_WATERMARK = ("first rows at the watermark", "rows in order of time")
_TIMED = ("window", "over", "interval", "temporal-join")
_WINDOWS = {name for name in ON_SPARK if PROGRAMS[name].op.startswith(_TIMED) or name in _AT_WATERMARK}
RUNS = {
    "without windows": [name for name in ON_SPARK if name not in _WINDOWS],
    "keys of windows": [name for name in ON_SPARK if name in _WINDOWS and PROGRAMS[name].nested in ((), (0,))],
    "rows of windows": [name for name in ON_SPARK if name in _WINDOWS and PROGRAMS[name].nested not in ((), (0,))],
}
"""A few programs a run, because Spark starts a Python process for each query with windows, and waits only 10 s for it.
"""
NOT_IN_BATCH = ("upserts", "last values", "last rows", "last rows of values", "versions", "last value of some time")
"""A batch job reads no upserts, has no last row and no versions, and takes no RANGE of an interval."""
IN_BATCH = [name for name in ON_SPARK if name not in NOT_IN_BATCH]


def compiled(kind: str, names: list[str], directory: Path, mode: Mode = "streaming") -> Plan:
    files = "'connector' = 'filesystem', 'format' = 'json'"
    script = [
        f"CREATE TABLE o (id BIGINT, k BIGINT, x {kind}, v BIGINT) WITH ({files}, 'path' = '{directory / 'o'}');",
        f"CREATE TABLE p (id BIGINT, k BIGINT, x {kind}) WITH ({files}, 'path' = '{directory / 'p'}');",
        f"CREATE TABLE u (id BIGINT, seat STRING, x {kind}, PRIMARY KEY (id) NOT ENFORCED) "
        f"WITH ({files}, 'path' = '{directory / 'u'}', 'source.changelog' = 'upsert');",
        f"CREATE TABLE t (id BIGINT, k BIGINT, x {kind}, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ({files}, 'path' = '{directory / 't'}');",
        f"CREATE TABLE s (id BIGINT, k BIGINT, x {kind}, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ({files}, 'path' = '{directory / 's'}');",
    ]
    for place, name in enumerate(names):
        program = PROGRAMS[name]
        changed = ", 'sink.changelog' = 'true'" if mode == "streaming" else ""
        options = f"{files}, 'path' = '{directory / str(place) / 'result'}'{changed}"
        if "PRIMARY KEY" in program.columns:
            options = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://server/db', 'table-name' = 't'"
        script.append(f"CREATE TABLE r{place} ({program.columns.format(t=kind)}) WITH ({options});")
        script.append(f"INSERT INTO r{place} {program.query};")
    return hintplan.compile_sql("\n".join(script), {"parallelism.default": "2", "execution.runtime-mode": mode})


def expected(name: str, kind: str) -> Counter[tuple[Any, ...]]:
    """What SQLite has in the end, with values for their numbers."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE o (id, k, x, v)")
    database.execute("CREATE TABLE p (id, k, x)")
    database.execute("CREATE TABLE u (id, seat, x)")
    database.executemany("INSERT INTO o VALUES (?, ?, ?, ?)", [(i, k, SAME[x], v) for i, k, x, v in O_ROWS])
    database.executemany("INSERT INTO p VALUES (?, ?, ?)", [(i, k, SAME[x]) for i, k, x in P_ROWS])
    database.executemany("INSERT INTO u VALUES (?, ?, ?)", U_LEFT)
    program = PROGRAMS[name]
    return Counter(
        tuple(shown(value, kind) if place in program.nested else value for place, value in enumerate(row))
        for row in database.execute(program.oracle or program.query)
    )


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second)


def given(number: int | None, kind: str) -> Any:
    """The value with this number as a row of Python has it: entries as pairs."""
    return None if number is None else pairs(TYPES[kind][number], to_arrow(kind))


def pairs(value: Any, kind: Any) -> Any:
    if value is None or not hasattr(kind, "num_fields") or not kind.num_fields:
        return value
    if isinstance(value, list):
        return [pairs(each, kind.value_type) for each in value]
    if hasattr(kind, "item_type"):
        return [(key, pairs(each, kind.item_type)) for key, each in value.items()]
    return {field.name: pairs(value[field.name], field.type) for field in kind}


def shown(number: int | None, kind: str) -> Any:
    return hashable(given(number, kind), to_arrow(kind))


def test_there_is_a_program_for_each_kind_with_state() -> None:
    with_state = {kind.op for kind in KINDS if issubclass(kind, Stateful)}
    assert {program.op for program in PROGRAMS.values()} == with_state


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kind_keeps_values_over_a_stop_as_sqlite_says(name: str, kind: str, tmp_path: Path) -> None:
    plan = compiled(kind, [name], tmp_path)
    assert PROGRAMS[name].op in {operator.op for operator in plan.operators}
    pipeline, events = Pipeline(plan), []
    for part in (slice(4), slice(4, None)):
        pipeline = pipeline.resumed(hintplan.loads(hintplan.dumps(plan)))
        pipeline.batch({
            "o": [(i, k, given(x, kind), v) for i, k, x, v in O_ROWS[part]],
            "p": [(i, k, given(x, kind)) for i, k, x in P_ROWS[part]],
            "u": [(op, i, seat, given(x, kind)) for op, i, seat, x in U_ROWS[part]],
            "t": [(i, k, given(x, kind), v, at(i)) for i, k, x, v in O_ROWS[part]],
            "s": [(i, k, given(x, kind), at(i - 9)) for i, k, x in P_ROWS[part]],
        })  # fmt: skip
        events += pipeline.events
    pipeline = pipeline.resumed()
    pipeline.drain()
    events += pipeline.events
    assert (latest(events) if "PRIMARY KEY" in PROGRAMS[name].columns else +pipeline.result) == expected(name, kind)


def written(rows: list[dict[str, Any]], name: str, kind: str, sign: Any) -> Counter[tuple[Any, ...]]:
    """What the rows of files leave."""
    program, arrow = PROGRAMS[name], to_arrow(kind)
    left: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        values = [row.get(part.split()[0]) for part in program.columns.split(", ")]
        shown = (hashable(pairs(v, arrow), arrow) if n in program.nested else v for n, v in enumerate(values))
        left[tuple(shown)] += sign(row)
    return +left


def add(directory: Path, kind: str, part: slice) -> None:
    def value(number: int | None) -> Any:
        return None if number is None else TYPES[kind][number]

    add_rows(directory, "o", [{"id": i, "k": k, "x": value(x), "v": v} for i, k, x, v in O_ROWS[part]])
    add_rows(directory, "p", [{"id": i, "k": k, "x": value(x)} for i, k, x in P_ROWS[part]])
    add_rows(directory, "u", [{"op": op, "id": i, "seat": s, "x": value(x)} for op, i, s, x in U_ROWS[part]])
    timed = [{"id": i, "k": k, "x": value(x), "v": v, "ts": str(at(i))} for i, k, x, v in O_ROWS[part]]
    add_rows(directory, "t", timed)
    add_rows(directory, "s", [{"id": i, "k": k, "x": value(x), "ts": str(at(i - 9))} for i, k, x in P_ROWS[part]])


@pytest.mark.spark
@pytest.mark.integration
@pytest.mark.parametrize(("run", "kind"), sampled(list(product(RUNS, TYPES)), keep=2))
def test_a_stream_on_spark_keeps_values_over_a_stop(spark: SparkSession, run: str, kind: str, tmp_path: Path) -> None:
    plan = compiled(kind, RUNS[run], tmp_path)
    for part, is_last in ((slice(4), False), (slice(4, None), True)):
        add(tmp_path, kind, part)
        execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, drain=is_last)
        assert execution.await_termination(DEADLINE_SECONDS)
    for place, name in enumerate(RUNS[run]):
        rows = list(changes(tmp_path / str(place)))
        found = written(rows, name, kind, lambda row: 1 if row["op"] in ("+I", "+U") else -1)
        assert found == expected(name, kind), name


@pytest.mark.spark
@pytest.mark.parametrize("kind", [list(TYPES)[2], list(TYPES)[3], list(TYPES)[5]])
def test_a_batch_job_compares_values_as_streams_do(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    add(tmp_path, kind, slice(None))
    assert execute(compiled(kind, IN_BATCH, tmp_path, "batch"), spark).await_termination(DEADLINE_SECONDS)
    for place, name in enumerate(IN_BATCH):
        files = (tmp_path / str(place) / "result").glob("*.json")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert written(rows, name, kind, lambda row: 1) == expected(name, kind), name
