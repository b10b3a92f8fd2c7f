"""Lines that tasks write are the bytes that Spark's own writers of CSV and JSON write: of odd and of random values."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan.runtime.connectors.connector import TableWrite
from hintplan.runtime.connectors.filesystem.text_sink.arrow_sink import line_files
from hintplan.runtime.connectors.filesystem.text_sink.java_floating import java_text
from hintplan.runtime.connectors.filesystem.text_sink.line_files import write_file
from hintplan.runtime.connectors.table import batch_writer
from hintplan.runtime.types import to_arrow
from tests.connectors.files.test_round_trips import VALUES, schema_of, table

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]


FAR = [-(2**63) + 86_399_999_999, -62_135_596_800_000_001, -62_167_219_200_000_001, 253_402_300_800_000_000, 2**63 - 1]
"""Microseconds of times before the year 1, before the year 0 and after the year 9999."""
KINDS = [kind for kind in VALUES if kind != "BYTES" and "<" not in kind]
RANDOM = 300


def numbers(seed: random.Random, single: bool) -> list[float]:
    """Numbers of random bits, of random digits, whole numbers, powers of two and of ten, and their neighbours."""
    code, bits = ("f", 32) if single else ("d", 64)
    integer = "I" if single else "Q"
    found = [struct.unpack(f"<{code}", struct.pack(f"<{integer}", seed.getrandbits(bits)))[0] for _ in range(RANDOM)]
    most = 38 if single else 308
    found += [float(f"{seed.randrange(1000)}e{seed.randrange(-most, most - 2)}") for _ in range(RANDOM)]
    found += [seed.uniform(-1, 1) * 10 ** seed.randrange(-6, 30) for _ in range(RANDOM)]
    found += [float(seed.randrange(10 ** seed.randrange(1, 19))) for _ in range(RANDOM)]
    found += [2.0**power for power in range(-149 if single else -1074, 127 if single else 1023, 7)]
    found += [float(f"1e{power}") for power in range(-most, most)] + [2e23, 5e22, 9007199254740993.0, 1e23]
    if not single:
        found += [math.nextafter(number, math.inf) for number in found[-RANDOM:]]
    return found


def odd(kind: str) -> list[Any]:
    """Odd and random values of a type, as Arrow takes them."""
    seed = random.Random(kind)
    if kind in ("FLOAT", "DOUBLE"):
        return [*VALUES[kind], *numbers(seed, kind == "FLOAT")]
    if kind.startswith("TIMESTAMP"):
        return [*VALUES[kind], *FAR, *(seed.randrange(-(2**60), 2**60) for _ in range(RANDOM))]
    if kind == "DATE":
        return [*VALUES[kind], -800_000, -719_529, -719_528, 2_932_897, 99_000_000, -99_000_000]
    if kind == "STRING":
        signs = "ab ,;\"'\\\n\r\t\x00\x01\x1f\x7f#|é𝄞\u2028\ufeff"
        return [*VALUES[kind], *("".join(seed.choices(signs, k=seed.randrange(6))) for _ in range(RANDOM))]
    if kind == "DECIMAL(38, 38)":
        return [*VALUES[kind], D(0), D("1e-38"), D("-1.5e-10"), D("1e-7"), D("0.000001"), D("0.1")]
    if kind == "DECIMAL(38, 0)":
        return [*VALUES[kind], D(0), D(100), D(-7)]
    return VALUES[kind]


def column(kind: str, count: int) -> pa.Array:
    """``count`` values of a type, with NULL; integers are days or microseconds."""
    found = [*odd(kind), None]
    values = [found[number % len(found)] for number in range(count)]
    target = to_arrow(kind)
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        unit = pa.int32() if kind == "DATE" else pa.int64()
        return pa.array([as_number(value, target) for value in values], unit).cast(target)
    return pa.array(values, target)


def as_number(value: Any, target: pa.DataType) -> int | None:
    plain = target if pa.types.is_date32(target) else pa.timestamp("us")
    return value if value is None or isinstance(value, int) else pa.scalar(value, plain).value


def written_by_spark(spark: SparkSession, rows: pa.Table, target: Any, columns: dict[str, str]) -> bytes:
    frame = spark.createDataFrame(rows, schema_of(columns)).coalesce(1)
    batch_writer(frame, "t", target)()
    return b"".join(file.read_bytes() for file in sorted(Path(target.options["path"]).glob("part-*")))


def written_by_task(spark: SparkSession, rows: pa.Table, target: Any) -> bytes:
    files = line_files(spark, TableWrite(name="t", table=target), rows.schema)
    assert files is not None
    name = files.file_name(0, 0, 0)
    facts = write_file(files, name, iter([rows.slice(0, 7), rows.slice(7)]))
    content = (Path(target.options["path"]) / name).read_bytes()
    assert facts.select(["name", "size", "rows"]).to_pylist() == [
        {"name": name, "size": len(content), "rows": rows.num_rows}
    ]
    return content


def first_difference(found: bytes, expected: bytes) -> tuple[bytes, bytes] | None:
    if found == expected:
        return None
    pairs = zip(found.split(b"\n"), expected.split(b"\n"), strict=False)
    return next(((a[:300], b[:300]) for a, b in pairs if a != b), (found[-300:], expected[-300:]))


@pytest.mark.parametrize("chosen", ["csv", "json"])
def test_every_type_is_written_as_by_spark(spark: SparkSession, tmp_path: Path, chosen: str) -> None:
    columns = {f'"{kind}"\\': kind for kind in KINDS}
    count = max(len(odd(kind)) for kind in KINDS) + 1
    rows = pa.table([column(kind, count) for kind in KINDS], names=list(columns))
    by_spark, by_task = table(tmp_path / "s", chosen, columns), table(tmp_path / "t", chosen, columns)
    expected = written_by_spark(spark, rows, by_spark, columns)
    assert first_difference(written_by_task(spark, rows, by_task), expected) is None


STYLES = [
    {"csv.field-delimiter": ";", "csv.quote-character": "'"},
    {"csv.field-delimiter": "\\t", "csv.null-literal": "NULL"},
    {"csv.field-delimiter": "|", "csv.null-literal": ""},
    {"csv.escape-character": "\\"},
    {"csv.escape-character": "\\", "csv.allow-comments": "true"},
    {"csv.quote-character": "\\", "csv.escape-character": "'"},
    {"csv.field-delimiter": "^", "csv.quote-character": "]"},
    {"csv.null-literal": "n#", "csv.allow-comments": "true"},
]


@pytest.mark.parametrize("options", STYLES, ids=str)
def test_every_style_of_csv_is_written_as_by_spark(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    columns = {"a": "STRING", "i": "INT", "z": "STRING"}
    texts = column("STRING", len(odd("STRING")) + 1)
    rows = pa.table([texts, pa.array(range(len(texts)), pa.int32()), texts[::-1]], names=list(columns))
    by_spark, by_task = (table(tmp_path / name, "csv", columns, **options) for name in ("s", "t"))
    if line_files(spark, TableWrite(name="t", table=by_task), rows.schema) is None:
        pytest.fail("Spark writes this style")
    expected = written_by_spark(spark, rows, by_spark, columns)
    assert first_difference(written_by_task(spark, rows, by_task), expected) is None


def test_invalid_utf8_is_written_as_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    values = [
        b"\xff",
        b"a\xc3",
        b"\xe2\x82",
        b"\xe2\x82a\xf0\x9f\x98",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf5\x80",
        b"ok",
    ]
    joined = pa.array(values, pa.binary()).view(pa.string())
    columns = {"a": "STRING", "b": "STRING"}
    for chosen in ("csv", "json"):
        rows = pa.table([joined, joined], names=list(columns))
        by_spark, by_task = (table(tmp_path / chosen / name, chosen, columns) for name in ("s", "t"))
        expected = written_by_spark(spark, rows, by_spark, columns)
        assert first_difference(written_by_task(spark, rows, by_task), expected) is None


@pytest.mark.parametrize("name", ["float", "double"])
def test_numbers_are_texts_as_in_java(spark: SparkSession, name: str) -> None:
    found = [number for number in numbers(random.Random(name), name == "float") if math.isfinite(number)]
    kind = pa.float32() if name == "float" else pa.float64()
    frame = spark.createDataFrame(pa.table({"n": pa.array(found, kind)}))
    rows = frame.selectExpr("n", "CAST(n AS STRING) AS t").toArrow()
    java = int(spark._jvm.java.lang.System.getProperty("java.specification.version"))  # type: ignore[union-attr]
    written = [java_text(number, single=name == "float", java=java) for number in rows["n"].to_pylist()]
    assert [pair for pair in zip(rows["t"].to_pylist(), written, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize(
    ("chosen", "columns", "options"),
    [
        ("json", {"a": "ARRAY<INT>"}, {}),
        ("json", {"a": "BYTES"}, {}),
        ("csv", {"a": "INT"}, {}),
        ("csv", {"a": "INT", "b": "INT"}, {"csv.disable-quote-character": "true"}),
        ("csv", {"a": "INT", "b": "INT"}, {"csv.field-delimiter": "1"}),
        ("csv", {"a": "INT", "b": "INT"}, {"csv.null-literal": 'a"b'}),
        ("csv", {"a": "INT", "b": "INT"}, {"csv.null-literal": "#"}),
        ("parquet", {"a": "INT"}, {}),
    ],
)
def test_spark_writes_what_is_not_known_here(
    spark: SparkSession, tmp_path: Path, chosen: str, columns: dict[str, str], options: dict[str, str]
) -> None:
    schema = pa.schema([(name, to_arrow(kind)) for name, kind in columns.items()])
    write = TableWrite(name="t", table=table(tmp_path / "o", chosen, columns, **options))
    assert line_files(spark, write, schema) is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.files.maxRecordsPerFile", "10"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv", "true"),
        ("spark.sql.streaming.commitProtocolClass", "org.example.Protocol"),
        ("mapreduce.output.fileoutputformat.compress", "true"),
    ],
)
def test_spark_writes_if_a_setting_changes_its_files(
    spark: SparkSession, tmp_path: Path, setting: str, value: str
) -> None:
    write = TableWrite(name="t", table=table(tmp_path / "o", "json", {"a": "INT"}))
    schema = pa.schema([("a", pa.int32())])
    assert line_files(spark, write, schema) is not None
    spark.conf.set(setting, value)
    try:
        assert line_files(spark, write, schema) is None
    finally:
        spark.conf.unset(setting)
