"""Iceberg tables of which another engine has deleted single rows: read, appended to, upserted to, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from tests.connectors.lakes.java_iceberg import JavaIceberg, java_iceberg
from tests.connectors.lakes.lakes import IcebergLake, lake_table
from tests.connectors.lakes.rest_catalog import jars
from tests.connectors.lakes.sinks import arrow, in_order, read_back, sink

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.part(of=4, fixture="spark")]
COLUMNS = (("id", "INT"), ("p", "INT"), ("v", "STRING"))


@pytest.fixture(scope="module")
def java() -> Iterator[JavaIceberg]:
    if not jars():
        pytest.skip("the jars of Iceberg are not there; make iceberg fetches them")
    with java_iceberg() as found:
        yield found


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path / "lake")


def rows_in(lake: IcebergLake) -> dict[str, list[int]]:
    """The ids in each file of the table, in their order."""
    tasks = lake.table("t").scan(selected_fields=("id",)).plan_files()
    paths = sorted(task.file.file_path for task in tasks)
    read = {path: pa.parquet.read_table(path.removeprefix("file://"))["id"].to_pylist() for path in paths}
    assert sum(map(len, read.values())) == len({each for some in read.values() for each in some})
    return read


def delete(java: JavaIceberg, lake: IcebergLake, *ids: int, part: str = "") -> None:
    """Commit one file of deletes of the rows with these ids."""
    places = {path: [at for at, each in enumerate(found) if each in ids] for path, found in rows_in(lake).items()}
    assert sum(map(len, places.values())) == len(ids)
    java.delete_places(lake, "t", {path: some for path, some in places.items() if some}, part)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("key", [(), ("id",), ("p", "id")])
def test_deleted_rows_stay_away_whatever_is_written(
    spark: SparkSession, lake: IcebergLake, java: JavaIceberg, key: tuple[str, ...], divided: bool
) -> None:
    """Two files with deletes in one file, then deletes of another commit; then rows of deleted keys come again."""
    more = {"partitioned_by": "p"} if divided else {}
    made = lake_table(lake, "t", *COLUMNS, **more)
    sink(spark, made)(arrow(made, [("+I", (i, 1, "a")) for i in range(5)], changelog=False), 0)
    sink(spark, made)(arrow(made, [("+I", (i, 1, "b")) for i in range(5, 10)], changelog=False), 1)
    sink(spark, made)(arrow(made, [("+I", (i, 2, "c")) for i in range(10, 15)], changelog=False), 2)
    part = "p=1" if divided else ""
    delete(java, lake, 0, 3, 9, part=part)
    delete(java, lake, 4, part=part)
    there = {i: (i, 1 if i < 10 else 2, "abc"[i // 5]) for i in range(15) if i not in (0, 3, 4, 9)}
    assert read_back(spark, made) == in_order(there.values())
    assert lake.rows("t") == in_order(there.values())

    table = lake_table(lake, "t", *COLUMNS, key=key)
    write = sink(spark, table, changelog=bool(key), part="/again")
    changes = [("+I", (0, 1, "new")), ("+I", (20, 2, "new")), ("+U" if key else "+I", (1, 1, "newer"))]
    write(arrow(table, changes, changelog=bool(key)), 0)
    left = [row for row in there.values() if not key or row[0] != 1] + [row for _, row in changes]
    assert read_back(spark, table) == in_order(left)
    assert lake.rows("t") == in_order(left)
    assert in_order(tuple(row.values()) for row in lake.table("t").scan().to_arrow().to_pylist()) == in_order(left)

    delete(java, lake, 12, part="p=2" if divided else "") if key else None
    if key:
        write(arrow(table, [("-D", (13, 2, "c")), ("-D", (2, 1, "a"))]), 1)
        left = [row for row in left if row[0] not in (2, 12, 13)]
        assert read_back(spark, table) == in_order(left)
        assert lake.rows("t") == in_order(left)
    assert read_back(spark, lake_table(lake, "t", ("p", "INT"))) == in_order((row[1],) for row in left)


def test_deletes_of_a_file_that_comes_in_pieces(spark: SparkSession, lake: IcebergLake, java: JavaIceberg) -> None:
    """PyArrow hands 65,536 rows on at a time."""
    size = 150_000
    table = lake_table(lake, "t", ("id", "INT"))
    sink(spark, table)(pa.table({"id": pa.array(range(size), pa.int32())}), 0)
    gone = {*range(60_000, 70_000), 0, 65_535, 65_536, 131_072, size - 1}
    delete(java, lake, *gone)
    assert [row[0] for row in sorted(read_back(spark, table))] == [i for i in range(size) if i not in gone]


@pytest.mark.parametrize("key", [(), ("id",)])
def test_equality_deletes_are_refused_but_by_who_appends(
    spark: SparkSession, lake: IcebergLake, java: JavaIceberg, key: tuple[str, ...]
) -> None:
    made = lake_table(lake, "t", *COLUMNS)
    sink(spark, made)(arrow(made, [("+I", (i, 1, "a")) for i in range(3)], changelog=False), 0)
    late: Any = sink(spark, lake_table(lake, "t", *COLUMNS, key=("id",)), changelog=True, part="/late")
    java.delete_equal(lake, "t", 1, pa.table({"id": pa.array([1], pa.int32())}))
    said = r"lake\.db\.t has equality deletes, as Flink's upserts write them"
    table = lake_table(lake, "t", *COLUMNS, key=key)
    with pytest.raises(RunError, match=f"table r cannot be read: {said}"):
        read_back(spark, table)
    if key:
        with pytest.raises(RunError, match=f"table r cannot be upserted to: {said}") as caught:
            sink(spark, table, changelog=True)
        assert "rewrite_data_files" in str(caught.value)
        with pytest.raises(RunError, match=f"table r cannot be upserted to: {said}"):
            late(arrow(table, [("+I", (1, 1, "b"))]), 0)
        return
    # A row that is appended after the delete is there, although the delete is of its id.
    sink(spark, table)(arrow(table, [("+I", (1, 1, "b")), ("+I", (7, 1, "b"))], changelog=False), 1)
    with java.table(lake, "t") as there:
        found, deletes = there.newScan().planFiles().iterator(), {}
        while found.hasNext():
            task = found.next()
            deletes[int(task.file().recordCount())] = len(task.deletes())
    assert deletes == {3: 1, 2: 0}
