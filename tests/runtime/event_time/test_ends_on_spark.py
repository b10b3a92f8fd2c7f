"""Sources with an end leave the watermark to the others, and many queries with windows start and drain in one job."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.sample import in_turn

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 240
TABLE = "k BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts"
ENDING = f"""
CREATE TABLE files ({TABLE}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{{folder}}/files');
CREATE TABLE stored ({TABLE}) WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{{folder}}/d.db', 'table-name' = 't');
CREATE TABLE made (k BIGINT, ts AS TO_TIMESTAMP_LTZ(k * 1000, 3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen',
 'rows-per-second' = '2', 'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '4');
CREATE TABLE r (n BIGINT, ending TIMESTAMP(3)) WITH ('connector' = 'dataframe');
CREATE TABLE generated (k BIGINT) WITH ('connector' = 'dataframe');
CREATE VIEW united AS SELECT ts FROM files UNION ALL SELECT ts FROM stored UNION ALL SELECT ts FROM made;
BEGIN STATEMENT SET;
INSERT INTO r SELECT COUNT(*), window_end FROM TABLE(TUMBLE(TABLE united, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;
INSERT INTO generated SELECT k FROM made;
END;
"""


class Rows:
    """The rows that a run has put out, by table."""

    def __init__(self, *tables: str) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in tables}

    def take(self, table: str) -> Any:
        def take(rows: DataFrame, batch: int) -> None:
            self.rows[table] += sorted(tuple(row.values()) for row in rows.toArrow().to_pylist())

        return take

    def run(self, plan: Any, spark: SparkSession, checkpoint: Path, **options: Any) -> Execution:
        sinks = {table: self.take(table) for table in self.rows}
        execution = execute(plan, spark, sinks=sinks, checkpoint=str(checkpoint), **{"once": True, **options})
        assert isinstance(execution, Execution)
        assert execution.await_termination(DEADLINE_SECONDS)
        return execution


def add_file(folder: Path, name: str, *seconds: int) -> None:
    folder.mkdir(exist_ok=True)
    lines = (json.dumps({"k": second % 7, "ms": second * 1000}) for second in seconds)
    (folder / name).write_text("\n".join(lines))
    os.utime(folder / name, (1_700_000_000 + len(name), 1_700_000_000 + len(name)))


def ends(rows: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Counts, and the seconds since 1970 of the ends of their windows."""
    return sorted(((n, at.minute * 60 + at.second) for n, at in rows), key=lambda row: row[1])


@in_turn(1, of=3)
@pytest.mark.sampled(keep=1)
@pytest.mark.parametrize("stored", [[], [6, 12]], ids=["no row in the database", "two rows in the database"])
def test_sources_that_have_ended_leave_the_watermark_to_the_files(
    spark: SparkSession, tmp_path: Path, stored: list[int]
) -> None:
    with sqlite3.connect(tmp_path / "d.db") as database:
        database.execute("CREATE TABLE t (k BIGINT, ms BIGINT)")
        database.executemany("INSERT INTO t VALUES (1, ?)", [(second * 1000,) for second in stored])
    plan = hintplan.compile_sql(ENDING.replace("{folder}", str(tmp_path)))
    add_file(tmp_path / "files", "a", 3, 25)
    first, second = (Rows("r", "generated") for _ in range(2))
    held = first.run(plan, spark, tmp_path / "cp").progress["sink_r"]
    # Until 10 s: 3 s of the files, 1 to 4 s of the generated rows, 6 s of the database. Until 20 s: 12 s.
    wanted = [(5, 10)] if not stored else [(6, 10), (1, 20)]
    assert ends(first.rows["r"]) == wanted
    assert first.rows["generated"] == [(1,), (2,), (3,), (4,)]
    (times,) = (operator.event_time for operator in held.operators.values())
    assert times is not None
    assert (times.watermark, times.held_by, times.waiting_rows) == (25_000, "watermark_files", 1)
    add_file(tmp_path / "files", "ab", 31)
    second.run(plan, spark, tmp_path / "cp", drain=True)
    assert ends(second.rows["r"]) == [(1, 30), (1, 40)]


MANY = 10
MANY_WINDOWS = (
    f"CREATE TABLE t ({TABLE}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{{folder}}');"
    + "".join(
        f"CREATE TABLE r{k} (n BIGINT, ending TIMESTAMP(3)) WITH ('connector' = 'dataframe');" for k in range(MANY)
    )
    + "BEGIN STATEMENT SET;"
    + "".join(
        f"INSERT INTO r{k} SELECT COUNT(*), window_end "
        f"FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{k + 1}' SECOND)) GROUP BY window_start, window_end;"
        for k in range(MANY)
    )
    + "END;"
)


@in_turn(0, of=3)
def test_ten_queries_with_windows_start_and_drain_in_one_job(spark: SparkSession, tmp_path: Path) -> None:
    add_file(tmp_path / "files", "a", *range(60))
    plan = hintplan.compile_sql(MANY_WINDOWS.replace("{folder}", f"{tmp_path}/files"))
    rows = Rows(*(f"r{k}" for k in range(MANY)))
    execution = rows.run(plan, spark, tmp_path / "cp", drain=True)
    assert len(execution.queries) == MANY
    for k in range(MANY):
        size = k + 1
        full, rest = divmod(60, size)
        wanted = [(size, end * size) for end in range(1, full + 1)] + ([(rest, (full + 1) * size)] if rest else [])
        assert ends(rows.rows[f"r{k}"]) == wanted, size
