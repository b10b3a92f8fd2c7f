"""Rows by processing time are those that Flink recorded by the time at which it read them, in batches of any size."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hintplan import compile_sql
from tests.flink.arrivals import COMPUTED, COUNT, QUERIES
from tests.runtime.pipeline import Pipeline

RECORDED: dict[str, dict[str, list[list[Any]]]] = json.loads(
    Path(__file__).with_name("arrivals.json").read_text(encoding="utf-8")
)
FILES = "'connector' = 'filesystem', 'path' = 's', 'format' = 'json'"


def rows_of(name: str, batches: int) -> Counter[tuple[int, ...]]:
    columns, query = QUERIES[name]
    source = f"CREATE TABLE s (id BIGINT, {COMPUTED}) WITH ({FILES});"
    sink = f"CREATE TABLE r ({columns}) WITH ('connector' = 'print');"
    pipeline = Pipeline(compile_sql(f"{source} {sink} INSERT INTO r {query};"))
    ids = range(1, COUNT + 1)
    for batch in range(batches):
        pipeline.batch({"s": [(i,) for i in ids[batch * COUNT // batches : (batch + 1) * COUNT // batches]]})
    return pipeline.result


@pytest.mark.parametrize("batches", [1, 3, COUNT])
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_that_flink_left(name: str, batches: int) -> None:
    assert rows_of(name, batches) == Counter(map(tuple, RECORDED[name]["arrived"]))


def test_flink_takes_the_first_for_the_last_by_a_processing_time_that_is_no_value() -> None:
    """If this fails with a later Flink, the remark in docs/sql/queries.md can go."""
    assert RECORDED["the last two"]["pt"] == RECORDED["the first two"]["pt"] == RECORDED["the first two"]["arrived"]
    assert RECORDED["the last two"]["arrived"] != RECORDED["the last two"]["pt"]
