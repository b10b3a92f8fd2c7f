"""The operator `unnest` in a plan: its columns, what `explain` says of it, what hand edits are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hintplan
from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import check_columns, output_columns
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import JoinColumn, Unnest
from hintplan.plans.show.explain import plan_tree

SQL = """
CREATE TABLE t (id BIGINT, s STRING, xs ARRAY<STRING>, m MAP<STRING, INT>, rs ARRAY<ROW<a INT, ordinality INT>>)
WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'json', 'source.changelog' = 'true');
CREATE TABLE r (id BIGINT, x STRING, n INT, s STRING) WITH ('connector' = 'print');
INSERT INTO r SELECT id, x, n, s FROM t LEFT JOIN UNNEST(xs) WITH ORDINALITY AS u(x, n) ON TRUE;
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return hintplan.compile_sql(SQL, name="unnested")


def with_unnest(plan: Plan, **changes: object) -> Plan:
    scans = {"columns": ("id", "s", "xs", "m", "rs")}
    operators = (
        replace(o, **(changes if isinstance(o, Unnest) else scans if o.id == "scan_t" else {}))  # type: ignore[arg-type]
        for o in plan.operators
    )
    return replace(plan, operators=tuple(operators))


def right(column: str, type: str) -> tuple[JoinColumn, ...]:
    return (JoinColumn(name="c", type=type, side="right", column=column),)


def problems(plan: Plan) -> list[str]:
    return [f"{p.path}: {p.message}" for p in check_columns(plan)[1]]


def test_columns_and_row_kinds_are_those_that_it_says(plan: Plan) -> None:
    found = output_columns(plan)["unnest_t"]
    assert [(c.name, c.type) for c in found] == [("id", "BIGINT"), ("x", "STRING"), ("n", "INT"), ("s", "STRING")]
    assert output_kinds(plan)["unnest_t"] == output_kinds(plan)["scan_t"] != ("+I",)


def test_explain_names_the_column(plan: Plan) -> None:
    (line,) = (line for line in plan_tree(plan).splitlines() if "unnest_t" in line)
    assert line.split("unnest_t")[1].strip() == "LEFT JOIN UNNEST(xs)"


@pytest.mark.parametrize(
    ("column", "offered"),
    [
        ("xs", {"element": "STRING", "ordinality": "INT"}),
        ("m", {"key": "STRING", "value": "INT", "ordinality": "INT"}),
        ("rs", {"a": "INT", "ordinality": "INT", "ordinality0": "INT"}),
    ],
)
def test_the_right_side_has_the_columns_of_an_element(plan: Plan, column: str, offered: dict[str, str]) -> None:
    for name, kind in offered.items():
        changed = with_unnest(plan, column=column, output=right(name, kind))
        assert not [p for p in problems(changed) if "unnest_t" in p], name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"column": "ys"}, "operators.unnest_t.column: 'ys' is no column of the input"),
        ({"column": "s"}, "operators.unnest_t.column: 's' is STRING, which has no elements"),
        (
            {"output": right("value", "STRING")},
            "operators.unnest_t.output.c.from: 'value' is no column of an element of 'xs'",
        ),
        (
            {"output": right("element", "INT")},
            "operators.unnest_t.output.c.type: the type is INT, but right.element is STRING",
        ),
        ({"output": right("element", "STRING") * 2}, "operators.unnest_t.output: two columns are called 'c'"),
    ],
)
def test_what_makes_no_sense_is_refused(plan: Plan, changes: dict[str, object], message: str) -> None:
    assert problems(with_unnest(plan, **changes))[0] == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"join-type": "left"', '"join-type": "right"', "expected one of 'inner', 'left', found 'right'"),
        ('"join-type": "left"', '"join-type": "inner"', "its facts were changed by hand"),
        ('"column": "xs"', '"columns": "xs"', "unknown key 'columns'"),
    ],
)
def test_hand_edits_that_are_refused(plan: Plan, old: str, new: str, message: str) -> None:
    text = hintplan.dumps(plan).decode()
    assert old in text
    with pytest.raises(PlanError, match=r"unnest_t") as caught:
        hintplan.loads(text.replace(old, new, 1).encode())
    assert message in str(caught.value)
