"""METADATA columns of files say of each row what the file system says of its file."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import planner
from runtime.run.execute import execute

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 120
NAMES = ("plain.json", "a b+c%20d.json", "\u00e9=1;[x].json")
SCRIPT = """
SET 'execution.runtime-mode' = '{mode}';
CREATE TABLE files (
  id BIGINT, path STRING NOT NULL METADATA FROM 'file.path' VIRTUAL, `file.name` STRING METADATA,
  size BIGINT METADATA FROM 'file.size', at TIMESTAMP_LTZ(3) METADATA FROM 'file.modification-time',
  wall TIMESTAMP(3) METADATA FROM 'file.modification-time', more AS CHAR_LENGTH(`file.name`)
) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = '{format}');
CREATE TABLE result (id BIGINT, path STRING, name STRING, size BIGINT, `at` TIMESTAMP_LTZ(3), wall TIMESTAMP(3), n INT)
WITH ('connector' = 'filesystem', 'path' = '{result}', 'format' = 'json');
INSERT INTO result SELECT id, path, `file.name`, size, `at`, wall, more FROM files;
"""


def written(spark: SparkSession, folder: Path, file_format: str) -> list[Path]:
    """A file of each of the names, with the rows of its number, last changed at a time of its own."""
    folder.mkdir()
    found = []
    for number, name in enumerate(NAMES):
        file = folder / name.replace("json", file_format)
        rows = [number * 10, number * 10 + 1]
        if file_format == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"id": pa.array(rows, pa.int64())}), file)
        else:
            file.write_text("".join(f'{{"id": {row}}}\n' if file_format == "json" else f"{row}\n" for row in rows))
        moment = 1_700_000_000 + number * 1000 + 0.25
        os.utime(file, (moment, moment))
        found.append(file)
    return found


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("file_format", ["json", "csv", "parquet"])
def test_each_row_knows_its_file(spark: SparkSession, tmp_path: Path, file_format: str, mode: str) -> None:
    files = written(spark, tmp_path / "in put", file_format)
    script = SCRIPT.format(folder=tmp_path / "in put", result=tmp_path / "result", format=file_format, mode=mode)
    plan = planner.compile_sql(script)
    stream: dict[str, Any] = {} if mode == "batch" else {"checkpoint": str(tmp_path / "checkpoint"), "once": True}
    execution = execute(plan, spark, **stream)
    assert execution.await_termination(DEADLINE_SECONDS)
    execution.raise_failure()
    lines = [line for part in (tmp_path / "result").glob("*.json") for line in part.read_text().splitlines()]
    expected = []
    for number, file in enumerate(files):
        there = file.stat()
        text = datetime.fromtimestamp(there.st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        facts = {"path": str(file), "name": file.name, "size": there.st_size, "at": f"{text}Z", "wall": text}
        expected += [{"id": number * 10 + row, **facts, "n": len(file.name)} for row in (0, 1)]
    assert sorted((json.loads(line) for line in lines), key=lambda row: int(row["id"])) == expected
