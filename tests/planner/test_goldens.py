"""Every case of every file in ``cases/`` compiles to what is written there."""

from __future__ import annotations

import pytest

from tests.planner.goldens import CASES, Case, answers, read_cases

FOUND = [
    pytest.param(case, answer, id=f"{path.stem}:{case.title}"[:120])
    for path in sorted(CASES.glob("*.test"))
    for case, answer in answers(read_cases(path))
    if case.command != "tables"
]


@pytest.mark.parametrize(("case", "answer"), FOUND)
def test_case_compiles_to_what_is_written(case: Case, answer: str) -> None:
    assert case.command in ("compile", "compile strict")
    assert answer == case.expected
