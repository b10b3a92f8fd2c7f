"""Faults end a run with what is wrong and what to do; once that is done, the run continues without loss."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.run.execute import execute
from tests.spark.programs import CUSTOMER_ROWS, add_rows, changes, expected, fold, revenue_plan, sample

pytestmark = [pytest.mark.spark, pytest.mark.part(of=3, fixture="spark")]

DEADLINE_SECONDS = 180


def run_once(plan: Plan, spark: SparkSession, checkpoint: Path) -> None:
    assert execute(plan, spark, checkpoint=str(checkpoint), once=True).await_termination(DEADLINE_SECONDS)


def refused(plan: Plan, spark: SparkSession, checkpoint: Path) -> str:
    with pytest.raises(RunError) as caught:
        run_once(plan, spark, checkpoint)
    assert "\tat " not in str(caught.value)
    return str(caught.value)


def with_option(plan: Plan, table: str, **options: str) -> Plan:
    changed = replace(plan.tables[table], options={**plan.tables[table].options, **options})
    return replace(plan, tables={**plan.tables, table: changed})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for three megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root can make a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> Path:
    """A file that takes all the room that is left."""
    path = disk / "filling"
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return path


def test_a_wrong_line_of_json_is_named_and_the_corrected_file_is_read(spark: SparkSession, tmp_path: Path) -> None:
    orders = sample(0, 20)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", orders[:10])
    add_rows(tmp_path, "orders", orders[10:])
    wrong = tmp_path / "orders" / "00001.json"
    right = wrong.read_text(encoding="utf-8")
    wrong.write_text(right + '\n{"id": 20, "customer": oh no', encoding="utf-8")
    plan = revenue_plan(tmp_path)
    said = refused(plan, spark, tmp_path / "checkpoint")
    assert f'{wrong} has a line that does not fit the table: {{"id": 20, "customer": oh no' in said
    assert "'json.ignore-parse-errors' = 'true'" in said
    assert "a stream with allow_missing_files=True" in said
    wrong.write_text(right, encoding="utf-8")
    assert "would lack rows" in refused(plan, spark, tmp_path / "checkpoint")
    agreed = execute(plan, spark, checkpoint=str(tmp_path / "checkpoint"), once=True, allow_missing_files=True)
    assert agreed.await_termination(180)
    assert fold(changes(tmp_path)) == expected(orders)


def test_a_wrong_line_of_csv_is_named_and_skipped_when_that_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    orders = sample(0, 10)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    plan = with_option(revenue_plan(tmp_path), "orders", format="csv")
    lines = [f"{order['id']},{order['customer']},{order['amount']}" for order in orders]
    (tmp_path / "orders" / "0.csv").write_text("\n".join([*lines, "x,y,z"]), encoding="utf-8")
    said = refused(plan, spark, tmp_path / "checkpoint")
    assert (
        f"{tmp_path}/orders/0.csv has a line that does not fit the table (column 'id' is BIGINT, and has x): x,y,z"
        in said
    )
    assert "'csv.ignore-parse-errors' = 'true'" in said
    run_once(with_option(plan, "orders", **{"csv.ignore-parse-errors": "true"}), spark, tmp_path / "checkpoint")
    assert fold(changes(tmp_path)) == expected(orders)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_damaged_state_is_named_and_goes_on_once_it_is_restored(spark: SparkSession, tmp_path: Path) -> None:
    orders = sample(0, 40)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", orders[:10])
    plan = revenue_plan(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    run_once(plan, spark, checkpoint)
    add_rows(tmp_path, "orders", orders[10:20])
    for damage in (flipped, cut, Path.unlink):
        backup = tmp_path / "backup"
        shutil.copytree(checkpoint, backup)
        for path in (checkpoint / "sink_result" / "state" / "join_o_c.1").rglob("*.manifest"):
            damage(path)
        said = refused(plan, spark, checkpoint)
        assert re.search(r"sink_result/state/join_o_c\.1/0/0/0\.\d+\.manifest [\w ]*\(state of join_o_c\)", said)
        assert "from a backup" in said
        shutil.rmtree(checkpoint)
        backup.rename(checkpoint)
    run_once(plan, spark, checkpoint)
    assert fold(changes(tmp_path)) == expected(orders[:20])


def test_a_full_disk_is_named_and_the_run_goes_on_once_there_is_room(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    orders = sample(0, 20)
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    add_rows(tmp_path, "orders", orders[:10])
    plan = revenue_plan(tmp_path)
    run_once(plan, spark, small_disk / "checkpoint")
    add_rows(tmp_path, "orders", orders[10:])
    filling = fill(small_disk)
    said = refused(plan, spark, small_disk / "checkpoint")
    assert "No space left on device" in said or "the disk is full" in said
    assert "make room" in said
    filling.unlink()
    run_once(plan, spark, small_disk / "checkpoint")
    assert fold(changes(tmp_path)) == expected(orders)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_checkpoint_is_named(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path, "customers", CUSTOMER_ROWS)
    (tmp_path / "checkpoint").mkdir(mode=0o500)
    said = refused(revenue_plan(tmp_path), spark, tmp_path / "checkpoint")
    assert f"the checkpoint {tmp_path}/checkpoint cannot be written: Permission denied" in said
    (tmp_path / "checkpoint").chmod(0o700)
    run_once(revenue_plan(tmp_path), spark, tmp_path / "checkpoint")
