"""Success files say that a partition has what a micro-batch or a job has added, and are no rows to any reader."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hintplan import compile_sql
from hintplan.plans.errors import SqlError
from hintplan.runtime.run.execute import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_SECONDS = 180
KIND = "sink.partition-commit.policy.kind"
SUCCESS = {KIND: "success-file"}


def script(place: Path, options: dict[str, str], *, partitioned: bool = True, mode: str = "") -> str:
    given = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    files = "'connector' = 'filesystem', 'format' = 'json'"
    return (
        f"{mode}CREATE TABLE t (a INT, k STRING) WITH ({files}, 'path' = '{place}/t');"
        f"CREATE TABLE o (a INT, k STRING) {'PARTITIONED BY (k)' if partitioned else ''} "
        f"WITH ({files}, 'path' = '{place}/o'{given});"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({KIND: "metastore,success-file"}, "cannot be 'metastore': there is no metastore"),
        ({KIND: "custom"}, "cannot be 'custom': policies of one's own are classes of Java"),
        ({KIND: "x"}, "cannot be 'x': it is no policy of Flink's"),
        ({"sink.partition-commit.trigger": "process-time"}, f"has no meaning without '{KIND}'"),
        ({**SUCCESS, "sink.partition-commit.trigger": "partition-time"}, "a micro-batch has no watermark"),
        ({**SUCCESS, "sink.partition-commit.delay": "1 h"}, "each micro-batch commits its partitions"),
        ({**SUCCESS, "sink.partition-commit.delay": "x"}, "cannot be 'x'"),
        ({**SUCCESS, "sink.partition-commit.success-file.name": "done"}, "must begin with '_' or '.'"),
        ({**SUCCESS, "sink.partition-commit.success-file.name": "_a/b"}, "must begin with '_' or '.'"),
        ({**SUCCESS, "sink.partition-commit.watermark-time-zone": "UTC"}, "is not supported: each micro-batch commits"),
    ],
)
def test_what_is_not_done_is_refused_with_the_reason(options: dict[str, str], message: str) -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(script(Path("x"), options))
    assert message in caught.value.diagnostics[0].message


def test_what_flink_takes_for_nothing_is_taken() -> None:
    more = {"sink.partition-commit.trigger": "process-time", "sink.partition-commit.delay": "0 s"}
    assert compile_sql(script(Path("x"), {**SUCCESS, **more}) + "INSERT INTO o SELECT a, k FROM t;")


def put(place: Path, name: str, *keys: str) -> None:
    (place / "t").mkdir(exist_ok=True)
    rows = (json.dumps({"a": number, "k": key}) for number, key in enumerate(keys))
    (place / "t" / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def run(spark: SparkSession, text: str, **how: Any) -> None:
    execution = execute(compile_sql(f"{text}INSERT INTO o SELECT a, k FROM t;"), spark, **how)
    try:
        assert execution.await_termination(DEADLINE_SECONDS), "it does not end"
    finally:
        execution.stop()


def marks(place: Path, name: str = "_SUCCESS") -> dict[str, int]:
    """When the directories below the table were marked, by their names."""
    found = {str(file.parent.relative_to(place / "o")): file.stat() for file in (place / "o").rglob(name)}
    assert all(status.st_size == 0 for status in found.values())
    return {directory: status.st_mtime_ns for directory, status in found.items()}


@pytest.mark.spark
def test_a_stream_marks_what_each_micro_batch_adds_to(spark: SparkSession, tmp_path: Path) -> None:
    interval = "spark.sql.streaming.fileSink.log.compactInterval"
    spark.conf.set(interval, "2")  # so that the list of the second batch has the files of the first one, too
    checkpoint = tmp_path / "checkpoint"
    try:
        put(tmp_path, "1", "x", "y")
        run(spark, script(tmp_path, SUCCESS), checkpoint=str(checkpoint), once=True)
        first = marks(tmp_path)
        assert set(first) == {"k=x", "k=y"}
        put(tmp_path, "2", "y", "a b/c%")
        run(spark, script(tmp_path, SUCCESS), checkpoint=str(checkpoint), once=True)
        second = marks(tmp_path)
        (odd,) = {*second} - {"k=x", "k=y"}
        assert odd == "k=a b%2Fc%25"
        assert second["k=x"] == first["k=x"]
        assert second["k=y"] > first["k=y"]

        # The run ended after Spark had listed the files of the batch: they are marked when it runs again.
        (tmp_path / "o" / odd / "_SUCCESS").unlink()
        (commits,) = checkpoint.glob("*/commits")
        os.remove(commits / "1")
        (commits / ".1.crc").unlink(missing_ok=True)
        run(spark, script(tmp_path, SUCCESS), checkpoint=str(checkpoint), once=True)
        assert {*marks(tmp_path)} == {*second}
    finally:
        spark.conf.unset(interval)
    read = spark.read.schema("a int, k string").json(str(tmp_path / "o"))
    assert sorted(row["k"] for row in read.collect()) == ["a b/c%", "x", "y", "y"]


@pytest.mark.spark
def test_a_batch_job_marks_what_it_adds_to(spark: SparkSession, tmp_path: Path) -> None:
    batch = "SET 'execution.runtime-mode' = 'batch';"
    named = {**SUCCESS, "sink.partition-commit.success-file.name": "_done"}
    put(tmp_path, "1", "x", "y")
    run(spark, script(tmp_path, {}, mode=batch))
    assert marks(tmp_path, "_done") == {}
    put(tmp_path, "1", "y", "z")
    run(spark, script(tmp_path, named, mode=batch))
    assert {*marks(tmp_path, "_done")} == {"k=y", "k=z"}
    overwriting = execute(
        compile_sql(script(tmp_path, named, mode=batch) + "INSERT OVERWRITE o SELECT 1, 'x' FROM t;"), spark
    )
    assert overwriting.await_termination(DEADLINE_SECONDS)
    overwriting.stop()
    assert {*marks(tmp_path, "_done")} == {"k=x", "k=y", "k=z"}
    read = spark.read.schema("a int, k string").json(str(tmp_path / "o"))
    assert sorted(row["k"] for row in read.collect()) == ["x", "x", "y", "y", "z"]


@pytest.mark.spark
def test_a_table_without_partitions_is_marked_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "1", "x")
    named = {**SUCCESS, "sink.partition-commit.success-file.name": ".done"}
    batch = "SET 'execution.runtime-mode' = 'batch';"
    run(spark, script(tmp_path, named, partitioned=False, mode=batch))
    assert {*marks(tmp_path, ".done")} == {"."}
