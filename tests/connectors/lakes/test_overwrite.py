"""INSERT OVERWRITE into tables of lakes: what Flink makes of a table of files, in one commit."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import PlanError, RunError
from hintplan.runtime.connectors.table import batch_overwriter, batch_writer
from tests.connectors.lakes.lakes import LAKES, Lake, in_with, lake_table
from tests.connectors.overwriting import RECORDED, rows_of, run
from tests.flink.files import BEFORE, OVERWRITES

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return LAKES[request.param](tmp_path / "lake")


def there(lake: Lake, commit: int | None = None) -> list[list[Any]]:
    return sorted(list(row) for row in lake.rows("t", commit))


@pytest.mark.sampled
@pytest.mark.parametrize("name", OVERWRITES)
def test_rows_are_those_that_flink_leaves(spark: SparkSession, lake: Lake, tmp_path: Path, name: str) -> None:
    by, partition, query = OVERWRITES[name]
    run(spark, in_with(lake.options("t")), tmp_path, "INSERT INTO t SELECT * FROM b", by)
    statement = f"INSERT OVERWRITE t {partition} {query}"
    if name == "the table itself":
        with pytest.raises(PlanError, match="a batch job must not read a table while it is written"):
            run(spark, in_with(lake.options("t")), tmp_path, statement, by)
        return
    run(spark, in_with(lake.options("t")), tmp_path, statement, by)
    assert there(lake) == RECORDED[name]
    assert there(lake, 1) == rows_of(BEFORE)
    assert lake.commits("t") == (1 if by and there(lake) == rows_of(BEFORE) else 2)


@pytest.mark.sampled
@pytest.mark.parametrize("by", ["", "p"])
def test_a_job_that_fails_takes_nothing_away(
    spark: SparkSession, lake: Lake, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spark, in_with(lake.options("t")), tmp_path, "INSERT INTO t SELECT * FROM b", by)
    with pytest.raises(RunError):
        run(spark, in_with(lake.options("t")), tmp_path, "INSERT OVERWRITE t SELECT 1 / (v - 13), p, r FROM n", by)
    assert there(lake) == rows_of(BEFORE)
    assert lake.commits("t") == 1


def test_rows_of_a_key_are_there_once(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    key = ", PRIMARY KEY (p) NOT ENFORCED"
    run(
        spark, in_with(lake.options("t")), tmp_path, "INSERT INTO t SELECT MAX(v), p, MAX(r) FROM b GROUP BY p", key=key
    )
    run(
        spark,
        in_with(lake.options("t")),
        tmp_path,
        "INSERT OVERWRITE t SELECT MAX(v), p, MAX(r) FROM n GROUP BY p",
        key=key,
    )
    assert there(lake) == [[11, 1, "a"], [13, 2, "z"]]


class Killed(BaseException):
    """What no code catches, as none sees the end of its process."""


COMMITS = {
    "delta": "deltalake.DeltaTable.create_write_transaction",
    "iceberg": "pyiceberg.catalog.sql.SqlCatalog.commit_table",
}


@pytest.mark.sampled
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("by", ["", "p"])
@pytest.mark.parametrize("kind", LAKES)
def test_a_job_that_dies_leaves_the_old_rows_or_the_new_ones(
    spark: SparkSession, tmp_path: Path, kind: str, by: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LAKES[kind](tmp_path / "lake")
    table = lake_table(lake, "t", ("v", "INT"), ("p", "INT"), partitioned_by=by)
    batch_writer(spark.createDataFrame([(1, 1), (2, 1), (3, 2)], "v INT, p INT"), "t", table)()
    real = pkgutil.resolve_name(COMMITS[kind])

    def dies(*given: Any, **named: Any) -> None:
        if after:
            real(*given, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(COMMITS[kind], dies)
        with pytest.raises(Killed):
            batch_overwriter(spark.createDataFrame([(7, 1)], "v INT, p INT"), "t", table)()
    new = [[3, 2], [7, 1]] if by else [[7, 1]]
    assert there(lake) == (new if after else [[1, 1], [2, 1], [3, 2]])
