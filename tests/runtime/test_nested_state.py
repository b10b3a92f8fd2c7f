"""ROW, ARRAY and MAP in the state of joins and aggregates, in batches, after a restart, and in batch jobs.

What is expected is computed row by row by what stands here; values are compared as the JSON that a sink writes.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2, fixture="spark")]

NESTED = "tags ARRAY<STRING>, at ROW<city STRING, place ROW<x DOUBLE>>, counts MAP<STRING, INT>"
NAMES = ("tags", "at", "counts")
ROWS: list[dict[str, Any]] = [
    {
        "id": id,
        "k": id % 3,
        "tags": [None, [], ["a"], ["a", None], ["b", "a"]][id % 5],
        "at": None if id % 4 == 0 else {"city": "xy"[id % 2], "place": {"x": id % 3 / 2}},
        "counts": None if id % 6 == 0 else {"one": id % 2, "two": id % 4},
    }
    for id in range(1, 25)
]
QUERIES = {
    "joined": (f"id BIGINT, name STRING, {NESTED}", "SELECT o.id, c.name, tags, at, counts FROM o JOIN c ON o.k = c.k"),
    "padded": (
        f"name STRING, {NESTED}",
        "SELECT c.name, tags, at, counts FROM c LEFT JOIN o ON c.k = o.k AND id > 9",
    ),
    "by field": ("id BIGINT, name STRING", "SELECT o.id, c.name FROM o JOIN c ON o.at.city = c.name"),
    "by array": ("id BIGINT, other BIGINT", "SELECT o.id, p.id FROM o JOIN o AS p ON o.tags = p.tags AND o.at <> p.at"),
    "grouped": ("tags ARRAY<STRING>, n BIGINT", "SELECT tags, COUNT(*) FROM o GROUP BY tags"),
    "distinct": ("at ROW<city STRING, place ROW<x DOUBLE>>", "SELECT DISTINCT at FROM o"),
}


def expected(name: str, orders: list[dict[str, Any]], customers: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    nested = [(o, tuple(o[n] for n in NAMES)) for o in orders]
    if name == "joined":
        return [(o["id"], c["name"], *v) for o, v in nested for c in customers if o["k"] == c["k"]]
    if name == "padded":
        found = []
        for c in customers:
            partners = [v for o, v in nested if o["k"] == c["k"] and o["id"] > 9]
            found += [(c["name"], *v) for v in partners or [(None, None, None)]]
        return found
    if name == "by field":
        return [(o["id"], c["name"]) for o in orders for c in customers if (o["at"] or {}).get("city") == c["name"]]
    if name == "by array":
        pairs = ((o, p) for o in orders for p in orders if o["tags"] is not None and o["tags"] == p["tags"])
        return [(o["id"], p["id"]) for o, p in pairs if None not in (o["at"], p["at"]) and o["at"] != p["at"]]
    if name == "grouped":
        return [(json.loads(t), n) for t, n in Counter(json.dumps(o["tags"]) for o in orders).items()]
    return [(json.loads(t),) for t in {json.dumps(o["at"]) for o in orders}]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_nested_values_are_kept_and_compared(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = '{}'"
    script = f"CREATE TABLE o (id BIGINT, k BIGINT, {NESTED}) WITH ({files.format(tmp_path / 'o')});"
    script += f"CREATE TABLE c (k BIGINT, name STRING) WITH ({files.format(tmp_path / 'c')});"
    changes = ", 'sink.changelog' = 'true'" if mode == "streaming" else ""
    for number, (columns, query) in enumerate(QUERIES.values()):
        script += f"CREATE TABLE r{number} ({columns}) WITH ({files.format(tmp_path / f'r{number}')}{changes});"
        script += f"INSERT INTO r{number} {query};"
    plan = hintplan.compile_sql(script, {"execution.runtime-mode": mode, "parallelism.default": "2"}, name="nested")
    customers = [{"k": 1, "name": "x"}, {"k": 2, "name": "y"}, {"k": 7, "name": "z"}]
    for part in (slice(0, 9), slice(9, 24)) if mode == "streaming" else (slice(0, 24),):
        add_rows(tmp_path, "o", ROWS[part])
        if not part.start:
            add_rows(tmp_path, "c", customers)
        checkpoint = {"checkpoint": str(tmp_path / "checkpoint")} if mode == "streaming" else {}
        execute(plan, spark, once=True, **checkpoint).await_termination()
    for number, (name, (columns, _)) in enumerate(QUERIES.items()):
        width = [column.split()[0] for column in columns.replace("ROW<city STRING, place ROW<x DOUBLE>>", "ROW")
                 .replace("MAP<STRING, INT>", "MAP").split(", ")]  # fmt: skip
        wanted = Counter(json.dumps(row) for row in expected(name, ROWS, customers))
        assert left_in(tmp_path / f"r{number}", width) == wanted, name


def left_in(directory: Path, names: list[str]) -> Counter[str]:
    """What a changelog in files adds up to; a NULL may be left out of JSON."""
    found: Counter[str] = Counter()
    for file in directory.glob("part-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            sign = 1 if row.get("op", "+I") in ("+I", "+U") else -1
            found[json.dumps([row.get(name) for name in names])] += sign
    return Counter({row: count for row, count in found.items() if count})
