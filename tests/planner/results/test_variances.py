"""Variances and deviations: plans that compute them from sums give what Python's statistics say of the same values."""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections.abc import Callable
from random import Random

import pytest

from planner.compile import compile_script
from plans.errors import SqlError
from tests.planner.results.plan_in_sqlite import database, run_plan

TABLE = (
    "CREATE TABLE t (k BIGINT, v DOUBLE, i INT, d DECIMAL(9, 2)) "
    "WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');"
)
FUNCTIONS: dict[str, tuple[Callable[[list[float]], float], int]] = {
    "VAR_POP": (statistics.pvariance, 1),
    "VAR_SAMP": (statistics.variance, 2),
    "VARIANCE": (statistics.variance, 2),
    "STDDEV_POP": (statistics.pstdev, 1),
    "STDDEV_SAMP": (statistics.stdev, 2),
    "STDDEV": (statistics.stdev, 2),
}


def run(query: str, kind: str, rows: list[tuple[object, ...]]) -> dict[int, object]:
    sink = f"CREATE TABLE s (k BIGINT, x {kind}) WITH ('connector' = 'print');"
    plan = compile_script(f"{TABLE}{sink}INSERT INTO s {query};").plan
    connection = database({"t": (("k", "v", "i", "d"), rows)})
    connection.create_function("sqrt", 1, lambda x: None if x is None else math.sqrt(x))
    _without_affinity(connection)
    return dict(run_plan(connection, plan)["sink_s"])


def _without_affinity(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE t SET v = CAST(v AS REAL)")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_doubles_have_the_variance_that_python_finds(name: str) -> None:
    reference, least = FUNCTIONS[name]
    dice = Random(name)
    rows = [(dice.randint(0, 9), None if dice.random() < 0.2 else dice.gauss(5, 30), 0, 0) for _ in range(60)]
    found = run(f"SELECT k, {name}(v) FROM t GROUP BY k", "DOUBLE", rows)
    assert found.keys() == {k for k, *_ in rows}
    for k, value in found.items():
        values = [v for key, v, *_ in rows if key == k and v is not None]
        assert value == (pytest.approx(reference(values)) if len(values) >= least else None)


def test_equal_values_do_not_vary_though_their_squares_are_rounded() -> None:
    found = run("SELECT k, STDDEV_POP(v) FROM t GROUP BY k", "DOUBLE", [(1, 0.1, 0, 0)] * 10)
    assert found[1] == pytest.approx(0, abs=1e-7)


def test_integers_are_computed_in_integers_as_in_flink() -> None:
    # sum of squares 27, sum 7: (27 - 49 / 3) / 3 = (27 - 16) / 3 = 3, and its root is cut to 1
    rows = [(1, None, i, 0) for i in (1, 1, 5)]
    assert run("SELECT k, VAR_POP(i) FROM t GROUP BY k", "INT", rows) == {1: 3}
    assert run("SELECT k, STDDEV_POP(i) FROM t GROUP BY k", "INT", rows) == {1: 1}
    assert run("SELECT k, VAR_SAMP(i) FROM t GROUP BY k", "INT", rows[:1]) == {1: None}


def test_a_filter_chooses_the_values() -> None:
    rows = [(1, v, i, 0) for v, i in ((1.0, 1), (3.0, 1), (100.0, 0))]
    assert run("SELECT k, VAR_POP(v) FILTER (WHERE i = 1) FROM t GROUP BY k", "DOUBLE", rows) == {1: 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [("VAR_POP(d)", "does not take DECIMAL"), ("STDDEV(DISTINCT v)", "does not take DISTINCT")],
)
def test_what_would_be_computed_wrongly_is_refused(call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        run(f"SELECT k, {call} FROM t GROUP BY k", "DOUBLE", [])
