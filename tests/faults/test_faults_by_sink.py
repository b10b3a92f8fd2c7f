"""The faults of docs/faults/errors.md that end a batch say the same whatever the sink is, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.connectors.policy import Policy
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Scan, SelectItem, Sink
from hintplan.runtime.run.execute import execute
from tests.connectors.lakes.lakes import IcebergLake
from tests.sample import each_once

pytestmark = pytest.mark.spark

ID = (TableColumn(name="id", type="BIGINT"),)
SINKS: dict[str, Callable[[Path], list[dict[str, str]]]] = {
    "filesystem": lambda at: [{"connector": "filesystem", "path": f"{at}/out", "format": "json"}],
    "jdbc": lambda at: [{"connector": "jdbc", "url": f"jdbc:sqlite:{at}/r.db", "table-name": "r"}],
    "delta": lambda at: [{"connector": "delta", "table-path": f"{at}/table"}],
    "iceberg": lambda at: [IcebergLake(at / "lake").options("table")],
    "print": lambda at: [{"connector": "print"}],
    "blackhole": lambda at: [{"connector": "blackhole"}],
    "several": lambda at: [
        {"connector": "blackhole"},
        {"connector": "print"},
        {"connector": "delta", "table-path": f"{at}/table"},
    ],
}


def plan_of(at: Path, sinks: list[dict[str, str]], format_: str, expression: str) -> Plan:
    source = {"connector": "filesystem", "path": str(at / "in"), "format": format_}
    tables = {f"r{n}": Table(columns=ID, options=options) for n, options in enumerate(sinks)}
    calc = Calc(id="calc_s", inputs=("scan_s",), select=(SelectItem(name="id", expression=expression, type="BIGINT"),))
    return Plan(
        name="copy",
        tables={"s": Table(columns=ID, options=source), **tables},
        operators=(
            Scan(id="scan_s", table="s", columns=("id",)),
            calc,
            *(Sink(id=f"sink_{name}", inputs=("calc_s",), table=name) for name in tables),
        ),
    )


FAULTS: dict[str, tuple[str, str, str, str]] = {
    "json": (
        "json",
        '{"id": 1}\n{"id": oh no\n',
        "id",
        'in/1.json has a line that does not fit the table: {"id": oh no',
    ),
    "csv": (
        "csv",
        "1\nx\n",
        "id",
        "in/1.csv has a line that does not fit the table (column 'id' is BIGINT, and has x): x",
    ),
    "parser": (
        "json",
        '{"id": 1' + "0" * 1001 + "}\n",
        "id",
        "in/1.json has a line that exceeds the limits of the",
    ),
    "parquet": ("parquet", "no parquet at all", "id", "in/1.parquet"),
    "expression": ("csv", "1\n", "id / (id - 1)", "[DIVIDE_BY_ZERO] Division by zero"),
}


@pytest.mark.integration
@pytest.mark.parametrize(("fault", "sink"), each_once(list(FAULTS), list(SINKS)))
def test_a_fault_is_told_with_its_file_whatever_the_sink(
    spark: SparkSession, tmp_path: Path, capfd: Any, fault: str, sink: str
) -> None:
    format_, text, expression, said = FAULTS[fault]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"1.{format_}").write_text(text, encoding="utf-8")
    plan = plan_of(tmp_path, SINKS[sink](tmp_path), format_, expression)
    with pytest.raises(RunError) as caught:
        execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True).await_termination(180)
    message = str(caught.value)
    assert said in message
    for noise in ("Py4J", "awaitResult", "Traceback", "\tat "):
        assert noise not in message
    right = {"json": '{"id": 3}\n', "csv": "3\n"}.get(format_)
    if right is not None:
        (tmp_path / "in" / f"1.{format_}").write_text(right, encoding="utf-8")
        kept = str(tmp_path / "checkpoint")
        execution = execute(plan, spark, checkpoint=kept, once=True, allow_missing_files=True)
        assert execution.await_termination(180)
        assert {batch.rows_out for batch in execution.progress.values()} == {1}


def test_a_path_that_cannot_be_reached_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    plan = plan_of(tmp_path, SINKS["blackhole"](tmp_path), "csv", "id")
    for checkpoint in ("nosuch://host/checkpoint", "hdfs://nowhere.invalid:1/checkpoint"):
        with pytest.raises(RunError, match=f"{checkpoint} cannot be reached: "):
            execute(plan, spark, checkpoint=checkpoint, once=True)
    tables = {**plan.tables, "s": replace(plan.tables["s"], options={**plan.tables["s"].options, "path": "nosuch://x"})}
    allowed = Policy(schemes=("nosuch",))
    with pytest.raises(RunError, match="table s cannot be read: nosuch://x"):
        execute(replace(plan, tables=tables), spark, checkpoint=str(tmp_path / "c"), once=True, policy=allowed)
