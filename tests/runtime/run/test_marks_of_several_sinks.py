"""Marks of a query with several sinks, and marks behind Hadoop's interface, as on stores that only Spark reaches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import checkpoint_files
from hintplan.runtime.checkpoint.lease_stores import hadoop_store
from hintplan.runtime.checkpoint.sink_marks import MARKS, read_marks
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.marking import SinkMarks
from tests.connectors.lakes.lakes import DeltaLake, in_with

pytestmark = [pytest.mark.spark]


def test_one_of_several_sinks_that_is_older_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that changes one of them leaves the mark of the other as it was."""
    lake = DeltaLake(tmp_path / "lake")
    (tmp_path / "in").mkdir()
    source = in_with({"connector": "filesystem", "format": "csv", "path": f"{tmp_path}/in"})
    sinks = "".join(
        f"CREATE TABLE {name} (k INT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED)\nWITH ({in_with(lake.options(name))});\n"
        for name in ("low", "high")
    )
    plan = hintplan.compile_sql(
        f"CREATE TABLE o (k INT, v BIGINT) WITH ({source});\n{sinks}"
        "CREATE VIEW sums AS SELECT k, SUM(v) AS s FROM o GROUP BY k;\n"
        "INSERT INTO low SELECT k, s FROM sums WHERE s < 100;\nINSERT INTO high SELECT k, s FROM sums WHERE s >= 100;"
    )

    def batch(number: int, rows: str, *, agreed: bool = False) -> None:
        (tmp_path / "in" / f"{number}.csv").write_text(rows)
        running = execute(plan, spark, checkpoint=str(tmp_path / "c"), once=True, allow_older_sink=agreed)
        assert running.await_termination(180)

    batch(0, "1,1\n10,100\n")
    shutil.copytree(tmp_path / "lake", tmp_path / "before")
    batch(1, "1,1\n")
    batch(2, "10,5\n")
    (query,) = {path.parent.parent.name for path in (tmp_path / "c").glob("*/marks/*")}
    found = read_marks(checkpoint_files(spark, str(tmp_path / "c")), query, 2)
    assert {name: mark.batch for name, mark in found.items()} == {"sink_low": 1, "sink_high": 2}
    for name in ("low", "high"):
        kept = tmp_path / f"newer_{name}"
        (tmp_path / "lake" / name).rename(kept)
        shutil.copytree(tmp_path / "before" / name, tmp_path / "lake" / name)
        with pytest.raises(RunError, match=f"table {name}: this checkpoint has written batches up to .* up to 0"):
            batch(3, "1,1\n")
        shutil.rmtree(tmp_path / "lake" / name)
        kept.rename(tmp_path / "lake" / name)
    batch(3, "1,1\n")
    assert (lake.rows("low"), lake.rows("high")) == ([(1, 3)], [(10, 105)])


def test_marks_are_replaced_and_removed_behind_hadoops_interface(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(columns=(), options={"connector": "delta"})
    marks = SinkMarks(store=hadoop_store(spark, f"file://{tmp_path}/q", MARKS))
    for batch, sink in ((0, "a"), (2, "a"), (2, "b"), (5, "a")):
        marks.of(sink, table)(batch, {"batch": batch})
    there = checkpoint_files(spark, str(tmp_path))
    assert there.numbers("q/marks") == [2, 5]
    found = [{name: mark.batch for name, mark in read_marks(there, "q", ended).items()} for ended in (2, 5)]
    assert found == [{"a": 2, "b": 2}, {"a": 5, "b": 2}]
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="the marks of a cannot be written to the checkpoint: "):
        SinkMarks(store=hadoop_store(spark, f"file://{tmp_path}/file", MARKS)).of("a", table)(0, {})
