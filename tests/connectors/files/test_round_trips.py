"""The odd values of every type come back from files of every format: from a batch job, from a stream, to either."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from hintplan.plans.connectors.check import check_table
from hintplan.plans.connectors.files.formats import FORMATS
from hintplan.plans.declarations.tables import Column, Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem.scan import FilesScan
from hintplan.runtime.connectors.table import batch_writer, find_wrong_line, read_batch, read_stream
from hintplan.runtime.lookup.api import LookupContext
from hintplan.runtime.spark.explanation import WrongLine
from hintplan.runtime.types import to_arrow, to_spark
from tests.connectors.files.test_formats_on_spark import streamed

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

TEXTS = [
    "a", "", None, " a ", "\ta\t", " ", "\t", " \t ", '"', 'a"b', '"a"', '""', '",', ",", "a,b", "a\nb", "a\rb",
    "a\r\nb", "\n", "\r\n", "a\n", "a\n\nb", "\na", "\\", "a\\", "\\n", 'a\\"b', "\\,", "é", "𝄞", "a𝄞b", "\u2028",
    "\u2029", "\x85", "\xa0", "\x00", "\x00a", "a\x00", "\x01", "\x0b", "\x0c", "\x1b", "\x7f", "\ufeff", "a\ufeff",
    "#", "#a", "null", "NULL", "NaN", "true", "1", "-", "'", "''", ";", "|", "{}", "[1]", "+I", "x" * 40_000,
]  # fmt: skip
_BREAKS = ["\r", "a\r", "\r\r"]
"""Texts that end with a carriage return."""

_MOMENTS = [
    datetime(1, 1, 1), datetime(1582, 10, 15), datetime(1600, 2, 29, 1, 2, 3, 450000), datetime(1883, 11, 18, 12),
    datetime(1899, 12, 31, 23, 59, 59, 999000), datetime(1969, 12, 31, 23, 59, 58, 999000),
    datetime(1969, 12, 31, 23, 59, 59), datetime(1969, 12, 31, 23, 59, 59, 1000),
    datetime(1969, 12, 31, 23, 59, 59, 500000), datetime(1969, 12, 31, 23, 59, 59, 999000), datetime(1970, 1, 1),
    datetime(1970, 1, 1, 0, 0, 0, 1000), datetime(2020, 2, 29, 2, 30, 0, 120000), datetime(2038, 1, 19, 3, 14, 8),
    datetime(2262, 4, 11, 23, 47, 16, 854000), datetime(9999, 12, 31, 23, 59, 59, 999000),
]  # fmt: skip
_FINE = [moment.replace(microsecond=moment.microsecond + n) for moment in _MOMENTS for n in (0, 1, 999)]
_LOST_IN_ORC = datetime(1969, 12, 31, 23, 59, 59, 1000), datetime(1970, 1, 1)
"""From the first on and before the second, ORC has no times."""

VALUES: dict[str, list[Any]] = {
    "STRING": [*TEXTS, *_BREAKS],
    "BOOLEAN": [True, False],
    "TINYINT": [0, 127, -128],
    "SMALLINT": [0, 2**15 - 1, -(2**15)],
    "INT": [0, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 2**63 - 1, -(2**63), 2**53 + 1],
    "FLOAT": [0.0, -0.0, 1.5, 2.0**-149, 3.4028234663852886e38, math.nan, math.inf, -math.inf],
    "DOUBLE": [0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, -1e22, math.nan, math.inf, -math.inf],
    "DECIMAL(10, 2)": [D("0.00"), D("0.01"), D("-0.01"), D("99999999.99"), D("-99999999.99"), D("100.00")],
    "DECIMAL(38, 0)": [D("9" * 38), D("-" + "9" * 38), D("1" + "0" * 37)],
    "DECIMAL(38, 38)": [D("0." + "9" * 38), D("0." + "0" * 37 + "1"), D("-0." + "0" * 37 + "1")],
    "DATE": [date(1, 1, 1), date(1582, 10, 15), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    "TIMESTAMP(3)": _MOMENTS,
    "TIMESTAMP(6)": _FINE,
    "TIMESTAMP_LTZ(6)": _FINE,
    "BYTES": [b"", b"\x00\xff", b" a\n", bytes(range(256))],
    "ARRAY<STRING>": [[], [None], ["", None, ' "a"\n'], ["𝄞"]],
    "MAP<STRING, DOUBLE>": [[], [("", math.nan)], [(' "a"\n', None), ("b", -0.0)]],
    "ROW<x DOUBLE, t TIMESTAMP(3), s STRING>": [
        {"x": None, "t": None, "s": None},
        {"x": math.inf, "t": datetime(1969, 12, 31, 23, 59, 59, 999000), "s": ""},
    ],
}
"""Odd values of each type; NULL is one more of each."""


def table(path: Path, chosen: str, columns: dict[str, str], **options: str) -> Table:
    return Table(
        columns=tuple(TableColumn(name=name, type=kind) for name, kind in columns.items()),
        options={"connector": "filesystem", "path": str(path), "format": chosen, **options},
    )


def held(chosen: str) -> dict[str, str]:
    """The columns of all types that files of the format hold; text is the last one, and one of those before it."""
    kinds = {f"c{i}": kind for i, kind in enumerate(VALUES)}
    found = {n: k for n, k in kinds.items() if not check_table("t", table(Path("/x"), chosen, {n: k}))}
    return {"id": "INT", **found, "z": "STRING"}


def given(columns: dict[str, str], chosen: str) -> pa.Table:
    """A row for each odd value of the type that has the most of them."""
    count = max(len(VALUES[kind]) for kind in columns.values())
    found = {}
    for name, kind in columns.items():
        # The \r at the end of a row is a part of its line break.
        values = TEXTS if name == "z" and chosen == "csv" else VALUES[kind]
        values = [value for value in values if chosen != "orc" or in_orc(value)]
        found[name] = [[*values, None][i % (len(values) + 1)] for i in range(count)]
    return arrow({**found, "id": list(range(count))}, columns)


def in_orc(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else (value,)
    first, end = _LOST_IN_ORC
    return not any(isinstance(part, datetime) and first <= part < end for part in parts)


def arrow(values: dict[str, list[Any]], columns: dict[str, str]) -> pa.Table:
    return pa.table({name: pa.array(found, to_arrow(columns[name])) for name, found in values.items()})


def schema_of(columns: dict[str, str]) -> StructType:
    return StructType([StructField(name, to_spark(kind)) for name, kind in columns.items()])


def plain(rows: pa.Table, columns: dict[str, str]) -> list[str]:
    """Each row as text in which NaN is itself and zeros have signs, in the order of the first column."""
    first, *_ = columns
    typed = rows.select(list(columns)).cast(pa.schema([(n, to_arrow(k)) for n, k in columns.items()])).sort_by(first)
    return [repr(row) for row in typed.to_pylist()]


def different(found: pa.Table, expected: pa.Table, columns: dict[str, str]) -> dict[str, Any]:
    """The columns that did not come back, each with the first values that differ."""
    if found.num_rows != expected.num_rows:
        return {"rows": (found.num_rows, expected.num_rows)}
    wrong = {}
    for name, kind in columns.items():
        only = {next(iter(columns)): columns[next(iter(columns))], name: kind}
        pairs = zip(plain(found, only), plain(expected, only), strict=True)
        if differing := [(a[:120], b[:120]) for a, b in pairs if a != b]:
            wrong[f"{name} {kind}"] = differing[:5]
    return wrong


def looked_up(source: Table) -> pa.Table:
    columns = tuple(Column(name=c.name, type=c.type) for c in source.columns)
    context = LookupContext(table="t", options=source.options, columns=columns, keys=(), declared=columns)
    found = [part if isinstance(part, pa.Table) else pa.table(part) for part in FilesScan().scan(context)]
    types = pa.schema([(column.name, to_arrow(column.type)) for column in source.columns])
    return pa.concat_tables([part.cast(types) for part in found])


@pytest.mark.parametrize("chosen", [name for name in FORMATS if name != "raw"])
def test_odd_values_come_back(spark, tmp_path: Path, chosen: str) -> None:
    columns = held(chosen)
    rows = given(columns, chosen)
    frame = spark.createDataFrame(rows, schema_of(columns))
    (first, second) = (table(tmp_path / name, chosen, columns) for name in ("a", "b"))
    batch_writer(frame.coalesce(1), "t", first)()
    assert different(read_batch(spark, "t", first, tuple(columns)).toArrow(), rows, columns) == {}
    streamed(read_stream(spark, "t", first, tuple(columns)), second, tmp_path / "c")
    assert different(read_batch(spark, "t", second, tuple(columns)).toArrow(), rows, columns) == {}
    if chosen == "orc":
        with pytest.raises(RunError, match="out of range for nanosecond"):  # of a year beyond those that Arrow reads
            looked_up(first)
    elif chosen != "avro":
        assert different(looked_up(first), rows, columns) == {}


@pytest.mark.parametrize(
    "options",
    [
        {"csv.field-delimiter": ";", "csv.quote-character": "'"},
        {"csv.field-delimiter": "\\t", "csv.null-literal": "NULL"},
        {"csv.escape-character": "\\", "csv.allow-comments": "true"},
    ],
    ids=str,
)
def test_texts_come_back_from_csv_of_any_style(spark, tmp_path: Path, options: dict[str, str]) -> None:
    columns = {"t": "STRING", "id": "INT"}
    texts = [*TEXTS, *_BREAKS] if "csv.null-literal" not in options else [t for t in TEXTS if t != "NULL"]
    rows = arrow({"t": texts, "id": list(range(len(texts)))}, columns)
    target = table(tmp_path / "o", "csv", columns, **options)
    batch_writer(spark.createDataFrame(rows, schema_of(columns)).coalesce(1), "t", target)()
    by_id = {"id": "INT", "t": "STRING"}
    assert different(read_batch(spark, "t", target, ("t", "id")).toArrow(), rows, by_id) == {}
    if "csv.escape-character" not in options:  # Arrow takes it for an escape outside of quotes too
        assert different(looked_up(target), rows, by_id) == {}


def test_a_table_of_one_column_keeps_texts_of_blanks(spark, tmp_path: Path) -> None:
    texts = [text for text in TEXTS if text is not None]
    frame = spark.createDataFrame([(text,) for text in texts], "t string").coalesce(1)
    target = table(tmp_path / "o", "csv", {"t": "STRING"})
    batch_writer(frame, "t", target)()
    assert [row.t for row in read_batch(spark, "t", target, ("t",)).collect()] == texts
    assert looked_up(target)["t"].to_pylist() == texts
    with pytest.raises(PySparkException, match="column t is NULL, which would be an empty line"):
        batch_writer(spark.sql("SELECT CAST(NULL AS STRING) AS t"), "t", target)()
    named = table(tmp_path / "n", "csv", {"t": "STRING"}, **{"csv.null-literal": "-"})
    batch_writer(spark.sql("SELECT CAST(NULL AS STRING) AS t"), "t", named)()
    assert [row.t for row in read_batch(spark, "t", named, ("t",)).collect()] == [None]


LINES = 'a,1\r\n" b\r\n",\r\n,"2"\r\n"",3'
"""Of a file whose lines end with a carriage return and a line feed; the last line has no end."""


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
@pytest.mark.parametrize("kind", ["STRING", "INT", "DOUBLE", "DECIMAL(4, 1)"])
def test_lines_may_end_with_carriage_returns(spark, tmp_path: Path, kind: str, ending: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(LINES.replace("\r\n", ending), newline="")
    source = table(tmp_path / "in", "csv", {"a": "STRING", "b": kind})
    last = {"STRING": str, "INT": int, "DOUBLE": float}.get(kind, D)
    expected = [("a", last("1")), (f" b{ending}", None), (None, last("2")), ("", last("3"))]
    assert [tuple(row) for row in read_batch(spark, "t", source, ("a", "b")).collect()] == expected
    found = looked_up(source).to_pylist()
    assert [tuple(row.values()) for row in found] == expected


def test_a_wrong_last_column_fails_the_run_or_is_null(spark, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text('"a\nb",1\r\nc,2x\r\n,y\r\nd,"1,2"\r\ne,"1\n2"\r\n', newline="")
    source = table(tmp_path / "in", "csv", {"a": "STRING", "b": "INT"})
    with pytest.raises(PySparkException, match=r"MALFORMED_RECORD_IN_PARSING\].*a\.csv\. Column b is not int: 2x"):
        read_batch(spark, "t", source, ("a", "b")).collect()
    wrong = find_wrong_line(spark, {"t": source}, str(tmp_path / "in" / "a.csv"))
    assert wrong == WrongLine(format="csv", text="c,2x", column="'b' is INT, and has 2x")
    lenient = table(tmp_path / "in", "csv", {"a": "STRING", "b": "INT"}, **{"csv.ignore-parse-errors": "true"})
    found = [tuple(row) for row in read_batch(spark, "t", lenient, ("a", "b")).collect()]
    assert found == [("a\nb", 1), ("c", None), ("d", None), ("e", None)]


@pytest.mark.parametrize(
    ("format_", "line", "column"),
    [
        ("json", '{"a": 1, "b": 3000000000, "c": 1}', "'b' is INT, and has 3000000000"),
        ("json", '{"a": 1, "b": null, "c": "x"}', "'c' is DECIMAL(4, 1), and has x"),
        ("json", '{"a": 1, "b": {"x": 1}}', "'b' is INT, and has {\"x\": 1}"),
        ("json", '{"a": 1, "b": oh no', ""),
        ("json", "[1]", ""),
        ("csv", "1,3000000000,2", "'b' is INT, and has 3000000000"),
        ("csv", "1,,x", "'c' is DECIMAL(4, 1), and has x"),
        ("csv", '"x",1,2', "'a' is BIGINT, and has x"),
    ],
)
def test_the_column_of_a_wrong_line_is_named(spark, tmp_path: Path, format_: str, line: str, column: str) -> None:
    (tmp_path / "in").mkdir()
    right = {"json": '{"a": 1, "b": 2, "c": 1.5}', "csv": "1,2,1.5"}[format_]
    (tmp_path / "in" / f"a.{format_}").write_text(f"{right}\n{line}\n")
    source = table(tmp_path / "in", format_, {"a": "BIGINT", "b": "INT", "c": "DECIMAL(4, 1)"})
    wrong = find_wrong_line(spark, {"t": source}, str(tmp_path / "in" / f"a.{format_}"))
    assert wrong == WrongLine(format=format_, text=line, column=column)


@pytest.mark.parametrize("text", ["a,b", "a\nb", "a\rb", "\x00"])
def test_what_needs_quotes_is_not_written_without_them(spark, tmp_path: Path, text: str) -> None:
    target = table(tmp_path / "o", "csv", {"t": "STRING", "i": "INT"}, **{"csv.disable-quote-character": "true"})
    with pytest.raises(PySparkException, match="leaves no quotes to put it in"):
        batch_writer(spark.createDataFrame([(text, 1)], "t string, i int"), "t", target)()
    rows = [(' "a" ', 1), (None, 2), ("a#\\", 3)]
    batch_writer(spark.createDataFrame(rows, "t string, i int").coalesce(1), "t", target)()
    (file,) = (tmp_path / "o").glob("part-*")
    assert file.read_text() == ' "a" ,1\n,2\na#\\,3\n'
    assert [tuple(row) for row in read_batch(spark, "t", target, ("t", "i")).collect()] == rows


@pytest.mark.parametrize(
    ("kind", "at", "is_held"),
    [
        ("TIMESTAMP(3)", "1969-12-31 23:59:58.999", True),
        ("TIMESTAMP(3)", "1969-12-31 23:59:59", True),
        ("TIMESTAMP(6)", "1969-12-31 23:59:59.000999", True),
        ("TIMESTAMP(3)", "1969-12-31 23:59:59.001", False),
        ("TIMESTAMP(3)", "1969-12-31 23:59:59.999", False),
        ("TIMESTAMP(6)", "1969-12-31 23:59:59.999999", False),
        ("ARRAY<TIMESTAMP(3)>", "1969-12-31 23:59:59.5", False),
        ("TIMESTAMP(3)", "1970-01-01 00:00:00", True),
        ("TIMESTAMP(3)", "1970-01-01 00:00:00.001", True),
    ],
)
def test_orc_takes_no_time_that_would_come_back_as_another(
    spark, tmp_path: Path, kind: str, at: str, *, is_held: bool
) -> None:
    value = f"array(TIMESTAMP_NTZ '{at}')" if kind.startswith("ARRAY") else f"TIMESTAMP_NTZ '{at}'"
    frame = spark.sql(f"SELECT {value} AS t")
    target = table(tmp_path / "o", "orc", {"t": kind})
    write = batch_writer(frame, "t", target)
    if is_held:
        write()
        assert read_batch(spark, "t", target, ("t",)).collect() == frame.collect()
    else:
        with pytest.raises(PySparkException, match="which ORC files cannot distinguish from the next"):
            write()
