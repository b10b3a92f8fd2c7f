"""The operator `rank` in a plan whose last number is a column of the key: what is read, written and refused."""

from __future__ import annotations

import json

import pytest

import hintplan
from hintplan.plans.errors import PlanError
from hintplan.plans.operators import Rank
from hintplan.plans.show.explain import plan_tree

SQL = """
CREATE TABLE o (id BIGINT, k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (id BIGINT, k INT) WITH ('connector' = 'print');
INSERT INTO r SELECT id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s, k ORDER BY id) AS n FROM o) WHERE n <= k;
"""

LAST = """
CREATE TABLE o (id BIGINT, k INT, s STRING, p AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (id BIGINT, k INT) WITH ('connector' = 'print');
INSERT INTO r
SELECT id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY k, p DESC) AS n FROM o) WHERE n = 2;
"""


@pytest.fixture(scope="module")
def text() -> bytes:
    return hintplan.dumps(hintplan.compile_sql(SQL))


def edited(text: bytes, end: object) -> str:
    """The plan with another `rank-end`, as a hand edit gives it."""
    document = json.loads(text)
    (rank,) = (operator for operator in document["operators"] if operator["op"] == "rank")
    rank["rank-end"] = end
    return json.dumps(document)


def test_a_column_is_read_as_it_is_written(text: bytes) -> None:
    plan = hintplan.loads(text.decode())
    (rank,) = (operator for operator in plan.operators if isinstance(operator, Rank))
    assert rank.rank_end == "k"
    assert hintplan.dumps(plan) == text


def test_a_batch_job_has_no_last_arrival(text: bytes) -> None:
    document = json.loads(text) | {"mode": "batch"}
    for operator in document["operators"]:
        if operator["op"] == "rank":
            operator |= {"arrival": "last", "state": [], "changelog": ["+I"]}
    with pytest.raises(PlanError, match=r"rank_o\.arrival: rows of a batch job have no order of arrival"):
        hintplan.loads(json.dumps(document))


def test_explain_says_the_last_arrival() -> None:
    plan = hintplan.compile_sql(LAST)
    (line,) = (line for line in plan_tree(plan).splitlines() if "rank_o" in line)
    assert line.split("rank_o")[1].strip() == "ROW 2 OF EACH s BY k ASC NULLS FIRST, ARRIVAL DESC"
    assert hintplan.loads(hintplan.dumps(plan).decode()) == plan


def test_explain_says_the_column(text: bytes) -> None:
    (line,) = (line for line in plan_tree(hintplan.loads(text.decode())).splitlines() if "rank_o" in line)
    assert line.split("rank_o")[1].strip() == "FIRST k OF EACH s, k BY id ASC NULLS FIRST"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("id", "'id' is no column of the key"),
        ("x", "'x' is no column of the key"),
        ("s", "'s' is STRING, no whole number"),
        ("", "expected text, found an empty string"),
        (0, "expected at least 1, found 0"),
        (1.5, "expected a whole number or a string, found the number 1.5"),
        (None, "expected a whole number or a string, found null"),
    ],
)
def test_another_end_is_refused(text: bytes, end: object, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        hintplan.loads(edited(text, end))
    assert message in str(caught.value)
    assert "rank-end" in str(caught.value)
