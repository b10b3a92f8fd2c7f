"""Run by ``test_connect.py`` in a process of its own: DataFrames and functions through Spark Connect.

    python connect_frames.py URL DIRECTORY

Reads a stream by a temporary view, and a batch of local data that is too large to be sent with each request. What the
functions get, on the server, is in files of ``DIRECTORY``; the batch job's function runs here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hintplan

BATCH = "SET 'execution.runtime-mode' = 'batch';"
SUMS = "CREATE TABLE sums (id BIGINT, total BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'dataframe');"
INSERT = "INSERT INTO sums SELECT id, SUM(v) FROM events GROUP BY id;"
LARGE = 200_000


def main(url: str, folder: Path) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    rows = spark.readStream.schema("id BIGINT, v BIGINT").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    rows.createOrReplaceTempView("of_this_session")
    events = spark.table("of_this_session")
    out = str(folder)

    def to_file(rows: Any, batch: int) -> None:
        found = sorted(tuple(row) for row in rows.collect())
        Path(out, f"batch-{batch}.json").write_text(json.dumps(found))

    plan = hintplan.compile_sql(SUMS + INSERT, tables={"events": events})
    run = hintplan.execute(
        plan, tables={"events": events}, sinks={"sums": to_file}, checkpoint=folder / "state", once=True
    )
    run.await_termination()
    large = spark.createDataFrame([(number % 2, number) for number in range(LARGE)], "id BIGINT, v BIGINT")
    found: list[Any] = []
    batch = hintplan.compile_sql(BATCH + SUMS + INSERT, tables={"events": large})
    hintplan.execute(
        batch, tables={"events": large}, sinks={"sums": lambda rows, _: found.extend(map(tuple, rows.collect()))}
    ).await_termination()
    (folder / "large.json").write_text(json.dumps(sorted(found)))
    left = [table.name for table in spark.catalog.listTables() if table.name.startswith("hintplan_")]
    (folder / "left.json").write_text(json.dumps(left))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
