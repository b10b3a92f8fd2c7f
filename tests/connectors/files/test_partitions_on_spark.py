"""Partition columns: directories as Flink 2.3 names them, and rows by the directories that they are in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from hintplan.plans.declarations.tables import Table, TableColumn
from hintplan.runtime.connectors.table import batch_writer, read_batch, read_stream, stream_writer
from tests.flink.files import PARTITIONS

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]


def table(path: Path, columns: dict[str, str], *by: str, **options: str) -> Table:
    return Table(
        columns=tuple(TableColumn(name=n, type=t) for n, t in columns.items()),
        options={"connector": "filesystem", "format": "json", "path": str(path), **options},
        partitioned_by=by,
    )


def tree(path: Path) -> list[str]:
    return sorted({str(file.parent.relative_to(path)) for file in path.rglob("part-*")})


def put(path: Path, *values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


def streamed(spark, frame: Any, path: Path) -> list[tuple[Any, ...]]:
    """The rows of a stream so far, and in later calls those that came since."""
    query = frame.writeStream.format("parquet").option("path", str(path))
    query.option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True).start().awaitTermination()
    return rows(spark.read.schema(frame.schema).parquet(str(path)))


RECORDED = json.loads((Path(__file__).parents[2] / "flink" / "files.json").read_text())["partitions"]


@pytest.mark.parametrize("kind", PARTITIONS)
def test_directories_are_named_as_flink_names_them(spark, tmp_path: Path, kind: str) -> None:
    target = table(tmp_path / "o", {"v": "INT", "p": kind}, "p")
    values = [f"(1, CAST({value} AS {'TIMESTAMP_NTZ' if 'TIMESTAMP' in kind else kind}))"
              for value in PARTITIONS[kind]]  # fmt: skip
    frame = spark.sql(f"SELECT v, p FROM VALUES {', '.join(values)} AS t(v, p)")
    batch_writer(frame, "t", target)()
    # Flink names a DATE after its number of days, and does not read that again.
    expected = {"p=18262": "p=2020-01-01"}
    assert tree(tmp_path / "o") == sorted(expected.get(name, name) for name in RECORDED[kind])
    found = read_batch(spark, "t", target, ("v", "p"))
    empty = frame.selectExpr("v", "nullif(p, '')" if kind == "STRING" else "p")
    assert rows(found) == rows(empty)
    assert found.schema["p"].dataType == frame.schema["p"].dataType


def test_a_stream_writes_partitions_and_reads_those_that_come_later(spark, tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "day": "DATE", "n": "INT", "v": "STRING"}
    put(tmp_path / "in" / "1.json", *({"id": i, "day": f"2020-01-0{i % 2 + 1}", "n": i % 3} for i in range(6)))
    source = read_stream(spark, "s", table(tmp_path / "in", columns), tuple(columns))
    sink = table(tmp_path / "o", columns, "day", "n")

    def write() -> None:
        out = stream_writer(source, "t", sink, changelog=False, checkpoint=str(tmp_path / "c"))
        out.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()

    write()
    again = read_stream(spark, "t", sink, ("n", "id", "day"))
    first = [(i % 3, i, f"2020-01-0{i % 2 + 1}") for i in range(6)]
    assert [(n, i, str(day)) for n, i, day in streamed(spark, again, tmp_path / "r")] == sorted(first, key=str)
    put(tmp_path / "in" / "2.json", {"id": 9, "day": None, "n": 9})
    write()
    found = [(n, i, str(day)) for n, i, day in streamed(spark, again, tmp_path / "r")]
    assert found == sorted([*first, (9, 9, "None")], key=str)
    assert tree(tmp_path / "o")[-1] == "day=__DEFAULT_PARTITION__/n=9"


def test_only_files_in_partitions_of_all_columns_count(spark, tmp_path: Path) -> None:
    path = tmp_path / "k=1" / "in [x]"
    for at, name in enumerate(("k=a/n=1", "k=b+c%2F/n=2", "", "n=1/k=a", "k=a", "k=a/n=1/deep", "other", "k/n=1")):
        put(path / name / f"{at}.json", {"v": at, "k": "in the file"})
    source = table(path, {"v": "INT", "k": "STRING", "n": "INT"}, "k", "n")
    assert rows(read_batch(spark, "t", source, ("v", "k", "n"))) == [(0, "a", 1), (1, "b+c/", 2)]
    assert streamed(spark, read_stream(spark, "t", source, ("v", "k", "n")), tmp_path / "r") == [
        (0, "a", 1),
        (1, "b+c/", 2),
    ]
    # Read by the last two names, the first of these files would be in a partition of its own path.
    inner = table(tmp_path, {"v": "INT", "k": "STRING"}, "k")
    assert rows(read_batch(spark, "t", inner, ("v",))) == []


def test_a_directory_that_is_no_value_fails_the_run(spark, tmp_path: Path) -> None:
    put(tmp_path / "in" / "n=one" / "1.json", {"v": 1})
    source = table(tmp_path / "in", {"v": "INT", "n": "INT"}, "n")
    with pytest.raises(PySparkException, match="table t: the directory n=one is named after no INT"):
        read_batch(spark, "t", source, ("v", "n")).collect()


def test_a_condition_on_partitions_leaves_out_files(spark, tmp_path: Path) -> None:
    for n in range(3):
        put(tmp_path / "in" / f"n={n}" / "1.json", {"v": n})
    os.chmod(tmp_path / "in" / "n=2" / "1.json", 0o644)
    (tmp_path / "in" / "n=2" / "1.json").write_text("{ this is no JSON")
    source = table(tmp_path / "in", {"v": "INT", "n": "INT"}, "n")
    found = read_batch(spark, "t", source, ("v", "n")).where("n < 2")
    # The file that cannot be read is not opened.
    assert rows(found) == [(0, 0), (1, 1)]
    scan = found._jdf.queryExecution().executedPlan().collectLeaves().head()
    assert scan.metrics().apply("numFiles").value() == 2


@pytest.mark.parametrize("chosen", ["csv", "parquet", "orc", "avro", "raw"])
def test_files_of_every_format_are_without_the_partition_columns(spark, tmp_path: Path, chosen: str) -> None:
    columns = {"k": "STRING", "v": "STRING"}
    target = table(tmp_path / "o", columns, "k", **{"format": chosen, "partition.default-name": "none"})
    batch_writer(spark.sql("SELECT * FROM VALUES ('a', 'x'), (NULL, 'y'), ('b', 'z') AS t(k, v)"), "t", target)()
    assert tree(tmp_path / "o") == ["k=a", "k=b", "k=none"]
    assert rows(read_batch(spark, "t", target, ("v", "k"))) == [("x", "a"), ("y", None), ("z", "b")]
    if chosen == "csv":
        (file,) = (tmp_path / "o" / "k=a").glob("part-*")
        assert file.read_text() == "x\n"
