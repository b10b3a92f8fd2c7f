"""Joins with two equalities on one column of a side: any slicing, stopped and resumed, gives what SQLite gives at once.

Which column of the state a key is compared with shows only when rows meet stored ones, so each side comes first, last
and in pieces between the other's.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter

import pyarrow as pa
import pytest

import hintplan
from hintplan.plans.operators import Join
from hintplan.runtime.kernels.xxhash import hash_rows
from hintplan.runtime.operator import KIND, hash_column
from hintplan.runtime.operators.join import JoinOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import KINDS, events_of, fold
from tests.runtime.pipeline import Pipeline

TABLES = "".join(
    f"CREATE TABLE {name} (id BIGINT, x BIGINT, y BIGINT) "
    f"WITH ('connector' = 'filesystem', 'path' = '{name}', 'format' = 'json');\n"
    for name in "abc"
)
CONDITIONS = {
    "right doubled": "a.x = b.x AND a.y = b.x",
    "left doubled": "a.x = b.x AND a.x = b.y",
    "crossed": "a.x = b.x AND a.x = b.y AND a.y = b.x",
    "with a condition": "a.x = b.x AND a.y = b.x AND a.id < b.id",
}
QUERIES = {
    f"{kind} join, {name}": f"SELECT a.id, b.id FROM a {kind} JOIN b ON {condition}"
    for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    for name, condition in CONDITIONS.items()
}
QUERIES |= {
    f"{word}, {name}": f"SELECT id, x FROM a WHERE {word} (SELECT 1 FROM b WHERE {condition})"
    for word in ("EXISTS", "NOT EXISTS")
    for name, condition in CONDITIONS.items()
}
QUERIES |= {
    "in": "SELECT id, x FROM a WHERE (x, y) IN (SELECT x, x FROM b)",
    "star with a redundant equality": (
        "SELECT a.id, c.id FROM a JOIN b ON a.x = b.x JOIN c ON a.x = c.x AND b.x = c.x AND a.y = c.x"
    ),
    "outer star with a redundant equality": (
        "SELECT a.id, c.id FROM a LEFT JOIN b ON a.x = b.x LEFT JOIN c ON a.x = c.x AND b.x = c.x"
    ),
    "over what is taken back": (
        "SELECT t.x, c.id FROM (SELECT a.x, b.y FROM a LEFT JOIN b ON a.x = b.x) AS t FULL JOIN c "
        "ON t.x = c.x AND t.y = c.x"
    ),
    "grouped": (
        "SELECT x, COUNT(*) FROM (SELECT a.x, b.id FROM a LEFT JOIN b ON a.x = b.x AND a.y = b.x) AS t GROUP BY x"
    ),
}


def plan_of(query: str):
    text = f"{TABLES} CREATE TABLE r (p BIGINT, q BIGINT) WITH ('connector' = 'blackhole'); INSERT INTO r {query};"
    return hintplan.compile_sql(text, name="q")


def rows_of(dice: random.Random) -> list[tuple[str, tuple]]:
    values = (None, 1, 2, 3)
    return [
        (dice.choice("abc"), (number, dice.choice(values), dice.choice(values)))
        for number in range(dice.randint(0, 24))
    ]


def by_sqlite(query: str, rows: list[tuple[str, tuple]]) -> Counter:
    database = sqlite3.connect(":memory:")
    for name in "abc":
        database.execute(f"CREATE TABLE {name} (id, x, y)")
    for table, row in rows:
        database.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", row)
    found = Counter(database.execute(query).fetchall())
    database.close()
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_any_slicing_gives_what_sqlite_gives_at_once(name):
    plan = plan_of(QUERIES[name])
    for seed in range(12):
        dice = random.Random(f"{name} {seed}")
        rows = rows_of(dice)
        if seed % 4 == 1:
            rows.sort(key=lambda row: row[0])  # all of one side, then all of the other
        elif seed % 4 == 2:
            rows.sort(key=lambda row: row[0], reverse=True)
        pipeline = Pipeline(plan)
        begin = 0
        while begin < len(rows) or begin == 0:
            end = begin + dice.choice((1, 1, 2, 5, 24))
            part = rows[begin:end]
            pipeline.batch({table: [row for t, row in part if t == table] for table in "abc"})
            pipeline = pipeline.resumed() if dice.random() < 0.3 else pipeline
            begin = end
        assert pipeline.result == by_sqlite(QUERIES[name], rows), seed


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("doubled", ["left", "right"])
def test_rows_that_are_taken_back_meet_stored_ones_too(kind, doubled):
    """Each side inserts and takes back single rows; the reference joins what is left of both by hand."""
    sides = [pa.schema([("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])] * 2
    keys = (("x", "y"), ("x", "x")) if doubled == "right" else (("x", "x"), ("x", "y"))
    columns = [("l", "left", "id")] + ([] if kind in ("semi", "anti") else [("r", "right", "id")])
    operator = JoinOperator(
        kind=kind, left=sides[0], right=sides[1], left_keys=keys[0], right_keys=keys[1], changelog=(True, True),
        condition=None, ttls=(0, 0), columns=tuple(columns), emits_changelog=True,
    )  # fmt: skip
    for seed in range(20):
        dice = random.Random(f"{kind} {doubled} {seed}")
        there: tuple[list[tuple], list[tuple]] = ([], [])
        store, manifest, result = MemoryStore(), None, Counter()
        for _ in range(12):
            deltas = []
            for side, spec in zip(there, operator.inputs, strict=True):
                events = []
                for _ in range(dice.randint(0, 3)):
                    if side and dice.random() < 0.4:
                        events.append(("-D", side.pop(dice.randrange(len(side)))))
                    else:
                        row = (dice.randint(0, 3), *(dice.choice((None, 1, 2)) for _ in range(2)))
                        side.append(row)
                        events.append(("+I", row))
                deltas.append(_delta(spec, events))
            found = operator.process(deltas, manifest, store, 0)
            manifest, result = found.manifest, fold(events_of(found.output), result)
        assert result == _joined(kind, keys, *there), seed


def _delta(spec, events) -> pa.Table | None:
    if not events:
        return None
    table = pa.table(list(map(pa.array, zip(*(row for _, row in events), strict=True))), schema=spec.columns)
    table = table.append_column(KIND, pa.array([KINDS.index(kind) for kind, _ in events], pa.int8()))
    for index, names in enumerate(spec.hashes):
        hashes = hash_rows([table[name].combine_chunks() for name in names], table.num_rows)
        table = table.append_column(hash_column(index), pa.array(hashes))
    return table


def _joined(kind: str, keys, left: list[tuple], right: list[tuple]) -> Counter:
    at = {"x": 1, "y": 2}
    pairs = [
        (i, j)
        for i, one in enumerate(left)
        for j, other in enumerate(right)
        if all(one[at[a]] is not None and one[at[a]] == other[at[b]] for a, b in zip(*keys, strict=True))
    ]
    met = {i for i, _ in pairs}, {j for _, j in pairs}
    if kind in ("semi", "anti"):
        return Counter((row[0],) for i, row in enumerate(left) if (i in met[0]) == (kind == "semi"))
    found = Counter((left[i][0], right[j][0]) for i, j in pairs)
    if kind in ("left", "full"):
        found += Counter((row[0], None) for i, row in enumerate(left) if i not in met[0])
    if kind in ("right", "full"):
        found += Counter((None, row[0]) for j, row in enumerate(right) if j not in met[1])
    return found


def test_the_layout_of_joins_without_doubled_columns_is_as_it_was():
    """The fingerprints by which checkpoints of today know their tables, of a join by one key and of a doubled one."""
    fingerprints = {}
    for name in ("a.x = b.x", "a.x = b.x AND a.y = b.x"):
        plan = plan_of(f"SELECT a.id, b.id FROM a LEFT JOIN b ON {name}")
        pipeline = Pipeline(plan)
        (join,) = (operator for operator in plan.operators if isinstance(operator, Join))
        pipeline.batch({"a": [(1, 1, 1)], "b": [(1, 1, 1)], "c": []})
        manifest = pipeline.manifests[join.id] or b""
        fingerprints[name] = [part[1:17] for part in manifest.decode().split('"fingerprint":')[1:]]
    assert fingerprints == {
        "a.x = b.x": ["78053a1e52dbd3b1", "9de7e12e8d5b5a16"],
        "a.x = b.x AND a.y = b.x": ["141c016a2aa0b89f", "2250b0d23ad154d7"],
    }
