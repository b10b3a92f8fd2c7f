"""Recorded programs with windows as batch jobs: without late rows, a job leaves the rows that Flink's stream left."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from hintplan.runtime.types import to_arrow
from tests.runtime.event_time.compiled import FILES, inputs_of, left_by, script_of
from tests.runtime.event_time.recorded import RECORDED, delay_of, flink_late, flink_output, steps_of
from tests.runtime.event_time.times import NEVER, milliseconds, text

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 120
WINDOWS = re.compile(r"\b(TUMBLE|HOP|CUMULATE|SESSION)\(TABLE")
LOST = ("LTZ, days in Shanghai, one phase", "LTZ, hours in Kolkata, watermark between, one phase")
"""Programs of which Flink loses rows without a count (FLINK-38075)."""
NOT_IN_BATCH = re.compile(
    "processing time|over changes|over upserts|emit|interval join|current watermark|lookup of rows"
    "|deduplicate by rowtime|by minute of a computed time|goes back"
)


def is_any_behind(name: str) -> bool:
    """True if a row of a program comes behind the watermark: a stream may miss it in some windows, without a count."""
    splits = range(RECORDED[name].get("parallelism", 1))
    marks = {(table, split): NEVER for table in RECORDED[name]["tables"] for split in splits}
    watermark = NEVER
    for step in steps_of(name):
        if step.table is not None:
            time = milliseconds(str(step.values[-1]))
            if time <= watermark:
                return True
            place = step.table, step.subtask
            marks[place] = max(marks[place], time - delay_of(name, step.table))
            watermark = max(watermark, min(marks.values()))
    return False


PROGRAMS = [
    name
    for name, program in RECORDED.items()
    if program.get("output") and "error" not in program and WINDOWS.search(program["query"])
    if name not in LOST and not NOT_IN_BATCH.search(name) and not flink_late(name) and not is_any_behind(name)
]


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
def test_a_batch_job_leaves_the_rows_of_flink(spark: SparkSession, tmp_path: Path, name: str) -> None:
    plan = hintplan.compile_sql(batch_script(name, tmp_path))
    write_input(name, plan, tmp_path)
    assert execute(plan, spark).await_termination(DEADLINE_SECONDS)
    assert result(name, tmp_path) == left_by(flink_output(name))


def test_null_in_the_rowtime_fails_a_batch_job(spark: SparkSession, tmp_path: Path) -> None:
    plan = hintplan.compile_sql(batch_script("tumble, NULL time", tmp_path))
    write_input("tumble, NULL time", plan, tmp_path)
    with pytest.raises(RunError, match="'ts' is the rowtime, and a row has NULL in it"):
        execute(plan, spark).await_termination(DEADLINE_SECONDS)
