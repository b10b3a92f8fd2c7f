"""Every case of every file in ``cases/`` compiles to what is written there."""

from __future__ import annotations

import pytest

from tests.planner.goldens import CASES, Case, answer, read_cases, with_tables

COMPILED = [
    pytest.param(tables, case, id=f"{path.stem}:{case.title}"[:120])
    for path in sorted(CASES.glob("*.test"))
    for tables, case in with_tables(read_cases(path))
    if case.command != "tables"
]


@pytest.mark.parametrize(("tables", "case"), COMPILED)
def test_case_compiles_to_what_is_written(tables: str, case: Case) -> None:
    assert case.command in ("compile", "compile strict")
    assert answer(tables, case) == case.expected
