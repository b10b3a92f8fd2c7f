"""Files of CSV that workers read for operators with state: the same rows and errors as when Spark reads them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan.plans.connectors.files.csv_marks import why_spark_splits
from hintplan.plans.declarations.tables import Column, Table, TableColumn
from hintplan.plans.operators import Calc, SelectItem
from hintplan.runtime.builders.calc_in_arrow import calc_in_arrow
from hintplan.runtime.connectors.filesystem import read, text_files
from hintplan.runtime.connectors.filesystem.odd_csv import ODD_CSV
from hintplan.runtime.connectors.filesystem.odd_records import TEXT
from hintplan.runtime.connectors.filesystem.text_blocks import block_reader
from hintplan.runtime.connectors.table import read_batch, read_in_arrow, read_stream, why_not_in_arrow
from hintplan.runtime.engine.blobs import from_blob
from hintplan.runtime.types import to_arrow
from tests.connectors.files.test_json_in_arrow import answer_of, write
from tests.connectors.files.test_text_blocks_on_spark import OPTIONS, with_faults
from tests.sample import gate_seed, sampled

pytestmark = [pytest.mark.spark, pytest.mark.part(of=2, fixture="spark")]

WITH_TEXT = {"n": "INT", "s": "STRING", "d": "DOUBLE", "t": "TIMESTAMP(3)"}
TEXT_LAST = {"n": "INT", "d": "DOUBLE", "t": "TIMESTAMP(3)", "s": "STRING"}
NUMBERS = {"n": "INT", "s": "INT", "d": "DOUBLE", "t": "TIMESTAMP(3)"}
FILE = {"file": "STRING"}
PLAIN = "1,x,1.5,2024-05-01 01:02:03.5\n"
ODD = (
    *('"1",x,1.5,2024-05-01 01:02:03\n', '1,"x""y",1.5,\n', '1,x"y,1.5,\n', '1,"x"y,1.5,\n', "+1,x,1e3,2024-05-01\n"),
    *("1,x,NaN,2024-05-01T01:02:03\n", ",,,\n", '1,"",1.5,\n', '1,"a\nb",1.5,\n', '1,"a\r\nb",1.5,\n', '1,"a" ,1,\n'),
    *("1, x ,1.5,\n", "1,x,1.5,2024-05-01 01:02:03\r\n", '1,"",1.5,\n', '1,"\n', '",1.5,\n', "1,\0,2,\n", "1,é,2,\n"),
)
OF_TEXTS: list[dict[str, str]] = [{}, {"allow-comments": "true"}, {"null-literal": "NULL"}]
WRONG = (
    "x,x,1.5,\n",
    "1,x\n",
    "1,x,1.5,,\n",
    "1,x,y,\n",
    "1,x,1.5,never\n",
    '"",x,1.5,\n',
    "3000000000,x,1,\n",
    "1 ,x,1,\n",
)


def table(path: Path, columns: Mapping[str, str], options: Mapping[str, str] = {}) -> Table:
    """A table of CSV files; options without a dot belong to the format."""
    named = {key if "." in key else f"csv.{key}": value for key, value in options.items()}
    return Table(
        columns=tuple(
            TableColumn(name=n, type=t, metadata="file.name" if n == "file" else None) for n, t in columns.items()
        ),
        options={"connector": "filesystem", "format": "csv", "path": str(path), **named},
    )


Row = tuple[object, ...]


def rows_of(found: pa.Table) -> list[Row]:
    """Return rows with times as numbers, because Python has none after the year 9999."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in found.itercolumns()
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def by_workers(
    spark: SparkSession, source: Table, columns: Sequence[str], files: Iterable[Path]
) -> list[list[Row] | str]:
    """Return the rows of each file as workers and Spark's parser of odd records read them, or that one is wrong."""
    types = {column.name: to_arrow(column.type) for column in source.columns}
    stored = pa.schema([(name, types[name]) for name in columns])
    task = text_files._ReadingFiles(name="t", table=source, stored=stored, in_pieces=False)
    found: list[list[Row | int] | str] = []
    texts: list[tuple[int, bytearray | None]] = []
    for path in files:
        rows: list[Row | int] = []
        listed = pa.RecordBatch.from_pylist([{text_files.FILE: str(path), text_files.URL: "", text_files.START: 0}])
        for batch in task([listed]):
            for row in batch.to_pylist():
                if row["__rows"] is not None:
                    rows += rows_of(from_blob(row["__rows"]))
                elif row[TEXT] is not None:
                    rows.append(len(texts))
                    texts.append((len(texts), bytearray(row[TEXT])))
        found.append(rows)
    one, _ = ODD_CSV.parsed(F.col("text"), *read._parser(source), source, columns)
    given = spark.createDataFrame(texts, "number int, text binary")
    records = given.select("number", one.alias("one")).select("number", "one.*").toArrow()
    parsed = {int(str(row[0])): row[1:] for row in rows_of(records)}
    results: list[list[Row] | str] = []
    for rows in found:
        whole = [parsed[row] if isinstance(row, int) else (*row, None) for row in rows]
        results.append("wrong" if any(row[-1] is not None for row in whole) else [row[:-1] for row in whole])
    return results


def check(
    spark: SparkSession, directory: Path, source: Callable[[Path], Table], columns: Sequence[str], contents: list[bytes]
) -> int:
    """Compare the rows of files by both readers; return the number of files with a wrong record."""
    paths = [directory / "in" / f"{number:04}.csv" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        write(path, content)
    found = by_workers(spark, source(directory), columns, paths)
    wrong = [path for path, rows in zip(paths, found, strict=True) if rows == "wrong"]
    for path in wrong:
        write(directory / "wrong" / path.stem / path.name, path.read_bytes())
        path.unlink()
    expected: dict[str, list[Row]] = {path.name: [] for path in paths if path not in wrong}
    rows = read_batch(spark, "t", source(directory / "in"), (*columns, "file")).toArrow()
    for *values, name in rows_of(rows):
        expected[str(name)].append(tuple(values))
    different = [
        (contents[int(path.stem)], rows, expected[path.name])
        for path, rows in zip(paths, found, strict=True)
        if path not in wrong and repr(rows) != repr(expected[path.name])
    ]
    assert different[:3] == []
    accepted = []
    for path in sampled_paths(wrong):
        with contextlib.suppress(PySparkException, Py4JJavaError):
            read_batch(spark, "t", source(directory / "wrong" / path.stem), tuple(columns)).collect()
            accepted.append(contents[int(path.stem)])
    assert accepted == []
    return len(wrong)


def sampled_paths(paths: list[Path]) -> list[Path]:
    return Random(gate_seed()).sample(paths, min(len(paths), 25))


def record(dice: Random, types: Iterable[str]) -> bytes:
    fields = []
    for kind in types:
        text = dice.choice(["", "a", "a b", '"a"', '"a,b"', '"a""b"', '"a\nb"', '""', '""""'])
        moment = f"2024-02-29 10:11:{dice.randrange(60):02}"
        of_kind = {"INT": str(dice.randrange(-99, 99)), "DOUBLE": str(dice.random()), "STRING": text}
        fields.append(of_kind.get(kind, moment))
    return (",".join(fields) + "\n").encode()


def odd_files(dice: Random, count: int, types: Mapping[str, str]) -> list[bytes]:
    """Files of some records, most of which are regular, and some of which have faults."""
    marks = [b"+", b'"', b" ", b"\r", b"\0", b"\n", b"#", b'""', b"\xff", b",", b"NULL", b"\n\n", b"\r\n"]
    files = []
    for _ in range(count):
        block = b"".join(record(dice, types.values()) for _ in range(dice.randrange(1, 4)))
        if dice.random() < 0.5:
            block = with_faults(block, dice)
        for _ in range(dice.randrange(3)):
            at = dice.randrange(len(block) + 1)
            block = block[:at] + dice.choice(marks) + block[at:]
        if dice.random() < 0.2:
            block = block.replace(b"\n", b"\r\n")
        if dice.random() < 0.1:
            block = b"\xef\xbb\xbf" + block
        files.append(block.rstrip(b"\n") if dice.random() < 0.2 else block)
    return files


@pytest.mark.parametrize("columns", [("n", "s", "d", "t"), ("s",), ("d", "n")], ids=",".join)
@pytest.mark.parametrize("options", sampled(OF_TEXTS, keep=1), ids=str)
@pytest.mark.parametrize("types", sampled([WITH_TEXT, TEXT_LAST, NUMBERS], keep=1), ids=["text", "last", "numbers"])
def test_odd_files(
    spark: SparkSession, tmp_path: Path, types: dict[str, str], options: dict[str, str], columns: tuple[str, ...]
) -> None:
    dice = Random(gate_seed())
    wrong = check(
        spark, tmp_path, lambda path: table(path, types | FILE, options), columns, odd_files(dice, 250, types)
    )
    assert 0 < wrong < 240


@pytest.mark.parametrize("options", sampled(OPTIONS[:-1], keep=2), ids=str)
def test_odd_files_by_lines(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    """Without texts, all options are read by workers."""
    dice = Random(gate_seed())
    delimiter = options.get("field-delimiter", ",").replace("\\t", "\t").encode()
    files = [data.replace(b",", delimiter) for data in odd_files(dice, 250, NUMBERS)]
    for number, columns in enumerate((("n", "s", "d", "t"), ("t", "s"))):
        check(spark, tmp_path / str(number), lambda path: table(path, NUMBERS | FILE, options), columns, files)


def both(spark: SparkSession, source: Table, directory: Path, columns: Sequence[str] | None = None) -> list[Row] | str:
    """Return the answer, after a check that it is the same whoever reads the files."""
    names = tuple(column.name for column in source.columns) if columns is None else tuple(columns)
    assert why_not_in_arrow(spark, "t", source, names) is None
    by_spark = answer_of(spark, read_stream(spark, "t", source, names), source, directory / "by-spark")
    by_worker = answer_of(
        spark, read_in_arrow(spark, "t", source, names).in_spark("t"), source, directory / "by-workers"
    )
    assert by_worker == by_spark
    return by_worker


def test_files_are_read_the_same_whoever_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    data = "".join([PLAIN, *ODD, PLAIN])
    write(tmp_path / "in" / "a b.csv", data)
    write(tmp_path / "in" / "100%25 grüße#1?.csv", data.removesuffix("\n"))
    write(tmp_path / "in" / "bom.csv", "\ufeff" + data)
    write(tmp_path / "in" / "dos.csv", (PLAIN * 3).replace("\n", "\r\n"))
    write(tmp_path / "in" / "empty.csv", "")
    write(tmp_path / "in" / "blank.csv", "\n\n")
    write(tmp_path / "in" / "d.csv.gz", gzip.compress(data.encode()) * 2)
    write(tmp_path / "in" / "d.csv.bz2", bz2.compress(data.encode()))
    found = both(spark, table(tmp_path / "in", WITH_TEXT | FILE), tmp_path)
    assert isinstance(found, list)
    counts = [len([row for row in found if row[4] == name]) for name in ("a b.csv", "d.csv.gz", "dos.csv", "blank.csv")]
    assert counts[0] > 15
    assert counts[1:] == [2 * counts[0], 3, 0]


@pytest.mark.parametrize("record", sampled(WRONG, keep=2))
@pytest.mark.parametrize("types", [WITH_TEXT, WITH_TEXT | {"s": "INT"}], ids=["text", "numbers"])
def test_a_wrong_record_fails_with_the_words_of_spark(
    spark: SparkSession, tmp_path: Path, record: str, types: dict[str, str]
) -> None:
    record = record.replace("x,", "2,") if types["s"] == "INT" and not record.startswith("x") else record
    write(tmp_path / "in" / "a.csv", "1,2,1.5,\n" + record + "1,2,1.5,\n")
    found = both(spark, table(tmp_path / "in", types), tmp_path)
    assert isinstance(found, str)
    assert "a.csv has a line that" in found


@pytest.mark.parametrize("changelog", ["true", "upsert"])
def test_changelogs(spark: SparkSession, tmp_path: Path, changelog: str) -> None:
    rows = ["1,x,+I", "+1,y,+U", "2,z,-D", '"3",z,"+I"', "4,w," if changelog == "upsert" else "1,x,-U"]
    write(tmp_path / "in" / "a.csv", "\n".join(rows))
    write(tmp_path / "in" / "b.csv", "\r\n".join(rows) + "\r\n")
    source = table(tmp_path / "in", {"n": "INT", "s": "STRING"}, {"source.changelog": changelog})
    assert len(both(spark, source, tmp_path)) == 2 * len(rows)
    write(tmp_path / "in" / "c.csv", "1,x,+J\n")
    for rows_of_table in (read_stream, lambda *given: read_in_arrow(*given).in_spark("t")):
        found = answer_of(spark, rows_of_table(spark, "t", source, ("n", "s")), source, tmp_path / str(rows_of_table))
        assert "a row of a changelog has the op +J" in found or "an upsert has the op +J" in found


def test_partitions(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in" / "day=2024-01-01" / "a.csv", "1,x\n+2,y\n")
    write(tmp_path / "in" / "day=2024-01-02" / "a.csv", "3,x\n")
    source = table(tmp_path / "in", {"n": "INT", "s": "STRING", "day": "DATE"} | FILE)
    source = Table(columns=source.columns, options=source.options, partitioned_by=("day",))
    assert len(both(spark, source, tmp_path)) == 3


@pytest.mark.parametrize(
    ("record", "condition", "fails"),
    [
        ("1,,bad", "n > 5", False),
        ("1,y,bad", "n > 5 AND d > 4", False),
        (",y,bad", "n > 5", False),
        ("1,y,bad", "n > 5 OR d > 4", True),
        ("bad,y,bad", "n > 5", True),
        ("6,y,bad", "n > 5", True),
        ("1,y", "n > 5", False),
        ("1", "s = 'a'", True),
        ("1", "d > 4", True),
        ("1,a", "d > 4", True),
        ("1,a", "n > 5 OR d > 4", True),
        ("1,a", "n > 0", True),
        ("1,a", "s = 'a' AND n < 5", True),
        ("1,y,2,3", "n > 5", False),
    ],
)
@pytest.mark.parametrize("first", ["s", "d"])
def test_a_wrong_record_that_a_condition_drops_does_not_fail(
    spark: SparkSession, tmp_path: Path, record: str, condition: str, fails: bool, first: str
) -> None:
    """Spark's reader evaluates the condition on the other values of the record."""
    write(tmp_path / "in" / "a.csv", f"7,a,5\n{record}\n8,a,6\n")
    source = table(tmp_path / "in", {"n": "INT", "s": "STRING", "d": "DOUBLE"})
    columns = tuple(Column(name=column.name, type=column.type) for column in source.columns)
    items = tuple(SelectItem(name=column.name) for column in columns)
    calc = calc_in_arrow(Calc(id="calc", inputs=("t",), filter=condition, select=items), columns, ())
    assert calc is not None
    in_arrow = read_in_arrow(spark, "t", source, ("n", "s", "d"))
    by_worker = in_arrow.then(calc, in_arrow.schema).in_spark("t")
    by_spark = read_stream(spark, "t", source, ("n", "s", "d")).where(condition)
    found = [answer_of(spark, rows, source, tmp_path / str(n)) for n, rows in enumerate((by_spark, by_worker))]
    assert found[0] == found[1]
    assert isinstance(found[0], str) == fails


@pytest.mark.parametrize("types", [WITH_TEXT, NUMBERS], ids=["text", "numbers"])
def test_the_plan_knows_which_options_only_spark_can_read(tmp_path: Path, types: dict[str, str]) -> None:
    more = [{"escape-character": "\\", "field-delimiter": "#"}, {"quote-character": "é"}, {"quote-character": ","}]
    sources = [table(tmp_path, types, options) for options in (*OPTIONS, *more)]
    assert [why_spark_splits(source) is None for source in sources] == [
        block_reader(source, list(types)) is not None for source in sources
    ]
