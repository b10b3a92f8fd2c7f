"""-0.0, infinities and NaNs of several bits in streams and batch jobs: what Spark's own SQL makes of the rows."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import planner
from runtime.run.execute import execute
from tests.runtime.batch.programs import batch_plan
from tests.runtime.kernels.test_float_values import KINDS, PLANS, QUERIES, TABLES, VALUES, rounded
from tests.runtime.pipeline import Pipeline

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
CHOSEN = (
    "calls", "calls of FLOAT", "calls over an outer join", "grouped by both", "of groups", "full join of a changelog",
    "what a join carries", "intersect",
)  # fmt: skip
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("d", pa.float64()), ("f", pa.float32())])


def sample(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    dice = random.Random(seed)
    return {
        table: [(n % 9, dice.choice((None, 1, 2)), dice.choice(VALUES), dice.choice(VALUES)) for n in range(size)]
        for table, size in (("a", 30), ("b", 12), ("g", 30))
    }


def script(directory: Path, queries: list[tuple[str, str]]) -> str:
    """The queries over files of Parquet, each into files of Parquet: ``r0``, ``r1``, ..."""
    parts = [re.sub("'path' = '(.)', 'format' = 'json'", rf"'path' = '{directory}/\1', 'format' = 'parquet'", TABLES)]
    for number, (kinds, query) in enumerate(queries):
        columns = ", ".join(f"c{i} {KINDS[kind]}" for i, kind in enumerate(kinds))
        files = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/r{number}'"
        parts.append(f"CREATE TABLE r{number} ({columns}) WITH ({files}); INSERT INTO r{number} {query};")
    return "\n".join(parts)


def rows_in(directory: Path) -> list[tuple[Any, ...]]:
    columns = pq.read_table(directory).columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def shown(rows: Any, kinds: str) -> Counter:
    return Counter(tuple(rounded(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in rows)


def test_a_batch_job_gives_what_the_stream_and_spark_give(spark: SparkSession, tmp_path: Path) -> None:
    rows = sample(seed=3)
    for table, found in rows.items():
        columns = pa.table(list(map(pa.array, zip(*found, strict=True))), SCHEMA.names).cast(SCHEMA)
        (tmp_path / table).mkdir()
        pq.write_table(columns, tmp_path / table / "0.parquet")
        spark.createDataFrame(columns).createOrReplaceTempView(table)
    text = script(tmp_path, [QUERIES[name] for name in CHOSEN]).replace(", 'source.changelog' = 'true'", "")
    assert execute(batch_plan(text), spark).await_termination(DEADLINE_SECONDS)
    for number, name in enumerate(CHOSEN):
        kinds, query = QUERIES[name]
        of_batch = shown(rows_in(tmp_path / f"r{number}"), kinds)
        stream = Pipeline(PLANS[name])
        stream.batch({**rows, "g": [("+I", *row) for row in rows["g"]]})
        assert of_batch == shown(stream.result.elements(), kinds), name
        of_spark = spark.sql(query).collect()
        assert of_batch == shown(([v if v != 0 else abs(v) for v in row] for row in of_spark), kinds), name


@pytest.mark.integration
def test_a_stream_over_files_gives_the_same_in_any_number_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    """By hand: all rows at once, and in three batches."""
    values = [0.0, math.nan, -0.0, *(v for v in VALUES if v is not None and math.isnan(v)), 1.5]
    found = []
    for count in (1, 3):
        directory = tmp_path / str(count)
        (directory / "a").mkdir(parents=True)
        for number in range(count):
            some = values[number * len(values) // count : (number + 1) * len(values) // count]
            table = pa.table([[1] * len(some), [1] * len(some), some, some], SCHEMA.names).cast(SCHEMA)
            pq.write_table(table, directory / "a" / f"{number}.parquet")
        query = "SELECT d, MAX(k), COUNT(DISTINCT f) FROM a GROUP BY d"
        text = script(directory, [("yxx", query)]).replace(
            f"'path' = '{directory}/a'", f"'source.max-files-per-trigger' = '1', 'path' = '{directory}/a'"
        )
        text = text.replace(f"'path' = '{directory}/r0'", f"'path' = '{directory}/r0', 'sink.changelog' = 'true'")
        plan = planner.compile_sql(text, {"parallelism.default": "2"}, name="q")
        execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
        assert execution.await_termination(DEADLINE_SECONDS)
        left: Counter = Counter()
        for *row, kind in rows_in(directory / "r0"):
            left[tuple(rounded(v, k) for v, k in zip(row, "yxx", strict=True))] += 1 if kind in ("+I", "+U") else -1
        found.append({row: n for row, n in left.items() if n})
    assert found[0] == found[1] == {("0.0", 1, 1): 1, ("nan", 1, 1): 1, ("1.5", 1, 1): 1}
