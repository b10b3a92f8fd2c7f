"""Files of Parquet as workers read them: what fits the columns of a table, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plans.errors import RunError
from runtime.connectors.parquet_files import read_file

UTC = pa.timestamp("us", tz="UTC")


def rows_of(path: Path, schema: pa.Schema) -> list[dict[str, object]]:
    return [row for table in read_file(str(path), schema, "t") for row in table.to_pylist()]


def written(path: Path, table: pa.Table, **options: object) -> Path:
    file = path / "rows.parquet"
    pq.write_table(table, file, **options)
    return file


def test_rows_come_by_row_group_in_the_order_and_types_of_the_table(tmp_path: Path) -> None:
    file = written(
        tmp_path, pa.table({"a": pa.array([1, 2, None], pa.int32()), "b": ["x", "y", "z"]}), row_group_size=2
    )
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])
    tables = list(read_file(str(file), schema, "t"))
    assert [table.schema for table in tables] == [schema, schema]
    assert [table.to_pylist() for table in tables] == [
        [{"b": "x", "a": 1}, {"b": "y", "a": 2}],
        [{"b": "z", "a": None}],
    ]


def test_a_column_that_the_file_lacks_is_null(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": [1, 2]}))
    schema = pa.schema([("a", pa.int64()), ("A", pa.int64()), ("b", pa.decimal128(10, 2))])
    assert rows_of(file, schema) == [{"a": 1, "A": None, "b": None}, {"a": 2, "A": None, "b": None}]


def test_no_column_at_all_still_counts_the_rows(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": [1, 2, 3]}))
    (table,) = read_file(str(file), pa.schema([("b", pa.int64())]), "t")
    assert table["b"].to_pylist() == [None, None, None]


FITTING = [
    (pa.int16(), pa.int64(), 7, 7),
    (pa.uint32(), pa.int64(), 4_000_000_000, 4_000_000_000),
    (pa.int32(), pa.float64(), 7, 7.0),
    (pa.float32(), pa.float64(), 0.5, 0.5),
    (pa.decimal128(5, 2), pa.decimal128(10, 4), Decimal("123.45"), Decimal("123.4500")),
    (pa.int32(), pa.decimal128(12, 2), 7, Decimal("7.00")),
    (pa.date32(), pa.timestamp("us"), dt.date(2024, 2, 29), dt.datetime(2024, 2, 29)),
    (pa.timestamp("ms"), pa.timestamp("us"), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1)),
    (pa.binary(), pa.string(), b"text", "text"),
    (pa.string(), pa.binary(), "text", b"text"),
]


@pytest.mark.parametrize(("found", "wanted", "value", "expected"), FITTING, ids=lambda case: str(case))
def test_narrower_types_are_widened(
    tmp_path: Path, found: pa.DataType, wanted: pa.DataType, value: object, expected: object
) -> None:
    file = written(tmp_path, pa.table({"a": pa.array([value, None], found)}))
    assert rows_of(file, pa.schema([("a", wanted)])) == [{"a": expected}, {"a": None}]


REFUSED = [
    (pa.int64(), pa.int32()),
    (pa.uint64(), pa.int64()),
    (pa.int64(), pa.float64()),
    (pa.float64(), pa.float32()),
    (pa.string(), pa.int64()),
    (pa.int64(), pa.string()),
    (pa.decimal128(10, 4), pa.decimal128(10, 2)),
    (pa.decimal128(10, 2), pa.decimal128(10, 4)),
    (pa.timestamp("us"), UTC),
    (UTC, pa.timestamp("us")),
    (UTC, pa.date32()),
    (pa.bool_(), pa.int64()),
]


@pytest.mark.parametrize(("found", "wanted"), REFUSED, ids=lambda case: str(case))
def test_types_that_may_lose_something_are_refused(tmp_path: Path, found: pa.DataType, wanted: pa.DataType) -> None:
    file = written(tmp_path, pa.table({"a": pa.nulls(1, found)}))
    with pytest.raises(RunError, match=f"table t: column a of {file} is of type .* cannot be read as") as caught:
        rows_of(file, pa.schema([("a", wanted)]))
    assert "cast it in the query" in str(caught.value.diagnostics[0].hint)


def test_nanoseconds_are_cut_to_microseconds(tmp_path: Path) -> None:
    column = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    file = written(tmp_path, pa.table({"a": column}), version="2.6")
    assert rows_of(file, pa.schema([("a", pa.timestamp("us"))])) == [
        {"a": dt.datetime(2023, 11, 14, 22, 13, 20, 123456)}
    ]


@pytest.mark.parametrize("year", [1700, 2024, 9999])
def test_times_in_96_bits_are_in_utc(tmp_path: Path, year: int) -> None:
    time = dt.datetime(year, 1, 2, 3, 4, 5, 678901)
    column = pa.array([time], pa.timestamp("us"))
    file = written(tmp_path, pa.table({"a": column}), use_deprecated_int96_timestamps=True)
    assert rows_of(file, pa.schema([("a", UTC)])) == [{"a": time.replace(tzinfo=dt.UTC)}]


def test_old_times_of_another_calendar_are_refused(tmp_path: Path) -> None:
    metadata = {"org.apache.spark.version": "2.4.8"}
    old = pa.table({"a": pa.array([dt.date(1582, 10, 1)])}).replace_schema_metadata(metadata)
    new = pa.table({"a": pa.array([dt.date(1982, 10, 1)])}).replace_schema_metadata(metadata)
    schema = pa.schema([("a", pa.date32())])
    with pytest.raises(RunError, match=r"column a of .* has times before 1900, and an old Spark has written it"):
        rows_of(written(tmp_path, old), schema)
    assert rows_of(written(tmp_path, new), schema) == [{"a": dt.date(1982, 10, 1)}]


@pytest.mark.parametrize("content", [b"", b"PAR1 but no more", None])
def test_what_is_no_whole_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "half.parquet"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RunError, match=f"table t: {file} cannot be read as Parquet: "):
        rows_of(file, pa.schema([("a", pa.int64())]))
