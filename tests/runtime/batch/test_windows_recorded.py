"""Recorded programs with windows as batch jobs: a job has the rows of Flink's batch mode. No row is late there."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from hintplan.runtime.types import to_arrow
from tests.runtime.event_time.compiled import FILES, inputs_of, left_by, script_of
from tests.runtime.event_time.recorded import RECORDED, flink_output
from tests.runtime.event_time.times import text

pytestmark = [pytest.mark.spark, pytest.mark.part(of=8)]

DEADLINE_SECONDS = 120
BATCH: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "flink" / "event_time_batch.json").read_text(encoding="utf-8")
)
"""By program, the rows of Flink's batch mode, or the error."""
REFUSED = {
    "hop, slide larger than size": "Flink refuses it in a stream, and ours in both modes",
    "deduplicate by rowtime below a window": "not built",
    "tumble, allowed lateness only": "an option of streams",
    "tumble, early fire": "an option of streams",
    "tumble, late fire": "an option of streams",
    "watermarks not pushed down, on event": "an option of streams",
    "watermarks pushed into the source, on event": "an option of streams",
}
"""Programs of which Flink's batch mode has rows, and which ours refuses."""
OF_STREAMS = (
    *("session, grouped by more than its key", "LTZ, session in Berlin, autumn"),
    *("LTZ, days in Berlin, spring", "LTZ, hours in Berlin, spring", "LTZ, hours in Berlin, autumn"),
)
"""Flink has no sessions in batch mode, and PyFlink cannot collect a TIMESTAMP_LTZ.

No row of these programs is behind the watermark, so Flink's streams lose no rows.
"""
NULL_TIMES = """
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE s (k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/s');
CREATE TABLE windows (k STRING, started TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/windows');
CREATE TABLE sessions (k STRING, started TIMESTAMP(3))
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/sessions');
CREATE TABLE all_rows (k STRING)
WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/all_rows');
INSERT INTO windows SELECT k, window_start FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND));
INSERT INTO sessions SELECT k, window_start
FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO all_rows SELECT k FROM s;
"""
SECOND_ONE = datetime(2024, 1, 1, 0, 0, 1)
PROGRAMS = [name for name, answer in BATCH.items() if "rows" in answer and name not in REFUSED]


def batch_script(name: str, directory: Path) -> str:
    """The script of a program as a batch job over Parquet files in ``directory``."""
    script = script_of(name).replace("'connector' = 'print'", FILES)
    for table in (*RECORDED[name]["tables"], "sink1"):
        files = FILES.replace("'json'", "'parquet'").replace("'x'", f"'{directory}/{table}'")
        script = re.sub(rf"(CREATE TABLE {table} .* WITH \()" + re.escape(FILES), lambda m, f=files: m[1] + f, script)
    return f"SET 'execution.runtime-mode' = 'batch';\n{script}"


def write_input(name: str, plan: Plan, directory: Path) -> None:
    """Write the rows of all steps of a program, a file for each table."""
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for _, batches in inputs_of(name, plan):
        for batch in batches:
            for table, some in batch.rows.items():
                rows[table.partition("@")[0]] += some
    for table in RECORDED[name]["tables"]:
        columns = [column for column in plan.tables[table].columns if column.expression is None]
        arrays = [
            pa.array([row[place] for row in rows[table]], to_arrow(column.type)) for place, column in enumerate(columns)
        ]
        (directory / table).mkdir()
        pq.write_table(pa.table(arrays, [column.name for column in columns]), directory / table / "0.parquet")


def result(name: str, directory: Path) -> Counter[tuple[str | None, ...]]:
    """The rows of the sink, as the recording writes them."""
    table = pyarrow.dataset.dataset(directory / "sink1", format="parquet").to_table()
    kinds = [column.split(" ")[1] for column in RECORDED[name]["columns"]]
    columns = [
        [_shown(value, kind) for value in _integers(column).to_pylist()]
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    return Counter(zip(*columns, strict=True))


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.timestamp("ms")).cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _shown(value: Any, kind: str) -> str | None:
    if value is None:
        return None
    return text(value) + ("Z" if "LTZ" in kind else "") if kind.startswith("TIMESTAMP") else str(value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_job_has_the_rows_of_flink(spark: SparkSession, tmp_path: Path, name: str) -> None:
    plan = hintplan.compile_sql(batch_script(name, tmp_path))
    write_input(name, plan, tmp_path)
    assert execute(plan, spark).await_termination(DEADLINE_SECONDS)
    assert result(name, tmp_path) == Counter(map(tuple, BATCH[name]["rows"]))


@pytest.mark.parametrize("name", OF_STREAMS)
def test_a_batch_job_has_the_rows_of_a_stream_where_flinks_batch_mode_has_none(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    assert "error" in BATCH[name]
    plan = hintplan.compile_sql(batch_script(name, tmp_path))
    write_input(name, plan, tmp_path)
    assert execute(plan, spark).await_termination(DEADLINE_SECONDS)
    assert result(name, tmp_path) == left_by(flink_output(name))


def test_windows_of_a_batch_job_leave_out_rows_with_null_in_the_rowtime(spark: SparkSession, tmp_path: Path) -> None:
    plan = hintplan.compile_sql(NULL_TIMES.format(directory=tmp_path))
    (tmp_path / "s").mkdir()
    rows = [{"k": "a", "ts": SECOND_ONE}, {"k": "b", "ts": None}, {"k": "c", "ts": SECOND_ONE}]
    schema = pa.schema([("k", pa.string()), ("ts", pa.timestamp("us"))])
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "s" / "0.parquet")
    assert execute(plan, spark).await_termination(DEADLINE_SECONDS)
    written = {
        name: sorted(pyarrow.dataset.dataset(tmp_path / name, format="parquet").to_table()["k"].to_pylist())
        for name in ("windows", "sessions", "all_rows")
    }
    assert written == {"windows": ["a", "c"], "sessions": ["a", "c"], "all_rows": ["a", "b", "c"]}
