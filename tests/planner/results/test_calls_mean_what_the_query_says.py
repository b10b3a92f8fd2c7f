"""A plan with calls of functions gives the rows of its query: both run in SQLite, which calls the same functions."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from random import Random

import pytest

from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.operators import Correlate
from tests.planner.declared import Awaited, Plain
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.planner.results.random_queries import random_calls, random_query
from tests.planner.results.test_plans_mean_what_the_query_says import compiled, tables
from tests.sample import sampled


class Twice(Plain):
    function_kind, arguments, result = "scalar", ("BIGINT",), "BIGINT"


class Maybe(Awaited):
    function_kind, arguments, result = "async-scalar", ("BIGINT",), "BIGINT"


class Split(Awaited):
    function_kind, arguments, result = "async-table", ("BIGINT",), "ROW<value BIGINT>"


FUNCTIONS = {"twice": Twice, "maybe": Maybe, "split": Split}


def twice(value: int | None) -> int | None:
    return None if value is None else 2 * value


def maybe(value: int | None) -> int | None:
    """Also a value for NULL: functions are called with it."""
    return 4 if value is None else None if value % 3 == 0 else value + 1


def split(value: int | None) -> str:
    """No rows, one, or several with NULL among them, as JSON, which SQLite takes apart."""
    return json.dumps([] if value is None or value > 4 else [value, None][: 1 + value % 2] * (1 + value // 3))


def with_functions(connection: sqlite3.Connection) -> sqlite3.Connection:
    for function in (twice, maybe, split):
        connection.create_function(function.__name__, 1, function, deterministic=True)
    return connection


def in_sqlite(query: str) -> str:
    """SQLite's spelling of a lateral call: a table-valued function of what Python returns."""
    return re.sub(r"LATERAL TABLE\(split\((.*?)\)\) AS (p\d)( ON TRUE)?(?= |,|$)", r"json_each(split(\1)) AS \2", query)


def check(query: str, names: tuple[str, ...], seeds: tuple[int, ...]) -> None:
    plan = compiled(query, list(names), functions=FUNCTIONS)
    assert plan_problems(plan) == ()
    for seed in seeds:
        connection = with_functions(database(tables(seed)))
        expected = connection.execute(in_sqlite(query)).fetchall()
        assert Counter(run_plan(connection, plan)["sink_s"]) == Counter(expected), query


def wrapped(dice: Random, query: str) -> str:
    """The query with calls around some of its columns, wherever these stand: in keys, conditions and SELECT lists."""
    columns = sorted(set(re.findall(r"\b[te]\d*\.\w+", query)))
    for column in dice.sample(columns, min(len(columns), dice.choice((1, 2, 3)))):
        call = dice.choice(("twice({})", "maybe({})", "maybe(twice({}))", "twice({} + 1)"))
        query = re.sub(rf"\b{re.escape(column)}\b", call.format(column), query)
    return query


@pytest.mark.parametrize("seed", sampled(range(120), keep=40))
def test_a_query_with_scalar_calls_anywhere_gives_its_rows(seed: int) -> None:
    dice = Random(seed)
    query, names = random_query(dice)
    check(wrapped(dice, query), names, (seed, 1000 + seed))


@pytest.mark.parametrize("seed", sampled(range(120), keep=40))
def test_a_query_with_lateral_calls_gives_its_rows(seed: int) -> None:
    query, names = random_calls(Random(seed))
    check(query, names, (seed, 1000 + seed))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a_id, value FROM a, LATERAL TABLE(split(a_v)) AS p0",
        "SELECT a_id, value FROM a LEFT JOIN LATERAL TABLE(split(a_v)) AS p0 ON TRUE",
        "SELECT a_id, value FROM a LEFT JOIN LATERAL TABLE(split(a_v)) AS p0 ON TRUE WHERE value > 1 AND a_k > 2",
        "SELECT a_id, value FROM a LEFT JOIN LATERAL TABLE(split(a_v)) AS p0 ON TRUE WHERE value IS NULL",
        "SELECT p0.value, p1.value FROM a LEFT JOIN LATERAL TABLE(split(a_v)) AS p0 ON TRUE, "
        "LATERAL TABLE(split(p0.value)) AS p1",
        "SELECT p0.value, COUNT(*) FROM a, LATERAL TABLE(split(twice(a_v))) AS p0 GROUP BY p0.value",
        "SELECT twice(a_v), SUM(maybe(a_k)) FROM a GROUP BY twice(a_v) HAVING maybe(COUNT(*)) > 1",
        "SELECT maybe(SUM(a_v)), maybe(a_k) FROM a GROUP BY a_k",
        "SELECT a_id, b_id FROM a LEFT JOIN b ON twice(a_k) = maybe(b_k) AND maybe(a_v) > 2 AND twice(b_v) < 7",
        "SELECT a_id, b_id FROM a FULL JOIN b ON maybe(a_k) = b_k AND maybe(a_v) > 2 WHERE maybe(b_v) IS NOT NULL",
        "SELECT a_id FROM a WHERE maybe(a_k) NOT IN (SELECT b_k FROM b WHERE maybe(b_v) > 3)",
        "SELECT a_id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE maybe(b_k) = a_k AND maybe(a_v) > b_v)",
        "SELECT DISTINCT maybe(a_k) FROM a UNION SELECT twice(b_k) FROM b WHERE maybe(b_v) = 4",
        "SELECT a_id, CASE WHEN maybe(a_v) > 2 THEN twice(a_v) ELSE maybe(twice(a_k)) END FROM a",
    ],
)
def test_a_plan_with_calls_gives_the_rows_of_its_query(query: str) -> None:
    check(query, tuple("ab"[: 1 + ("," in query.partition(" FROM")[0])]), tuple(range(8)))


@pytest.mark.parametrize("seed", sampled(range(40), keep=15))
def test_every_operator_makes_one_call_of_columns_and_constants(seed: int) -> None:
    dice = Random(seed)
    query, names = random_calls(dice)
    plan = compiled(query, list(names), functions=FUNCTIONS)
    texts = [text for o in plan.operators for text in expressions(o)]
    assert not any(name in text for text in texts for name in FUNCTIONS), query
    assert any(isinstance(operator, Correlate) for operator in plan.operators)


def expressions(operator: object) -> list[str]:
    found = [getattr(operator, "filter", None), getattr(operator, "condition", None)]
    found += [item.expression for item in getattr(operator, "select", ())]
    return [text for text in found if text is not None]
