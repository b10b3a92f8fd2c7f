"""Aggregate functions of the user's in SQL: what a class must say, where a call may stand, and what a plan has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import hintplan
from hintplan import compile_sql
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.declarations.tables import Column, Function
from hintplan.plans.errors import SqlError
from hintplan.plans.lint.unused_rules import unused_tables
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Aggregate, AggregateCall
from hintplan.plans.show.page import plan_page
from tests.planner import declared

TABLES = """CREATE TABLE t (id BIGINT, k STRING, v BIGINT, w INT, b BOOLEAN, l ARRAY<INT>)
WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE s (k STRING, d DOUBLE) WITH ('connector' = 'print');
"""


def compiled(query: str, **classes: Any) -> Plan:
    return compile_sql(f"{TABLES}INSERT INTO s {query};", functions={"wavg": declared.WeightedAvg, **classes})


def calls(plan: Plan) -> tuple[AggregateCall, ...]:
    return tuple(call for operator in plan.operators if isinstance(operator, Aggregate) for call in operator.aggregates)


def with_facts(**facts: Any) -> type[Any]:
    return type("Changed", (declared.WeightedAvg,), {"__module__": declared.__name__, **facts})


def test_a_plan_has_the_function_with_its_accumulator_and_methods() -> None:
    plan = compiled("SELECT k, wavg(v, w) FROM t GROUP BY k")
    assert plan.functions == {
        "wavg": Function(
            class_name="tests.planner.declared.WeightedAvg",
            kind="aggregate",
            arguments=("BIGINT", "INT"),
            output=(Column(name="f0", type="DOUBLE"),),
            accumulator="ROW<`total` BIGINT, `weight` BIGINT>".replace("`", ""),
            methods=("merge", "retract"),
        )
    }
    assert hintplan.loads(hintplan.dumps(plan)) == plan
    assert json.loads(hintplan.dumps(plan))["operators"][1]["aggregates"] == [
        {"name": "expr0", "function": "wavg", "arguments": ["v", "w"], "type": "DOUBLE"}
    ]
    assert [*unused_tables(plan)] == []


def test_arguments_are_converted_and_computed_below() -> None:
    (call,) = calls(compiled("SELECT k, WAVG(DISTINCT w, 3) FILTER (WHERE b) FROM t GROUP BY k"))
    assert (call.function, call.distinct, call.filter, len(call.arguments)) == ("wavg", True, "b", 2)
    plan = compiled("SELECT k, wavg(v, NULL) FROM t GROUP BY k HAVING wavg(v, NULL) > 1 AND COUNT(*) > 2")
    assert [call.function for call in calls(plan)] == ["wavg", "COUNT"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k, v FROM t WHERE wavg(v, w) > 1", "wavg cannot stand in WHERE"),
        ("SELECT k, wavg(wavg(v, w), w) FROM t GROUP BY k", "wavg cannot stand in an aggregate"),
        ("SELECT k, SUM(wavg(v, w)) FROM t GROUP BY k", "wavg cannot stand in an aggregate"),
        ("SELECT k, d FROM t, LATERAL TABLE(wavg(v, w)) AS L(d)", "'wavg' is an aggregate function, and TABLE takes"),
        ("SELECT k, wavg(v) FROM t GROUP BY k", "'wavg' takes 2 arguments (BIGINT, INT), found 1"),
        ("SELECT k, wavg(v, k) FROM t GROUP BY k", "argument 2 of 'wavg' must be INT, found STRING"),
        ("SELECT k, wavg(v, w), v FROM t GROUP BY k", "column 'v' is neither grouped nor aggregated"),
        ("SELECT k, wavg(v, w) FROM t", "column 'k' is neither grouped nor aggregated"),
        ("SELECT k, wavg((SELECT MAX(v) FROM t), w) FROM t GROUP BY k", "a sub-query inside an aggregate function is"),
        ("SELECT k, (SELECT wavg(1, 2)) FROM t", "an aggregate in a sub-query without FROM is not supported"),
        ("SELECT k, wavg(v, w) OVER () FROM t", "wavg() OVER is not supported"),
        ("SELECT k, n(DISTINCT) FROM t GROUP BY k", "'n' takes no argument, so that it cannot be DISTINCT"),
        ("SELECT k, lists(DISTINCT l) FROM t GROUP BY k", "'lists' takes ARRAY<INT>, which is not compared"),
    ],
)
def test_a_call_that_cannot_be_is_refused_at_its_place(query: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(query, lists=declared.ListsAvg, n=declared.CountAll)
    (found,) = caught.value.diagnostics
    assert message.lower() in found.message.lower()
    assert found.line == 4


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"accumulator": None}, "does not declare its accumulator"),
        ({"accumulator": "VARIANT"}, "the accumulator of"),
        ({"accumulator": "ROW<a ARRAY<FLOAT>>"}, "has a FLOAT, which would be rounded whenever it is stored"),
        ({"deterministic": False}, "has deterministic = False, but a batch that runs again must compute the same"),
        ({"accumulate": lambda self, accumulator: None}, "cannot be called with 3 arguments"),
        ({"merge": lambda self, accumulator: None}, "cannot be called with 2 arguments"),
        ({"get_value": None}, "does not define get_value"),
    ],
)
def test_a_class_that_cannot_aggregate_is_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled("SELECT k, wavg(v, w) FROM t GROUP BY k", wavg=with_facts(**facts))
    assert message in str(caught.value)


def test_methods_that_nobody_awaits_are_refused() -> None:
    async def accumulate(self: Any, accumulator: Any, value: Any, weight: Any) -> None: ...

    with pytest.raises(SqlError, match="is an async def, but nobody awaits it"):
        compiled("SELECT k, wavg(v, w) FROM t GROUP BY k", wavg=with_facts(accumulate=accumulate))


def test_the_name_of_a_built_in_aggregate_cannot_be_declared() -> None:
    with pytest.raises(SqlError, match="SUM is a built-in function with a grammar of its own"):
        compile_sql(f"{TABLES}INSERT INTO s SELECT k, 1.0E0 FROM t;", functions={"sum": declared.WeightedAvg})


@pytest.mark.parametrize(
    ("facts", "path", "message"),
    [
        ({"function": "wavgg"}, "function", "there is no aggregate function 'wavgg'"),
        ({"argument": "v"}, "argument", "'wavg' is a function of the user's, and has no argument"),
        ({"arguments": ("v",)}, "arguments", "'wavg' takes 2 arguments (BIGINT, INT), found 1"),
        ({"arguments": ("v", "k")}, "arguments[1]", "'wavg' takes INT, but 'k' is STRING"),
        ({"filter": "k"}, "filter", "expected a BOOLEAN column, but 'k' is STRING"),
        ({"type": "INT"}, "type", "'wavg' returns DOUBLE, found INT"),
        ({"function": "MAX", "argument": "v", "type": "BIGINT"}, "arguments", "MAX has one argument, which belongs in"),
    ],
)
def test_a_hand_edit_of_a_call_is_checked(facts: dict[str, Any], path: str, message: str) -> None:
    plan = compiled("SELECT k, wavg(v, w) FROM t GROUP BY k")
    operators = tuple(
        replace(o, aggregates=(replace(o.aggregates[0], **facts),)) if isinstance(o, Aggregate) else o
        for o in plan.operators
    )
    found = {each.path: each.message for each in plan_problems(replace(plan, operators=operators))}
    assert message in found[f"operators.aggregate_t.aggregates.expr0.{path}"]


def test_a_hand_edit_of_a_function_is_checked() -> None:
    plan = compiled("SELECT k, wavg(v, w) FROM t GROUP BY k")
    function = plan.functions["wavg"]

    def messages(**facts: Any) -> list[str]:
        return [each.message for each in plan_problems(replace(plan, functions={"wavg": replace(function, **facts)}))]

    assert "an aggregate function, and no other, has an accumulator; 'wavg' has none" in messages(accumulator=None)
    assert "there is no aggregate function 'wavg'" in messages(kind="scalar")
    twice = (*function.output, Column(name="f1", type="INT"))
    assert "an aggregate function returns one column, found 2" in messages(output=twice)


def test_the_page_of_a_plan_has_the_functions_that_an_operator_calls() -> None:
    plan = compiled("SELECT k, wavg(v, w) + n() FROM t GROUP BY k", n=declared.CountAll)
    page = plan_page(plan)
    assert '"functions":["wavg","n"]' in page
    assert '["accumulator",["ROW\\u003ctotal BIGINT, weight BIGINT\\u003e"]]' in page
