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
    """The queries of a mode: each is asked in one, for what they compare is the same calc in both."""
    return QUERIES[1:3] if mode == "streaming" else (QUERIES[0], *QUERIES[3:])


def script(folder: Path, mode: str) -> str:
    """The conditions of a batch job in one table, and the rows of the queries in another, with the place of each."""
    files = "'connector' = 'filesystem', 'format' = 'parquet'"
    kept = ", 'sink.changelog' = 'true'" if mode == "streaming" else ""
    truths = ", ".join(f"c{place} BOOLEAN" for place in range(len(CONDITIONS)))
    rows = (f"SELECT {place}, a, b FROM ({query}) AS x (a, b)" for place, query in enumerate(asked(mode)))
    return f"""
        SET 'execution.runtime-mode' = '{mode}';
        SET 'table.local-time-zone' = '{ZONE}';
        CREATE TABLE r ({COLUMNS}) WITH ({files}, 'path' = '{folder / "r"}');
        CREATE TABLE t (id BIGINT, {truths}) WITH ({files}, 'path' = '{folder / "t"}');
        CREATE TABLE q (place INT, a BIGINT, b BIGINT) WITH ({files}, 'path' = '{folder / "q"}'{kept});
        {f"INSERT INTO t SELECT id, {', '.join(CONDITIONS)} FROM r;" if mode == "batch" else ""}
        INSERT INTO q {" UNION ALL ".join(rows)};
    """


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
    found = [list(row)[:3] for row in in_zone.read.parquet(str(tmp_path / "q")).collect()]
    for place, query in enumerate(asked(mode)):
        assert sorted([row[1:] for row in found if row[0] == place], key=str) == RECORDED[query], query
    if mode == "batch":
        truths = sorted(list(row) for row in in_zone.read.parquet(str(tmp_path / "t")).collect())
        by_condition = {c: [row[place] for row in truths] for place, c in enumerate(CONDITIONS, start=1)}
        assert by_condition == {c: RECORDED[c] for c in CONDITIONS}
