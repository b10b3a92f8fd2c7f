"""Tables of lakes that lack what their checkpoint has written, and tables that others have only worked on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from hintplan.runtime.inspect.snapshot import take_snapshot
from tests.connectors.lakes.lakes import LAKES, DeltaLake, IcebergLake
from tests.faults.older_sinks import CopyJob
from tests.sample import each_once

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2)]

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def put_back(lake: Any, at: Path) -> str:
    tables = "tables" if isinstance(lake, IcebergLake) else "r"
    shutil.rmtree(at / "lake" / tables)
    shutil.copytree(at / "before" / tables, at / "lake" / tables)
    if isinstance(lake, IcebergLake):  # the file is this process' own
        shutil.copyfile(at / "before" / "catalog.db", lake.catalog)
    return "has them up to 0"


def rolled_back(lake: Any, at: Path) -> str:
    """By the means of the lake itself."""
    if isinstance(lake, DeltaLake):
        DeltaTable(at / "lake" / "r").restore(1)
        return "was restored to version 1, and had version 2"
    first = lake.table("r").history()[0]
    lake.table("r").manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    return "has them up to 0"


def made_anew(lake: Any, at: Path) -> str:
    if isinstance(lake, DeltaLake):
        shutil.rmtree(at / "lake" / "r")
        DeltaTable.create(str(at / "lake" / "r"), schema=SCHEMA)
    else:
        catalog = SqlCatalog("lake", uri=f"sqlite:///{lake.catalog}", warehouse=f"{lake.root}/tables")
        schema = catalog.load_table(("db", "r")).schema()
        catalog.drop_table(("db", "r"))
        catalog.create_table(("db", "r"), schema)
    return "has none of them"


def dropped(lake: Any, at: Path) -> str:
    if isinstance(lake, DeltaLake):
        shutil.rmtree(at / "lake" / "r")
        (at / "lake" / "r").mkdir()
    else:
        SqlCatalog("lake", uri=f"sqlite:///{lake.catalog}").drop_table(("db", "r"))
    return "no longer exists"


DAMAGES = [put_back, rolled_back, made_anew, dropped]


@pytest.mark.parametrize(("kind", "damage", "key"), each_once(LAKES, DAMAGES, [False, True]))
def test_a_table_that_is_older_than_its_checkpoint_is_refused(
    spark: SparkSession, tmp_path: Path, kind: str, damage: Callable[[Any, Path], str], key: bool
) -> None:
    lake = LAKES[kind](tmp_path / "lake")
    job = CopyJob(spark, tmp_path, lake.options("r"), key)
    job.batch(1)
    shutil.copytree(tmp_path / "lake", tmp_path / "before")
    job.batch(2)
    said = damage(lake, tmp_path)
    job.refuses(said)
    left = [(1,)] if damage in (put_back, rolled_back) else []
    job.batch(3, agreed=True)
    assert lake.rows("r") == [*left, (3,)]
    job.batch(4)
    assert lake.rows("r") == [*left, (3,), (4,)]


@pytest.mark.parametrize("kind", LAKES)
def test_a_table_that_others_have_worked_on_is_gone_on_with(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Another writer, compaction, vacuum, expiry, batches without rows, and rows that somebody has deleted."""
    lake = LAKES[kind](tmp_path / "lake")
    job = CopyJob(spark, tmp_path, lake.options("r"))
    job.batch(1)
    job.batch(2)
    job.batch()
    worked_on(lake)
    job.batch()
    job.batch(3)
    assert ids(lake) == [3]


def ids(lake: Any) -> list[int]:
    """What the library of the lake reads, which knows the checkpoints of a log."""
    found = pa.table(DeltaTable(lake.root / "r").scan().read_all()) if isinstance(lake, DeltaLake) else None
    return sorted((lake.table("r").scan().to_arrow() if found is None else found)["id"].to_pylist())


def worked_on(lake: Any) -> None:
    if isinstance(lake, DeltaLake):
        path = str(lake.root / "r")
        write_deltalake(path, pa.table({"id": [7]}, SCHEMA), mode="append")
        table = DeltaTable(path)
        table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        table.delete()
        DeltaTable(path).create_checkpoint()
        for name in sorted((Path(path) / "_delta_log").glob("0*.json"))[:-1]:  # as the cleaning of a log leaves it
            name.unlink()
        return
    lake.table("r").append(pa.table({"id": [7]}, SCHEMA))
    lake.table("r").delete("id > 0")
    table = lake.table("r")
    older = [each.snapshot_id for each in table.history()[:-1]]
    table.maintenance.expire_snapshots().by_ids(older).commit()


@pytest.mark.parametrize("kind", LAKES)
def test_a_snapshot_goes_on_with_a_table_that_is_as_old(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake = LAKES[kind](tmp_path / "lake")
    job = CopyJob(spark, tmp_path, lake.options("r"))
    job.batch(1)
    shutil.copytree(tmp_path / "lake", tmp_path / "before")
    take_snapshot(str(job.checkpoint), str(tmp_path / "snapshot"))
    job.batch(2)
    put_back(lake, tmp_path)
    assert (tmp_path / "snapshot" / "sink_r" / "marks" / "0").is_file()
    job.batch(3, checkpoint=tmp_path / "snapshot")
    assert lake.rows("r") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("kind", LAKES)
def test_a_batch_that_was_killed_before_its_end_is_written_again(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Its mark is there, and does not mention what the table must have; that before it does."""
    lake = LAKES[kind](tmp_path / "lake")
    job = CopyJob(spark, tmp_path, lake.options("r"))
    job.batch(1)
    shutil.copytree(tmp_path / "lake", tmp_path / "before")
    job.batch(2)
    for name in ("1", ".1.crc"):
        (job.checkpoint / "sink_r" / "commits" / name).unlink()
    put_back(lake, tmp_path)
    job.batch(3)
    assert lake.rows("r") == [(1,), (2,), (3,)]


def test_a_checkpoint_without_marks_is_gone_on_with_and_gets_them(spark: SparkSession, tmp_path: Path) -> None:
    """As those of older versions are; and those of a table that has another place now."""
    lake = DeltaLake(tmp_path / "lake")
    job = CopyJob(spark, tmp_path, lake.options("r"))
    job.batch(1)
    shutil.copytree(tmp_path / "lake", tmp_path / "before")
    job.batch(2)
    shutil.rmtree(job.checkpoint / "sink_r" / "marks")
    put_back(lake, tmp_path)
    job.batch(3)
    assert sorted(path.name for path in (job.checkpoint / "sink_r" / "marks").iterdir()) == ["2"]
    elsewhere = CopyJob(spark, tmp_path, lake.options("other"))
    elsewhere.batch(4)
    assert (lake.rows("r"), lake.rows("other")) == ([(1,), (3,)], [(4,)])


def test_iceberg_without_its_catalog_names_the_table(spark: SparkSession, tmp_path: Path) -> None:
    lake = IcebergLake(tmp_path / "lake")
    job = CopyJob(spark, tmp_path, lake.options("r"))
    job.batch(1)
    job.batch(2)
    with sqlite3.connect(lake.catalog) as catalog:
        catalog.execute("DELETE FROM iceberg_tables")
    job.refuses("no longer exists")
