"""RANGE with distances at the ends of integer types, where a distance leads out of the type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from planner import compile_sql
from runtime.run.execute import execute

MOST = 9223372036854775807
ROWS = ((1, -MOST - 1, -128), (2, -MOST, -127), (3, None, None), (4, 0, 0), (5, MOST - 1, 126), (6, MOST, 127))
FRAMES = {
    # By hand: how many rows are as near as the frame says; those of NULL are near to each other only.
    "ORDER BY b RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING": [2, 2, 1, 1, 2, 2],
    "ORDER BY b DESC RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING": [1, 2, 1, 1, 1, 2],
    "ORDER BY t RANGE BETWEEN 300 PRECEDING AND CURRENT ROW": [1, 2, 1, 3, 4, 5],
    "ORDER BY t RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING": [3, 3, 1, 4, 6, 6],
}


@pytest.mark.spark
def test_a_range_goes_beyond_the_ends_of_a_type(spark: SparkSession, tmp_path: Path) -> None:
    rows = (json.dumps(dict(zip(("id", "b", "t"), row, strict=True))) + "\n" for row in ROWS)
    (tmp_path / "o.json").write_text("".join(rows), encoding="utf-8")
    files = "'connector' = 'filesystem', 'format' = 'json', 'path' = '"
    columns = ", ".join(["id BIGINT", *(f"c{i} BIGINT" for i in range(len(FRAMES)))])
    counts = ", ".join(f"COUNT(*) OVER ({frame})" for frame in FRAMES)
    plan = compile_sql(
        f"CREATE TABLE o (id BIGINT, b BIGINT, t TINYINT) WITH ({files}{tmp_path}/o.json');"
        f"CREATE TABLE r ({columns}) WITH ({files}{tmp_path}/r');"
        f"INSERT INTO r SELECT id, {counts} FROM o;",
        {"execution.runtime-mode": "batch"},
    )
    assert execute(plan, spark).await_termination(120)
    written = [json.loads(line) for file in (tmp_path / "r").glob("*.json") for line in file.read_text().splitlines()]
    found = sorted(written, key=lambda row: row["id"])
    assert {frame: [row[f"c{i}"] for row in found] for i, frame in enumerate(FRAMES)} == FRAMES
