"""Faults that workers meet in the middle of a run: each is told with operator and path, and nothing is lost by it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run import building
from hintplan.runtime.run.execute import execute
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

FIRST_ROWS = 60_000
"""So many that a segment of the join is larger than what is read of a checkpoint before a run."""
PAGE = 4096


def orders_of(batch: int) -> list[dict[str, Any]]:
    if batch == 0:
        return [{"id": i, "customer": i % 5, "amount": i + 0.5} for i in range(FIRST_ROWS)]
    return sample(FIRST_ROWS + 10 * batch, 10)


def run_once(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(180)


def refused(plan: Plan, spark: SparkSession, checkpoint: Path) -> str:
    with pytest.raises(RunError) as caught:
        run_once(plan, spark, checkpoint)
    for noise in ("\tat ", "Traceback", "Py4J"):
        assert noise not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def job(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of two batches that has a third one to read."""
    directory = tmp_path_factory.mktemp("job")
    add_rows(directory, "customers", CUSTOMER_ROWS)
    for batch in range(2):
        add_rows(directory, "orders", orders_of(batch))
    run_once(revenue_plan(directory), spark, directory / "checkpoint")
    add_rows(directory, "orders", orders_of(2))
    return directory


@pytest.fixture
def mended(job: Path, tmp_path: Path) -> Iterator[Path]:
    """A place for a copy of the checkpoint, which workers do not know; the job's result is kept as it is."""
    shutil.copytree(job / "result", tmp_path / "result")
    yield tmp_path / "checkpoint"
    shutil.rmtree(job / "result")
    (tmp_path / "result").rename(job / "result")


def result(job: Path) -> Any:
    return fold(changes(job))


def wanted() -> Any:
    return expected([order for batch in range(3) for order in orders_of(batch)])


def segments(checkpoint: Path) -> list[Path]:
    found = list(checkpoint.glob("sink_result/state/join_o_c.1/0/*/*.arrow"))
    assert any(path.stat().st_size > 1 << 20 for path in found)
    return found


def last_manifests(checkpoint: Path) -> list[Path]:
    found = list(checkpoint.glob("sink_result/state/aggregate_t.1/0/*/1.*.manifest"))
    assert found
    return found


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


Parts = Callable[[Path], list[Path]]
FAULTS: dict[str, tuple[Parts, Callable[[Path], None], str, str]] = {
    "changed segment": (segments, flip, "join_o_c", "bytes that were written"),
    "short segment": (segments, cut, "join_o_c", "bytes that were written"),
    "lost segment": (segments, Path.unlink, "join_o_c", ".arrow is missing"),
    "unreadable segment": (segments, to_directory, "join_o_c", "Is a directory"),
    "short manifest": (last_manifests, cut, "aggregate_t", ".manifest"),
    "lost state": (lambda at: [at / "sink_result" / "state"], shutil.rmtree, "", "no longer has a manifest"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_state_that_is_damaged_after_the_run_has_looked_at_it_is_named_with_its_operator(
    spark: SparkSession, job: Path, mended: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    found, damage, operator, what = FAULTS[fault]
    plan = revenue_plan(job)
    shutil.copytree(job / "checkpoint", mended)
    look = building.refuse_damaged

    def look_then_damage(*arguments: Any, **options: Any) -> None:
        look(*arguments, **options)
        for path in found(mended):
            damage(path)

    with monkeypatch.context() as patched:
        patched.setattr(building, "refuse_damaged", look_then_damage)
        said = refused(plan, spark, mended)
    assert f"operator {operator}" in said
    assert what in said
    assert f"{mended}/sink_result/state/{operator}" in said
    assert "restore it, or the whole checkpoint, from a backup" in said or "whether the worker may read" in said
    shutil.rmtree(mended)
    shutil.copytree(job / "checkpoint", mended)
    run_once(plan, spark, mended)
    assert result(job) == wanted()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for sixteen megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root can make a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path, *, pages: int) -> Path:
    """A file that takes all the room but that of so many pages."""
    path = disk / "filling"
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, PAGE):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
        file.truncate(file.tell() - pages * PAGE)
    return path


@pytest.mark.integration
def test_a_disk_that_gets_full_at_any_step_of_a_batch_is_named_and_nothing_is_lost(
    spark: SparkSession, job: Path, mended: Path, small_disk: Path
) -> None:
    plan, checkpoint = revenue_plan(job), small_disk / "checkpoint"
    shutil.copytree(job / "checkpoint", checkpoint)
    steps: set[str] = set()
    pages = 0
    while True:
        filling = fill(small_disk, pages=pages)
        pages += 1
        try:
            run_once(plan, spark, checkpoint)
        except RunError as error:
            said = str(error)
            assert "No space left on device" in said or "the disk is full" in said
            assert "make room" in said
            assert "\tat " not in said
            found = re.search(r"operator (\w+) cannot keep its state: No space left on device \((.*)\)", said)
            if found and steps == {"Spark's logs"}:
                pages = 0  # the logs of the batch are there, and all room is for its state
            if found:
                steps.add(found[1])
                assert found[2].startswith(f"{checkpoint}/sink_result/state/{found[1]}.1")
            else:
                steps.add("Spark's logs")
            filling.unlink()
        else:
            break
    assert steps == {"join_o_c", "aggregate_t", "Spark's logs"}
    assert result(job) == wanted()
    (small_disk / "filling").unlink()
    run_once(plan, spark, checkpoint)
    assert result(job) == wanted()


def test_a_directory_that_is_gone_during_a_run_ends_it_and_the_run_goes_on_once_it_is_back(
    spark: SparkSession, job: Path, mended: Path
) -> None:
    """The workers know the state by heart, and must not write on where it was."""
    plan = revenue_plan(job)
    shutil.copytree(job / "checkpoint", mended)
    state, elsewhere = mended / "sink_result" / "state", mended.parent / "elsewhere"
    run = execute(plan, spark, checkpoint=str(mended), trigger="50 ms")
    try:
        while not any(batch.batch == 2 for batch in run.new_batches()):
            run.raise_failure()
            run.wait(0.1)
        state.rename(elsewhere)
        add_rows(job, "orders", orders_of(3))
        with pytest.raises(RunError) as caught:
            run.await_termination(180)
        said = str(caught.value)
        # Which worker is given which partition is Spark's choice: another one has to read first.
        gone = r"cannot keep its state: \S*/state/\1\.1/0/\d is missing"
        unread = r"cannot read its state: \S*/state/\1\.1/0/\d\S* (no longer has a manifest|is missing)"
        assert re.search(rf"operator (\w+) ({gone}|{unread})", said)
        assert "\tat " not in said
        with pytest.raises(RunError, match=r"sink_result/state/ is missing \(state of aggregate_t, join_o_c\)"):
            run_once(plan, spark, mended)
        elsewhere.rename(state)
        run_once(plan, spark, mended)
        assert result(job) == expected([order for batch in range(4) for order in orders_of(batch)])
    finally:
        run.stop()
        (job / "orders" / "00003.json").unlink(missing_ok=True)
