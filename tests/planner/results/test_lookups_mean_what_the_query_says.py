"""A lookup of a table that does not change gives what a plain join gives: both are run in SQLite, NULLs included."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LookupJoin
from tests.planner.results.plan_in_sqlite import database, run_plan
from tests.planner.results.random_queries import random_lookup
from tests.sample import sampled

LOOKUP = "FOR SYSTEM_TIME AS OF PROCTIME()"
DECLARATIONS = """
CREATE TABLE a (a_id BIGINT, a_k BIGINT, a_v BIGINT, a_s STRING) WITH ('connector' = 'datagen');
CREATE TABLE d (d_id BIGINT, d_k BIGINT, d_v BIGINT, d_s STRING)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 'd');
"""
VIEWS = """
CREATE VIEW few AS SELECT d_id AS few_id, d_k, d_v FROM d WHERE d_v > 2;
CREATE VIEW made AS SELECT d_k AS made_k, d_v + 1 AS made_v, COALESCE(d_v, 9) AS made_w, 7 AS made_c FROM d;
CREATE VIEW both AS SELECT made_k AS both_k, made_w + made_c AS both_w FROM made WHERE made_v IS NOT NULL;
"""
RIGHT_SIDES = {
    "d": (("d_id", "d_k", "d_v"), ("d_id", "d_k", "d_v")),
    "few": (("few_id", "d_k", "d_v"), ("few_id", "d_k")),
    "made": (("made_k", "made_v", "made_w", "made_c"), ("made_k",)),
    "both": (("both_k", "both_w"), ("both_k",)),
}
QUERIES = [
    "SELECT a_id, d_v FROM a JOIN d @ ON a_k = d_k",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON a_k = d_k AND a_v > 2 AND d_v < 5 AND a_v <> d_v",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON a_k = d_k AND a_v > 2 WHERE d_v IS NULL AND a_id > 1",
    "SELECT a_id, d_v FROM a, d @ WHERE a_k = d_k AND d_v = 3 AND a_v < d_v",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON d_k = 3",
    "SELECT a_id, d_v FROM a JOIN d @ ON d_k = 3 AND d_s = 'x'",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON UPPER(a_s) = d_s AND LOWER(a_s) <> d_s",
    "SELECT a_id, d_v FROM a JOIN d @ ON a_k = d_k AND UPPER(d_s) = UPPER(a_s)",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON a_k = d_k AND UPPER(d_s) = 'X'",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON a_k = d_k AND UPPER(d_s) = UPPER(a_s) AND a_v > 1",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON a_k = d_k AND (LOWER(d_s) = 'x' OR a_v + d_v > 6) WHERE a_id > 1",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON d_s = UPPER(a_s) AND LOWER(d_s) || 'y' <> a_s",
    "SELECT a_id, d_v FROM a LEFT JOIN d @ ON d_k = CAST(CAST(a_v AS STRING) AS BIGINT) AND LOWER(d_s) <> a_s",
    "SELECT a_id, made_w FROM a LEFT JOIN made @ ON a_k = made_k AND CAST(made_v AS STRING) = '3'",
    "SELECT a_id, d_v FROM a JOIN d @ ON a_k = d_k AND a_v = d_k AND a_id = d_id",
    "SELECT a_id, few_id, made_w, made_c FROM a LEFT JOIN few @ ON a_k = d_k LEFT JOIN made @ ON d_v = made_k",
    "SELECT a_id, both_w FROM a LEFT JOIN both @ ON a_k = both_k AND both_w > 12",
    "SELECT a_id, both_w FROM a LEFT JOIN both @ ON a_k = both_k WHERE both_w IS NULL OR both_w > 12",
    "SELECT t.n, d_v FROM (SELECT a_k AS k, COUNT(*) AS n FROM a GROUP BY a_k) t LEFT JOIN d @ ON t.k = d_k",
    "SELECT d_k, COUNT(*) FROM a LEFT JOIN d @ ON a_k = d_id GROUP BY d_k",
    "SELECT x.a_id, y.a_id FROM (SELECT a_id, d_v FROM a JOIN d @ ON a_k = d_k) x JOIN a y ON x.d_v = y.a_k",
    "SELECT a_id FROM a JOIN d @ ON a_k = d_k WHERE a_v IN (SELECT a_k FROM a WHERE a_v > 1)",
    "SELECT a_id, d_v FROM a JOIN d @ ON a_k = d_k UNION ALL SELECT a_id, d_v FROM a LEFT JOIN d @ ON a_v = d_k",
]


def tables(seed: int) -> dict[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]:
    dice = Random(seed)

    def rows(count: int) -> list[tuple[object, ...]]:
        def value(choices: list[object]) -> object:
            return None if dice.random() < 0.15 else dice.choice(choices)

        numbers: list[object] = list(range(7))
        letters: list[object] = list("xyzX")
        return [(i % 9, value(numbers), value(numbers), value(letters)) for i in range(count)]

    return {
        "a": (("a_id", "a_k", "a_v", "a_s"), rows(dice.randint(0, 14))),
        "d": (("d_id", "d_k", "d_v", "d_s"), rows(dice.randint(0, 14))),
    }


def compiled(query: str, width: int) -> Plan:
    columns = ", ".join(f"o{i} BIGINT" for i in range(width))
    sink = f"CREATE TABLE s ({columns}) WITH ('connector' = 'print');"
    plan = compile_script(f"{DECLARATIONS}\n{VIEWS}\n{sink}\nINSERT INTO s {query};").plan
    assert plan_problems(plan) == ()
    assert any(isinstance(operator, LookupJoin) for operator in plan.operators)
    return plan


def check(plan: Plan, plain: str, seed: int) -> None:
    connection = database(tables(seed))
    connection.executescript(VIEWS)
    expected = connection.execute(plain).fetchall()
    assert Counter(run_plan(connection, plan)["sink_s"]) == Counter(expected), f"{plain}, seed {seed}"


@pytest.mark.parametrize("query", QUERIES)
def test_a_lookup_gives_the_rows_of_the_join(query: str) -> None:
    plain = query.replace(" @", "")
    plan = compiled(query.replace("@", LOOKUP), plain.split(" FROM ")[0].count(",") + 1)
    for seed in range(12):
        check(plan, plain, seed)


@pytest.mark.parametrize("seed", sampled(range(150), keep=50))
def test_a_random_lookup_gives_the_rows_of_the_join(seed: int) -> None:
    query, names = random_lookup(Random(seed), RIGHT_SIDES, LOOKUP)
    plan = compiled(query, len(names))
    for data in range(3):
        check(plan, query.replace(f" {LOOKUP}", ""), 1000 * data + seed)
