"""Files of Parquet give the same rows, whether Spark or workers read them: types, partitions, metadata, changelogs."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.table import read_in_arrow, read_stream, why_not_in_arrow
from hintplan.runtime.operator import KIND

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

UTC = dt.UTC
VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "b": ("BOOLEAN", pa.bool_(), [True, False]),
    "ti": ("TINYINT", pa.int8(), [-128, 127]),
    "si": ("SMALLINT", pa.int16(), [-32768, 7]),
    "i": ("INT", pa.int32(), [2**31 - 1, -1]),
    "bi": ("BIGINT", pa.int32(), [2**31 - 1, -1]),
    "f": ("FLOAT", pa.float32(), [float("-inf"), -0.0]),
    "d": ("DOUBLE", pa.float64(), [1e308, 0.1]),
    "dc": ("DECIMAL(10, 2)", pa.decimal128(7, 2), [Decimal("-99999.99"), Decimal("0.01")]),
    "dt": ("DATE", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "ts": (
        "TIMESTAMP(6)",
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)] * 2,
    ),
    "lt": ("TIMESTAMP_LTZ(3)", pa.timestamp("ms", tz="UTC"), [dt.datetime(2020, 3, 29, 1, tzinfo=UTC)] * 2),
    "s": ("STRING", pa.string(), ["", "é\n\U0001f600"]),
    "v": ("VARCHAR(3)", pa.string(), ["abcdef", " "]),
    "y": ("BYTES", pa.binary(), [b"\x00\xff", b""]),
}
"""Two values of each type, and the type in the file."""

PARTITIONS: dict[str, tuple[str, list[str]]] = {
    "text": ("STRING NOT NULL", ["a", "a+b%2F=c", "01", "\u00e9 x"]),
    "n": ("INT", ["007", "-3", "__DEFAULT_PARTITION__"]),
    "ok": ("BOOLEAN", ["true", "false"]),
    "x": ("DOUBLE", ["1.50", "NaN"]),
    "day": ("DATE", ["2020-02-29", "__DEFAULT_PARTITION__"]),
    "at": ("TIMESTAMP", ["2020-01-01 00%3A00%3A00", "2020-01-01T12:30"]),
}
"""Names of directories for each type of a partition column."""

METADATA = {
    "path": ("STRING", "file.path"),
    "name": ("STRING", "file.name"),
    "size": ("BIGINT", "file.size"),
    "moment": ("TIMESTAMP_LTZ(3)", "file.modification-time"),
    "wall": ("TIMESTAMP(3)", "file.modification-time"),
}


def table(path: Path, columns: dict[str, str], *by: str, metadata: bool = False, **options: str) -> Table:
    more = {name: facts for name, facts in METADATA.items() if metadata}
    return Table(
        columns=(
            *(TableColumn(name=name, type=kind) for name, kind in columns.items()),
            *(TableColumn(name=name, type=kind, metadata=key, virtual=True) for name, (kind, key) in more.items()),
        ),
        options={"connector": "filesystem", "format": "parquet", "path": str(path), **options},
        partitioned_by=by,
    )


def put(path: Path, rows: pa.Table, time: float, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, **options)
    os.utime(path, (time, time))


def streamed(spark: SparkSession, frame: DataFrame, name: str) -> list[tuple[Any, ...]]:
    """The rows of a stream so far, in an order of their own."""
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    found = sorted((tuple(row) for row in spark.table(name).collect()), key=repr)
    spark.catalog.dropTempView(name)
    return found


def both(spark: SparkSession, source: Table, columns: tuple[str, ...], *, row_order: bool = False) -> list[Any]:
    """The rows that both readers give, which are the same."""
    assert why_not_in_arrow(spark, "t", source, columns) is None
    in_arrow = read_in_arrow(spark, "t", source, columns, row_order=row_order)
    by_workers = in_arrow.in_spark("reader")
    by_spark = read_stream(spark, "t", source, columns, row_order=row_order)
    assert by_workers.columns == by_spark.columns
    assert [field.dataType for field in by_workers.schema] == [field.dataType for field in by_spark.schema]
    found = streamed(spark, by_workers, "by_workers")
    assert repr(found) == repr(streamed(spark, by_spark, "by_spark"))
    return found


def test_every_type_in_partitions_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    stored = {name: pa.array([*values, None], kind) for name, (_, kind, values) in VALUES.items()}
    folders = ["", *(f"{name}={value}" for name, (_, values) in PARTITIONS.items() for value in values)]
    columns = {name: kind for name, (kind, _, _) in VALUES.items()} | {
        name: kind for name, (kind, _) in PARTITIONS.items()
    }
    several = max(len(values) for _, values in PARTITIONS.values())
    for number in range(several):
        chosen = [f"{name}={values[number % len(values)]}" for name, (_, values) in PARTITIONS.items()]
        folder = tmp_path / "t" / Path(*chosen)
        put(folder / f"a+b {number}.parquet", pa.table(stored), 1_700_000_000 + number, row_group_size=2)
    for folder_name in folders:  # outside of the partitions
        put(tmp_path / "t" / folder_name / "stray.parquet", pa.table(stored), 1_700_000_000)
    source = table(tmp_path / "t", columns, *PARTITIONS, metadata=True)
    assert len(both(spark, source, (*reversed(columns), *METADATA))) == 3 * several
    # Without any column of the files, rows are still as many as in the files.
    assert len(both(spark, source, ("day", "n"))) == 3 * several
    assert len(both(spark, source, ("size",))) == 3 * several


def test_columns_may_have_the_names_of_spark_and_of_the_list(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"content": [1, 2], "length": ["x", "y"]})
    put(tmp_path / "t" / "path=p" / "modificationTime=3" / "a.parquet", rows, 1_700_000_000)
    columns = {"content": "BIGINT", "length": "STRING", "path": "STRING", "modificationTime": "INT"}
    source = table(tmp_path / "t", columns, "path", "modificationTime")
    assert both(spark, source, tuple(columns)) == [(1, "x", "p", 3), (2, "y", "p", 3)]


@pytest.mark.parametrize("changelog", ["true", "upsert"])
def test_changes_come_with_their_kinds_and_their_order(spark: SparkSession, tmp_path: Path, changelog: str) -> None:
    ops = ["+I", "+U", "-D", "+I"] if changelog == "true" else ["+I", None, "-D", "+U"]
    ops += ["-U"] if changelog == "true" else []
    ids = pa.array(range(len(ops)), pa.int64())
    for number, name in enumerate(("b.parquet", "a.parquet", "c d.parquet")):
        rows = pa.table({"op": pa.array(ops, pa.string()).dictionary_encode() if number else ops, "id": ids})
        put(tmp_path / "t" / f"n={number % 2}" / name, rows, 1_700_000_000 - number)
    if changelog == "upsert":
        put(tmp_path / "t" / "n=2" / "plain.parquet", pa.table({"id": ids}), 1_600_000_000)
    source = table(tmp_path / "t", {"id": "BIGINT", "n": "INT"}, "n", **{"source.changelog": changelog})
    for row_order in (False, True):
        found = both(spark, source, ("n", "id"), row_order=row_order)
        assert len(found) == (15 if changelog == "true" else 16)
    assert why_not_in_arrow(spark, "t", source, ("n", "id")) is None
    in_arrow = read_in_arrow(spark, "t", source, ("n", "id"), row_order=True)
    assert in_arrow.schema.names == ["n", "id", KIND, "__arrival_time", "__arrival_path", "__arrival_block"]


@pytest.mark.parametrize(
    ("changelog", "op", "message"),
    [
        ("true", "x", "a row of a changelog has the op x; it must be"),
        pytest.param("true", None, "a row of a changelog has the op NULL; it must be", marks=pytest.mark.integration),
        pytest.param("upsert", "-U", "an upsert has the op -U; it must be", marks=pytest.mark.integration),
    ],
)
def test_another_op_fails_both_readers_with_the_same_words(
    spark: SparkSession, tmp_path: Path, changelog: str, op: str | None, message: str
) -> None:
    put(tmp_path / "t" / "a.parquet", pa.table({"id": [1, 2], "op": pa.array(["+I", op])}), 1_700_000_000)
    source = table(tmp_path / "t", {"id": "BIGINT"}, **{"source.changelog": changelog})
    assert why_not_in_arrow(spark, "t", source, ("id",)) is None
    in_arrow = read_in_arrow(spark, "t", source, ("id",))
    for frame in (in_arrow.in_spark("reader"), read_stream(spark, "t", source, ("id",))):
        with pytest.raises(Exception, match=message):
            streamed(spark, frame, "failing")


def test_a_directory_that_is_no_value_fails_both_readers(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "t" / "n=one" / "a.parquet", pa.table({"id": [1]}), 1_700_000_000)
    source = table(tmp_path / "t", {"id": "BIGINT", "n": "INT"}, "n")
    assert why_not_in_arrow(spark, "t", source, ("id", "n")) is None
    in_arrow = read_in_arrow(spark, "t", source, ("id", "n"))
    for frame in (in_arrow.in_spark("reader"), read_stream(spark, "t", source, ("id", "n"))):
        with pytest.raises(Exception, match="table t: the directory n=one is named after no INT"):
            streamed(spark, frame, "failing")
    assert both(spark, source, ("id",)) == [(1,)]


def test_a_path_without_files_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    for by in ((), ("n",)):
        source = table(tmp_path / "none", {"id": "BIGINT", "n": "INT"}, *by)
        assert why_not_in_arrow(spark, "t", source, ("id",)) == "the path cannot be listed"
    put(tmp_path / "t" / "n=1" / "a.parquet", pa.table({"id": [1]}), 1_700_000_000)
    undeclared = table(tmp_path / "t", {"id": "BIGINT", "n": "INT"})
    reason = why_not_in_arrow(spark, "t", undeclared, ("id",))
    assert reason == "directories have columns that PARTITIONED BY does not declare"
