"""The workloads of the stateful benchmark: which rows come in which micro-batch, and that their SQL compiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.workloads import (
    FILES,
    Workload,
    aggregate,
    inner_join,
    numbered,
    part,
    script,
    small_aggregate,
    small_join,
)
from hintplan import compile_sql

MAKERS = {
    "aggregate": lambda scratch: aggregate(scratch, keys=100, rows=8000),
    "join": lambda scratch: inner_join(scratch, facts=3000, dimension=300),
    **{
        kind: lambda scratch, kind=kind: numbered(scratch, kind=kind, keys=100, rows=8000)
        for kind in ("top 3", "deduplicate, first row", "deduplicate, last row")
    },
    "small aggregate": lambda scratch: small_aggregate(scratch, keys=1000, fill=2, batches=3),
    "small join": lambda scratch: small_join(scratch, keys=1000, fill=2, batches=3),
}


def batches(workload: Workload, table: int) -> list[np.ndarray]:
    """The keys of each micro-batch, files taken in order of their modification time."""
    files = sorted(workload.tables[table].directory.iterdir(), key=lambda file: (file.stat().st_mtime, file.name))
    keys = [pq.read_table(file)["k"].to_numpy() for file in files]
    return [np.concatenate(keys[start : start + FILES]) for start in range(0, len(keys), FILES)]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_rows_of_a_workload_are_those_of_its_files(make: Callable[[Path], Workload], tmp_path: Path) -> None:
    workload = make(tmp_path)
    assert workload.rows == sum(
        pq.ParquetFile(file).metadata.num_rows for table in workload.tables for file in table.directory.iterdir()
    )


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_workload_has_one_stateful_operator(make: Callable[[Path], Workload], tmp_path: Path) -> None:
    for primary_keys in (False, True):
        plan = compile_sql(script(make(tmp_path / str(primary_keys)), primary_keys=primary_keys))
        assert sum(1 for operator in plan.operators if operator.state) == 1


def test_a_part_is_the_first_files_of_each_table(tmp_path: Path) -> None:
    whole = MAKERS["join"](tmp_path)
    third = part(whole, 1 / 3)
    assert third.rows == whole.rows // 3
    for table in (0, 1):
        (only,) = batches(third, table)
        np.testing.assert_array_equal(only, batches(whole, table)[0])


def test_small_batches_come_after_each_key_once(tmp_path: Path) -> None:
    for workload, table, size in (
        (small_aggregate(tmp_path, keys=1000, fill=2, batches=3), 0, 1000),
        (small_join(tmp_path, keys=1000, fill=2, batches=3), 1, 500),
    ):
        first, second, *small = batches(workload, table)
        assert sorted([*first, *second]) == list(range(1000))
        assert [len(keys) for keys in small] == [size] * 3
