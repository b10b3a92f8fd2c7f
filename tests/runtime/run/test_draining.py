"""A checkpoint shows in Spark's logs if it was drained, and some runs are refused then."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.checkpoint.record import CheckpointRecord
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.compare.sources import ENDING, SourceRecord
from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint.files import CheckpointFiles
from hintplan.runtime.engine.logged_files import logged_files
from hintplan.runtime.inspect.snapshot_parts import snapshot_parts
from hintplan.runtime.run import draining
from hintplan.runtime.run.draining import Drained, drained_queries, refuse_drained, write_endings
from hintplan.runtime.spark.ending import ending_batch, ending_path
from hintplan.runtime.storage.local_files import LocalFiles

SOURCES = (
    SourceRecord(operator="scan", table="orders (filesystem)", lineage="1"),
    SourceRecord(operator="window", table=ENDING, lineage="2"),
)
RECORD = CheckpointRecord(
    plan="p",
    partitions=2,
    queries=tuple(
        QueryRecord(id=name, sinks=(name,), sources=SOURCES, states=(), order=order)
        for name, order in (("a", (("scan", 0), ("window", 1))), ("b", ()))  # the second as on Spark Connect
    ),
)
RUNNING = tuple(Query(id=name, sinks=(name,)) for name in "ab")


def found(path: str) -> bytes:
    """An entry of the log of files of a source."""
    return b"v1\n" + json.dumps({"path": path, "timestamp": 1, "batchId": 0}).encode()


def files(began: int, committed: int, **found_by_source: str) -> CheckpointFiles:
    """A checkpoint whose queries have begun and committed these batches; the file that each source has found first."""
    content = {}
    for query in "ab":
        content |= {f"{query}/offsets/{n}": b"v1\n{}\n-\n-" for n in range(began + 1)}
        content |= {f"{query}/commits/{n}": b"v1\n{}" for n in range(committed + 1)}
    for source, path in found_by_source.items():
        query, number = source.split("_")
        content[f"{query}/sources/{number}/0"] = found(path)
    return CheckpointFiles(
        sizes={path: len(data) for path, data in content.items()},
        read=lambda paths: {path: content[path] for path in paths},
    )


def test_a_query_is_drained_when_the_batch_that_ends_event_time_is_committed() -> None:
    a, b = ({f"{query}_1": f"file:///tmp/a%20checkpoint/{query}/ending/2"} for query in "ab")
    assert drained_queries(files(2, 2, **a), RECORD, RUNNING) == Drained(drained=frozenset("a"))
    assert drained_queries(files(2, 2, **b), RECORD, RUNNING) == Drained(drained=frozenset("b"))
    assert drained_queries(files(2, 1, **a), RECORD, RUNNING) == Drained(begun=frozenset("a"))
    assert drained_queries(files(2, 2), RECORD, RUNNING) == Drained()
    assert drained_queries(files(-1, -1), RECORD, RUNNING) == Drained()
    assert drained_queries(files(2, 2, **a), RECORD, RUNNING[1:]) == Drained(), "a plan without the query continues"
    assert drained_queries(files(2, 2, **a), None, RUNNING) == Drained()


def test_a_drain_has_begun_once_spark_has_logged_its_file_although_no_offsets_show_it() -> None:
    logged = files(1, 1, a_1="s3a://bucket/cp/a/ending/2", b_1="hdfs://host/cp/b/ending/2")
    assert drained_queries(logged, RECORD, RUNNING) == Drained(begun=frozenset("ab"))


@pytest.mark.parametrize(
    "path", ["file:///in/ending/2", "file:///cp/c/ending/2", "file:///cp/b/ending/two", "file:///cp/b/ending/2/x", "2"]
)
def test_files_of_tables_end_no_event_time(path: str) -> None:
    assert drained_queries(files(2, 2, b_0=path), RECORD, RUNNING) == Drained()
    assert drained_queries(files(2, 2, a_0="file:///cp/a/ending/2"), RECORD, RUNNING) == Drained(), "it is the scan"


@pytest.mark.parametrize("content", [b"", b"v1", b"v1\n[]", b"v1\n{}", b"v1\n\xff", found("x/a/ending/1") * 2])
def test_a_damaged_log_ends_no_event_time(content: bytes) -> None:
    assert ending_batch(content, "a") is None


def test_the_next_batch_of_each_query_gets_a_file_which_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "reached_by_workers", lambda spark, checkpoint: checkpoint)
    session = cast(SparkSession, None)

    def write() -> dict[str, str]:
        return write_endings(session, str(tmp_path), files(4, 4), {"a": "a/logs.2", "b": "b"})

    paths = write()
    assert paths == {"a": f"{tmp_path}/a/ending/0", "b": f"{tmp_path}/b/ending/5"}
    before = {path: Path(path).stat() for path in paths.values()}
    assert write() == paths
    assert {path: Path(path).stat() for path in paths.values()} == before
    assert [ending_path(tmp_path / logs, 0) for logs in ("a", "a/logs.2")] == [paths["a"]] * 2


@pytest.mark.parametrize("logs", ["a", "a/logs.2"])
def test_the_file_that_ends_event_time_is_no_input_of_its_batch(tmp_path: Path, logs: str) -> None:
    ending, table, other = f"{tmp_path}/a/ending/1", f"{tmp_path}/in/1", f"{tmp_path}/a/ending/2"
    for number, path in enumerate((ending, table, other)):
        (tmp_path / logs / f"sources/{number}").mkdir(parents=True)
        (tmp_path / logs / f"sources/{number}/0").write_bytes(found(f"file://{path}"))
    (tmp_path / logs / "offsets").mkdir()
    (tmp_path / logs / "offsets/1").write_text("v1\n{}" + '\n{"logOffset":0}' * 3)
    assert [file.path for file in logged_files(tmp_path / logs, 1)] == [table, other]


@pytest.mark.parametrize("ended", [False, True])
def test_a_snapshot_is_drained_only_if_the_batch_that_ends_event_time_is_committed(tmp_path: Path, ended: bool) -> None:
    (query,) = (query for query in RECORD.queries if query.id == "a")
    content = {"a/metadata": b"{}", "a/sources/1/0": found("file:///cp/a/ending/1"), "a/ending/1": b"\n"}
    for batch in range(1 + ended):
        content |= {f"a/commits/{batch}": b"v1\n{}", f"a/offsets/{batch}": b'v1\n{}\n-\n{"logOffset":0}'}
    content["a/offsets/0"] = b"v1\n{}\n-\n-"
    for path, data in content.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    record = replace(RECORD, queries=(query,))
    parts = {part.path for part in snapshot_parts(LocalFiles(str(tmp_path)), record, {"a": int(ended)})}
    assert parts == content.keys() - {"a/ending/1", *(() if ended else ("a/sources/1/0",))}


@pytest.mark.parametrize(
    ("before", "drain", "message"),
    [
        (Drained(), False, None),
        (Drained(), True, None),
        (Drained(begun=frozenset("a")), True, None),
        (Drained(drained=frozenset("a")), True, None),  # the other query is left
        (Drained(begun=frozenset("a")), False, "is being drained: the last batch of a closes"),
        (Drained(drained=frozenset("a")), False, "was drained: all windows of a are closed"),
        (Drained(drained=frozenset("ab")), True, "was drained: all windows of a and b are closed"),
    ],
)
def test_a_drained_checkpoint_is_refused_unless_a_drain_has_something_left(
    before: Drained, drain: bool, message: str | None
) -> None:
    if message is None:
        refuse_drained(before, "ab", "cp", drain=drain)
        return
    with pytest.raises(RunError, match=f"checkpoint cp {message}"):
        refuse_drained(before, "ab", "cp", drain=drain)
