"""Each part of a checkpoint that is deleted, cut off or overwritten is named by every command, and nothing starts.

What may lack without harm stands in ``SPARE``, with the reason.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from plans.checkpoint.record import local_record
from plans.errors import RunError
from plans.files.codec import dumps
from plans.model.plan import Plan
from runtime.checkpoint.parts import undamaged_record
from runtime.inspect.command import state_command
from runtime.run.check import check_command
from runtime.run.command import run_command
from runtime.run.execution import execute
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = pytest.mark.spark

SPARE = {
    r"sink_result/state/\d/_metadata/v2/\d": "each batch writes the same one",
}
"""What may be missing."""

UNREAD = {
    r"sink_result/state/\d/_metadata/.*": "only hintplan state reads it, through Spark, which checks it",
    r"sink_result/state/\d/_stateSchema/.*": "Spark checks it",
}
"""What is only read by Spark, if at all."""


def run_once(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(180)


def prepared(spark: SparkSession, directory: Path) -> Plan:
    """A job of three batches that has more to read."""
    plan, orders = revenue_plan(directory), sample(0, 40)
    add_rows(directory, "customers", CUSTOMER_ROWS)
    for first in (0, 10, 20):
        add_rows(directory, "orders", orders[first : first + 10])
        run_once(plan, spark, directory / "checkpoint")
    (directory / "plan.json").write_bytes(dumps(plan))
    return plan


@pytest.fixture(scope="module")
def job(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("job")
    prepared(spark, directory)
    return directory


def overwrite(path: Path) -> None:
    path.write_bytes(b"\x00garbage\xff" * (1 + path.stat().st_size // 9))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def parts(checkpoint: Path) -> list[Path]:
    found = [path.relative_to(checkpoint) for path in sorted(checkpoint.rglob("*"))]
    return [path for path in found if not any(name.startswith(".") for name in path.parts)]


def damaged(job: Path, part: Path, damage: Callable[[Path], None], to: Path) -> Path:
    shutil.copytree(job / "checkpoint", to)
    damage(to / part)
    return to


def without(job: Path, parts: str, to: Path) -> Path:
    """A copy that lacks what the pattern fits."""
    shutil.copytree(job / "checkpoint", to)
    for path in list(to.glob(parts)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return to


def reports(checkpoint: Path) -> str:
    """What is said of the checkpoint; nothing if all is well."""
    try:
        undamaged_record(str(checkpoint), {})
    except RunError as error:
        return str(error)
    return ""


def is_loadable(checkpoint: Path, part: Path) -> bool:
    """Whether Spark can load the state of the third batch from the files that are left beside ``part``.

    How many snapshots there are depends on how long the runs took.
    """
    names = {path.name for path in (checkpoint / part).parent.iterdir()}
    starts = [0, *(int(name.removesuffix(".zip")) for name in names if name.endswith(".zip"))]
    return any(all(f"{n}.changelog" in names for n in range(start + 1, 4)) for start in starts)


def is_read(checkpoint: Path, part: Path) -> bool:
    """Whether Spark loads the state of the third batch from this file: the last snapshot, or a change since then."""
    if part.suffix not in (".zip", ".changelog", ".sst"):
        return True
    folder = (checkpoint / part).parent.parent if part.suffix == ".sst" else (checkpoint / part).parent
    newest = max((int(path.stem) for path in folder.glob("*.zip")), default=0)
    if part.suffix == ".sst":
        return len(list(folder.glob("*.zip"))) == 1
    return int(part.stem) > newest or part.name == f"{newest}.zip"


def listed(part: Path, patterns: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern, part.as_posix()) for pattern in patterns)


@pytest.mark.integration
def test_every_part_that_is_missing_is_named(job: Path, tmp_path: Path) -> None:
    assert reports(job / "checkpoint") == ""
    for number, part in enumerate(parts(job / "checkpoint")):
        if part.name == "hintplan.lock":
            continue
        whole = (job / "checkpoint" / part).is_dir()
        if whole and not any(path.is_file() for path in (job / "checkpoint" / part).rglob("[!.]*")):
            continue
        checkpoint = damaged(job, part, shutil.rmtree if whole else Path.unlink, tmp_path / str(number))
        said = reports(checkpoint)
        in_state = part.suffix in (".zip", ".changelog") and is_loadable(checkpoint, part)
        unread = part.suffix == ".sst" and not is_read(checkpoint, part)
        if listed(part, SPARE) or in_state or unread:
            assert said == "", part
            continue
        # Of a directory, the first things that lack in it; of the only file in one, the directory.
        names = "|".join(re.escape(path.as_posix()) for path in (part, *part.parents) if path != Path())
        assert re.search(rf"is damaged: (.*; )?({names})(/\S*)? is missing", said), (part, said)
        assert "hint: restore it, or the whole checkpoint, from a backup" in said


@pytest.mark.parametrize("damage", [overwrite, cut, empty])
def test_every_part_that_is_not_what_was_written_is_named(
    job: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for with_checksums in (True, False):
        for number, part in enumerate(parts(job / "checkpoint")):
            if part.name == "hintplan.lock" or (job / "checkpoint" / part).is_dir() or listed(part, UNREAD):
                continue
            in_state = "/state/" in part.as_posix() and not with_checksums  # Spark has checksums of its own there
            if in_state or not is_read(job / "checkpoint", part):
                continue
            checkpoint = damaged(job, part, damage, tmp_path / f"{with_checksums}{number}")
            if not with_checksums:
                for file in checkpoint.rglob(".*.crc"):
                    file.unlink()
            said = reports(checkpoint)
            assert part.as_posix() in said or (part.parts[0] == "hintplan" and "hintplan" in said), (part, said)


COMMANDS = {"run": run_command, "check": check_command, "state": state_command}
CELLS = (
    ("hintplan", "hintplan/ is missing"),
    ("sink_result", "sink_result/ is missing"),
    ("sink_result/metadata", "sink_result/metadata is missing"),
    ("sink_result/offsets", "sink_result/offsets/0 is missing"),
    ("sink_result/offsets/0", "sink_result/offsets/0 is missing"),
    ("sink_result/offsets/1", "sink_result/offsets/1 is missing"),
    ("sink_result/offsets/2", "sink_result/offsets/2 is missing"),
    ("sink_result/commits", "sink_result/commits/0 is missing"),
    ("sink_result/commits/1", "sink_result/commits/1 is missing"),
    ("sink_result/commits/2", "sink_result/commits/2 is missing"),
    ("sink_result/sources", "sink_result/sources/0/2 is missing"),
    ("sink_result/sources/0/1", "sink_result/sources/0/1 is missing"),
    ("sink_result/state", "sink_result/state/0/ is missing (state of aggregate_t)"),
    ("sink_result/state/1/0", "sink_result/state/1/0/ is missing (state of join_o_c)"),
    ("sink_result/state/1/0/3.*", "sink_result/state/1/0/3.changelog is missing (state of join_o_c)"),
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("part", "said"), CELLS)
def test_commands_refuse_before_spark_starts(job: Path, tmp_path: Path, command: str, part: str, said: str) -> None:
    checkpoint = without(job, part, tmp_path / "checkpoint")
    before = sorted(tmp_path.rglob("*"))
    options = ["--take-over", "--allow-state-drop"] if command == "run" else []
    result = CliRunner().invoke(COMMANDS[command], [str(job / "plan.json"), "--checkpoint", str(checkpoint), *options])
    assert isinstance(result.exception, RunError), result.output
    assert f"checkpoint {checkpoint} is damaged: {said}" in str(result.exception)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("part", "said"), [CELLS[0], CELLS[1], CELLS[6]])
def test_plans_that_a_client_runs_are_refused_too(
    spark: SparkSession, job: Path, tmp_path: Path, part: str, said: str
) -> None:
    checkpoint = without(job, part, tmp_path / "checkpoint")
    plan = revenue_plan(job)
    with pytest.raises(RunError, match=re.escape(said)):
        execute(plan, spark, checkpoint=str(checkpoint), once=True, allow_state_drop=True, take_over=True)
    record = checkpoint / "hintplan" / "record.jsonl"
    assert not record.exists() or local_record(str(checkpoint)) == local_record(str(job / "checkpoint"))


def test_a_run_that_ended_before_its_queries_began_and_one_without_its_last_commit_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = prepared(spark, tmp_path)
    lines = (tmp_path / "checkpoint" / "hintplan" / "record.jsonl").read_text(encoding="utf-8").splitlines()
    fresh = tmp_path / "fresh" / "hintplan"
    fresh.mkdir(parents=True)
    (fresh / "record.jsonl").write_text(lines[0] + "\n", encoding="utf-8")
    assert reports(tmp_path / "fresh") == ""
    for name in ("2", ".2.crc"):  # a killed run leaves neither
        (tmp_path / "checkpoint" / "sink_result" / "commits" / name).unlink()
    run_once(plan, spark, tmp_path / "checkpoint")
    assert fold(changes(tmp_path)) == expected(sample(0, 30))


def test_batches_that_spark_no_longer_keeps_are_not_missed(job: Path, tmp_path: Path) -> None:
    checkpoint = without(job, "sink_result/[oc]*s/0", tmp_path / "checkpoint")
    assert "sink_result/offsets/0 is missing" in reports(checkpoint)
    undamaged_record(str(checkpoint), {"spark.sql.streaming.minBatchesToRetain": "2"})


def test_an_entry_of_the_record_that_is_missing_is_told(job: Path, tmp_path: Path) -> None:
    shutil.copytree(job / "checkpoint", tmp_path / "checkpoint")
    record = tmp_path / "checkpoint" / "hintplan" / "record.jsonl"
    _, *others = record.read_text(encoding="utf-8").splitlines()
    assert others
    record.write_text("\n".join([*others, ""]), encoding="utf-8")
    assert "hintplan has lost an entry: that of the plan that ran as number 1" in reports(tmp_path / "checkpoint")
