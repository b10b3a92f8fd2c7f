"""UNNEST of arrays of nothing but NULLs in files of Parquet, at which Spark's functions of arrays fail."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from planner import compile_sql
from runtime.run.execute import execute


@pytest.mark.spark
def test_elements_that_are_all_null_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"id": [1, 2, 3], "v": pa.array([[None, None], [], None], pa.list_(pa.int32()))}
    pq.write_table(pa.table(rows), tmp_path / "o.parquet")
    plan = compile_sql(
        f"CREATE TABLE o (id BIGINT, v ARRAY<INT>) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
        f"'path' = '{tmp_path}/o.parquet'); CREATE TABLE r (id BIGINT, e INT, n INT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/r');"
        "INSERT INTO r SELECT id, e, n FROM o LEFT JOIN UNNEST(v) WITH ORDINALITY AS t (e, n) ON TRUE;",
        {"execution.runtime-mode": "batch"},
    )
    assert execute(plan, spark).await_termination(120)
    found = [json.loads(line) for file in (tmp_path / "r").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted((row["id"], row.get("e"), row.get("n") or 0) for row in found) == [
        (1, None, 1), (1, None, 2), (2, None, 0), (3, None, 0),
    ]  # fmt: skip
