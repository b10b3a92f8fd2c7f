"""Conditions as programs write them, with hundreds of terms and thousands of values, compile to plans that run."""

from __future__ import annotations

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.analysis.run_limits import check_sizes
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc

TABLES = (
    "CREATE TABLE o (id BIGINT, s STRING) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');"
    "CREATE TABLE r (id BIGINT, s STRING) WITH ('connector' = 'print');"
)
QUERIES = {
    "a chain of OR": f"SELECT id, s FROM o WHERE {' OR '.join(f'id = {n}' for n in range(600))}",
    "a list": f"SELECT id, s FROM o WHERE id IN ({', '.join(map(str, range(5_000)))})",
    "a list of texts": f"SELECT id, s FROM o WHERE s IN ({', '.join(repr(f'key {n}') for n in range(5_000))})",
    "branches": "SELECT id, CASE " + " ".join(f"WHEN id = {n} THEN 'n{n}'" for n in range(500)) + " END FROM o",
}


def compiled(query: str) -> Plan:
    return compile_sql(f"{TABLES} INSERT INTO r {query};")


@pytest.mark.parametrize("name", QUERIES)
def test_a_long_condition_compiles_to_what_a_run_takes(name: str) -> None:
    plan = compiled(QUERIES[name])
    assert any(isinstance(operator, Calc) for operator in plan.operators)
    assert list(check_sizes(plan)) == []
