"""OVER through all layers: SQL, a plan, runs on Spark with a stop between them, late rows and the report of state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.plans.in_process import hintplan as command

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
SQL = """CREATE TABLE payments (card STRING, amount DECIMAL(10, 2), at TIMESTAMP(3), pt AS PROCTIME(),
 WATERMARK FOR at AS at - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{folder}/payments', 'late-rows.target' = 'late');
CREATE TABLE late (operator STRING, watermark TIMESTAMP_LTZ(3), card STRING, amount DECIMAL(10, 2), at TIMESTAMP(3))
 WITH ({files}/late');
CREATE TABLE checked (card STRING, amount DECIMAL(10, 2), n BIGINT, total DECIMAL(38, 2)) WITH ({files}/checked');
CREATE TABLE numbered (card STRING, number BIGINT) WITH ({files}/numbered');
INSERT INTO checked SELECT card, amount, COUNT(*) OVER w, SUM(amount) OVER w FROM payments
WINDOW w AS (PARTITION BY card ORDER BY at RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW);
INSERT INTO numbered SELECT card, ROW_NUMBER() OVER (PARTITION BY card ORDER BY pt) FROM payments;
"""
FIRST = [("a", 1, 3), ("b", 2, 12), ("a", 4, 1), ("a", 8, 9)]
SECOND = [("a", 16, 10), ("a", 32, 30), ("b", 64, 5)]
"""Rows by second: the watermark comes to 7 s, then to 25 s. The last row is late."""
CHECKED = {
    "first": [("a", 4, 1, 4), ("a", 1, 2, 5)],
    "second": [("a", 4, 1, 4), ("a", 1, 2, 5), ("a", 8, 3, 13), ("a", 16, 4, 29), ("b", 2, 1, 2)],
}
NUMBERED = {("a", 1), ("a", 2), ("a", 3), ("a", 4), ("a", 5), ("b", 1), ("b", 2)}


def test_rows_wait_for_the_watermark_and_read_rows_of_an_earlier_run(tmp_path: Path, spark: SparkSession) -> None:
    files = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}"
    script = SQL.replace("{folder}", str(tmp_path)).replace("{files}", files)
    plan = hintplan.compile_sql(script, {"parallelism.default": "2"}, name="payments")
    hintplan.dump(plan, tmp_path / "plan.json")
    for name, rows in (("first", FIRST), ("second", SECOND)):
        run(plan, spark, tmp_path, name, rows)
        assert sorted(read(tmp_path, "checked", "card", "amount", "n", "total")) == sorted(CHECKED[name])
    assert set(read(tmp_path, "numbered", "card", "number")) == NUMBERED
    assert read(tmp_path, "late", "card", "amount") == [("b", 64)]
    shown = command("state", "plan.json", "--checkpoint", "checkpoint", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert any("waitingState" in line and " 1 " in f"{line} " for line in lines), shown.stdout


def run(plan: Plan, spark: SparkSession, folder: Path, name: str, rows: list[tuple[str, int, int]]) -> None:
    lines = [
        json.dumps({"card": card, "amount": amount, "at": f"2024-01-01 12:00:{second:02}"})
        for card, amount, second in rows
    ]
    (folder / "payments").mkdir(exist_ok=True)
    (folder / "payments" / f"{name}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with execute(plan, spark, checkpoint=folder / "checkpoint", once=True) as execution:
        execution.await_termination(timeout=DEADLINE_SECONDS)


def read(folder: Path, table: str, *columns: str) -> list[tuple]:
    found = (json.loads(line) for path in (folder / table).glob("*.json") for line in path.open())
    return [tuple(row[name] for name in columns) for row in found]
