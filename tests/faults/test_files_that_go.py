"""Source files that are removed or replaced after Spark has noted them for a batch: nothing is lost in silence.

A batch that is repeated reads what was noted for it, and what is gone then would lack for good.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.connectors.policy import Policy
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.engine.logged_files import LoggedFile, logged_files
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.connectors.lakes.lakes import in_with
from tests.faults.test_sinks_of_other_checkpoints import SINKS

FILES = 12


def plan_of(folder: Path, sinks: dict[str, str], *, join: bool = False) -> Plan:
    """A plan that writes the ids of two tables, or of those in both, to each of ``sinks``."""
    for name in ("a", "b"):
        (folder / name).mkdir(exist_ok=True)
    files = "WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{}');"
    rows = "SELECT a.id FROM a JOIN b ON a.id = b.id" if join else "SELECT id FROM a UNION ALL SELECT id FROM b"
    script = [f"CREATE TABLE {name} (id BIGINT) " + files.format(folder / name) for name in ("a", "b")]
    script += [f"CREATE TABLE r{at} (id BIGINT) WITH ({options});" for at, options in enumerate(sinks.values())]
    inserts = "".join(f"INSERT INTO r{at} {rows};" for at, _ in enumerate(sinks))
    return hintplan.compile_sql("".join(script) + f"BEGIN STATEMENT SET; {inserts} END;")


def add(folder: Path, table: str, number: int) -> Path:
    file = folder / table / f"{number} ü.json"
    file.write_text(json.dumps({"id": number}) + "\n")
    return file


def run(plan: Plan, spark: SparkSession, folder: Path, **more: bool) -> None:
    execute(plan, spark, checkpoint=str(folder / "checkpoint"), once=True, **more).await_termination()


def forget(folder: Path) -> None:
    """The last batch of each query has not ended, as if the run was killed before."""
    for commits in (folder / "checkpoint").glob("*/commits"):
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        for path in (commits / str(last), commits / f".{last}.crc"):
            path.unlink(missing_ok=True)


def removed(file: Path) -> None:
    file.unlink()


def replaced(file: Path) -> None:
    file.unlink()
    file.write_text('{"id": 999}\n')
    os.utime(file, (1, 1))


def touched(file: Path) -> None:
    os.utime(file, (2e9, 2e9))


CHANGES = {"is gone": removed, "was changed": replaced, "was changed since": touched}
WRITTEN = {
    **{name: in_with(sink(Path("{}"))) for name, (sink, _) in SINKS.items() if name != "iceberg"},
    "print": "'connector' = 'print'",
    "several": "",
}


@pytest.mark.spark
@pytest.mark.part(of=3, fixture="spark")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sink", WRITTEN)
def test_a_batch_that_is_repeated_misses_no_file_in_silence(
    spark: SparkSession, tmp_path: Path, sink: str, change: str
) -> None:
    chosen = ["filesystem", "jdbc"] if sink == "several" else [sink]
    plan = plan_of(tmp_path, {name: WRITTEN[name].replace("{}", str(tmp_path)) for name in chosen})
    add(tmp_path, "a", 1)
    run(plan, spark, tmp_path)
    add(tmp_path, "a", 2)
    file = add(tmp_path, "b", 3)
    run(plan, spark, tmp_path)
    forget(tmp_path)
    kept = tmp_path / "kept"
    shutil.copy2(file, kept)
    CHANGES[change](file)
    add(tmp_path, "a", 4)
    with pytest.raises(
        RunError, match=rf"batch 1 would lack rows: .*/b/3 ü\.json {change.removesuffix(' since')}"
    ) as caught:
        run(plan, spark, tmp_path)
    assert "allow_missing_files=True" in str(caught.value)
    shutil.copy2(kept, file)
    run(plan, spark, tmp_path)
    for name in chosen:
        if name in SINKS:
            assert SINKS[name][1](spark, tmp_path) == [1, 2, 3, 4]


@pytest.mark.spark
def test_whoever_starts_the_run_can_go_on_without_a_file(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"delta": WRITTEN["delta"].replace("{}", str(tmp_path))})
    run(plan, spark, tmp_path)
    file = add(tmp_path, "a", 1)
    add(tmp_path, "a", 2)
    run(plan, spark, tmp_path)
    shutil.rmtree(tmp_path / "table")
    forget(tmp_path)
    file.unlink()
    run(plan, spark, tmp_path, allow_missing_files=True)
    assert SINKS["delta"][1](spark, tmp_path) == [2]


@pytest.mark.spark
def test_files_that_are_removed_after_their_batch_are_no_matter(spark: SparkSession, tmp_path: Path) -> None:
    """Beyond the tenth entry, too, with which Spark sums up all before."""
    plan = plan_of(tmp_path, {"print": WRITTEN["print"]}, join=True)
    noted: dict[int, list[LoggedFile]] = {}
    for number in range(FILES):
        files = [add(tmp_path, table, number) for table in ("a", "b")[: 1 + number % 2]]
        changed = {str(file): file.stat().st_mtime_ns // 1_000_000 for file in files}
        run(plan, spark, tmp_path)
        (logs,) = {path.parent for path in (tmp_path / "checkpoint").glob("*/offsets")}
        noted[number] = sorted(logged_files(logs, number), key=lambda file: file.path)
        assert noted[number] == [LoggedFile(path, time) for path, time in sorted(changed.items())]
        for file in files:
            file.unlink()


def logs_of(folder: Path, offsets: dict[int, list[str]], sources: dict[str, list[tuple[str, int]]]) -> Path:
    (folder / "offsets").mkdir()
    for batch, lines in offsets.items():
        (folder / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))
    for name, entries in sources.items():
        file = folder / "sources" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        found = [json.dumps({"path": path, "timestamp": 5, "batchId": number}) for path, number in entries]
        file.write_text("\n".join(["v1", *found]))
    return folder


LOGS: list[tuple[str, dict[int, list[str]], dict[str, list[tuple[str, int]]], list[str]]] = [
    ("first", {0: ['{"logOffset":0}']}, {"0/0": [("file:///a", 0), ("file:///b%20c", 0)]}, ["/a", "/b c"]),
    ("nothing new", {0: ['{"logOffset":0}'], 1: ['{"logOffset":0}']}, {"0/0": [("file:///a", 0)]}, []),
    ("summed up", {8: ['{"logOffset":8}'], 9: ['{"logOffset":9}']},
     {"0/9.compact": [(f"file:///{n}", n) for n in range(10)]}, ["/9"]),
    ("several entries", {0: ['{"logOffset":0}'], 1: ['{"logOffset":2}']},
     {"0/1": [("file:///a", 1)], "0/2": [("file:///b", 2)]}, ["/a", "/b"]),
    ("a source that has none", {0: ["-", '{"logOffset":0}']}, {"1/0": [("file:///a", 0)]}, ["/a"]),
    ("a source that comes later", {0: ["-"], 1: ['{"logOffset":0}']}, {"0/0": [("file:///a", 0)]}, ["/a"]),
    ("topics", {0: ['{"t":{"0":5}}', "7", '"x"', "no JSON"]}, {}, []),
    ("elsewhere", {0: ['{"logOffset":0}']}, {"0/0": [("s3a://b/a", 0), ("hdfs://n/a", 0)]}, []),
    ("no logs", {}, {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("what", "offsets", "sources", "expected"), LOGS, ids=[case[0] for case in LOGS])
def test_the_files_of_a_batch_are_those_between_its_offsets(
    tmp_path: Path,
    what: str,
    offsets: dict[int, list[str]],
    sources: dict[str, list[tuple[str, int]]],
    expected: list[str],
) -> None:
    logs = logs_of(tmp_path, offsets, sources)
    assert [file.path for file in logged_files(logs, max(offsets, default=0))] == expected


def settle(execution: Execution) -> None:
    """Wait until the queries have taken what is there now."""
    for query in execution.queries.values():
        query.processAllAvailable()


@pytest.mark.spark
@pytest.mark.parametrize("sink", ["filesystem", "jdbc", "print"])
def test_no_link_that_is_made_while_a_stream_runs_leads_out(spark: SparkSession, tmp_path: Path, sink: str) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    plan = plan_of(inside, {sink: WRITTEN[sink].replace("{}", str(inside))})
    add(inside, "a", 1)
    (outside / "secret.json").write_text('{"id": 666}\n')
    policy = Policy(paths=(str(inside),))
    execution = execute(plan, spark, checkpoint=str(inside / "checkpoint"), trigger="100 ms", policy=policy)
    try:
        settle(execution)
        (inside / "b" / "2.json").symlink_to(inside / "a" / "1 ü.json")
        settle(execution)
        (inside / "b" / "3.json").symlink_to(outside / "secret.json")
        with pytest.raises(RunError, match=r"the run may not reach .*/inside/b/3\.json") as caught:
            execution.await_termination(60)
    finally:
        execution.stop()
    assert f"paths=('{outside}/secret.json',)" in str(caught.value)
    if sink in SINKS:
        assert SINKS[sink][1](spark, inside) == [1, 1]
    with pytest.raises(RunError, match=r"is not below what the run may reach|may not reach"):
        execute(plan, spark, checkpoint=str(inside / "checkpoint"), once=True, policy=policy)
