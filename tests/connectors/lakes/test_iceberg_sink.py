"""What is special to the iceberg sink: its catalog, what others do to the table meanwhile."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import FloatType, IntegerType, NestedField, StructType
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError, SqlError
from hintplan.runtime.connectors.table import last_sink_batch
from tests.connectors.lakes.iceberg_reader import metadata, snapshots
from tests.connectors.lakes.lakes import IcebergLake, lake_table
from tests.connectors.lakes.sinks import arrow, read_back, sink

pytestmark = pytest.mark.spark
COLUMNS = (("id", "INT"), ("v", "STRING"))


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path / "lake")


def test_what_is_committed_is_known_when_snapshots_are_expired_or_rolled_back(
    spark: SparkSession, lake: IcebergLake
) -> None:
    table = lake_table(lake, "t", *COLUMNS)
    write = sink(spark, table)
    for batch in range(3):
        write(arrow(table, [("+I", (batch, "a"))], changelog=False), batch)
    made = [each["snapshot-id"] for each in snapshots(lake.catalog, "t")]
    lake.table("t").append(pa.table({"id": pa.array([9], pa.int32()), "v": ["other"]}))
    lake.table("t").maintenance.expire_snapshots().by_ids(made).commit()
    assert lake.commits("t") == 1
    assert last_sink_batch(table, lambda: "/r", lambda path: ()) == 2
    write(arrow(table, [("+I", (7, "again"))], changelog=False), 2)
    assert [row[0] for row in lake.rows("t")] == [0, 1, 2, 9]
    write(arrow(table, [("+I", (3, "a"))], changelog=False), 3)
    kept = snapshots(lake.catalog, "t")[0]["snapshot-id"]
    lake.table("t").manage_snapshots().rollback_to_snapshot(kept).commit()
    write(arrow(table, [("+I", (3, "anew"))], changelog=False), 3)
    told = metadata(lake.catalog, "t")
    newest = next(each for each in told["snapshots"] if each["snapshot-id"] == told["current-snapshot-id"])
    assert newest["summary"]["hintplan.batch"] == "3"
    assert [row for row in lake.rows("t", lake.commits("t")) if row[0] == 3] == [(3, "anew")]


def test_what_others_write_meanwhile_stays(spark: SparkSession, lake: IcebergLake) -> None:
    """Rows and columns by another library between the batches; columns that are not declared are kept."""
    made = lake_table(lake, "t", ("more", "STRING"), ("id", "INT"), ("v", "STRING"))
    sink(spark, made)(arrow(made, [("+I", ("m", 1, "a")), ("+I", ("n", 2, "b"))], changelog=False), 0)
    table = lake_table(lake, "t", *COLUMNS, key=("id",))
    write = sink(spark, table, changelog=True, part="/keyed")
    write(arrow(table, [("+U", (1, "c")), ("+I", (3, "d"))]), 0)
    added = {"more": ["o"], "id": pa.array([4], pa.int32()), "v": ["e"]}
    lake.table("t").append(pa.table(added))
    with lake.table("t").update_schema() as update:
        update.rename_column("more", "other")
    write(arrow(table, [("-D", (2, "b")), ("+U", (4, "f"))]), 1)
    assert lake.rows("t") == [("m", 1, "c"), ("o", 4, "f"), (None, 3, "d")]
    renamed = lake_table(lake, "t", ("other", "STRING"), ("id", "INT"))
    assert read_back(spark, renamed) == [("m", 1), ("o", 4), (None, 3)]


def test_files_that_hold_no_changed_key_are_left_alone(spark: SparkSession, lake: IcebergLake) -> None:
    table = lake_table(lake, "t", *COLUMNS, key=("id",))
    write = sink(spark, table)
    for batch in range(3):
        rows = [("+I", (10 * batch + number, "a")) for number in range(5)]
        write(arrow(table, rows, changelog=False), batch)
    before = {task.file.file_path for task in lake.table("t").scan().plan_files()}
    write(arrow(table, [("+I", (11, "b"))], changelog=False), 3)
    there = {task.file.file_path for task in lake.table("t").scan().plan_files()}
    assert len(before & there) == 2
    assert len(there) == 3


@pytest.mark.parametrize(
    ("columns", "more", "said"),
    [
        ([("v", "BIGINT")], {}, "has column 'v' as int, which is BIGINT here"),
        ([("w", "INT"), ("v", "INT")], {}, "has no column 'w'"),
        ([("v", "INT")], {"partitioned_by": "v"}, "all columns"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_before_anything_starts(
    spark: SparkSession, lake: IcebergLake, columns: Any, more: dict[str, str], said: str
) -> None:
    made = lake_table(lake, "t", ("v", "INT"))
    sink(spark, made)(arrow(made, [("+I", (1,))], changelog=False), 0)
    if said == "all columns":
        columns, said = [*columns, ("w", "INT")], "has no column 'w'"
    with pytest.raises(RunError) as caught:
        sink(spark, lake_table(lake, "t", *columns, **more))
    assert said in str(caught.value)
    assert "tables.r" in str(caught.value)
    assert "hint: " in str(caught.value)


def catalog_of(lake: IcebergLake) -> SqlCatalog:
    found = SqlCatalog("lake", uri=f"sqlite:///{lake.catalog}", warehouse=f"{lake.root}/tables")
    found.create_namespace_if_not_exists("db")
    return found


def test_what_this_sink_cannot_keep_is_refused(spark: SparkSession, lake: IcebergLake, tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "v", IntegerType(), required=False), NestedField(2, "w", IntegerType(), required=True)
    )
    catalog, table = catalog_of(lake), lambda name, *c: lake_table(lake, name, *(c or (("v", "INT"), ("w", "INT"))))
    nested = Schema(
        NestedField(1, "v", StructType(NestedField(2, "x", IntegerType()))), NestedField(3, "f", FloatType()),
    )  # fmt: skip
    for name, column in (("in_row", 2), ("by_float", 3)):
        spec = PartitionSpec(PartitionField(column, 1000, IdentityTransform(), "by"))
        catalog.create_table(f"db.{name}", nested, partition_spec=spec)
    newer = Path(catalog.create_table("db.newer", schema).metadata_location.removeprefix("file://"))
    told = json.loads(newer.read_text()) | {"format-version": 3, "next-row-id": 0}  # which pyiceberg does not write
    newer.write_text(json.dumps(told))
    catalog.create_table("db.away", schema, location=f"{tmp_path}/elsewhere")
    catalog.create_table("db.data_away", schema, properties={"write.data.path": f"{tmp_path}/elsewhere"})
    catalog.create_table("db.fits", schema)
    for name, said in (
        ("newer", "is of format version 3, which this sink does not write"),
        ("away", "names a file at .*elsewhere.*, which is not in .*tables"),
        ("data_away", "has files at .*elsewhere, which is not in .*tables"),
    ):
        with pytest.raises(RunError, match=said):
            sink(spark, table(name))
    for name in ("in_row", "by_float"):
        with pytest.raises(
            RunError, match=r"is partitioned by 1000: by: identity\(\d\), which this sink cannot reckon"
        ):
            sink(spark, table(name, ("v", "ROW<x INT>"), ("f", "FLOAT")))
    with pytest.raises(RunError, match="has column 'w', which must have a value and is not declared"):
        sink(spark, table("fits", ("v", "INT")))
    with pytest.raises(RunError, match="is partitioned by nothing"):
        sink(spark, lake_table(lake, "fits", ("v", "INT"), ("w", "INT"), partitioned_by="v"))
    with pytest.raises(RunError, match="is one snapshot of a table, which nobody writes to"):
        sink(spark, lake_table(lake, "fits", ("v", "INT"), ("w", "INT"), tag="main"))


def test_a_catalog_that_is_none_is_told(spark: SparkSession, lake: IcebergLake) -> None:
    lake.catalog.write_text("Dear all")
    with pytest.raises(RunError, match="file is not a database"):
        sink(spark, lake_table(lake, "t", *COLUMNS))


def test_the_catalog_is_one_that_other_engines_know(spark: SparkSession, lake: IcebergLake) -> None:
    """The tables of Iceberg's JDBC catalog, in its second version."""
    table = lake_table(lake, "t", *COLUMNS)
    sink(spark, table)(arrow(table, [("+I", (1, "a"))], changelog=False), 0)
    with sqlite3.connect(lake.catalog) as connection:
        found = connection.execute("SELECT catalog_name, table_namespace, table_name, iceberg_type FROM iceberg_tables")
        assert found.fetchall() == [("lake", "db", "t", "TABLE")]
    told = metadata(lake.catalog, "t")
    assert told["format-version"] == 2
    assert told["location"] == f"file://{lake.root}/tables/db/t"


JDBC = "'catalog-type' = 'jdbc', 'uri' = 'jdbc:sqlite:c.db'"
REST = "'catalog-type' = 'rest', 'uri' = 'http://localhost:1'"


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id INT", "'catalog-type' = 'hadoop', 'uri' = 'x', 'warehouse' = 'w'", "'catalog-type' is 'hadoop', which"),
        ("id INT", "'catalog-type' = 'hive', 'uri' = 'x', 'warehouse' = 'w'", "'catalog-type' is 'hive', which nobody"),
        ("id INT", "'catalog-type' = 'jdbc', 'uri' = 'jdbc:mysql://h/d', 'warehouse' = 'w'", "must start with jdbc"),
        ("id INT", "'catalog-type' = 'rest', 'uri' = 'https://me@host', 'warehouse' = '/w'", "must start with http"),
        ("id INT", f"{JDBC}", "the place of the table's files is set neither by 'warehouse' nor by 'location'"),
        ("id INT", f"{REST}, 'warehouse' = 'quick'", "the place of the table's files is set neither"),
        ("id INT", f"{JDBC}, 'warehouse' = 'hdfs://n/t'", "the path is of 'hdfs', and only local"),
        ("id INT", f"{JDBC}, 'warehouse' = 'w', 's3.region' = 'x'", "'s3.region' has no effect on local files"),
        ("id INT", f"{JDBC}, 'warehouse' = 'w', 'token' = '${{env:X}}'", "'token' has no effect on a"),
        ("id INT", f"{REST}, 'location' = 'w', 'token' = 'x'", "'token' is a secret and must not be in the text"),
        ("id INT", f"{JDBC}, 'warehouse' = 'w', 'partitioned-by' = 'id'", "write PARTITIONED BY (...) after the"),
        ("id INT", f"{JDBC}, 'warehouse' = 'w', 'tag' = 'a', 'snapshot-id' = '1'", "'tag' and 'snapshot-id' both"),
        ("id INT", f"{JDBC}, 'warehouse' = 'w', 'write-format' = 'orc'", "files are of Parquet"),
        ("id ARRAY<INT>, PRIMARY KEY (id) NOT ENFORCED", f"{JDBC}, 'warehouse' = 'w'", "is of type ARRAY"),
    ],
)  # fmt: skip
def test_what_such_a_table_cannot_be_is_refused_with_its_place(columns: str, options: str, said: str) -> None:
    names = "'connector' = 'iceberg', 'catalog-name' = 'c', 'catalog-database' = 'd', 'catalog-table' = 't'"
    script = f"""CREATE TABLE o (id INT) WITH ('connector' = 'datagen');
CREATE TABLE r ({columns}) WITH ({names}, {options});
INSERT INTO r SELECT id FROM o;"""
    with pytest.raises(SqlError) as caught:
        hintplan.compile_sql(script, name="wrong")
    assert said in str(caught.value)
    problem, *_ = caught.value.diagnostics  # what is read may be of another type, too
    stands_at = script.splitlines()[problem.line - 1][(problem.column or 0) - 1 :]
    assert stands_at.startswith(("r (", *re.findall(r"'[\w.-]+'(?= = )", options)))
    assert "hint: " in str(caught.value)


def test_fields_that_were_renamed_are_not_read_as_null(spark: SparkSession, lake: IcebergLake) -> None:
    made = lake_table(lake, "t", ("r", "ROW<x INT, y INT>"), ("v", "INT"))
    sink(spark, made)(arrow(made, [("+I", ({"x": 1, "y": 2}, 3))], changelog=False), 0)
    with lake.table("t").update_schema() as update:
        update.add_column(("r", "z"), IntegerType())
    more = lake_table(lake, "t", ("r", "ROW<x INT, y INT, z INT>"), ("v", "INT"))
    assert read_back(spark, more) == [({"x": 1, "y": 2, "z": None}, 3)]
    with lake.table("t").update_schema() as update:
        update.rename_column(("r", "y"), "w")
    renamed = lake_table(lake, "t", ("r", "ROW<x INT, w INT, z INT>"), ("v", "INT"))
    with pytest.raises(Exception, match="a part of column 'r' was renamed or dropped since a file was written"):
        read_back(spark, renamed)
    assert read_back(spark, lake_table(lake, "t", ("v", "INT"))) == [(3,)]


def test_files_without_ids_are_read_by_name(spark: SparkSession, lake: IcebergLake, tmp_path: Path) -> None:
    table = lake_table(lake, "t", ("id", "INT"), ("v", "TINYINT"))
    sink(spark, table)(arrow(table, [("+I", (1, 7))], changelog=False), 0)
    file = lake.root / "tables" / "db" / "t" / "data" / "others.parquet"
    pq.write_table(pa.table({"v": pa.array([8], pa.int32()), "id": pa.array([2], pa.int32())}), file)
    lake.table("t").add_files([f"file://{file}"])
    assert read_back(spark, table) == [(1, 7), (2, 8)]


def test_without_pyiceberg_a_line_says_what_to_install(
    spark: SparkSession, lake: IcebergLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    table = lake_table(lake, "t", *COLUMNS)
    for use in (lambda: sink(spark, table), lambda: read_back(spark, table)):
        with pytest.raises(RunError, match="the iceberg connector needs the package pyiceberg") as caught:
            use()
        assert "pip install 'hintplan[iceberg]'" in str(caught.value)
