"""Each program that goes by time has an answer of Flink, which is the answer to the program as it is now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flink.event_time import PROGRAMS, timeline

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "event_time.json").read_text(encoding="utf-8")
)
RUN = "run: .flink/bin/python tests/flink/record_event_time.py --missing"


def test_every_program_has_an_answer_of_flink() -> None:
    assert list(RECORDED) == list(PROGRAMS), RUN


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_answer_is_for_the_program_as_it_is(name: str) -> None:
    program, answer = PROGRAMS[name], RECORDED[name]
    assert answer["tables"] == program.tables
    assert answer["query"] == program.query
    assert tuple(answer.get("views", ())) == program.views
    assert answer.get("config", {}) == program.config
    assert answer.get("parallelism") == program.parallelism
    assert answer["steps"] == [" ".join(step) for step in timeline(program.steps if program.is_run else "")]
    assert ("plan" in answer) == (program.with_plan and "nodes" in answer)
