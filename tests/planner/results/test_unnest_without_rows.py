"""FROM that begins with UNNEST: batch jobs on Spark write the rows that Flink 2.3 gave for the same queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hintplan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "SELECT x FROM UNNEST(ARRAY[3, 1, 3]) AS u(x) WHERE x > 0": ("x INT", [(1,), (3,), (3,)]),
    "SELECT * FROM UNNEST(ARRAY[1, CAST(NULL AS INT)])": ("x INT", [(1,), (None,)]),
    "SELECT * FROM UNNEST(ARRAY['a', 'b']) WITH ORDINALITY AS u(x, p)": ("x STRING, p INT", [("a", 1), ("b", 2)]),
    "SELECT k, v FROM UNNEST(MAP['a', 1, 'b', 2]) AS u(k, v)": ("k STRING, v INT", [("a", 1), ("b", 2)]),
    "SELECT * FROM UNNEST(ARRAY[ROW(1, 'a'), ROW(2, 'b')]) AS u(k, v)": ("k INT, v STRING", [(1, "a"), (2, "b")]),
    "SELECT x, y FROM UNNEST(ARRAY[1, 2]) AS a(x), UNNEST(ARRAY[3, 4]) AS b(y)": (
        "x INT, y INT",
        [(1, 3), (1, 4), (2, 3), (2, 4)],
    ),
    "SELECT x, y FROM UNNEST(ARRAY[1, 2]) AS a(x) JOIN UNNEST(ARRAY[2, 2, 4]) AS b(y) ON x = y": (
        "x INT, y INT",
        [(2, 2), (2, 2)],
    ),
    "SELECT x FROM UNNEST(CAST(NULL AS ARRAY<INT>)) AS u(x)": ("x INT", []),
    "SELECT x FROM UNNEST(SPLIT('a,b', ',')) AS u(x)": ("x STRING", [("a",), ("b",)]),
    "SELECT id FROM (VALUES (1), (2)) AS q(id) WHERE id IN (SELECT x FROM UNNEST(ARRAY[2, 3]) AS u(x))": (
        "id INT",
        [(2,)],
    ),
}


@pytest.mark.spark
def test_the_elements_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    from hintplan.runtime.run.execute import execute

    script = ["SET 'execution.runtime-mode' = 'batch';"]
    for number, (query, (columns, _)) in enumerate(QUERIES.items()):
        options = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tmp_path / str(number)}'"
        script += [f"CREATE TABLE r{number} ({columns}) WITH ({options});", f"INSERT INTO r{number} {query};"]
    assert execute(hintplan.compile_sql("\n".join(script)), spark).await_termination(300)
    for number, (query, (_, expected)) in enumerate(QUERIES.items()):
        found = [tuple(row) for row in spark.read.parquet(str(tmp_path / str(number))).collect()]
        assert sorted(found, key=str) == sorted(expected, key=str), query
