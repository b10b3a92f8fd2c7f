"""Python workers that start before they are needed, with what tasks import."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hintplan.runtime.spark.map_in_arrow import map_in_arrow
from hintplan.runtime.worker.early_workers import start_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_a_worker_has_what_operators_with_state_import_before_it_runs_one(spark: SparkSession) -> None:
    """Seen from a task that uses none of it."""

    def loaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [name for name in ("hintplan.runtime.operators.join", "pyarrow.compute") if name in sys.modules]
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"name": names})

    rows = map_in_arrow(spark.range(1), loaded, "name STRING").collect()
    assert [row.name for row in rows] == ["hintplan.runtime.operators.join", "pyarrow.compute"]


@pytest.mark.spark
def test_workers_that_cannot_be_started_early_are_left_to_the_first_batch(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)

    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ImportError("no module of this name")

    monkeypatch.setattr("hintplan.runtime.worker.early_workers._nothing", fails)
    thread = start_workers(spark)
    thread.join(120)
    assert not thread.is_alive()
    assert failures == []
