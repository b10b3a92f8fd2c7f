"""A TIMESTAMP beside a TIMESTAMP_LTZ compares as Flink recorded it, also where clocks are put back and forward."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hintplan
from tests.flink.compared_times import CONDITIONS, QUERIES, ROWS, ZONE

RECORDED: dict[str, list[Any]] = json.loads(Path(__file__).with_name("compared_times.json").read_text(encoding="utf-8"))
DEADLINE_SECONDS = 300
COLUMNS = "id BIGINT, ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3)"


def asked(mode: str) -> tuple[str, ...]:
    """The queries of a mode: a stream has the comparisons of joins where the batch job has them."""
    return QUERIES if mode == "batch" else QUERIES[1:3]


def script(folder: Path, mode: str) -> str:
    """All conditions in one table, and each query in a table of its own."""
    files = "'connector' = 'filesystem', 'format' = 'parquet'"
    lines = [
        f"SET 'execution.runtime-mode' = '{mode}';",
        f"SET 'table.local-time-zone' = '{ZONE}';",
        f"CREATE TABLE r ({COLUMNS}) WITH ({files}, 'path' = '{folder / 'r'}');",
    ]
    truths = ", ".join(f"c{place} BOOLEAN" for place in range(len(CONDITIONS)))
    sinks = {f"id BIGINT, {truths}": f"SELECT id, {', '.join(CONDITIONS)} FROM r"}
    queries = [*sinks.items(), *(("a BIGINT, b BIGINT", query) for query in asked(mode))]
    for place, (columns, query) in enumerate(queries):
        options = f"{files}, 'path' = '{folder / str(place)}'"
        if mode == "streaming":
            options += ", 'sink.changelog' = 'true'"
        lines.append(f"CREATE TABLE s{place} ({columns}) WITH ({options}); INSERT INTO s{place} {query};")
    return "\n".join(lines)


@pytest.fixture
def in_zone(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_there_is_an_answer_for_each_question_and_none_else() -> None:
    assert list(RECORDED) == [*CONDITIONS, *QUERIES]


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_times_of_both_types_compare_as_in_flink(mode: str, tmp_path: Path, in_zone: SparkSession) -> None:
    from hintplan.runtime.run.execute import execute

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    shown = [None if text is None else datetime.fromisoformat(text) for text, _ in ROWS]
    moments = [None if ms is None else epoch + timedelta(milliseconds=ms) for _, ms in ROWS]
    times = (pa.array(shown, pa.timestamp("us")), pa.array(moments, pa.timestamp("us", "UTC")))
    (tmp_path / "r").mkdir()
    pq.write_table(pa.table([list(range(len(ROWS))), *times], ["id", "ts", "ltz"]), tmp_path / "r" / "0.parquet")
    plan = hintplan.compile_sql(script(tmp_path, mode))
    assert execute(plan, in_zone, once=True).await_termination(DEADLINE_SECONDS)
    found = [in_zone.read.parquet(str(tmp_path / str(place))).collect() for place in range(len(asked(mode)) + 1)]
    truths = [list(row)[1 : len(CONDITIONS) + 1] for row in sorted(found[0])]
    assert {c: [row[place] for row in truths] for place, c in enumerate(CONDITIONS)} == {
        c: RECORDED[c] for c in CONDITIONS
    }
    for query, rows in zip(asked(mode), found[1:], strict=True):
        assert sorted([list(row)[:2] for row in rows], key=str) == RECORDED[query], query
