"""Files that workers write, in the log of Spark's file sink: between batches that Spark writes, and with faults.

Each batch is written to the sink as a query does it, and the rows are those that Spark's reader finds by the log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from hintplan.plans.declarations.tables import Table
from hintplan.plans.errors import RunError
from hintplan.runtime.connectors import table as connectors
from hintplan.runtime.connectors.filesystem.text_sink import arrow_sink
from hintplan.runtime.connectors.filesystem.text_sink.sink_log import SinkLog
from hintplan.runtime.connectors.micro_batch import MicroBatch
from tests.connectors.files.test_round_trips import table

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

FORMATS = ("csv", "json")
COLUMNS = {"k": "BIGINT", "t": "STRING"}
SCHEMA = "k BIGINT, t STRING"


class Killed(BaseException):
    """The driver ends at this moment."""


def rows_of(batch: int) -> pa.Table:
    return pa.table({"k": pa.array(range(batch * 3, batch * 3 + 3), pa.int64()), "t": ["a", 'b"', f"{batch}"]})


def sink(folder: Path, chosen: str, **options: str) -> Table:
    return table(folder, chosen, COLUMNS, **options)


def write(spark: SparkSession, target: Table, batch: int) -> int:
    """Write a batch as tasks do where they can; return the number of its rows."""
    rows = rows_of(batch)
    few = MicroBatch(
        spark=spark,
        in_spark=lambda: spark.createDataFrame(rows, SCHEMA).coalesce(1),
        on_driver=lambda: rows,
        counted=lambda: rows.num_rows,
        is_on_driver=True,
    )
    writer = connectors.micro_batch_writer("t", target, changelog=False, checkpoint="c", part="")
    return writer(few, batch)


def by_spark(spark: SparkSession, target: Table, batch: int) -> int:
    """Write a batch as an earlier version does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrow_sink, "line_files", lambda *_: None)
        return write(spark, target, batch)


WRITERS: dict[str, Callable[[SparkSession, Table, int], int]] = {"tasks": write, "spark": by_spark}


def listed(spark: SparkSession, target: Table) -> list[tuple[int, str]]:
    """The rows that a reader gets by the log."""
    path, chosen = target.options["path"], target.options["format"]
    return sorted(map(tuple, spark.read.format(chosen).option("escape", '"').schema(SCHEMA).load(path).collect()))


def wanted(batches: int) -> list[tuple[int, str]]:
    rows = (row for batch in range(batches) for row in rows_of(batch).to_pylist())
    return [(row["k"], row["t"]) for row in rows]


def data_files(target: Table) -> set[str]:
    return {path.name for path in Path(target.options["path"]).glob("part-*")}


def log_of(target: Table) -> dict[str, list[dict[str, Any]]]:
    """The files of the log with their entries, without what differs from run to run."""
    folder = Path(target.options["path"]) / "_spark_metadata"
    found = {}
    for path in folder.iterdir():
        if not path.name.startswith("."):
            version, *lines = path.read_text(encoding="utf-8").splitlines()
            assert version == "v1"
            found[path.name] = [
                {key: value for key, value in json.loads(line).items() if key not in ("path", "modificationTime")}
                for line in lines
            ]
    return found


@pytest.fixture
def short_log(spark: SparkSession) -> Iterator[None]:
    """Compact the log at each third batch, and delete what is older at once."""
    sink_log = "spark.sql.streaming.fileSink.log"
    settings = {
        f"{sink_log}.compactInterval": "3",
        f"{sink_log}.cleanupDelay": "0",
        "spark.sql.streaming.minBatchesToRetain": "1",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        spark.conf.unset(key)


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize("first", [0, 1])
def test_both_write_one_log_in_turn(
    spark: SparkSession, tmp_path: Path, short_log: None, chosen: str, first: int
) -> None:
    """Each writer compacts and deletes entries of the other."""
    mixed, alone = sink(tmp_path / "mixed", chosen), sink(tmp_path / "alone", chosen)
    for batch in range(9):
        both = list(WRITERS.values())
        assert both[(batch + first) % 2](spark, mixed, batch) == 3
        assert by_spark(spark, alone, batch) == 3
        assert log_of(mixed) == log_of(alone)
        if batch % 3:
            assert listed(spark, mixed) == wanted(batch + 1)
    assert "5.compact" in log_of(mixed)
    assert "0" not in log_of(mixed)
    assert len(data_files(mixed)) == 9
    before = data_files(mixed), log_of(mixed)
    for write_batch in WRITERS.values():
        for batch in (0, 4, 8):
            assert write_batch(spark, mixed, batch) == 0
    assert (data_files(mixed), log_of(mixed)) == before


def killed_before(log: SinkLog, batch: int, files: Any, add: Any) -> None:
    raise Killed


def killed_after(log: SinkLog, batch: int, files: Any, add: Any) -> None:
    add(log, batch, files)
    raise Killed


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize("again", WRITERS)
@pytest.mark.parametrize("moment", [killed_before, killed_after])
def test_a_batch_is_there_once_if_the_driver_ends_at_the_log(
    spark: SparkSession, tmp_path: Path, chosen: str, again: str, moment: Any
) -> None:
    target = sink(tmp_path / "o", chosen, **{"sink.partition-commit.policy.kind": "success-file"})
    write(spark, target, 0)
    (tmp_path / "o" / "_SUCCESS").unlink()
    add = SinkLog.add
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SinkLog, "add", lambda log, batch, files: moment(log, batch, files, add))
        with pytest.raises(Killed):
            write(spark, target, 1)
    was_added = moment is killed_after
    assert listed(spark, target) == wanted(2 if was_added else 1)
    assert len(data_files(target)) == 2, "a file that may be in the log stays"
    assert not (tmp_path / "o" / "_SUCCESS").exists()
    assert WRITERS[again](spark, target, 1) == (0 if was_added else 3)
    assert listed(spark, target) == wanted(2)
    assert (tmp_path / "o" / "_SUCCESS").exists()
    assert write(spark, target, 2) == 3
    assert listed(spark, target) == wanted(3)


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize("other", WRITERS)
def test_of_two_runs_that_write_a_batch_the_first_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, other: str
) -> None:
    target = sink(tmp_path / "o", chosen)
    has = SinkLog.has

    def overtaken(log: SinkLog, batch: int) -> bool:
        before = has(log, batch)
        monkeypatch.setattr(SinkLog, "has", has)
        WRITERS[other](spark, target, batch)
        return before

    monkeypatch.setattr(SinkLog, "has", overtaken)
    with pytest.raises(RunError, match=r"another run has written batch 0 to file:.*/o\n.*stop one of them"):
        write(spark, target, 0)
    assert listed(spark, target) == wanted(1)
    assert write(spark, target, 0) == 0


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize("broken", ["0", "1", "2.compact"])
def test_a_log_that_cannot_be_read_fails_the_batch_as_in_spark(
    spark: SparkSession, tmp_path: Path, short_log: None, chosen: str, broken: str
) -> None:
    """The batch that compacts the log reads it; Spark's reader of the directory fails, too."""
    said = []
    for name, write_batch in WRITERS.items():
        target = sink(tmp_path / name, chosen)
        last = 5 if broken == "2.compact" else 2
        for batch in range(last):
            write(spark, target, batch)
        log = tmp_path / name / "_spark_metadata"
        (log / f".{broken}.crc").unlink(missing_ok=True)
        (log / broken).write_text("v9\n", encoding="utf-8")
        with pytest.raises(Py4JJavaError, match="v9") as caught:
            write_batch(spark, target, last)
        said.append(str(caught.value.java_exception))
        assert not (log / f"{last}.compact").exists()
    assert said[0].replace("tasks", "spark") == said[1]


@pytest.mark.parametrize("mask", [0o002, 0o077])
@pytest.mark.parametrize("chosen", FORMATS)
def test_access_rights_are_those_of_spark(spark: SparkSession, tmp_path: Path, chosen: str, mask: int) -> None:
    modes = []
    before = os.umask(mask)
    try:
        for name, write_batch in WRITERS.items():
            target = sink(tmp_path / name / "below", chosen)
            write_batch(spark, target, 0)
            paths = (tmp_path / name, tmp_path / name / "below", *(tmp_path / name / "below").glob("part-*"))
            modes.append([path.stat().st_mode & 0o7777 for path in paths])
    finally:
        os.umask(before)
    assert len(modes[0]) == 3
    assert modes[0] == modes[1]


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize("folder", ["with blank", "100%", "a%20b", "ü#", "k=v", "a+b&c"])
def test_files_in_oddly_named_directories_are_listed(
    spark: SparkSession, tmp_path: Path, chosen: str, folder: str
) -> None:
    target = sink(tmp_path / folder, chosen)
    for batch, write_batch in enumerate([write, by_spark, write]):
        assert write_batch(spark, target, batch) == 3
    assert listed(spark, target) == wanted(3)
    entries = [
        json.loads(line)["path"].rpartition("/")[0]
        for batch in range(3)
        for line in (tmp_path / folder / "_spark_metadata" / str(batch)).read_text().splitlines()[1:]
    ]
    assert len(entries) == 3
    assert len(set(entries)) == 1
