"""Aggregate functions of the user's give what PyFlink's group aggregate gives with the same classes, however cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flink.aggregate_functions import PROGRAMS
from tests.flink.test_programs import compiled, pieces, rows_of
from tests.flink.values import plain
from tests.runtime.functions.aggregates import Bag, Calls, WeightedAverage
from tests.runtime.pipeline import Pipeline

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "aggregates.json").read_text(encoding="utf-8"))


FUNCTIONS: dict[str, type | str] = {"weighted": WeightedAverage, "bag": Bag, "calls": Calls}


def test_there_is_an_answer_for_each_program_and_none_else() -> None:
    assert list(RECORDED) == list(PROGRAMS)


@pytest.mark.parametrize("count", [1, 2, 5, 17])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_leaves_the_rows_that_flink_left(name: str, count: int) -> None:
    columns, query = PROGRAMS[name]
    pipeline = Pipeline(compiled(columns, query, functions=FUNCTIONS))
    for batch in pieces(count):
        pipeline.batch(batch)
        pipeline = pipeline.resumed()
    found = [[plain(value) for value in row] for row in pipeline.result.elements()]
    assert rows_of(found, columns) == rows_of(RECORDED[name], columns)
