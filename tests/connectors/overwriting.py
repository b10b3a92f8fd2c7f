"""Batch jobs that overwrite a table, and the rows that Flink's tables of files have after each."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hintplan
from hintplan.runtime.run.execute import execute
from tests.flink.files import BEFORE, NEW, OVERWRITTEN

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "flink" / "files.json").read_text())["overwrites"]


def rows_of(values: str) -> list[list[Any]]:
    """The rows of VALUES."""
    return [list(row) for row in ast.literal_eval(f"[{values}]")]


def run(spark: SparkSession, options: str, at: Path, statement: str, by: str = "", key: str = "") -> None:
    """A batch job with a table ``t`` that has ``options``, and ``n`` and ``b``, which are files of new and old rows."""
    for name, values in (("n", NEW), ("b", BEFORE)):
        (at / name).mkdir(exist_ok=True)
        lines = [json.dumps(dict(zip("vpr", row, strict=True))) for row in rows_of(values)]
        (at / name / "rows.json").write_text("\n".join(lines))
    files = "".join(
        f"CREATE TABLE {n} ({OVERWRITTEN}) WITH ('connector' = 'filesystem', 'path' = '{at}/{n}', 'format' = 'json');"
        for n in "nb"
    )
    divided = f"PARTITIONED BY ({by})" if by else ""
    script = f"SET 'execution.runtime-mode' = 'batch';{files}CREATE TABLE t ({OVERWRITTEN}{key}) {divided} "
    plan = hintplan.compile_sql(f"{script}WITH ({options});{statement};", name="job")
    assert execute(plan, spark).await_termination(180)
