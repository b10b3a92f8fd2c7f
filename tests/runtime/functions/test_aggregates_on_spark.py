"""Aggregate functions of the user's on Spark: streams over restarts and other scales, batch jobs, classes, state."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan import compile_sql
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.runtime.functions.aggregates import Bag, Calls, Mode, Rows, WeightedAverage
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
MODULES = ("tests.runtime.functions.aggregates",)
FUNCTIONS: dict[str, type | str] = {
    "weighted": WeightedAverage,
    "bag": Bag,
    "calls": Calls,
    "mode": Mode,
    "n": Rows,
}
COLUMNS = {"k": "STRING", "a": "DOUBLE", "b": "STRING", "d": "STRING", "n": "BIGINT", "m": "BIGINT", "t": "BIGINT"}
QUERY = "SELECT k, weighted(v, w), bag(v), bag(DISTINCT v) FILTER (WHERE w > 1), n(), mode(v), SUM(v) FROM t GROUP BY k"
FIRST: list[dict[str, Any]] = [
    {"k": "a", "v": 10, "w": 3},
    {"k": "a", "v": 20, "w": 1},
    {"k": "b", "v": 7},
    {"k": None, "v": None, "w": 2},
    {"k": None, "v": None, "w": 5},
]
SECOND: list[dict[str, Any]] = [{"k": "a", "v": 10, "w": 2}, {"k": "c", "v": 1, "w": 1}]
LEFT = {
    ("a", 70 / 6, "10 10 20", "10", 3, 10, 40): 1,
    ("b", None, "7", "", 1, 7, 7): 1,
    (None, None, "None None", "None", 2, None, None): 1,
    ("c", 1.0, "1", "", 1, 1, 1): 1,
}
"""By hand."""


def plan_of(directory: Path, query: str, columns: dict[str, str], **config: str) -> Plan:
    files = "'connector' = 'filesystem', 'format' = 'json'"
    changelog = "" if config.get("execution.runtime-mode") == "batch" else ", 'sink.changelog' = 'true'"
    shown = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    script = f"""CREATE TABLE t (k STRING, v BIGINT, w BIGINT) WITH ({files}, 'path' = '{directory / "t"}');
    CREATE TABLE r ({shown}) WITH ({files}, 'path' = '{directory / "result"}'{changelog});
    INSERT INTO r {query};"""
    return compile_sql(script, {"parallelism.default": "2", **config}, functions=FUNCTIONS)


def run(plan: Plan, spark: SparkSession, directory: Path, *modules: str) -> None:
    once: dict[str, Any] = {"once": True, "checkpoint": str(directory / "checkpoint")}
    execution = execute(
        plan, spark, policy=Policy(modules=modules or MODULES), **(once if plan.mode == "streaming" else {})
    )
    assert execution.await_termination(DEADLINE_SECONDS)


def left(directory: Path) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row in changes(directory):
        found[tuple(row.get(name) for name in COLUMNS)] += 1 if row["op"] in ("+I", "+U") else -1
    return +found


def test_a_stream_goes_on_after_a_restart_with_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "t", FIRST)
    plan = plan_of(tmp_path, QUERY, COLUMNS)
    run(plan, spark, tmp_path)
    add_rows(tmp_path, "t", SECOND)
    run(replace(plan, config={**plan.config, "parallelism.default": "3"}), spark, tmp_path)
    assert left(tmp_path) == LEFT
    other = replace(plan.functions["mode"], class_name="tests.runtime.functions.aggregates.Rows")
    with pytest.raises((RunError, PlanError), match="aggregate_t"):
        run(replace(plan, functions={**plan.functions, "mode": other}), spark, tmp_path)
    file = tmp_path / "plan.json"
    file.write_bytes(hintplan.dumps(plan))
    command = [sys.executable, "-m", "hintplan", "state", str(tmp_path / "checkpoint"), "--show", "20", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "__user weighted(v, w)" in done.stdout
    assert json.loads(done.stdout)


def test_two_phases_leave_the_same(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT k, weighted(v, w), bag(v), CAST(NULL AS STRING), n(), mode(v), SUM(v) FROM t GROUP BY k"
    plan = plan_of(tmp_path, query, COLUMNS, **{"table.optimizer.agg-phase-strategy": "TWO_PHASE"})
    for rows in (FIRST, SECOND):
        add_rows(tmp_path, "t", rows)
        run(plan, spark, tmp_path)
    assert left(tmp_path) == {(*row[:3], None, *row[4:]): 1 for row in LEFT}


def test_a_batch_job_has_the_same_values(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "t", FIRST)
    add_rows(tmp_path, "t", SECOND)
    run(plan_of(tmp_path, QUERY, COLUMNS, **{"execution.runtime-mode": "batch"}), spark, tmp_path)
    rows = [json.loads(line) for file in (tmp_path / "result").glob("*.json") for line in file.read_text().splitlines()]
    assert Counter(tuple(row.get(name) for name in COLUMNS) for row in rows) == LEFT


def test_a_batch_job_has_a_row_of_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "t", FIRST)
    columns = {"b": "STRING", "n": "BIGINT", "c": "BIGINT"}
    query = "SELECT bag(v), n(), COUNT(*) FROM t WHERE w > 100"
    run(plan_of(tmp_path, query, columns, **{"execution.runtime-mode": "batch"}), spark, tmp_path)
    rows = [json.loads(line) for file in (tmp_path / "result").glob("*.json") for line in file.read_text().splitlines()]
    assert rows == [{"b": "", "n": 0, "c": 0}]


def test_a_class_that_is_not_allowed_is_refused_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "t", FIRST)
    with pytest.raises(RunError, match=r"module tests\.runtime\.functions\.aggregates is not allowed"):
        run(plan_of(tmp_path, QUERY, COLUMNS), spark, tmp_path, "shop")
    assert not (tmp_path / "result").exists()
