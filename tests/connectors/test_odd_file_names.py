"""Every file of a directory is read once, whatever its name and that of the directory; the oracle is what was written.

Spark hides files whose names begin with ``_`` or ``.``, and files below directories that are no partitions.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors.filesystem import source_files
from hintplan.runtime.connectors.table import (
    batch_writer,
    read_batch,
    read_in_arrow,
    read_stream,
    stream_writer,
    why_not_in_arrow,
)

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

NAMES = (
    *(
        "*",
        "a?",
        "a[1]",
        "[a]",
        "a]",
        "a[",
        "[!b]",
        "{a,ab}",
        "a{",
        "\\",
        "a\\b",
        "a:b",
        "a:[",
        "a b",
        " a ",
        "a%20b",
        "%",
    ),
    *("a#b", "a+b", "a&b", "x=1", "a,b;'\"", "a\nb", "añ日", "~$(@<^|", "-a", "ab", "a", "a1"),
)
PLACES = ("a*b", "?", "[1]", "{a,b}", "a\\b", "a:b %20#+&ñ=日", "run [1] *?{x,y}")
FORMATS = ("csv", "json", "parquet")


def write(path: Path, format_: str, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format_ == "parquet":
        with path.open("wb") as file:
            pq.write_table(pa.table({"id": [number]}), file)
    else:
        line = f"{number}" if path.parent.name.startswith("day=") else f"{number},"
        path.write_text((line if format_ == "csv" else json.dumps({"id": number})) + "\n", encoding="utf-8")


def table(path: Path | str, format_: str, **options: str) -> Table:
    columns = (TableColumn(name="id", type="BIGINT"), TableColumn(name="day", type="STRING"))
    return Table(columns=columns, options={"connector": "filesystem", "path": str(path), "format": format_, **options})


def streamed(spark: SparkSession, frame: Any, directory: Path) -> list[Any]:
    """What a stream of one column gives until all is read, in order."""
    name = f"rows_{abs(hash(directory))}"
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    found = sorted(row[0] for row in spark.table(name).collect())
    spark.catalog.dropTempView(name)
    return found


@pytest.mark.parametrize("format_", [pytest.param("csv", marks=pytest.mark.integration), "json", "parquet"])
def test_each_file_is_read_once_whatever_its_name(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    for number, name in enumerate(NAMES):
        write(tmp_path / name, format_, number)
        os.utime(tmp_path / name, (1_700_000_000 + number % 3, 1_700_000_000 + number % 3))  # some at the same time
    for hidden in ("_a", ".a", "sub/a", "sub/[a]", "a*b/a"):
        write(tmp_path / hidden, format_, -1)
    source, numbers = table(tmp_path, format_), list(range(len(NAMES)))
    assert streamed(spark, read_stream(spark, "t", source, ("id",)), tmp_path / "1") == numbers
    assert sorted(row.id for row in read_batch(spark, "t", source, ("id",)).collect()) == numbers
    assert why_not_in_arrow(spark, "t", source, ("id",)) is None
    in_arrow = read_in_arrow(spark, "t", source, ("id",))
    assert streamed(spark, in_arrow.in_spark("sink"), tmp_path / "2") == numbers


@pytest.mark.parametrize("format_", FORMATS)
def test_a_path_is_one_directory_and_no_pattern(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    for number, place in enumerate(PLACES if format_ == "json" else PLACES[-1:]):
        for other in ("a", "1", "axb", "b", "run 1 zzx"):
            write(tmp_path / other / "x", format_, -1)
        write(tmp_path / place / "x", format_, number)
        write(tmp_path / place / "[x]", format_, 100 + number)
        source = table(tmp_path / place, format_)
        assert streamed(spark, read_stream(spark, "t", source, ("id",)), tmp_path / place) == [number, 100 + number]
        assert sorted(row.id for row in read_batch(spark, "t", source, ("id",)).collect()) == [number, 100 + number]
    assert why_not_in_arrow(spark, "t", source, ("id",)) is None
    in_arrow = read_in_arrow(spark, "t", source, ("id",))
    assert streamed(spark, in_arrow.in_spark("sink"), tmp_path / "2") == [number, 100 + number]
    for pattern in ("*", "a?b/x", "{a,b}x"):
        for reading in (read_stream, read_batch):
            with pytest.raises(RunError, match="there is nothing at"):
                reading(spark, "t", table(tmp_path / "a" / pattern, format_), ("id",))


@pytest.mark.parametrize("place", ["plain", "odd [1] *+&ñ=日 %20"])
@pytest.mark.parametrize("is_one_file", [False, True])
def test_files_directly_in_the_directory_are_known_by_their_url(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, is_one_file: bool
) -> None:
    """Spark evaluates the condition for each row, and counting the names in a path costs more than reading the row."""

    def counting(url: Column, depth: int) -> Column:
        return F.raise_error(F.concat(F.lit("names were counted: "), url)).cast("boolean")

    monkeypatch.setattr(source_files, "_is_at", counting)
    write(tmp_path / place / "a b", "json", 1)
    source = table(tmp_path / place / "a b" if is_one_file else tmp_path / place, "json")
    rows = read_stream(spark, "t", source, ("id",))
    if is_one_file:
        assert streamed(spark, rows, tmp_path / "1") == [1]
        return
    write(tmp_path / place / "[x]#%25日", "json", 2)
    assert streamed(spark, rows, tmp_path / "1") == [1, 2]
    write(tmp_path / place / "below" / "a b", "json", 3)
    with pytest.raises(Exception, match=r"names were counted: .*below/a%20b"):
        streamed(spark, rows, tmp_path / "2")


@pytest.mark.parametrize("place", ["plain", "odd [1] *"])
def test_partitions_are_read_with_the_value_that_their_name_has(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    for number, name in enumerate(("day=1/[x]", "day=1/x", "day=[1]/x", "day=a%3Ab/*", "day=a%3Ab/x")):
        write(tmp_path / place / name, "json", number)
    source = table(tmp_path / place, "json")
    wanted = [(0, "1"), (1, "1"), (2, "[1]"), (3, "a:b"), (4, "a:b")]
    rows = read_stream(spark, "t", source, ("id", "day"))
    assert [tuple(row) for row in streamed(spark, rows.selectExpr("struct(id, day)"), tmp_path)] == wanted
    assert sorted(tuple(row) for row in read_batch(spark, "t", source, ("id", "day")).collect()) == wanted


def test_partitions_that_come_while_a_stream_runs_end_it_and_are_read_by_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    frame = read_stream(spark, "t", table(tmp_path / "in", "json"), ("id", "day"))
    write(tmp_path / "in" / "day=1" / "x", "json", 1)
    with pytest.raises(Exception, match="there are new partitions since the run began"):
        streamed(spark, frame, tmp_path / "1")
    frame = read_stream(spark, "t", table(tmp_path / "in", "json"), ("id", "day"))
    rows = streamed(spark, frame.selectExpr("struct(id, day)"), tmp_path / "2")
    assert [tuple(row) for row in rows] == [(1, "1")]


def test_what_a_stream_wrote_below_an_odd_name_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in" / "x", "json", 1)
    out = table(tmp_path / "out [1]", "json")
    rows = read_stream(spark, "t", table(tmp_path / "in", "json"), ("id", "day"))
    query = stream_writer(rows, "t", out, changelog=False).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    with pytest.raises(RunError, match=r"out \[1\]' was written by a streaming job.*\n.*rename the directory"):
        read_stream(spark, "t", out, ("id", "day"))
    with pytest.raises(RunError, match="a streaming job has written to"):
        batch_writer(read_batch(spark, "t", table(tmp_path / "in", "json"), ("id", "day")), "t", out)


def test_a_path_with_a_colon_and_a_pattern_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "a:[1]" / "x", "json", 1)
    for reading in (read_stream, read_batch):
        with pytest.raises(
            RunError, match=r"a:\[1\]', whose name has both a ':' and one of(.|\n)*rename the directory"
        ):
            reading(spark, "t", table(tmp_path / "a:[1]", "json"), ("id",))


def test_a_relative_path_starts_where_the_run_starts(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("x", "[x]", "sub/x"):
        write(tmp_path / name, "json", len(name))
    source = table(os.path.relpath(tmp_path), "json")
    assert streamed(spark, read_stream(spark, "t", source, ("id",)), tmp_path) == [1, 3]


def test_a_text_of_more_than_20_million_characters_is_read_from_json(spark: SparkSession, tmp_path: Path) -> None:
    with (tmp_path / "x").open("w", encoding="utf-8") as file:
        file.write('{"id": 1, "day": "' + "a" * 20_000_001 + '"}\n')
    rows = read_stream(spark, "t", table(tmp_path, "json"), ("day",))
    assert streamed(spark, rows.selectExpr("length(day)"), tmp_path) == [20_000_001]
