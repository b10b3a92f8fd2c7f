"""Changes that a source holds in several files take effect as they arrived, in whatever order Spark reads the files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.policy import Policy
from hintplan.runtime.run.execute import execute
from tests.sample import in_turn
from tests.spark.programs import add_rows, changes

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 180
FILES = {"connector": "filesystem", "format": "json"}


def table(name: str, columns: str, **options: str) -> str:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({listed});"


def order(op: str, number: int, amount: int) -> dict[str, Any]:
    return {"op": op, "id": number, "currency": ("EUR", "USD")[number % 2], "amount": amount}


# Spark reads large files first, and each of these takes back rows of smaller ones.
PARTS = (
    [order("+I", i, 1) for i in range(6)],
    [order("-D", i, 1) for i in range(3)] + [order("+I", i, 2) for i in range(6, 20)],
    [order("-U", 3, 1), order("+U", 3, 5)] + [order("-D", i, 2) for i in range(6, 20)] + [order("+I", 0, 9)] * 20,
)


def expected() -> dict[tuple[str, int], int]:
    """How many orders each currency and amount has in the end, change by change."""
    rows: Counter[tuple[str, int]] = Counter()
    for change in (change for part in PARTS for change in part):
        rows[change["currency"], change["amount"]] += 1 if change["op"] in ("+I", "+U") else -1
    return {row: count for row, count in rows.items() if count}


@in_turn(1, of=2)
def test_rows_are_taken_back_that_another_file_of_the_batch_inserts(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("orders", "more", "result"):
        (tmp_path / name).mkdir()
    for part in PARTS:
        add_rows(tmp_path, "orders", part)
    add_rows(tmp_path, "more", [{"id": 99, "currency": "EUR", "amount": 9}])
    (tmp_path / "rates.json").write_text('{"code": "EUR", "rate": 1}\n{"code": "USD", "rate": 1}\n')
    rates = {"connector": "python", "class": "tests.connectors.lookup.rates.Rates"}
    plan = hintplan.compile_sql(
        table(
            "orders", "id BIGINT, currency STRING, amount INT, pt AS PROCTIME()",
            path=f"{tmp_path}/orders", **FILES, **{"source.changelog": "true"},
        )
        + table("more", "id BIGINT, currency STRING, amount INT", path=f"{tmp_path}/more", **FILES)
        + table("rates", "code STRING, rate INT", **rates, **{"properties.path": f"{tmp_path}/rates.json"})
        + table(
            "result", "currency STRING, amount INT, orders BIGINT",
            path=f"{tmp_path}/result", **FILES, **{"sink.changelog": "true"},
        )
        + """
        INSERT INTO result SELECT currency, amount, COUNT(*) FROM (
          SELECT o.currency, o.amount * r.rate AS amount FROM orders AS o
          JOIN rates FOR SYSTEM_TIME AS OF o.pt AS r ON o.currency = r.code WHERE o.id >= 0
          UNION ALL SELECT currency, amount FROM more
        ) GROUP BY currency, amount
        """
    )  # fmt: skip
    run = execute(
        plan,
        spark,
        checkpoint=str(tmp_path / "checkpoint"),
        once=True,
        policy=Policy(modules=("tests.connectors.lookup.rates",)),
    )
    assert run.await_termination(DEADLINE_SECONDS)
    assert run.progress["sink_result"].batch == 0, "all files are one micro-batch"
    found: Counter[str] = Counter()
    for change in changes(tmp_path):
        row = json.dumps([change["currency"], change["amount"], change["orders"]])
        found[row] += 1 if change["op"] in ("+I", "+U") else -1
    wanted = expected()
    wanted["EUR", 9] += 1
    assert {row for row, count in found.items() if count} == {
        json.dumps([*row, count]) for row, count in wanted.items()
    }
