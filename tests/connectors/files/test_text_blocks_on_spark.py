"""Blocks of CSV and JSON that Arrow reads: whatever it does not leave to Spark, it reads as Spark does.

Each odd value, and each line with a fault, is a block of its own. The blocks that Arrow reads are put together in one
file, which Spark must read without an error and with the same rows.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.filesystem.text_blocks import ReadBlock, block_reader, record_ends
from hintplan.runtime.connectors.table import read_batch
from tests.sample import gate_seed, sampled

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

TYPES = {
    "i8": "TINYINT",
    "i16": "SMALLINT",
    "i32": "INT",
    "i64": "BIGINT",
    "f32": "FLOAT",
    "f64": "DOUBLE",
    "d1": "DECIMAL(10, 2)",
    "d2": "DECIMAL(38, 18)",
    "d3": "DECIMAL(5, 0)",
    "yes": "BOOLEAN",
    "day": "DATE",
    "at": "TIMESTAMP(3)",
    "ltz": "TIMESTAMP_LTZ(6)",
    "s": "STRING",
    "c": "CHAR(3)",
    "v": "VARCHAR(5)",
}
NUMBERS = [
    "0", "1", "-1", "+1", "-0", "00", "007", "-007", "127", "128", "-128", "-129", "255", "32767", "32768", 
    "2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "1" * 30,
    "9" * 38, "9" * 39, "0" * 50 + "1", "1.0", "1.", ".5", "-.5", "0.1", "1.005", "1.015", "12345678.99", "99999999.99",
    "99999999.995", "100000000", "0.000000000000000001", "0.0000000000000000001", "12.50", "1e2", "1E2", "1e+2", "1e-2",
    "1.5e3", "1e", "e5", "1e400", "-1e400", "1e-400", "1e39", "3.4028235e38", "3.4028236e38", "1.4e-45", "4.9e-324",
    "2.4703282292062327e-324", "0.1234567890123456789", "16777217", "16777219", "9007199254740993",
    "1.00000017881393432",
    "1.00000017881393421", "7.038531e-26", "-0.0", "0x1F", "0x1p3", "1f", "1d", "1L", "NaN", "nan", "Infinity",
    "-Infinity",
    "inf", "Inf", "INF", "+INF", "1,000", "1_000", "½", "٣", " 1", "1 ", "\t1", "1\t", "--1", "-", "+", ".", "1/2",
    "1e5.0",
]  # fmt: skip
TIMES = [
    "2024-02-29", "2023-02-29", "2024-2-9", "2024-02", "2024", "20240229", "0001-01-01", "0000-12-31", "-0001-01-01",
    "9999-12-31", "10000-01-01", "1582-10-10", "1970-01-01", "2024-02-29 ", " 2024-02-29", "2024-02-29T", "2024/02/29",
    "2024-13-01", "2024-00-10", "epoch", "now", "1709164800",
    *(f"2024-02-29{mark}{clock}" for mark in " T" for clock in (
        "10:11:12", "10:11:12.", "10:11:12.1", "10:11:12.12", "10:11:12.123", "10:11:12.123456", "10:11:12.1234567",
        "10:11:12.123456789", "10:11", "10", "1:2:3", "23:59:60", "24:00:00", "10:11:12,5", "10:60:00", "101112",
        "10:11:12Z", "10:11:12.5Z", "10:11:12.123456Z", "10:11:12.1234567Z", "10:11:12z", "10:11:12 Z", "10:11:12UTC",
        "10:11:12+02:00", "10:11:12-02:00", "10:11:12.5+05:45", "10:11:12+0200", "10:11:12+02", "10:11:12+18:00",
        "10:11:12-18:00", "10:11:12+17:59", "10:11:12+18:01", "10:11:12+19:00", "10:11Z", "10:11+02:00", "10Z",
        "10+02:00",
        "10:11:12+2:00", "10:11:12 +02:00", "10:11:12 Europe/Berlin", "10:11:12[Europe/Berlin]", "10:11:12-00:00",
    )),
    "0001-01-01 00:00:00", "0001-01-01 00:00:00Z", "0001-01-01 00:00:00+01:00", "9999-12-31 23:59:59.999999",
    "9999-12-31 23:59:59.999999Z", "9999-12-31 23:59:59-01:00", "1582-10-10 12:00:00", "1582-10-10 12:00:00Z",
    "1883-11-18 12:00:00.5", "1969-12-31 23:59:59.999999", "2024-02-29  10:11:12", "12:30", "12:30:00", "12:30:00.50",
]  # fmt: skip
TEXTS = [
    "a", "", " ", " a", "a ", "\t", "\ta", "a\t", "\x0b", "\x1f", "\x7f", "\x85", "\xa0", "é", "𝄞", "\u2028", "\ufeff",
    "\ufeffa", "\ufffd", "#", "#a", "a#", "null", "NULL", "-", "\\", "\\a", "a\\", "\\\\", "'", "''", "'a'", ";",
    "|", "/",
    "{}", "{", "}", "[", "[1]", "[[", "+I", "true", "True", "TRUE", "tRue", "false", "FALSE", "t", "f", "T", "yes",
    "on",
    "a b", "a  b", "x" * 900, "x" * 9_000, "NaN", ": NaN", "u00e9", "a:b", "\\N", "1e5", "0" * 999,
]  # fmt: skip
BREAKS = ["\n", "a\nb", "\na", "a\n", "\n\n", "\r", "a\rb", "a\r", "\r\n", "a\r\nb", "a\r\n", "\0", "a\0b"]
QUOTES = [
    '"',
    'a"b',
    '"a"',
    '""',
    '"a',
    'a"',
    '","',
    '",',
    ',"',
    ",",
    "a,b",
    ",,",
    '"\n"',
    '\n"',
    '"\n',
    '\\"',
    '\\",\\"',
]
VALUES = [*NUMBERS, *TIMES, *TEXTS, *BREAKS, *QUOTES]
OPTIONS: list[dict[str, str]] = [
    {},
    {"field-delimiter": "\\t"},
    {"field-delimiter": ";", "null-literal": "NULL"},
    {"field-delimiter": " "},
    {"field-delimiter": "1"},
    {"quote-character": "'"},
    {"disable-quote-character": "true"},
    {"disable-quote-character": "true", "escape-character": "\\", "null-literal": "-"},
    {"escape-character": "\\"},
    {"escape-character": "\\", "null-literal": "\\N"},
    {"null-literal": ""},
    {"null-literal": "0"},
    {"allow-comments": "true"},
    {"allow-comments": "true", "disable-quote-character": "true"},
    {"ignore-parse-errors": "true"},
]

SURE = [
    options
    for options in OPTIONS
    if "disable-quote-character" in options
    or ("escape-character" not in options and options.get("field-delimiter") not in (" ", "\\t"))
]
"""The options with which fields in quotes may contain line breaks, and blocks are still read by Arrow."""


def table(path: Path, chosen: str, columns: dict[str, str], options: dict[str, str]) -> Table:
    named = {f"{chosen}.{name}": value for name, value in options.items()}
    return Table(
        columns=tuple(TableColumn(name=name, type=kind) for name, kind in columns.items()),
        options={"connector": "filesystem", "path": str(path), "format": chosen, **named},
    )


def reader_of(source: Table, columns: Iterable[str]) -> ReadBlock:
    reader = block_reader(source, list(columns))
    assert reader is not None
    return reader


def by_spark(spark: SparkSession, source: Table, data: bytes, columns: list[str]) -> list[str]:
    """Each row of a file as text in which NaN is itself and zeros have signs."""
    path = Path(source.options["path"])
    path.mkdir(exist_ok=True, parents=True)
    (path / f"part.{source.options['format']}").write_bytes(data)
    with one_split(spark):
        return rows_of(read_batch(spark, "t", source, tuple(columns)).select(*columns).toArrow(), columns)


@contextlib.contextmanager
def one_split(spark: SparkSession) -> Iterator[None]:
    """Spark reads a file as one split, so that its rows keep their order."""
    spark.conf.set("spark.sql.files.openCostInBytes", "1g")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")


def rows_of(found: pa.Table, columns: list[str]) -> list[str]:
    """Each row as text; days and moments as numbers, because Python has none after the year 9999."""
    values = [found.column(name) for name in columns]
    for place, column in enumerate(values):
        if pa.types.is_temporal(column.type):
            values[place] = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return [repr(row) for row in zip(*(column.to_pylist() for column in values), strict=True)]


def check(
    spark: SparkSession, source: Table, blocks: Iterable[bytes], columns: list[str], *, least: float
) -> list[bytes]:
    """Compare the blocks that Arrow reads, one by one and as a whole; it reads at least a share of them."""
    read = reader_of(source, columns)
    blocks = list(blocks)
    kept: list[bytes] = []
    rows: list[str] = []
    for block in blocks:
        found = read(block)
        if found is not None:
            kept.append(block)
            rows += rows_of(found, columns)
    assert len(kept) >= least * len(blocks), len(kept)
    expected = by_spark(spark, source, b"".join(kept), columns)
    differing = [(found, wanted) for found, wanted in zip(rows, expected, strict=False) if found != wanted]
    assert differing[:3] == []
    assert len(rows) == len(expected)
    whole = read(b"".join(kept))
    # Together, regular blocks may be odd: one block ends lines in another way than the next.
    assert whole is None or rows_of(whole, columns) == expected
    return kept


def quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, 2 * quote) + quote


def csv_lines(options: dict[str, str], columns: Iterable[str]) -> Iterator[bytes]:
    """A line for each column and odd value, with and without quotes; other fields are empty."""
    delimiter = options.get("field-delimiter", ",").replace("\\t", "\t")
    quote = "" if "disable-quote-character" in options else options.get("quote-character", '"')
    names = list(columns)
    for place, _ in enumerate(names):
        for value in VALUES:
            for text in (value, quoted(value, quote)) if quote else (value,):
                fields = [""] * len(names)
                fields[place] = text
                yield (delimiter.join(fields) + "\n").encode()


@pytest.mark.parametrize("options", sampled(SURE, keep=3), ids=str)
@pytest.mark.parametrize("last", sampled(["s", "i64", "at"], keep=1))
def test_csv_values(spark: SparkSession, tmp_path: Path, options: dict[str, str], last: str) -> None:
    columns = {**{name: kind for name, kind in TYPES.items() if name != last}, last: TYPES[last]}
    source = table(tmp_path / "t", "csv", columns, options)
    check(spark, source, csv_lines(options, columns), list(columns), least=0.1)


@pytest.mark.parametrize("options", sampled(OPTIONS, keep=2), ids=str)
def test_csv_without_texts(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    """Without texts, Spark reads line by line."""
    columns = {name: kind for name, kind in TYPES.items() if name not in ("s", "c", "v")}
    source = table(tmp_path / "t", "csv", columns, options)
    check(spark, source, csv_lines(options, columns), list(columns), least=0.05)


@pytest.mark.parametrize("only", sampled(["s", "i32"], keep=1))
def test_csv_of_one_column(spark: SparkSession, tmp_path: Path, only: str) -> None:
    source = table(tmp_path / "t", "csv", {only: TYPES[only]}, {})
    check(spark, source, csv_lines({}, [only]), [only], least=0.05)


def json_lines(columns: Iterable[str]) -> Iterator[bytes]:
    """A line for each column and odd value, as a text, with escapes and without, and as it is."""
    for name in columns:
        for value in VALUES:
            escaped = "".join(f"\\u{ord(mark):04x}" if mark < "\U00010000" else mark for mark in value[:100])
            plain = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
            for text in (f'"{value}"', f'"{plain}"', f'"{escaped}"', value, f"[{value}]", f'{{"a":{value}}}'):
                for key in (name, "other"):
                    yield f'{{"{key}":{text}}}\n'.encode()


@pytest.mark.parametrize("options", sampled([{}, {"ignore-parse-errors": "true"}], keep=1), ids=str)
def test_json_values(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    columns = {**TYPES, "bytes": "BYTES"}
    source = table(tmp_path / "t", "json", columns, options)
    lines = [*json_lines(columns), b'{"bytes":"AAEC/w=="}\n', b'{"bytes":"AAEC/w"}\n', b'{"bytes":"AAEC/x=="}\n']
    check(spark, source, lines, list(columns), least=0.1)


FEW = {"n": "INT", "s": "STRING", "d": "DOUBLE", "t": "TIMESTAMP(3)"}
MARKS = [b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"\\", b" ", b"\t", b"#", b"{", b"}", b":", b"x", b"0", b"-", b"\0"]
MARKS += [b"\xff", "é".encode(), b"[", b"]", b"null", b"'", b'","', b'"\n', b'\n"', b"}\n{", b'"n":1,', b"\\u00e9"]


def csv_record(dice: Random) -> bytes:
    text = dice.choice(["", "a", "a b", '"a"', '"a,b"', '"a""b"', '"a\nb"', '""', '""""'])
    return f"{dice.randrange(-99, 99)},{text},{dice.random()},2024-02-29 10:11:{dice.randrange(60):02}\n".encode()


def json_record(dice: Random) -> bytes:
    text = dice.choice(['""', '"a"', "null", '"a b"', '"a\\nb"', '"\\u00e9"', '"}"', '"{\\""'])
    values = {"n": dice.randrange(-99, 99), "s": text, "d": dice.random(), "o": dice.choice(['{"n":1}', "[1]", "true"])}
    keys = dice.sample(list(values), dice.randrange(1, 5))
    return ("{" + ",".join(f'"{key}":{values[key]}' for key in keys) + "}\n").encode()


def with_faults(block: bytes, dice: Random) -> bytes:
    for _ in range(dice.choice([0, 1, 1, 2, 3])):
        at = dice.randrange(len(block) + 1)
        removed = dice.choice([0, 0, 1, 1, 2])
        block = block[:at] + dice.choice([b"", *MARKS]) + block[at + removed :]
    return block if block.endswith(b"\n") else block + b"\n"


@pytest.mark.parametrize("part", sampled(range(10), keep=1))
@pytest.mark.parametrize(("chosen", "record"), [("csv", csv_record), ("json", json_record)], ids=["csv", "json"])
def test_random_lines_with_faults(
    spark: SparkSession, tmp_path: Path, chosen: str, record: Callable[[Random], bytes], part: int
) -> None:
    dice = Random(gate_seed() * 10 + part)
    blocks = [with_faults(b"".join(record(dice) for _ in range(dice.randrange(1, 4))), dice) for _ in range(1000)]
    source = table(tmp_path / "t", chosen, FEW, {})
    check(spark, source, blocks, list(FEW), least=0.15)
    check(spark, table(tmp_path / "some", chosen, FEW, {}), blocks, ["d"], least=0.15)


@pytest.mark.parametrize("options", sampled(SURE, keep=2), ids=str)
def test_blocks_cut_at_each_end_of_a_record(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    """Pieces of odd files are read by Spark as the whole files are, and blocks of regular ones by Arrow."""
    dice = Random(gate_seed())
    delimiter = options.get("field-delimiter", ",").replace("\\t", "\t").encode()
    quote = options.get("quote-character", '"').encode()
    options = {**options, "ignore-parse-errors": "true"}
    columns = {"n": "STRING", "s": "STRING"}
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    whole.mkdir()
    pieces.mkdir()
    for number in range(60):
        marks = [quote, quote, delimiter, b"\n", b"\n", b"a", b" ", b"\\", b"#", quote * 2, quote + delimiter + quote]
        data = b"".join(dice.choice(marks) for _ in range(60)) + quote + b"\n" + b"".join([b"a", delimiter, b"b\n"] * 3)
        (whole / f"{number:02}.csv").write_bytes(data)
        cuts = [0, *record_ends(table(whole, "csv", columns, options), data).tolist()]
        cuts += [] if cuts[-1] == len(data) else [len(data)]
        for first, last in itertools.pairwise(cuts):
            (pieces / f"{number:02}-{first:04}.csv").write_bytes(data[first:last])
    found = [by_file(spark, table(path, "csv", columns, options)) for path in (whole, pieces)]
    assert found[1] == found[0]


def by_file(spark: SparkSession, source: Table) -> dict[str, list[Any]]:
    """The rows of each file; pieces belong to the file whose number they begin with."""
    columns = (*source.columns, TableColumn(name="file", type="STRING", metadata="file.name", virtual=True))
    with_files = Table(columns=columns, options=source.options)
    rows = read_batch(spark, "t", with_files, ("n", "s", "file")).toArrow().to_pylist()
    found: dict[str, list[tuple[str, Any, Any]]] = {}
    for row in rows:
        found.setdefault(row["file"][:2], []).append((row["file"], row["n"], row["s"]))
    return {name: [row[1:] for row in sorted(kept, key=lambda row: row[0])] for name, kept in sorted(found.items())}
