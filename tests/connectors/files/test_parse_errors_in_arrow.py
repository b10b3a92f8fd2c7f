"""Text files with values that cannot be read, and with the option that ignores them: the same rows by both readers.

The reference is Spark's reader of the same files. A file has some records, so that Arrow reads a part of them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.table import read_batch, read_in_arrow, why_not_in_arrow
from tests.connectors.files.test_csv_in_arrow import NUMBERS, ODD, TEXT_LAST, WITH_TEXT, WRONG, odd_files
from tests.connectors.files.test_json_in_arrow import ODD as ODD_JSON
from tests.connectors.files.test_json_in_arrow import WRONG as WRONG_JSON
from tests.connectors.files.test_json_in_arrow import odd_bytes, write
from tests.connectors.files.test_text_blocks_on_spark import (
    FEW,
    MARKS,
    OPTIONS,
    SURE,
    TYPES,
    csv_lines,
    json_lines,
    json_record,
    one_split,
    rows_of,
    with_faults,
)
from tests.sample import gate_seed, sampled

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

FILE = "__name"
NO_OPTIONS: Mapping[str, str] = {}
PARTS = 40
"""The number of parts of the random files: 250 in each, 10,000 in all."""
JSON_TYPES = TYPES | {"bytes": "BYTES"}


def table(path: Path, chosen: str, columns: Mapping[str, str], options: Mapping[str, str] = NO_OPTIONS) -> Table:
    """A table that ignores errors; options without a dot belong to the format."""
    named = {key if "." in key else f"{chosen}.{key}": value for key, value in options.items()}
    return Table(
        columns=(
            *(TableColumn(name=name, type=kind) for name, kind in columns.items()),
            TableColumn(name=FILE, type="STRING", metadata="file.name"),
        ),
        options={
            "connector": "filesystem", "format": chosen, "path": str(path), f"{chosen}.ignore-parse-errors": "true",
            **named,
        },
    )  # fmt: skip


def by_file(rows: pa.Table, columns: Sequence[str]) -> dict[str, list[str]]:
    names = rows.column(FILE).to_pylist()
    found: dict[str, list[str]] = {}
    for name, row in zip(names, rows_of(rows, list(columns)), strict=True):
        found.setdefault(name, []).append(row)
    return found


def streamed(rows: DataFrame, directory: Path) -> pa.Table:
    collected: list[pa.Table] = []
    query = rows.writeStream.foreachBatch(lambda batch, _: collected.append(batch.toArrow()))
    query.option("checkpointLocation", str(directory)).trigger(availableNow=True).start().awaitTermination()
    return pa.concat_tables(collected)


def check(
    spark: SparkSession, source: Table, files: Iterable[bytes], *read: Sequence[str], directory: Path
) -> list[dict[str, list[str]]]:
    """Write the files and compare the rows of both readers; each of ``read`` are the columns of a query."""
    contents = list(files)
    folder = Path(source.options["path"])
    for number, content in enumerate(contents):
        write(folder / f"{number:05}.{source.options['format']}", content)
    answers = []
    for number, columns in enumerate(read):
        names = (*columns, FILE)
        assert why_not_in_arrow(spark, "t", source, names) is None
        with one_split(spark):
            expected = by_file(read_batch(spark, "t", source, names).select(*names).toArrow(), columns)
        rows = read_in_arrow(spark, "t", source, names).in_spark("t")
        found = by_file(streamed(rows, directory / str(number)), columns)
        different = [
            (content, columns, found.get(name), expected.get(name))
            for name, content in ((f"{place:05}.{source.options['format']}", c) for place, c in enumerate(contents))
            if found.get(name) != expected.get(name)
        ]
        assert different[:3] == [], len(different)
        answers.append(found)
    return answers


def in_files(lines: Sequence[bytes], size: int) -> list[bytes]:
    return [b"".join(lines[first : first + size]) for first in range(0, len(lines), size)]


@pytest.mark.parametrize("options", sampled(SURE, keep=2), ids=str)
@pytest.mark.parametrize("last", sampled(["s", "i64", "at"], keep=1))
def test_csv_values(spark: SparkSession, tmp_path: Path, options: dict[str, str], last: str) -> None:
    columns = {**{name: kind for name, kind in TYPES.items() if name != last}, last: TYPES[last]}
    lines = list(csv_lines(options, columns))
    Random(gate_seed()).shuffle(lines)
    source = table(tmp_path / "t", "csv", columns, options)
    check(spark, source, in_files(lines, 40), list(columns), ["i32"], [last, "d1"], directory=tmp_path)


@pytest.mark.parametrize("options", sampled(OPTIONS[:-1], keep=1), ids=str)
def test_csv_without_texts(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    """Without texts, Spark reads line by line."""
    columns = {name: kind for name, kind in TYPES.items() if name not in ("s", "c", "v")}
    lines = list(csv_lines(options, columns))
    Random(gate_seed()).shuffle(lines)
    source = table(tmp_path / "t", "csv", columns, options)
    check(spark, source, in_files(lines, 40), list(columns), ["i32", "ltz"], directory=tmp_path)


@pytest.mark.parametrize("only", sampled(["s", "i32"], keep=1))
def test_csv_of_one_column(spark: SparkSession, tmp_path: Path, only: str) -> None:
    source = table(tmp_path / "t", "csv", {only: TYPES[only]})
    check(spark, source, in_files(list(csv_lines({}, [only])), 3), [only], directory=tmp_path)


_NO_TEXT = re.compile(rb"""["'](?:s|c|v)["'][ \\t]*:[ \\t]*[^"n \\t]""")
_NO_QUOTE = re.compile(rb"""\xfe(?:[^"]*"[a-z]|[ \t]*[\]}])""")


def is_sure(line: bytes) -> bool:
    """Return True if both readers give the same text, for a line in which one is a value of another kind.

    From a wrong array or object in place of a text, Spark's reader takes a mark such as ``]``. It ends a text at a byte
    that is not UTF-8, and so reads the values around a text without its second quote.
    """
    if _NO_QUOTE.search(line):
        return False
    if not _NO_TEXT.search(line):
        return True
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_what_is_left_out_of_the_comparison() -> None:
    assert [is_sure(b'{"s":' + value + b"}") for value in (b"[1]", b"[1L]", b"-INF", b'"x"', b"x")] == [
        True, False, False, True, False,
    ]  # fmt: skip
    assert [is_sure(b'{"n":1,"s":"a' + rest) for rest in (b'",', b'\xfe",', b'\xfe}', b'\xfe,"n":2}', b"}")] == [
        True, True, False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("part", sampled(range(12), keep=1))
def test_json_values(spark: SparkSession, tmp_path: Path, part: int) -> None:
    lines = list(filter(is_sure, json_lines(JSON_TYPES)))
    Random(7).shuffle(lines)
    source = table(tmp_path / "t", "json", JSON_TYPES)
    files = in_files(lines[part::12], 40)
    check(spark, source, files, list(JSON_TYPES), ["i32"], ["s", "ltz"], directory=tmp_path)


@pytest.mark.parametrize("size", [1, 7])
def test_odd_and_wrong_records(spark: SparkSession, tmp_path: Path, size: int) -> None:
    columns = {
        "i": "INT", "n": "BIGINT", "s": "STRING", "d": "DOUBLE", "m": "DECIMAL(10, 2)", "b": "BOOLEAN", "day": "DATE",
        "at": "TIMESTAMP(6)", "z": "TIMESTAMP_LTZ(6)",
    }  # fmt: skip
    records = [*(text.encode() for text in (*ODD_JSON, *WRONG_JSON)), *odd_bytes(spark)]
    Random(gate_seed()).shuffle(records)
    files = in_files([record + b"\n" for record in records], size)
    check(spark, table(tmp_path / "json", "json", columns), files, list(columns), ["i"], directory=tmp_path / "a")
    lines = [record.encode() for record in (*ODD, *WRONG)]
    for number, types in enumerate((WITH_TEXT, NUMBERS)):
        source = table(tmp_path / f"csv{number}", "csv", types)
        check(spark, source, in_files(lines, size), list(types), ["n"], ["d"], directory=tmp_path / f"c{number}")


ELEMENTS = (
    *('{"n":1}', '{"n":"x"}', '{"n":2,"n":"x"}', '{"n":"x","n":2}', "{}", '{"o":1}', "null", "5", '{"s":"a"}'),
    *('{"s":7,"d":"y"}', '{"n":1', "[]", '[{"n":1}]', '{"n":null}', "{'n':3}", '{"t":"never"}', '{"d":NaN}'),
)


@pytest.mark.parametrize("seed", sampled(range(8), keep=1))
def test_arrays_of_objects(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """An error in one object makes each other object without a value no row."""
    dice = Random(seed)
    arrays = [f"[{element}]" for element in ELEMENTS]
    arrays += [f"[{one},{other}]" for one, other in itertools.product(ELEMENTS, ELEMENTS)]
    behind = ["", "", " ", "]", " x", ',{"n":9}', '{"n":9}']
    files = [
        "".join(f"{dice.choice(['', '', ' '])}{array}{dice.choice(behind)}\n" for array in dice.sample(arrays, 2))
        for _ in range(250)
    ]
    source = table(tmp_path / "t", "json", FEW)
    check(spark, source, (data.encode() for data in files), list(FEW), ["s"], directory=tmp_path)


@pytest.mark.parametrize("part", sampled(range(PARTS), keep=1))
def test_random_files_of_json(spark: SparkSession, tmp_path: Path, part: int) -> None:
    dice = Random(gate_seed() * PARTS + part)
    files = []
    for _ in range(250):
        records = [json_record(dice) for _ in range(dice.randrange(1, 5))]
        if dice.random() < 0.2:
            records.append(b"[" + b",".join(record.rstrip() for record in records) + b"]\n")
        block = with_faults(b"".join(records), dice)
        for _ in range(dice.randrange(3)):
            at = dice.randrange(len(block) + 1)
            block = block[:at] + dice.choice([*MARKS, b'"n":"x",', b'"d":"y",', b"{},"]) + block[at:]
        # Spark's parser overlooks a byte 0xff before a name that it has seen in an earlier record.
        block = block.replace(b"\xff", b"\xfe")
        block = b"".join(filter(is_sure, block.splitlines(keepends=True)))
        files.append(block if dice.random() < 0.8 else block.rstrip(b"\n"))
    source = table(tmp_path / "t", "json", FEW)
    check(spark, source, files, list(FEW), ["d"], ["s", "n"], directory=tmp_path)


CSV_OPTIONS: list[dict[str, str]] = [{}, {"allow-comments": "true"}, {"null-literal": "a"}]


@pytest.mark.parametrize("part", sampled(range(PARTS), keep=2))
def test_random_files_of_csv(spark: SparkSession, tmp_path: Path, part: int) -> None:
    dice = Random(gate_seed() * PARTS + part)
    types, options = [WITH_TEXT, TEXT_LAST, NUMBERS][part % 3], CSV_OPTIONS[part // 3 % 3]
    files = [data.replace(b"0.", dice.choice([b"0.", b"x"])) for data in odd_files(dice, 250, types)]
    source = table(tmp_path / "t", "csv", types, options)
    check(spark, source, files, list(types), ["d"], ["t", "n"], directory=tmp_path)


@pytest.mark.parametrize("changelog", ["true", "upsert"])
@pytest.mark.parametrize("chosen", ["csv", "json"])
def test_the_op_of_a_changelog_is_a_value(spark: SparkSession, tmp_path: Path, chosen: str, changelog: str) -> None:
    csv = [b"1,a,+I\n", b"x,,-D\n", b"+2,,-D\n", b"x,b,+U\n"] + [b"x,,\n", b"3\n", b"4,,\n"] * (changelog == "upsert")
    json = [b'{"n":1,"op":"+I"}\n', b'{"n":"x","op":"-D"}\n', b'[{"n":"x"},{"op":"+U"}]\n', b'{"n":"x"}\n', b"oh\n"]
    source = table(tmp_path / "t", chosen, {"n": "INT", "s": "STRING"}, {"source.changelog": changelog})
    files = csv if chosen == "csv" else json
    (found, some) = check(spark, source, [*files, b"".join(files)], ["n", "s"], ["s"], directory=tmp_path)
    assert sum(map(len, found.values())) == sum(map(len, some.values())) > 4


def test_what_only_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Each column of a row decides whether the row counts, so workers have to know the values of all."""
    for chosen, kind, reason in (
        ("json", "ARRAY<INT>", "nested column c"),
        ("csv", "DECIMAL(38, 20)", "DECIMAL(38, 20) column c"),
        ("csv", "TIME", "TIME column c"),
    ):
        source = table(tmp_path, chosen, {"n": "INT", "c": kind})
        assert why_not_in_arrow(spark, "t", source, ("n",)) == reason
