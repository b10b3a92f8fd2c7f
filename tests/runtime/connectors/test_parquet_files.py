"""Files of Parquet as workers read them: what fits the columns of a table, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.parquet_files import read_parquet

UTC = pa.timestamp("us", tz="UTC")


def rows_of(path: Path, schema: pa.Schema) -> list[dict[str, object]]:
    return [row for table, _ in read_parquet(str(path), schema, "t") for row in table.to_pylist()]


def written(path: Path, table: pa.Table, **options: object) -> Path:
    file = path / "rows.parquet"
    pq.write_table(table, file, **options)
    return file


def test_rows_come_by_row_group_in_the_order_and_types_of_the_table(tmp_path: Path) -> None:
    file = written(
        tmp_path, pa.table({"a": pa.array([1, 2, None], pa.int32()), "b": ["x", "y", "z"]}), row_group_size=2
    )
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])
    tables = [table for table, _ in read_parquet(str(file), schema, "t")]
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
    ((table, size),) = read_parquet(str(file), pa.schema([("b", pa.int64())]), "t")
    assert size == 3
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
    (pa.float16(), pa.float32(), 0.5, 0.5),
    (pa.int64(), pa.decimal128(20, 0), 2**63 - 1, Decimal(2**63 - 1)),
    (pa.uint64(), pa.decimal128(20, 0), 2**64 - 1, Decimal(2**64 - 1)),
    (pa.decimal256(10, 2), pa.decimal128(12, 2), Decimal("1.25"), Decimal("1.25")),
    (pa.decimal32(5, 2), pa.decimal128(5, 2), Decimal("1.25"), Decimal("1.25")),
    (pa.decimal64(10, 2), pa.decimal128(10, 2), Decimal("1.25"), Decimal("1.25")),
    (pa.date64(), pa.date32(), dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    (pa.timestamp("s"), pa.timestamp("us"), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1)),
    (
        pa.timestamp("ms", "Europe/Berlin"),
        UTC,
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    ),
    *((kind, pa.string(), "größer", "größer") for kind in (pa.large_string(), pa.string_view())),
    *((kind, pa.binary(), b"abc", b"abc") for kind in (pa.large_binary(), pa.binary_view(), pa.binary(3))),
]


@pytest.mark.parametrize(("found", "wanted", "value", "expected"), FITTING, ids=lambda case: str(case))
def test_narrower_types_are_widened(
    tmp_path: Path, found: pa.DataType, wanted: pa.DataType, value: object, expected: object
) -> None:
    file = written(tmp_path, pa.table({"a": pa.array([value, None], found)}))
    assert rows_of(file, pa.schema([("a", wanted)])) == [{"a": expected}, {"a": None}]


@pytest.mark.parametrize(("found", "wanted", "value", "expected"), FITTING, ids=lambda case: str(case))
def test_a_column_with_a_dictionary_is_read_as_its_values(
    tmp_path: Path, found: pa.DataType, wanted: pa.DataType, value: object, expected: object
) -> None:
    """Categories of pandas, and columns that were read with a dictionary, are written so."""
    try:
        column = pa.chunked_array(
            [pa.array([value, None, value], found).dictionary_encode(), pa.array([None], found).dictionary_encode()]
        )
        file = written(tmp_path, pa.table({"a": column}))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pytest.skip("Arrow has no dictionary of it")
    rows = [{"a": expected}, {"a": None}, {"a": expected}, {"a": None}]
    assert rows_of(file, pa.schema([("a", wanted)])) == rows


LAYOUTS: list[dict[str, object]] = [
    {"store_decimal_as_integer": True},
    {"use_dictionary": False},
    {"data_page_version": "2.0"},
    {"version": "1.0"},
    {"use_dictionary": False, "use_byte_stream_split": ["i", "d", "m"]},
    {"use_dictionary": False, "column_encoding": {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"}},
    *({"compression": name} for name in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")),
]


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_values_come_whatever_their_layout(tmp_path: Path, options: dict[str, object]) -> None:
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.decimal128(9, 2), pa.timestamp("us"), pa.bool_()]
    schema = pa.schema(list(zip("idsmtb", kinds, strict=True)))
    time = dt.datetime(2024, 2, 29, 13, 14, 15, 678901)
    rows = [
        {"i": 2**63 - 1, "d": 1.5, "s": "größer", "m": Decimal("-12.35"), "t": time, "b": True},
        dict.fromkeys("idsmtb"),
        {"i": -(2**63), "d": float("inf"), "s": "", "m": Decimal("0.00"), "t": dt.datetime(1, 1, 1), "b": False},
    ]
    assert rows_of(written(tmp_path, pa.Table.from_pylist(rows, schema), **options), schema) == rows


def test_a_column_of_nothing_but_null_fits_every_type(tmp_path: Path) -> None:
    """As pandas writes a column of None."""
    file = written(tmp_path, pa.table({"a": pa.nulls(2), "b": [1, 2]}))
    for kind in (pa.int32(), pa.string(), pa.decimal128(5, 2), UTC, pa.bool_(), pa.date32()):
        assert rows_of(file, pa.schema([("a", kind), ("b", pa.int64())])) == [{"a": None, "b": 1}, {"a": None, "b": 2}]


REFUSED = [
    *((pa.time64("us"), wanted) for wanted in (pa.int64(), pa.timestamp("us"), pa.string())),
    *((pa.duration("s"), wanted) for wanted in (pa.int64(), pa.timestamp("us"))),
    (pa.dictionary(pa.int32(), pa.string()), pa.int64()),
    (pa.binary(3), pa.string()),
    (pa.uuid(), pa.binary()),
    (pa.dictionary(pa.int32(), pa.int64()), pa.int32()),
    (pa.decimal256(40, 2), pa.decimal128(38, 2)),
    (pa.float32(), pa.decimal128(38, 10)),
    (pa.list_(pa.string()), pa.string()),
    (pa.date32(), UTC),
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
    encoded = pa.table({"a": old["a"].dictionary_encode()}).replace_schema_metadata(metadata)
    new = pa.table({"a": pa.array([dt.date(1982, 10, 1)])}).replace_schema_metadata(metadata)
    schema = pa.schema([("a", pa.date32())])
    for table in (old, encoded):
        with pytest.raises(RunError, match=r"column a of .* has times before 1900, and an old Spark has written it"):
            rows_of(written(tmp_path, table), schema)
    assert rows_of(written(tmp_path, new), schema) == [{"a": dt.date(1982, 10, 1)}]


@pytest.mark.parametrize("content", [b"", b"PAR1 but no more", None])
def test_what_is_no_whole_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "half.parquet"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RunError, match=f"table t: {file} cannot be read as Parquet: "):
        rows_of(file, pa.schema([("a", pa.int64())]))


DEEP = pa.struct([("t", pa.list_(pa.map_(pa.string(), pa.date32()))), ("n", pa.int32())])
LAYOUTS_OF_LISTS = [
    pa.large_list(pa.dictionary(pa.int8(), pa.large_string())),
    pa.list_(pa.string_view()),
    pa.list_(pa.field("x", pa.binary(), nullable=False)),
]


@pytest.mark.parametrize("kind", LAYOUTS_OF_LISTS, ids=str)
def test_lists_come_whatever_their_layout(tmp_path: Path, kind: pa.DataType) -> None:
    values: list[list[str] | None] = [["a", "b"], None, [], ["größer"]]
    texts = pa.array(values, pa.list_(pa.string()))
    inside = texts.values.cast(
        kind.value_type.value_type if pa.types.is_dictionary(kind.value_type) else kind.value_type
    )
    inside = inside.dictionary_encode() if pa.types.is_dictionary(kind.value_type) else inside
    of = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    column = of.from_arrays(texts.offsets, inside, mask=texts.is_null())
    file = written(tmp_path, pa.table({"a": pa.chunked_array([column, column.slice(2)])}))
    ((table, _),) = read_parquet(str(file), pa.schema([("a", pa.list_(pa.string()))]), "t")
    table.validate(full=True)
    assert table["a"].to_pylist() == [*values, *values[2:]]


def test_nested_columns_without_a_value(tmp_path: Path) -> None:
    """As pandas writes columns of empty lists, and of None."""
    rows: list[dict[str, object]] = [
        {"a": [], "b": {"x": None}},
        {"a": None, "b": None},
        {"a": [None], "b": {"x": None}},
    ]
    file = written(tmp_path, pa.Table.from_pylist(rows))
    schema = pa.schema([("a", pa.list_(DEEP)), ("b", pa.struct([("x", DEEP), ("y", pa.int8())]))])
    expected = [{"a": row["a"], "b": row["b"] and {"x": None, "y": None}} for row in rows]
    assert rows_of(file, schema) == expected


def test_a_field_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    file = written(tmp_path, pa.table({"a": twice}))
    with pytest.raises(
        RunError, match=r"column a of .* is of type struct<x: int64, x: int64>, which cannot be read as"
    ):
        rows_of(file, pa.schema([("a", pa.struct([("x", pa.int64())]))]))


def test_old_times_inside_of_nested_columns_are_refused(tmp_path: Path) -> None:
    metadata = {"org.apache.spark.version": "2.4.8"}
    for year, is_refused in ((1582, True), (1982, False)):
        rows = [{"a": {"n": 1, "t": [[("k", dt.date(2000, 1, 1)), ("l", dt.date(year, 10, 1))], []]}}, {"a": None}]
        table = pa.Table.from_pylist(rows, pa.schema([("a", DEEP)])).replace_schema_metadata(metadata)
        file = written(tmp_path, table)
        if is_refused:
            with pytest.raises(RunError, match=r"column a of .* has times before 1900"):
                rows_of(file, pa.schema([("a", DEEP)]))
        else:
            found = rows_of(file, pa.schema([("a", DEEP)]))
            assert found == [{"a": {"t": rows[0]["a"]["t"], "n": 1}}, {"a": None}]  # type: ignore[index]


def test_more_nested_text_than_arrow_reads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow reads no row group with more than 2 GB of text inside of a nested column."""
    rows = [{"a": [str(n)]} for n in range(3000)]
    file = written(tmp_path, pa.Table.from_pylist(rows))

    def refuse(*_: object, **__: object) -> pa.Table:
        raise pa.ArrowNotImplementedError("Nested data conversions not implemented for chunked array outputs")

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", refuse)
    assert rows_of(file, pa.schema([("a", pa.list_(pa.string()))])) == rows
