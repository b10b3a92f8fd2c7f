"""Files with nested columns give the same rows, whether Spark or workers read them: of all types and writers."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan import compile_sql
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.table import read_in_arrow, read_stream
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from hintplan.runtime.types import to_arrow
from tests.connectors.files.test_readers_agree import VALUES, both, put, streamed, table
from tests.spark.programs import changes

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

ROW_TYPE = "ROW<" + ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in VALUES.items()) + ">"
COLUMNS = {
    "r": ROW_TYPE,
    "a": "ARRAY<INT>",
    "ar": f"ARRAY<{ROW_TYPE}>",
    "aa": "ARRAY<ARRAY<STRING>>",
    "m": f"MAP<STRING, {ROW_TYPE}>",
    "mk": "MAP<DATE, ARRAY<DECIMAL(10, 2)>>",
    "deep": "ROW<x ROW<y ARRAY<ROW<z MAP<INT, TIMESTAMP(6)>>>>, w STRING>",
}


def nested_rows() -> list[dict[str, Any]]:
    """Rows with values, NULL and nothing at each level; the values of a ROW are those of ``VALUES``."""
    first, second = ({name: values[n] for name, (_, _, values) in VALUES.items()} for n in (0, 1))
    empty: dict[str, Any] = dict.fromkeys(VALUES)
    moment, day = dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.date(1582, 10, 10)
    full = {
        "r": first,
        "a": [1, None, -(2**31)],
        "ar": [first, None, empty, second],
        "aa": [["x", None, ""], [], None],
        "m": [("a", first), ("", None), ("b", second)],
        "mk": [(day, [None]), (dt.date(1, 1, 1), None), (dt.date(9999, 1, 1), [])],
        "deep": {"x": {"y": [{"z": [(1, moment), (2, None)]}, {"z": None}, None]}, "w": "ü"},
    }
    nothing = {"r": empty, "a": [], "ar": [], "aa": [], "m": [], "mk": [], "deep": {"x": {"y": []}, "w": None}}
    half = {**full, "r": None, "ar": None, "deep": {"x": None, "w": None}, "m": None}
    return [full, nothing, dict.fromkeys(full), half, {**full, "deep": {"x": {"y": None}, "w": ""}}, full]


def stored(**layout: pa.DataType) -> pa.Table:
    """The rows in the types in which ``VALUES`` has them in files, or in those of ``layout``."""
    row = pa.struct([(name, layout.get(name, kind)) for name, (_, kind, _) in VALUES.items()])
    kinds = {name: to_arrow(kind) for name, kind in COLUMNS.items()}
    kinds |= {"r": row, "ar": pa.list_(row), "m": pa.map_(pa.string(), row), "a": layout.get("a", kinds["a"])}
    return pa.Table.from_pylist(nested_rows(), pa.schema(list(kinds.items())))


def test_nested_values_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "t" / "a.parquet", stored(), 1_700_000_000, row_group_size=4)
    put(tmp_path / "t" / "b.parquet", stored(a=pa.large_list(pa.int32()), s=pa.large_string()), 1_700_000_001)
    put(tmp_path / "t" / "c.parquet", stored(), 1_700_000_002, use_compliant_nested_type=False)
    put(tmp_path / "t" / "d.parquet", stored(), 1_700_000_003, store_schema=False, data_page_version="2.0")
    found = both(spark, table(tmp_path / "t", COLUMNS), tuple(reversed(COLUMNS)))
    assert len(found) == 4 * len(nested_rows())
    assert len(set(map(repr, found))) == 5


@pytest.mark.parametrize("legacy", ["false", "true"])
def test_nested_values_in_files_of_spark(spark: SparkSession, tmp_path: Path, legacy: str) -> None:
    """Spark writes instants in 96 bits; in its old format, lists have two levels if no element is NULL."""
    put(tmp_path / "t" / "a.parquet", stored(), 1_700_000_000)
    rows = spark.read.parquet(str(tmp_path / "t"))
    two_levels = "transform(array(1, 2), x -> x) AS a", "array(struct(1 AS x), struct(2 AS x)) AS ar"
    settings = {"spark.sql.parquet.writeLegacyFormat": legacy}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        rows.write.parquet(str(tmp_path / "of-spark"))
        spark.range(3).selectExpr(*two_levels).write.parquet(str(tmp_path / "two-levels"))
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert len(both(spark, table(tmp_path / "of-spark", COLUMNS), tuple(COLUMNS))) == len(nested_rows())
    lists = table(tmp_path / "two-levels", {"a": "ARRAY<BIGINT>", "ar": "ARRAY<ROW<x BIGINT>>"})
    assert both(spark, lists, ("ar", "a")) == [([(1,), (2,)], [1, 2])] * 3


def test_fields_go_by_name_and_may_be_narrower_or_lacking(spark: SparkSession, tmp_path: Path) -> None:
    inside = pa.struct([("more", pa.string()), ("b", pa.int16()), ("a", pa.float32()), ("c", pa.decimal128(5, 1))])
    rows = [{"r": {"b": 7, "a": 0.5, "c": 1}, "l": [{"b": -7, "c": 2}, None], "m": [(1, {"a": 1.5})]}, {"r": None}]
    kinds = pa.schema([("r", inside), ("l", pa.list_(inside)), ("m", pa.map_(pa.int16(), inside))])
    put(tmp_path / "t" / "a.parquet", pa.Table.from_pylist(rows, kinds), 1_700_000_000)
    wanted = "ROW<a DOUBLE, MORE STRING, b BIGINT, c DECIMAL(10, 3), d ROW<x ARRAY<INT>>>"
    columns = {"l": f"ARRAY<{wanted}>", "r": wanted, "m": f"MAP<INT, {wanted}>", "none": f"ARRAY<{wanted}>"}
    found = both(spark, table(tmp_path / "t", columns), tuple(columns))
    assert [row[1] for row in found if row[1] is not None] == [(0.5, None, 7, 1, None)]


@pytest.mark.parametrize("null_rows", [None, "false", "true"])
def test_rows_of_which_a_file_has_no_field(spark: SparkSession, tmp_path: Path, null_rows: str | None) -> None:
    inside = pa.struct([("x", pa.int64())])
    kinds = pa.struct([("a", pa.int64()), ("i", inside), ("l", pa.list_(inside))])
    rows = [
        {
            "s": {"a": 1, "i": {"x": 5}, "l": [{"x": 1}, None]},
            "l": [{"x": 1}, None],
            "m": [("k", {"x": 1}), ("j", None)],
        },
        {"s": {"a": None, "i": None, "l": []}, "l": [], "m": []},
        {"s": None, "l": None, "m": None},
    ]
    schema = pa.schema([("s", kinds), ("l", pa.list_(inside)), ("m", pa.map_(pa.string(), inside))])
    put(tmp_path / "t" / "a.parquet", pa.Table.from_pylist(rows, schema), 1_700_000_000)
    other = "ROW<z INT>"
    shapes = [
        {"s": other, "l": f"ARRAY<{other}>", "m": f"MAP<STRING, {other}>"},
        {"s": f"ROW<a BIGINT, i {other}, l ARRAY<{other}>>"},
        {"s": f"ROW<i {other}, l ARRAY<{other}>, y ROW<z ARRAY<INT>>>"},
    ]
    setting = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
    if null_rows is not None:
        spark.conf.set(setting, null_rows)
    is_null = null_rows == "true" or spark.version.startswith("4.0.")  # which has no such setting
    try:
        for columns in shapes:
            found = both(spark, table(tmp_path / "t", columns), tuple(columns))
            assert len(found) == 3
            if len(columns) == 3:
                assert [row[0] for row in found].count(None) == (3 if is_null else 1)
    finally:
        spark.conf.unset(setting)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("ROW<x INT>", pa.struct([("x", pa.int64())])),
        ("ROW<x INT>", pa.list_(pa.int32())),
        pytest.param("ROW<x STRING>", pa.struct([("x", pa.list_(pa.string()))]), marks=pytest.mark.integration),
        pytest.param("ARRAY<STRING>", pa.list_(pa.int32()), marks=pytest.mark.integration),
        pytest.param("ARRAY<INT>", pa.int32(), marks=pytest.mark.integration),
        pytest.param("INT", pa.list_(pa.int32()), marks=pytest.mark.integration),
        pytest.param("MAP<STRING, INT>", pa.map_(pa.string(), pa.float32()), marks=pytest.mark.integration),
        pytest.param("MAP<STRING, INT>", pa.struct([("key", pa.string())]), marks=pytest.mark.integration),
    ],
    ids=str,
)
def test_another_type_fails_both_readers(spark: SparkSession, tmp_path: Path, kind: str, found: pa.DataType) -> None:
    values = {"struct": {"x": None, "key": "a"}, "list": [None], "map": [("a", None)], "int32": 1}
    value = values[str(found).partition("<")[0]]
    put(tmp_path / "t" / "a.parquet", pa.table({"c": pa.array([value], found)}), 1_700_000_000)
    source = table(tmp_path / "t", {"c": kind})
    with pytest.raises(Exception, match=r"column c of .* is of type .*, which cannot be read as"):
        streamed(spark, read_in_arrow(spark, "t", source, ("c",)).in_spark("reader"), "failing")
    with pytest.raises(Exception, match=r"a\.parquet"):
        streamed(spark, read_stream(spark, "t", source, ("c",)), "failing")


QUERY = """
CREATE TABLE orders (k ROW<a BIGINT, b STRING>, items ARRAY<ROW<price INT>>, v BIGINT) WITH (
  'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{directory}/orders');
CREATE TABLE result (b STRING, first INT, n BIGINT, total BIGINT) WITH (
  'connector' = 'filesystem', 'format' = 'json', 'path' = '{directory}/result', 'sink.changelog' = 'true');
INSERT INTO result
SELECT k.b, items[1].price, COUNT(*), SUM(v) FROM orders WHERE k.a > 0 GROUP BY k.b, items[1].price;
"""


@pytest.mark.integration
def test_a_checkpoint_goes_on_with_the_other_reader(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema(
        [(n, to_arrow(k)) for n, k in (("k", "ROW<b STRING, a INT>"), ("items", "ARRAY<ROW<price INT>>"))]
    )
    expected: dict[tuple[object, ...], list[int]] = {}
    for run, is_spark in enumerate((True, False, True, False)):
        numbers = range(100 * run, 100 * run + 100)
        rows = [
            {"k": {"a": n % 3, "b": f"k{n % 2}"} if n % 7 else None, "items": [{"price": n % 4}] if n % 5 else None}
            for n in numbers
        ]
        for n, row in zip(numbers, rows, strict=True):
            if row["k"] is not None and row["k"]["a"] > 0:  # type: ignore[operator, call-overload, index]
                expected.setdefault((f"k{n % 2}", n % 4 if n % 5 else None), []).append(n)
        stored_rows = pa.Table.from_pylist(rows, schema).append_column("v", pa.array(numbers, pa.int32()))
        put(tmp_path / "orders" / f"{run}.parquet", stored_rows, 1_700_000_000 + run)
        with monkeypatch.context() as patch:
            if is_spark:
                patch.setattr(connectors, "why_not_in_arrow", lambda *_: "a test")
            plan = compile_sql(QUERY.format(directory=tmp_path), {"parallelism.default": "2"})
            execution = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True)
            assert isinstance(execution, Execution)
            assert execution.await_termination(180)
        assert sum(batch.rows_in for batch in execution.new_batches()) == 100
        notes = [note for note in execution.notes if "read by Spark" in note]
        assert notes == (["scan_orders is read by Spark: a test"] if is_spark else [])
    counts: dict[tuple[object, ...], int] = {}
    for change in changes(tmp_path):
        row = tuple(change[name] for name in ("b", "first", "n", "total"))
        counts[row] = counts.get(row, 0) + (1 if change["op"] in ("+I", "+U") else -1)
    kept = {row: count for row, count in counts.items() if count}
    assert kept == {(*key, len(values), sum(values)): 1 for key, values in expected.items()}
    assert os.listdir(tmp_path / "checkpoint")
