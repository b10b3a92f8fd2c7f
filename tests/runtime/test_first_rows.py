"""The first rows of each key and of all, in streams and in batch jobs, are those that SQLite finds."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2, fixture="spark")]

ROWS: list[dict[str, Any]] = [
    {
        "id": id,
        "k": (id * 7) % 4 or None,
        "v": (id * 13) % 5 or None,
        "d": (id * 3 % 7) / 2,
        "s": "abc"[id % 3] * (id % 4),
    }
    for id in range(1, 41)
]
COLUMNS = "id BIGINT, k BIGINT, v BIGINT, d DOUBLE, s STRING"
NUMBERED = (
    "SELECT {what} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {by}) AS n FROM o) AS t WHERE {which}"
)
OF_V = "SELECT {what} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY d, id) AS n FROM o) AS t WHERE {which}"
QUERIES = {
    "with numbers": (
        "k BIGINT, n BIGINT, id BIGINT",
        NUMBERED.format(what="k, n, id", by="v DESC, id", which="n <= 3"),
    ),
    "without numbers": ("k BIGINT, id BIGINT", NUMBERED.format(what="k, id", by="s, d DESC, id", which="n <= 2")),
    "one number": ("k BIGINT, id BIGINT", NUMBERED.format(what="k, id", by="d DESC, id", which="n = 2")),
    "as many as the key says": ("v BIGINT, n BIGINT, id BIGINT", OF_V.format(what="v, n, id", which="n <= v")),
    "as many as the key says, without numbers": ("v BIGINT, id BIGINT", OF_V.format(what="v, id", which="n <= v")),
    "less than the key says": ("v BIGINT, id BIGINT", OF_V.format(what="v, id", which="n > 1 AND n < v")),
    "nulls": ("k BIGINT, id BIGINT", NUMBERED.format(what="k, id", by="v NULLS LAST, id", which="n BETWEEN 2 AND 4")),
    "of all": ("id BIGINT", "SELECT id FROM o ORDER BY s DESC, id LIMIT 5 OFFSET 1"),
    "largest groups": ("s STRING, c BIGINT", "SELECT s, COUNT(*) AS c FROM o GROUP BY s ORDER BY c DESC, s LIMIT 2"),
}


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_the_first_rows_are_those_of_sqlite(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = '{}'"
    changes = ", 'sink.changelog' = 'true'" if mode == "streaming" else ""
    script = f"CREATE TABLE o ({COLUMNS}) WITH ({files.format(tmp_path / 'o')}, 'source.max-files-per-trigger' = '1');"
    for number, (columns, query) in enumerate(QUERIES.values()):
        script += f"CREATE TABLE r{number} ({columns}) WITH ({files.format(tmp_path / f'r{number}')}{changes});"
        script += f"INSERT INTO r{number} {query};"
    for part in range(2):
        add_rows(tmp_path, "o", ROWS[part * 20 : part * 20 + 20])
    plan = hintplan.compile_sql(script, {"execution.runtime-mode": mode, "parallelism.default": "2"}, name="first")
    execute(plan, spark, once=True).await_termination()
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE o (id, k, v, d, s)")
    database.executemany("INSERT INTO o VALUES (:id, :k, :v, :d, :s)", ROWS)
    for number, (name, (columns, query)) in enumerate(QUERIES.items()):
        names = [column.split()[0] for column in columns.split(", ")]
        assert left_in(tmp_path / f"r{number}", names) == Counter(database.execute(query).fetchall()), name


def test_the_last_rows_by_arrival_are_those_of_sqlite(spark: SparkSession, tmp_path: Path) -> None:
    """One file a batch, of which each has its rows in the order of their ids."""
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = '{}'"
    ordered = {"p DESC": "id DESC", "v, p DESC": "v, id DESC"}
    script = f"CREATE TABLE o ({COLUMNS}, p AS PROCTIME()) WITH ({files.format(tmp_path / 'o')}"
    script += ", 'source.max-files-per-trigger' = '1');"
    for number, order in enumerate(ordered):
        options = f"{files.format(tmp_path / f'r{number}')}, 'sink.changelog' = 'true'"
        script += f"CREATE TABLE r{number} (k BIGINT, n BIGINT, id BIGINT) WITH ({options});"
        script += f"INSERT INTO r{number} {NUMBERED.format(what='k, n, id', by=order, which='n <= 3')};"
    for part in range(4):
        add_rows(tmp_path, "o", ROWS[part * 10 : part * 10 + 10])
    execute(hintplan.compile_sql(script, {"parallelism.default": "2"}), spark, once=True).await_termination()
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE o (id, k, v, d, s)")
    database.executemany("INSERT INTO o VALUES (:id, :k, :v, :d, :s)", ROWS)
    for number, order in enumerate(ordered.values()):
        wanted = database.execute(NUMBERED.format(what="k, n, id", by=order, which="n <= 3")).fetchall()
        assert left_in(tmp_path / f"r{number}", ["k", "n", "id"]) == Counter(wanted)


def left_in(directory: Path, names: list[str]) -> Counter[tuple[Any, ...]]:
    """What a changelog in files adds up to; a NULL may be left out of JSON."""
    found: Counter[tuple[Any, ...]] = Counter()
    for file in directory.glob("part-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            sign = 1 if row.get("op", "+I") in ("+I", "+U") else -1
            found[tuple(row.get(name) for name in names)] += sign
    return Counter({row: count for row, count in found.items() if count})
