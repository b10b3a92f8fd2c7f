"""A sink that has had batches of another checkpoint is refused, where Spark would take those to come for written."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Scan, Sink
from hintplan.runtime.run.execute import execute
from tests.connectors.lakes.lakes import IcebergLake, in_with
from tests.connectors.lakes.readers import delta_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

ID = (TableColumn(name="id", type="BIGINT"),)


def plan_of(directory: Path, sink: dict[str, str]) -> Plan:
    source = {"connector": "filesystem", "path": str(directory / "in"), "format": "csv"}
    (directory / "in").mkdir(exist_ok=True)
    return Plan(
        name="copy",
        tables={"s": Table(columns=ID, options=source), "r": Table(columns=ID, options=sink)},
        operators=(Scan(id="scan_s", table="s", columns=("id",)), Sink(id="sink_r", inputs=("scan_s",), table="r")),
    )


def add(directory: Path, *numbers: int) -> None:
    (directory / "in" / f"{numbers[0]}.csv").write_text("".join(f"{n}\n" for n in numbers), encoding="utf-8")


def run(plan: Plan, spark: SparkSession, checkpoint: Path | None) -> None:
    where = None if checkpoint is None else str(checkpoint)
    assert execute(plan, spark, checkpoint=where, once=True).await_termination(180)


def in_files(spark: SparkSession, directory: Path) -> list[int]:
    return sorted(row.id for row in spark.read.schema("id BIGINT").json(str(directory / "out")).collect())


def in_database(spark: SparkSession, directory: Path) -> list[int]:
    with sqlite3.connect(directory / "r.db") as connection:
        return sorted(row[0] for row in connection.execute("SELECT id FROM r"))


def in_table(spark: SparkSession, directory: Path) -> list[int]:
    return [row[0] for row in delta_rows(directory / "table")]


def in_catalog(spark: SparkSession, directory: Path) -> list[int]:
    return [row[0] for row in IcebergLake(directory / "lake").rows("table")]


SINKS: dict[str, tuple[Callable[[Path], dict[str, str]], Callable[[SparkSession, Path], list[int]]]] = {
    "filesystem": (lambda at: {"connector": "filesystem", "path": f"{at}/out", "format": "json"}, in_files),
    "delta": (lambda at: {"connector": "delta", "table-path": f"{at}/table"}, in_table),
    "iceberg": (lambda at: IcebergLake(at / "lake").options("table"), in_catalog),
    "jdbc": (lambda at: {"connector": "jdbc", "url": f"jdbc:sqlite:{at}/r.db", "table-name": "r"}, in_database),
}


def test_a_new_checkpoint_does_not_go_on_in_the_directory_of_another(spark: SparkSession, tmp_path: Path) -> None:
    sink, found = SINKS["filesystem"]
    plan = plan_of(tmp_path, sink(tmp_path))
    add(tmp_path, 1, 2)
    run(plan, spark, tmp_path / "checkpoint")
    add(tmp_path, 3)
    for other in (tmp_path / "another", None):
        with pytest.raises(RunError, match=r"batches up to 0 to .*/out', and this checkpoint has none yet"):
            run(plan, spark, other)
    shutil.move(tmp_path / "checkpoint", tmp_path / "moved")
    with pytest.raises(
        RunError, match="continue with the checkpoint that wrote there, or give the table another place"
    ):
        run(plan, spark, tmp_path / "checkpoint")
    run(plan, spark, tmp_path / "moved")
    assert found(spark, tmp_path) == [1, 2, 3]
    shutil.rmtree(tmp_path / "out")
    run(plan, spark, tmp_path / "anew")
    assert found(spark, tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("connector", SINKS)
def test_an_older_copy_of_a_checkpoint_is_refused(spark: SparkSession, tmp_path: Path, connector: str) -> None:
    sink, found = SINKS[connector]
    plan = plan_of(tmp_path, sink(tmp_path))
    add(tmp_path, 1)
    run(plan, spark, tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "older")
    add(tmp_path, 2)
    run(plan, spark, tmp_path / "checkpoint")
    add(tmp_path, 3)
    with pytest.raises(RunError, match=r"has written batches up to 1 to .*, and this checkpoint ends with batch 0"):
        run(plan, spark, tmp_path / "older")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "killed")
    for name in ("1", ".1.crc"):  # as if the end of the batch had not been noted
        (tmp_path / "killed" / "sink_r" / "commits" / name).unlink()
    run(plan, spark, tmp_path / "killed")
    assert found(spark, tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("connector", [name for name in SINKS if name != "filesystem"])
def test_a_batch_that_runs_again_under_another_id_of_its_sink_is_there_once(
    spark: SparkSession, tmp_path: Path, connector: str
) -> None:
    """An INSERT that is added before others into the same table gives them other ids; directories have one INSERT."""
    sink, found = SINKS[connector]
    source = {"connector": "filesystem", "path": str(tmp_path / "in"), "format": "csv"}
    script = f"CREATE TABLE s (id BIGINT) WITH ({in_with(source)}); CREATE VIEW v AS SELECT DISTINCT id FROM s;"
    script += f"CREATE TABLE r (id BIGINT) WITH ({in_with(sink(tmp_path))});"
    two = "INSERT INTO r SELECT id FROM v; INSERT INTO r SELECT id + 100 FROM v;"
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        add(tmp_path, number)
        run(hintplan.compile_sql(script + two), spark, tmp_path / "checkpoint")
    for ended in (tmp_path / "checkpoint").glob("*/commits/*1*"):  # as if the end of the batch had not been noted
        ended.unlink()
    (one_query,) = (tmp_path / "checkpoint").glob("*/commits/0")
    assert one_query.parent.parent.name not in ("sink_r", "sink_r_in_r")
    add(tmp_path, 3)
    run(
        hintplan.compile_sql(f"{script} INSERT INTO r SELECT id + 200 FROM s; {two}"),
        spark,
        tmp_path / "checkpoint",
    )
    assert sorted(found(spark, tmp_path)) == [1, 2, 3, 101, 102, 103, 201, 202, 203]


PLACES = {"filesystem": "out", "jdbc": "r.db"}
"""Where the sinks that count all batches keep their rows."""


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("connector", PLACES)
def test_a_sink_that_is_older_than_its_checkpoint_is_refused(
    spark: SparkSession, tmp_path: Path, connector: str, is_gone: bool
) -> None:
    """As a database that is restored from before, or a directory that is put back, and one that was removed."""
    sink, found = SINKS[connector]
    plan = plan_of(tmp_path, sink(tmp_path))
    place, copy = tmp_path / PLACES[connector], tmp_path / "copy"
    add(tmp_path, 1)
    run(plan, spark, tmp_path / "checkpoint")
    (shutil.copytree if place.is_dir() else shutil.copy)(place, copy)
    add(tmp_path, 2)
    run(plan, spark, tmp_path / "checkpoint")
    place.rename(tmp_path / "newer")
    if not is_gone:
        (shutil.copytree if copy.is_dir() else shutil.copy)(copy, place)
    add(tmp_path, 3)
    there = "none of them" if is_gone else "them up to 0"
    with pytest.raises(RunError, match=f"has written batches up to 1 to .*, which has {there}: their rows") as caught:
        run(plan, spark, tmp_path / "checkpoint")
    assert ("allow_older_sink=True" in str(caught.value)) == (connector == "jdbc")
    assert place.exists() != is_gone
    assert is_gone or found(spark, tmp_path) == [1]
    if connector == "filesystem":  # which nobody could read any more
        with pytest.raises(RunError, match="has written batches up to 1"):
            execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, allow_older_sink=True)
        return
    agreed = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, allow_older_sink=True)
    assert agreed.await_termination(180)
    assert found(spark, tmp_path) == ([3] if is_gone else [1, 3])


def test_a_checkpoint_goes_on_in_its_own_directory_alone(spark: SparkSession, tmp_path: Path) -> None:
    """In an empty one, too, where Spark would fail as soon as it sums up ten batches."""
    sink, found = SINKS["filesystem"]
    longer = plan_of(tmp_path, {**sink(tmp_path), "path": f"{tmp_path}/longer"})
    plan = plan_of(tmp_path, sink(tmp_path))
    for number in (1, 2):
        add(tmp_path, number)
        run(longer, spark, tmp_path / "checkpoint_of_longer")
    run(plan, spark, tmp_path / "checkpoint")
    add(tmp_path, 3)
    new = plan_of(tmp_path, {**sink(tmp_path), "path": f"{tmp_path}/new"})
    for other, path in ((longer, "longer"), (new, "new")):
        with pytest.raises(RunError, match=f"it has written files to .*/out, and not to .*/{path}"):
            run(other, spark, tmp_path / "checkpoint")
    assert not (tmp_path / "new").exists()
    run(plan, spark, tmp_path / "checkpoint")
    assert found(spark, tmp_path) == [1, 2, 3]


def test_two_sinks_with_one_directory_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    sink, _ = SINKS["filesystem"]
    plan = plan_of(tmp_path, sink(tmp_path))
    twice = Plan(
        name="twice",
        tables={**plan.tables, "q": plan.tables["r"]},
        operators=(*plan.operators, Sink(id="sink_q", inputs=("scan_s",), table="q")),
    )
    with pytest.raises(RunError, match="sink_r and sink_q would write files to the same directory"):
        run(twice, spark, tmp_path / "checkpoint")


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_where_the_directory_of_a_sink_must_be_is_named(spark: SparkSession, tmp_path: Path, below: str) -> None:
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    plan = plan_of(tmp_path, {"connector": "filesystem", "path": f"{tmp_path}/taken{below}", "format": "json"})
    add(tmp_path, 1)
    with pytest.raises(RunError, match=r"table r: .*/taken.* cannot be read: Not a directory") as caught:
        run(plan, spark, tmp_path / "checkpoint")
    assert "there is a file where a directory must be" in str(caught.value)
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "mine"
