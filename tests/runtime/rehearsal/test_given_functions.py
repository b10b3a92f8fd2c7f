"""Functions whose results a test gives as rows, of all kinds: their classes are neither loaded nor allowed."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import hintplan
from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.model.plan import Plan
from hintplan.plans.rehearsal.first_test import first_test_text
from hintplan.plans.rehearsal.reading import suite_of
from hintplan.runtime.functions.api import (
    AggregateFunction,
    AsyncScalarFunction,
    AsyncTableFunction,
    ScalarFunction,
    TableFunction,
)
from hintplan.runtime.rehearsal.spark import SharedSpark
from tests.runtime.rehearsal.rehearsed import FILES, failures

ROWS = "ROW<place STRING, km DECIMAL(5, 2)>"


class NearTable(TableFunction):
    arguments = ("STRING", "INT")
    result = ROWS

    def eval(self, airport: str, hours: int) -> Any:
        raise AssertionError("the class of the plan was called")


class NearAsyncTable(AsyncTableFunction):
    arguments = ("STRING", "INT")
    result = ROWS

    async def eval(self, airport: str, hours: int) -> Any:
        raise AssertionError("the class of the plan was called")


class NearScalar(ScalarFunction):
    arguments = ("STRING", "INT")
    result = "DOUBLE"

    def eval(self, airport: str, hours: int) -> Any:
        raise AssertionError("the class of the plan was called")


class NearAsyncScalar(AsyncScalarFunction):
    arguments = ("STRING", "INT")
    result = "DOUBLE"

    async def eval(self, airport: str, hours: int) -> Any:
        raise AssertionError("the class of the plan was called")


class Total(AggregateFunction):
    arguments = ("INT",)
    result = "BIGINT"
    accumulator = "BIGINT"

    def create_accumulator(self) -> int:
        return 0

    def accumulate(self, accumulator: int, value: int) -> int:
        return accumulator + value

    def get_value(self, accumulator: int) -> int:
        return accumulator


CLASSES: dict[FunctionKind, Any] = {
    function.function_kind: function for function in (NearTable, NearAsyncTable, NearScalar, NearAsyncScalar)
}
TABLES = ("table", "async-table")
TRIPS = f"""
CREATE TABLE trips (id INT, airport STRING, hours INT) WITH ({FILES}'trips');
CREATE TABLE sights (id INT, place STRING, km DECIMAL(5, 2)) WITH ('connector' = 'print');
CREATE TABLE scores (id INT, score DOUBLE) WITH ('connector' = 'print');
CREATE TABLE totals (airport STRING, total BIGINT) WITH ('connector' = 'print');
"""
ASKED = "INSERT INTO sights SELECT t.id, n.place, n.km FROM trips AS t, LATERAL TABLE(near(t.airport, t.hours)) AS n;"
LEFT = ASKED.replace("trips AS t,", "trips AS t LEFT JOIN").replace(";", " ON TRUE;")
SCORED = "INSERT INTO scores SELECT id, near(airport, hours) FROM trips;"


def plan_of(function: type, insert: str) -> Plan:
    """A plan that calls ``function`` as ``near``; no test allows its module."""
    return hintplan.compile_sql(TRIPS + insert, functions={"near": function}, name="trips")


@pytest.fixture
def sparks(spark: SparkSession) -> SharedSpark:
    return SharedSpark(lambda: spark)


@pytest.mark.spark
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("insert", [ASKED, LEFT], ids=["inner", "left"])
def test_a_table_function_returns_the_rows_with_its_arguments(
    kind: FunctionKind, insert: str, sparks: SharedSpark
) -> None:
    lost = "          - {id: 3, place: ~, km: ~}\n          - {id: 4, place: ~, km: ~}" if insert == LEFT else ""
    tests = f"""
functions:
  near:
    - {{arg1: SCL, arg2: 5, place: Moneda, km: 16.5}}
    - {{arg1: SCL, arg2: 5, place: Costanera, km: 17}}
    - {{arg2: 5, place: nowhere}}
tests:
  one:
    - trips: [{{id: 1, airport: SCL, hours: 5}}, {{id: 2, hours: 5}}, {{id: 3, airport: SCL, hours: 6}}, {{id: 4}}]
      expect:
        sights:
          - {{id: 1, place: Moneda, km: 16.50}}
          - {{id: 1, place: Costanera, km: 17}}
          - {{id: 2, place: nowhere, km: ~}}
{lost}
    - functions: {{near: [{{arg1: SCL, arg2: 6, place: Valle, km: 1}}]}}
      trips: [{{id: 5, airport: SCL, hours: 6}}]
      expect: {{sights: {{added: [{{id: 5, place: Valle, km: 1}}]}}}}
  another begins with the rows of the file again:
    - trips: [{{id: 1, hours: 5}}]
      expect: {{sights: [{{id: 1, place: nowhere, km: ~}}]}}
"""
    assert failures(plan_of(CLASSES[kind], insert), tests, slices=2, session=sparks.session("UTC")) == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["scalar", "async-scalar"])
def test_a_scalar_function_returns_the_result_and_must_have_one(kind: FunctionKind, sparks: SharedSpark) -> None:
    tests = """
functions: {near: [{arg1: SCL, arg2: 5, result: 0.5}, {arg1: LIM, arg2: 5}]}
tests:
  one:
    - trips: [{id: 1, airport: SCL, hours: 5}, {id: 2, airport: LIM, hours: 5}]
      expect: {scores: [{id: 1, score: 0.5}, {id: 2, score: ~}]}
  lacking:
    - trips: [{id: 1, airport: SCL, hours: 6}]
"""
    (failed,) = failures(plan_of(CLASSES[kind], SCORED), tests, session=sparks.session("UTC"))
    assert "9:7: " in failed
    assert "the test has no result of near('SCL', 6)" in failed
    assert "add {arg1: 'SCL', arg2: 6, result: ...} to functions: {near: [...]}" in failed


WRONG = [
    ("functions: {nearly: []}", ASKED, "2:13: the plan calls no function 'nearly'", "did you mean 'near'?"),
    ("functions: {near: [{arg3: 1}]}", ASKED, "2:21: there is no column 'arg3' in 'near'", "did you mean 'arg1'?"),
    ("functions: {near: [{arg2: x}]}", ASKED, "2:27: column 'arg2': 'x' is no INT", ""),
    ("functions: {near: [{arg1: a, score: 1}]}", SCORED, "2:30: there is no column 'score' in 'near'", ""),
]


@pytest.mark.parametrize(("given", "insert", "message", "hint"), WRONG, ids=[given for given, *_ in WRONG])
def test_rows_that_do_not_fit_are_refused_at_their_place(given: str, insert: str, message: str, hint: str) -> None:
    plan = plan_of(NearScalar if insert == SCORED else NearTable, insert)
    (failed,) = failures(plan, f"{given}\ntests: {{one: [{{trips: []}}]}}\n")
    assert message in failed
    assert hint in failed


def test_the_results_of_an_aggregate_function_cannot_be_given() -> None:
    plan = plan_of(Total, "INSERT INTO totals SELECT airport, near(hours) FROM trips GROUP BY airport;")
    (failed,) = failures(plan, "functions: {near: []}\ntests: {one: [{trips: []}]}\n")
    assert "2:13: 'near' is an aggregate function, whose results cannot be given as rows" in failed


@pytest.mark.parametrize("kind", CLASSES)
def test_a_first_test_has_a_row_for_each_function(kind: FunctionKind) -> None:
    text = first_test_text(plan_of(CLASSES[kind], ASKED if kind in TABLES else SCORED), "trips.json")
    result = "place: a, km: 1" if kind in TABLES else "result: 1.5"
    assert f"functions:\n  near: [{{arg1: a, arg2: 1, {result}}}]\n" in text
    assert [rows.table for rows in suite_of(text, "trips.test.yaml").functions] == ["near"]


@pytest.mark.spark
def test_a_program_gives_them_too(spark: SparkSession) -> None:
    test = hintplan.test(plan_of(NearAsyncTable, ASKED), spark=spark)
    test.functions("near", [{"arg1": "SCL", "arg2": 5, "place": "Moneda", "km": "16.50"}])
    test.rows("trips", [{"id": 1, "airport": "SCL", "hours": 5}])
    test.expect("sights", [{"id": 1, "place": "Moneda", "km": "16.50"}])


@pytest.mark.spark
def test_a_function_without_rows_whose_module_is_not_allowed_says_both_ways(sparks: SharedSpark) -> None:
    tests = "tests: {one: [{trips: [{id: 1, airport: SCL, hours: 5}]}]}\n"
    (failed,) = failures(plan_of(NearTable, ASKED), tests, session=sparks.session("UTC"))
    assert "2:15: functions.near.class: the class" in failed
    assert "hint: allow it: " in failed
    assert failed.endswith("; or write its results: functions: {near: [...]}")
