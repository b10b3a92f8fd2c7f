"""Compares rows with NULL for NOT NULL columns of sinks with the rows that Flink 2.3 wrote (not_null.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan import RunError
from hintplan.plans.errors import SqlError
from hintplan.runtime.kernels.not_null import NotNull
from hintplan.runtime.operator import DELETE, INSERT, KIND, UPDATE_AFTER, UPDATE_BEFORE
from hintplan.runtime.run.execute import execute
from tests.flink.not_null import ENFORCERS, ROWS, SINKS
from tests.spark.programs import add_rows

DEADLINE_SECONDS = 180
RECORDED = json.loads((Path(__file__).parent / "not_null.json").read_text(encoding="utf-8"))
BROKEN = r"table r: column '[ab]' is NOT NULL, and a row has NULL in it"


def test_an_enforcer_that_flink_has_not_is_refused() -> None:
    with pytest.raises(SqlError, match="expected ERROR or DROP, found 'IGNORE'"):
        hintplan.compile_sql("SET 'table.exec.sink.not-null-enforcer' = 'IGNORE';")


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize("enforcer", ENFORCERS)
@pytest.mark.parametrize("sink", SINKS)
def test_a_sink_gets_the_rows_that_flink_writes(
    spark: SparkSession, tmp_path: Path, sink: str, enforcer: str, mode: str
) -> None:
    add_rows(tmp_path, "o", list(ROWS))
    value = "CASE WHEN b IS NULL THEN NULL ELSE ROW(b) END" if "ROW<" in SINKS[sink] else "b"
    plan = hintplan.compile_sql(f"""
    SET 'table.exec.sink.not-null-enforcer' = '{enforcer}';
    SET 'execution.runtime-mode' = '{mode}';
    CREATE TABLE o (a INT, b STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/o');
    CREATE TABLE r ({SINKS[sink]})
    WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/r');
    INSERT INTO r SELECT a, {value} FROM o;
    """)
    recorded = RECORDED[enforcer][sink]
    once = {"checkpoint": str(tmp_path / "checkpoint"), "once": True} if mode == "streaming" else {}

    def run() -> None:
        assert execute(plan, spark, **once).await_termination(DEADLINE_SECONDS)

    if recorded is None:
        with pytest.raises(RunError, match=BROKEN) as raised:
            run()
        assert "'table.exec.sink.not-null-enforcer' = 'DROP'" in str(raised.value)
        return
    run()
    rows = [json.loads(line) for path in (tmp_path / "r").glob("*.json") for line in path.open()]
    assert sorted(rows, key=str) == sorted(recorded, key=str)


PRINTED, DROPPED = "'connector' = 'print'", "'connector' = 'blackhole'"
WAYS = {
    "rows in Spark": (PRINTED, "INSERT INTO r SELECT a, b FROM o"),
    "rows in Arrow": (PRINTED, "INSERT INTO r SELECT a, MAX(b) FROM o GROUP BY a"),
    "rows that are only counted": (DROPPED, "INSERT INTO r SELECT a, MAX(b) FROM o GROUP BY a"),
    "rows of two sinks": (PRINTED, "INSERT INTO r SELECT a, b FROM v; INSERT INTO s SELECT a, b FROM v"),
    "rows of two sinks that are only counted": (
        DROPPED,
        "INSERT INTO r SELECT a, b FROM v; INSERT INTO s SELECT a, b FROM v",
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_a_sink_is_without_the_check(spark: SparkSession, tmp_path: Path, way: str) -> None:
    options, inserts = WAYS[way]
    add_rows(tmp_path, "o", list(ROWS))
    plan = hintplan.compile_sql(f"""
    CREATE TABLE o (a INT, b STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/o');
    CREATE TABLE r (a INT NOT NULL, b STRING) WITH ({options});
    CREATE TABLE s (a INT, b STRING) WITH ({options});
    CREATE VIEW v AS SELECT a, MAX(b) AS b FROM o GROUP BY a;
    {inserts};
    """)
    with pytest.raises(RunError, match=BROKEN):
        execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True).await_termination(DEADLINE_SECONDS)


@pytest.mark.parametrize("kind", [INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE])
def test_rows_that_take_something_back_pass(kind: int) -> None:
    """The row that they take back has been refused, or was there before the constraint."""
    rows = pa.table({"k": [1, None], KIND: pa.array([INSERT, kind], pa.int8())})
    check = NotNull(table="r", columns=("k",))
    if kind in (INSERT, UPDATE_AFTER):
        with pytest.raises(RunError, match="column 'k' is NOT NULL"):
            check(rows)
    else:
        assert check(rows) is rows
