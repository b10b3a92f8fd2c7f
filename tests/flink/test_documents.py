"""Aggregates of documents and of nested values leave on Spark what Flink recorded, in streams and in batch jobs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan import compile_sql
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.flink.programs import DOCUMENTS, TABLES
from tests.flink.test_programs import RECORDED, rows_of
from tests.sample import sampled
from tests.spark.programs import add_rows, changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180
READ = ("o", "g")
IN_BATCH = [name for name, (_, query) in DOCUMENTS.items() if "FROM g" not in query and "FIRST_VALUE" not in query]
"""Batch jobs read no changelogs, and have no first row."""
THIRDS = ["first", "second", "third"]


def third(names: list[str], which: str) -> list[str]:
    """Give every third of the programs: one job of all is large."""
    return names[THIRDS.index(which) :: 3]


def plan_of(directory: Path, names: list[str], mode: str) -> Plan:
    """A job with a sink for each of the programs."""
    files = "'connector' = 'filesystem', 'format' = 'json'"
    streaming, script = mode == "streaming", []
    for table in READ if streaming else READ[:1]:
        columns, rows = TABLES[table]
        changelog = ", 'source.changelog' = 'true'" if any(kind != "+I" for kind, *_ in rows) else ""
        shown = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        script.append(f"CREATE TABLE {table} ({shown}) WITH ({files}, 'path' = '{directory / table}'{changelog});")
    for place, name in enumerate(names):
        path = directory / f"r{place}" / "result"
        changelog = ", 'sink.changelog' = 'true'" if streaming else ""
        script.append(f"CREATE TABLE r{place} ({DOCUMENTS[name][0]}) WITH ({files}, 'path' = '{path}'{changelog});")
        script.append(f"INSERT INTO r{place} {DOCUMENTS[name][1]};")
    return compile_sql("\n".join(script), {"parallelism.default": "1", "execution.runtime-mode": mode})


def run(plan: Plan, spark: SparkSession, directory: Path) -> None:
    once: dict[str, Any] = {"once": True, "checkpoint": str(directory / "checkpoint")}
    execution = execute(plan, spark, **(once if plan.mode == "streaming" else {}))
    assert execution.await_termination(DEADLINE_SECONDS)


def add(directory: Path, part: slice) -> None:
    for table in READ:
        columns, rows = TABLES[table]
        add_rows(directory, table, [{**dict(zip(columns, row, strict=True)), "op": op} for op, *row in rows[part]])


def shown(rows: list[dict[str, Any]], name: str) -> list[list[Any]]:
    columns = [column.split(" ")[0] for column in DOCUMENTS[name][0].split(", ")]
    return [[row.get(column) for column in columns] for row in rows]


def in_any_order(rows: list[list[Any]], name: str) -> Counter[tuple[Any, ...]]:
    return rows_of(rows, DOCUMENTS[name][0])


@pytest.mark.parametrize("which", sampled(THIRDS, keep=1))
def test_a_stream_leaves_the_documents_that_flink_left(spark: SparkSession, tmp_path: Path, which: str) -> None:
    names = third(list(DOCUMENTS), which)
    plan = plan_of(tmp_path, names, "streaming")
    for part in (slice(5), slice(5, None)):
        add(tmp_path, part)
        run(plan, spark, tmp_path)
    for place, name in enumerate(names):
        found = changes(tmp_path / f"r{place}")
        left = in_any_order(shown([row for row in found if row["op"] in ("+I", "+U")], name), name)
        left.subtract(in_any_order(shown([row for row in found if row["op"] not in ("+I", "+U")], name), name))
        assert +left == in_any_order(RECORDED[name]["rows"], name), name


@pytest.mark.parametrize("which", sampled(THIRDS, keep=1))
def test_a_batch_job_has_the_same_documents(spark: SparkSession, tmp_path: Path, which: str) -> None:
    names = third(IN_BATCH, which)
    add(tmp_path, slice(None))
    run(plan_of(tmp_path, names, "batch"), spark, tmp_path)
    for place, name in enumerate(names):
        files = (tmp_path / f"r{place}" / "result").glob("*.json")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert in_any_order(shown(rows, name), name) == in_any_order(RECORDED[name]["rows"], name), name


@pytest.mark.parametrize("part", [slice(5, 7), slice(3, 4)], ids=["twice", "null"])
def test_a_name_that_is_null_or_twice_in_a_group_fails_as_in_flink(
    spark: SparkSession, tmp_path: Path, part: slice
) -> None:
    add(tmp_path, part)
    files = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}"
    columns = ", ".join(f"{name} {kind}" for name, kind in TABLES["o"][0].items())
    name = "s" if part.start == 3 else "CAST(id AS STRING)"
    plan = compile_sql(
        f"CREATE TABLE o ({columns}) WITH ({files}/o'); CREATE TABLE r (a STRING) WITH ({files}/r');"
        f"INSERT INTO r SELECT JSON_OBJECTAGG({name} VALUE v) FROM o;",
        {"execution.runtime-mode": "batch"},
    )
    with pytest.raises(RunError, match="a name in a group that is NULL, or there twice"):
        run(plan, spark, tmp_path)
