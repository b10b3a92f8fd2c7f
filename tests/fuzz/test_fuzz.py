"""The fuzzer in a test run: whole queries against DuckDB, and commands on hostile input. `make fuzz` has more."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hintplan.plans.operators import BY_OP as OPS
from tests.fuzz.cases import Case, Outcome, bundles, case_of, check_bundle
from tests.fuzz.commands import call_of, complaint
from tests.fuzz.samples import sample_plans
from tests.fuzz.shrink import shrunk
from tests.fuzz.trees import rendered
from tests.sample import gate_seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FIRST, PARTS, QUERIES = 1_000_000, 50, 60
"""A part of what `make fuzz SEED=1` asks, which is all of it."""
CALL_PARTS, CALLS = 100, 50
"""Four of as many parts of its commands, and the commands of one."""


@pytest.mark.parametrize("part", range(4))
def test_commands_take_hostile_input(part: int) -> None:
    first = FIRST + (gate_seed() % CALL_PARTS * 4 + part) * CALLS
    wrong = {number: complaint(call_of(number)) for number in range(first, first + CALLS)}
    assert {number: text for number, text in wrong.items() if text is not None} == {}


@pytest.mark.spark
@pytest.mark.integration
def test_queries_give_what_duckdb_gives(spark: SparkSession) -> None:
    from hintplan.runtime.spark.session import prepare_session

    own = prepare_session(spark, time_zone="UTC", once=True)
    wrong = {}
    first = FIRST + gate_seed() % PARTS * QUERIES
    for cases in bundles(range(first, first + QUERIES)):
        for case, outcome in zip(cases, check_bundle(cases, own), strict=True):
            if outcome.failed:
                wrong[case.number] = f"{outcome.detail}\n{rendered(case.query, batch=case.batch).flink}"
    assert wrong == {}, "again, with tables and a smaller case: make fuzz FIRST=<number> QUERIES=1 PLANS=0"


def test_a_number_is_the_same_case_in_every_process() -> None:
    code = "from tests.fuzz.cases import case_of; print([repr(case_of(n)) for n in (3, 7, 17)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([repr(case_of(n)) for n in (3, 7, 17)])


def test_a_failing_case_is_made_small() -> None:
    case = next(c for c in map(case_of, range(999)) if "LEFT JOIN" in text(c) and len(text(c)) > 600)

    def check(candidate: Case) -> Outcome:
        return Outcome(status="different" if "LEFT JOIN" in text(candidate) else "same")

    small, outcome = shrunk(case, check(case), check, seconds=60)
    assert outcome.failed
    assert text(small).count("JOIN") == 1
    assert "WHERE" not in text(small)
    assert not any(table.events for table in small.world.tables)
    assert small.world.cut == ()


def text(case: Case) -> str:
    return rendered(case.query, batch=case.batch).flink


def test_mutations_start_from_plans_with_every_kind_of_operator() -> None:
    assert all(any(f'"op": "{kind}"' in text for text in sample_plans()) for kind in OPS)
