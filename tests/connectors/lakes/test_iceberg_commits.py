"""Commits of the iceberg sink: death between its steps, and writers at the same time."""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from tests.connectors.lakes.lakes import IcebergLake, lake_table
from tests.connectors.lakes.sinks import arrow, sink

pytestmark = pytest.mark.spark
COLUMNS = (("id", "INT"), ("v", "STRING"))


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path / "lake")


class Killed(BaseException):
    """What no code catches, as none sees the end of its process."""


def before(real: Callable[..., Any]) -> Callable[..., Any]:
    def dies(*given: Any, **named: Any) -> Any:
        raise Killed

    return dies


def after(real: Callable[..., Any]) -> Callable[..., Any]:
    def dies(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise Killed

    return dies


STEPS = {
    "files are written": ("hintplan.runtime.connectors.lakes.data_files.pq.write_table", after),
    "manifests are not written": ("pyiceberg.table.update.snapshot.write_manifest", before),
    "the list of manifests is not written": ("pyiceberg.table.update.snapshot.write_manifest_list", before),
    "metadata is not written": ("pyiceberg.catalog.sql.SqlCatalog._write_metadata", before),
    "metadata is written": ("pyiceberg.catalog.sql.SqlCatalog._write_metadata", after),
    "it is committed": ("pyiceberg.catalog.sql.SqlCatalog.commit_table", after),
}


@pytest.mark.sampled
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_batch_that_died_at_any_step_is_there_once_when_it_runs_again(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...], step: str
) -> None:
    table = lake_table(lake, "t", *COLUMNS, key=key)
    write = sink(spark, table)
    first = arrow(table, [("+I", (1, "a")), ("+I", (2, "a"))], changelog=False)
    second = arrow(table, [("+I", (2, "b")), ("+I", (3, "b"))], changelog=False)
    write(first, 0)
    place, when = STEPS[step]
    with monkeypatch.context() as patched:
        real = pkgutil.resolve_name(place)
        dies = when(real)
        patched.setattr(place, staticmethod(dies) if place.endswith("_write_metadata") else dies)
        with pytest.raises(Killed):
            write(second, 1)
    assert lake.commits("t") == (2 if step == "it is committed" else 1)
    sink(spark, table)(second, 1)
    assert lake.rows("t") == [(1, "a"), *([] if key else [(2, "a")]), (2, "b"), (3, "b")]
    assert lake.commits("t") == 2


@pytest.mark.parametrize("key", [(), ("id",)])
def test_writers_at_the_same_time_lose_nothing(spark: SparkSession, lake: IcebergLake, key: tuple[str, ...]) -> None:
    table = lake_table(lake, "t", *COLUMNS, key=key, **{"sink.max-retries": "50"})
    failed: list[BaseException] = []
    sink(spark, table)(arrow(table, [("+I", (0, "x"))], changelog=False), 0)

    def write(number: int) -> None:
        try:
            writes = sink(spark, table, part=f"/{number}")
            for batch in range(5):
                writes(arrow(table, [("+I", (100 * number + batch, "x"))], changelog=False), batch)
        except RunError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert lake.rows("t") == sorted(((0, "x"), *((100 * n + b, "x") for n in (1, 2, 3) for b in range(5))), key=str)
    assert lake.commits("t") == 16


def test_the_same_batch_of_two_processes_is_there_once(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was thought dead commits after the other has looked: its commit is not tried again by itself."""
    table = lake_table(lake, "t", *COLUMNS)
    rows = arrow(table, [("+I", (1, "a"))], changelog=False)
    one, other = sink(spark, table), sink(spark, table)
    real = SqlCatalog.commit_table
    early: list[bool] = []

    def commit(*given: Any, **named: Any) -> Any:
        if not early:
            early.append(True)
            other(rows, 0)
        return real(*given, **named)

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    one(rows, 0)
    assert lake.rows("t") == [(1, "a")]
    assert lake.commits("t") == 1


def test_a_table_that_others_change_all_the_time_fails_the_batch(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake_table(lake, "t", *COLUMNS, **{"sink.max-retries": "2"})
    write = sink(spark, table)
    tried: list[int] = []

    def commit(*given: Any, **named: Any) -> Any:
        tried.append(1)
        raise CommitFailedException("somebody was quicker")

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    with pytest.raises(RunError, match="table r cannot be written to: somebody was quicker"):
        write(arrow(table, [("+I", (1, "a"))], changelog=False), 0)
    assert len(tried) == 3
