"""Iceberg tables of others that are partitioned by transforms: what is written is where PyIceberg's functions say."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as iceberg
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.table import batch_overwriter
from tests.connectors.lakes.lakes import IcebergLake, lake_table
from tests.connectors.lakes.sinks import arrow, in_order, micro_batch, read_back, sink, written

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

COLUMNS = (("id", "INT"), ("n", "BIGINT"), ("s", "STRING"), ("b", "BYTES"), ("d", "DATE"), ("t", "TIMESTAMP(6)"),
           ("z", "TIMESTAMP_LTZ(6)"), ("c", "DECIMAL(12, 2)"), ("v", "STRING"))  # fmt: skip
KINDS: tuple[Any, ...] = (
    iceberg.IntegerType(), iceberg.LongType(), iceberg.StringType(), iceberg.BinaryType(), iceberg.DateType(),
    iceberg.TimestampType(), iceberg.TimestamptzType(), iceberg.DecimalType(12, 2), iceberg.StringType(),
)  # fmt: skip
SPECS = (
    ("n bucket[4]",), ("s bucket[3]",), ("b bucket[3]",), ("d bucket[4]",), ("t bucket[4]",), ("z bucket[4]",),
    ("c bucket[4]",), ("n truncate[10]",), ("s truncate[2]",), ("b truncate[1]",), ("c truncate[50]",),
    ("d year",), ("d month",), ("d day",), ("t year",), ("t month",), ("t day",), ("t hour",), ("z day",), ("z hour",),
    ("t identity",), ("z identity",), ("c identity",), ("b identity",), ("d void",),
    ("d month", "s bucket[2]", "n identity"),
)  # fmt: skip
"""Transforms, and columns of the table by which it is divided."""


def row_of(i: int, value: str) -> tuple[Any, ...]:
    moment = datetime(1969, 12, 30, 23, 59, 59, 999_999 - i) if i % 2 else datetime(2020, 1 + i, 28, i, 30)
    text = ("", "é", "日本", "abc", "abd")[i % 5]
    of_row = (
        i,
        i * 7 - 20,
        text,
        text.encode(),
        moment.date(),
        moment,
        moment.replace(tzinfo=UTC),
        Decimal(i * 37 - 99) / 4,
    )
    return (*of_row, value)


EMPTY = (9, *[None] * 7, "nothing")


def made(lake: IcebergLake, spec: tuple[str, ...]) -> None:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake.catalog}", warehouse=f"{lake.root}/tables")
    catalog.create_namespace_if_not_exists("db")
    ids = {name: number for number, (name, _) in enumerate(COLUMNS, 1)}
    fields = (iceberg.NestedField(ids[name], name, kind) for (name, _), kind in zip(COLUMNS, KINDS, strict=True))
    parts = [
        PartitionField(ids[column], 1000 + number, parse_transform(transform), f"by_{column}_{number}")
        for number, (column, transform) in enumerate(each.split() for each in spec)
    ]
    catalog.create_table("db.t", Schema(*fields), partition_spec=PartitionSpec(*parts))


def check_places(lake: IcebergLake, spec: tuple[str, ...]) -> None:
    """Every file has rows of one partition, which its entry names."""
    kinds = dict(zip((name for name, _ in COLUMNS), KINDS, strict=True))
    tasks = lake.table("t").scan().plan_files()
    assert tasks
    for task in tasks:
        rows = pq.ParquetFile(task.file.file_path.removeprefix("file://")).read().to_pylist()
        for place, (column, transform) in enumerate(each.split() for each in spec):
            into = parse_transform(transform).transform(kinds[column])
            found = {None if transform == "void" or row[column] is None else into(plain(row[column])) for row in rows}
            named = task.file.partition[place]
            assert found == {named}, (column, transform)


def plain(value: Any) -> Any:
    """A value as Iceberg has it: days and microseconds since 1970."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


@pytest.mark.sampled(keep=8)
@pytest.mark.parametrize("spec", SPECS, ids=" ".join)
def test_rows_are_where_the_transforms_say(spark: SparkSession, lake: IcebergLake, spec: tuple[str, ...]) -> None:
    """Appended by one sink, then changed by another that has a key, which finds the files by their partitions."""
    made(lake, spec)
    rows = [*(row_of(i, "a") for i in range(9)), EMPTY]
    table = lake_table(lake, "t", *COLUMNS)
    sink(spark, table, on_driver=False)(arrow(table, [("+I", row) for row in rows], changelog=False), 0)
    check_places(lake, spec)
    assert read_back(spark, table) == in_order(rows)
    keyed = lake_table(lake, "t", *COLUMNS, key=("id", *sorted({each.split()[0] for each in spec})))
    write = sink(spark, keyed, changelog=True, part="/keyed")
    with_key = [row for row in rows if row is not EMPTY]
    changes = [("-D", with_key[0]), ("+U", row_of(1, "b")), ("+U", row_of(2, "b")), ("+I", row_of(10, "b"))]
    write(arrow(keyed, changes), 0)
    left = [*with_key[3:], EMPTY, *(row_of(i, "b") for i in (1, 2, 10))]
    check_places(lake, spec)
    assert read_back(spark, table) == in_order(left)
    assert in_order(tuple(row.values()) for row in lake.table("t").scan().to_arrow().to_pylist()) == in_order(left)


def test_a_column_of_the_partitions_that_is_not_declared_is_null(spark: SparkSession, lake: IcebergLake) -> None:
    made(lake, ("n bucket[4]", "d day"))
    table = lake_table(lake, "t", ("id", "INT"), ("d", "DATE"))
    sink(spark, table)(arrow(table, [("+I", (1, date(2020, 1, 2)))], changelog=False), 0)
    (task,) = lake.table("t").scan().plan_files()
    assert list(task.file.partition) == [None, 18263]
    assert read_back(spark, table) == [(1, date(2020, 1, 2))]


def divide_anew(lake: IcebergLake, before: str, by: str, transform: str) -> None:
    """Let the table be partitioned by another column than ``before``, from now on."""
    with lake.table("t").update_spec() as update:
        update.remove_field(f"by_{before}_0")
        update.add_field(by, parse_transform(transform), by if transform == "identity" else f"by_{by}")


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path / "lake")


def test_a_table_whose_partitions_have_changed_is_upserted_to(spark: SparkSession, lake: IcebergLake) -> None:
    """Files of two specifications, of which the older ones are written anew by the newer one."""
    made(lake, ("d month",))
    table = lake_table(lake, "t", *COLUMNS, key=("id",))
    write = sink(spark, table, changelog=True)
    write(arrow(table, [("+I", row_of(i, "a")) for i in range(5)]), 0)
    divide_anew(lake, "d", "n", "bucket[4]")
    write(arrow(table, [("+U", row_of(1, "b")), ("-D", row_of(2, "a")), ("+I", row_of(7, "b"))]), 1)
    left = [row_of(0, "a"), row_of(1, "b"), row_of(3, "a"), row_of(4, "a"), row_of(7, "b")]
    assert read_back(spark, table) == in_order(left)
    assert {task.file.spec_id for task in lake.table("t").scan().plan_files()} == {0, 1}
    assert pa.table(lake.table("t").scan().to_arrow()).num_rows == 5


@pytest.mark.parametrize("by", ["", "n"])
def test_a_table_whose_partitions_have_changed_is_overwritten_as_a_whole(
    spark: SparkSession, lake: IcebergLake, by: str
) -> None:
    """Not one partition at a time: files of the older specification have rows of several of the newer one."""
    made(lake, ("d identity",))
    rows = [row_of(i, "a") for i in range(4)]
    written(spark, lake_table(lake, "t", *COLUMNS), rows)
    divide_anew(lake, "d", "n", "identity")
    table = lake_table(lake, "t", *COLUMNS, partitioned_by=by)
    new = arrow(table, [("+I", row_of(0, "b"))], changelog=False)
    overwrite = batch_overwriter(micro_batch(spark, new, on_driver=False).in_spark(), "t", table)
    if by:
        with pytest.raises(RunError, match="has files from before its partitions were others"):
            overwrite()
    else:
        overwrite()
    left = in_order(rows if by else [row_of(0, "b")])
    assert read_back(spark, table) == left
    assert in_order(tuple(row.values()) for row in lake.table("t").scan().to_arrow().to_pylist()) == left
