"""Files that tasks write have the rows, names and log of Spark's file sink: in runs, replays and failed batches."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.connectors.filesystem.text_sink import arrow_sink
from hintplan.runtime.run.execute import execute
from hintplan.runtime.run.execution import Execution
from tests.sample import each_once
from tests.spark.programs import add_rows

pytestmark = [pytest.mark.spark, pytest.mark.part(of=4, fixture="spark")]

DEADLINE_SECONDS = 180
PAGE = 4096
NAME = r"part-(\d{5})-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-c000\.(json|csv)"
FIRST = [{"k": 1, "v": 4}, {"k": 2, "v": 11}, {"k": 1, "v": 5}]
SECOND = [{"k": 1, "v": 2}, {"k": 3, "v": -5}]
KINDS = [b"1+I", b"1+U", b"1-U", b"2+I", b"3+I"]
"""The keys and the row kinds of the changes, by hand."""
FORMATS = ("csv", "json")
WRITERS = ("tasks", "spark")


def plan_of(
    directory: Path,
    chosen: str,
    *,
    several: bool = False,
    required: bool = False,
    out: Path | None = None,
    tasks: int = 2,
) -> Plan:
    """The sum and the last text of each key, as a changelog in files; with ``several``, in two tables of one query.

    The first table is below ``out``; it takes no NULL in place of a sum if it is ``required``.
    """
    (directory / "o").mkdir(parents=True, exist_ok=True)
    files = f"'connector' = 'filesystem', 'format' = '{chosen}', 'sink.changelog' = 'true'"
    more = "'sink.partition-commit.policy.kind' = 'success-file'"
    columns = "(k BIGINT, n BIGINT, x DOUBLE, t STRING)"
    strict = columns.replace("n BIGINT", "n BIGINT NOT NULL") if required else columns
    return hintplan.compile_sql(
        f"CREATE TABLE o (k BIGINT, v BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{directory / 'o'}');"
        f"CREATE TABLE r {strict} WITH ({files}, {more}, 'path' = '{(out or directory) / 'r'}');"
        f"CREATE TABLE q {columns} WITH ({files}, 'path' = '{directory / 'q'}');"
        "CREATE VIEW s AS SELECT k, SUM(v) AS n, AVG(v / 7e0) AS x, MAX(CONCAT('a\"', CAST(v AS STRING))) AS t "
        "FROM o GROUP BY k;"
        "INSERT INTO r SELECT k, n, x, t FROM s;"
        + ("INSERT INTO q SELECT k, n, x, t FROM s WHERE n > 3;" if several else ""),
        {"parallelism.default": str(tasks)},
        name="files",
    )


def run(plan: Plan, spark: SparkSession, directory: Path) -> Execution:
    execution = execute(plan, spark, checkpoint=str(directory / "checkpoint"), once=True)
    assert execution.await_termination(DEADLINE_SECONDS)
    return execution


def logged(directory: Path, name: str) -> dict[int, list[dict[str, Any]]]:
    """The entries of Spark's log, by batch."""
    logs = (directory / name / "_spark_metadata").glob("[0-9]*")
    return {
        int(log.name): [json.loads(line) for line in log.read_text().splitlines()[1:]]
        for log in logs
        if log.name.isdecimal()
    }


def lines(directory: Path, name: str) -> dict[int, list[bytes]]:
    """The content of the logged files, by batch and in the order of the tasks; the log describes each of them."""
    found = {}
    for batch, entries in logged(directory, name).items():
        found[batch] = []
        for entry in entries:
            file = Path(urlsplit(entry["path"]).path)
            assert file.parent == directory / name
            assert re.fullmatch(NAME, file.name)
            content = file.read_bytes()
            assert entry["size"] == len(content)
            assert entry["modificationTime"] == file.stat().st_mtime_ns // 1_000_000
            found[batch].append(content)
    return found


def by_kind(directory: Path, name: str) -> list[bytes]:
    """The keys and the row kinds of all rows in the logged files."""
    content = b"".join(content for contents in lines(directory, name).values() for content in contents)
    return [
        key + kind for key, kind in sorted(re.findall(rb'^(?:{"k":)?(\d+),.*[,"]([+-][IUD])(?:"})?$', content, re.M))
    ]


def files_of(directory: Path, name: str) -> set[str]:
    return {path.name for path in (directory / name).glob("part-*")}


def written_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_sink, "line_files", lambda *_: None)


@pytest.mark.parametrize(("chosen", "several"), each_once(FORMATS, [True, False]))
def test_tasks_write_the_files_and_the_log_that_spark_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, several: bool
) -> None:
    seen = {}
    for writer in ("tasks", "spark"):
        directory = tmp_path / writer
        plan = plan_of(directory, chosen, several=several)
        with monkeypatch.context() as patched:
            if writer == "spark":
                written_by_spark(patched)
            rows_out = []
            for rows in (FIRST, SECOND):
                add_rows(directory, "o", rows)
                execution = run(plan, spark, directory)
                rows_out.append(
                    [batch.rows_out for name, batch in sorted(execution.progress.items()) if "sink" in name]
                )
        names = ("r", "q") if several else ("r",)
        entries = [
            {
                **entry,
                "path": entry["path"].replace(f"{directory}", "").partition("-")[0],
                "modificationTime": None,
            }
            for name in names
            for batch in sorted(logged(directory, name))
            for entry in logged(directory, name)[batch]
        ]
        assert (directory / "r" / "_SUCCESS").exists()
        seen[writer] = ({name: lines(directory, name) for name in names}, entries, rows_out)
        columns = ("k", "n", "x", "t", "op")
        assert (
            spark.read.format(chosen)
            .schema("k long, n long, x double, t string, op string")
            .load(str(directory / "r"))
            .select(*columns)
            .count()
            == 5
        )
    assert seen["tasks"] == seen["spark"]
    assert sum(len(content) for contents in seen["tasks"][0]["r"].values() for content in contents) > 0


@pytest.mark.parametrize(("chosen", "several"), each_once(FORMATS, [True, False]))
@pytest.mark.parametrize("first", WRITERS)
def test_a_checkpoint_goes_on_whoever_has_written_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, several: bool, first: str
) -> None:
    plan = plan_of(tmp_path, chosen, several=several)
    for number, rows in enumerate((FIRST, SECOND)):
        add_rows(tmp_path, "o", rows)
        with monkeypatch.context() as patched:
            if (first == "spark") == (number == 0):
                written_by_spark(patched)
            run(plan, spark, tmp_path)
    assert by_kind(tmp_path, "r") == KINDS
    if several:
        assert by_kind(tmp_path, "q") == [kind for kind in KINDS if kind[:1] in b"12"]


@pytest.mark.parametrize("chosen", FORMATS)
def test_a_batch_that_is_in_the_log_is_not_written_again(spark: SparkSession, tmp_path: Path, chosen: str) -> None:
    plan = plan_of(tmp_path, chosen)
    for rows in (FIRST, SECOND):
        add_rows(tmp_path, "o", rows)
        run(plan, spark, tmp_path)
    before, entries = files_of(tmp_path, "r"), logged(tmp_path, "r")
    for commit in (tmp_path / "checkpoint").rglob("commits/1"):
        commit.unlink()
        commit.with_name(".1.crc").unlink(missing_ok=True)
    (tmp_path / "r" / "_SUCCESS").unlink()
    execution = run(plan, spark, tmp_path)
    assert [batch.rows_out for name, batch in execution.progress.items() if "sink" in name] == [0]
    assert logged(tmp_path, "r") == entries
    assert sorted(entries) == [0, 1]
    assert files_of(tmp_path, "r") == before
    assert (tmp_path / "r" / "_SUCCESS").exists()


@pytest.mark.parametrize(("chosen", "several"), each_once(FORMATS, [True, False]))
def test_a_batch_that_fails_leaves_no_file_and_is_written_by_the_next_run(
    spark: SparkSession, tmp_path: Path, chosen: str, several: bool
) -> None:
    """The sum of key 3 is NULL, which the table does not take; then it does."""
    plan = plan_of(tmp_path, chosen, several=several, required=True, tasks=1)
    add_rows(tmp_path, "o", FIRST)
    run(plan, spark, tmp_path)
    before = files_of(tmp_path, "r")
    add_rows(tmp_path, "o", [*SECOND[:1], {"k": 3, "v": None}])
    with pytest.raises(RunError, match="table r: column 'n' is NOT NULL, and a row has NULL in it"):
        run(plan, spark, tmp_path)
    assert sorted(logged(tmp_path, "r")) == [0]
    assert files_of(tmp_path, "r") == before
    corrected = plan_of(tmp_path, chosen, several=several, tasks=1)
    run(corrected, spark, tmp_path)
    assert sorted(logged(tmp_path, "r")) == [0, 1]
    assert by_kind(tmp_path, "r") == KINDS


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root can make a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path, *, pages: int) -> Path:
    """A file that takes all the room but that of so many pages."""
    path = disk / "filling"
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * PAGE)
        except OSError:
            file.truncate(file.tell() - pages * PAGE)
    return path


@pytest.mark.integration
@pytest.mark.parametrize("chosen", FORMATS)
def test_a_disk_that_gets_full_at_any_step_is_named_and_the_batch_is_written_once(
    spark: SparkSession, tmp_path: Path, small_disk: Path, chosen: str
) -> None:
    plan = plan_of(tmp_path, chosen, out=small_disk, tasks=1)
    add_rows(tmp_path, "o", FIRST)
    run(plan, spark, tmp_path)
    before = files_of(small_disk, "r")
    add_rows(tmp_path, "o", SECOND)
    said = []
    while True:
        filling = fill(small_disk, pages=len(said))
        try:
            run(plan, spark, tmp_path)
        except RunError as error:
            said.append(str(error))
        else:
            break
        finally:
            filling.unlink()
        if "table r cannot be written to" in said[-1]:
            assert files_of(small_disk, "r") == before
    assert len(said) > 2
    for text in said:
        assert "No space left on device" in text or "the disk is full" in text
        assert "make room" in text
        assert "nothing that was committed is lost" in text
        assert "\tat " not in text
    assert f"table r cannot be written to: No space left on device ({small_disk}/r)" in said[0]
    assert sorted(logged(small_disk, "r")) == [0, 1]
    assert by_kind(small_disk, "r") == KINDS
    run(plan, spark, tmp_path)
    assert by_kind(small_disk, "r") == KINDS


KILLED = """
import os, signal
from pathlib import Path

HERE = Path(__file__).parent
real = os.fchmod

def fchmod(file, mode):
    real(file, mode)
    path = Path(os.readlink(f"/proc/self/fd/{file}"))
    if path.parent == HERE / "r" and not (HERE / "killed").exists():
        (HERE / "killed").write_text(path.name)
        os.kill(os.getpid(), signal.SIGKILL)

os.fchmod = fchmod
"""
"""The first worker that begins a file of ``r`` is killed."""
PROGRAM = """
import sys
from tests.connectors.files.test_files_of_tasks import Path, plan_of, run
from hintplan.runtime.spark.session import start_session

here, chosen = Path(sys.argv[1]), sys.argv[2]
spark = start_session("local[2, 3]", {"spark.sql.shuffle.partitions": "2"})
run(plan_of(here, chosen), spark, here)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("chosen", FORMATS)
def test_a_worker_that_is_killed_while_it_writes_leaves_no_file(tmp_path: Path, chosen: str) -> None:
    """Spark starts the task again; the file that the dead worker has begun is removed after the batch."""
    (tmp_path / "o").mkdir()
    add_rows(tmp_path, "o", FIRST)
    (tmp_path / "sitecustomize.py").write_text(KILLED)
    path = os.pathsep.join((str(tmp_path), os.getcwd(), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), chosen]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    killed = (tmp_path / "killed").read_text()
    assert re.fullmatch(NAME, killed)
    (entries,) = logged(tmp_path, "r").values()
    assert files_of(tmp_path, "r") == {entry["path"].rpartition("/")[2] for entry in entries}
    assert killed not in files_of(tmp_path, "r")
    assert by_kind(tmp_path, "r") == [b"1+I", b"2+I"]
