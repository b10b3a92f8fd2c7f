"""The operator `expand` in a plan: its columns, what `explain` says of it, what hand edits are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import check_columns, output_columns
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import changes_text
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Expand
from hintplan.plans.show.explain import plan_tree

PLAN_FILE = Path(__file__).parents[1] / "rolled_up_orders.json"


@pytest.fixture(scope="module")
def text() -> str:
    return PLAN_FILE.read_text(encoding="utf-8")


@pytest.fixture
def plan(text: str) -> Plan:
    return hintplan.loads(text)


def with_expand(plan: Plan, **changes: object) -> Plan:
    operators = (replace(o, **changes) if isinstance(o, Expand) else o for o in plan.operators)  # type: ignore[arg-type]
    return replace(plan, operators=tuple(operators))


def problems(plan: Plan) -> list[str]:
    return [f"{p.path}: {p.message}" for p in check_columns(plan)[1]]


def test_keys_of_all_sets_stay_not_null_and_others_do_not(plan: Plan) -> None:
    found = output_columns(with_expand(plan, sets=(("country", "city"), ("country",))))["expand_orders"]
    assert [(c.name, c.type) for c in found] == [
        ("country", "STRING NOT NULL"),
        ("city", "STRING"),
        ("total", "BIGINT"),
        ("$e", "BIGINT NOT NULL"),
    ]
    assert output_columns(plan)["expand_orders"][0].type == "STRING"


def test_explain_lists_the_sets(plan: Plan) -> None:
    (line,) = (line for line in plan_tree(plan).splitlines() if "expand_orders" in line and "scan_" not in line)
    assert line.split("expand_orders")[1].strip() == "GROUPING SETS (country, city), (country), ()"


def test_row_kinds_pass_through(plan: Plan) -> None:
    assert output_kinds(plan)["expand_orders"] == ("+I",)


def test_an_added_set_is_a_changed_fact(plan: Plan) -> None:
    changed = with_expand(plan, sets=(("country", "city"), ("country",), ("city",), ()))
    assert "expand_orders" in changes_text(compare_plans(plan, changed))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": ("country", "town")}, "operators.expand_orders.keys: 'town' is no key column"),
        ({"sets": (("country",), ("total",))}, "operators.expand_orders.sets[1]: 'total' is not one of the keys"),
        (
            {"sets": (("country", "city"), ("city", "country"))},
            "operators.expand_orders.sets[1]: this grouping set is there twice",
        ),
        ({"group_id": "total"}, "operators.expand_orders.group-id: two columns are called 'total'"),
        (
            {"group_id": "__e"},
            "operators.expand_orders.group-id: column names that start with __ are reserved: '__e'",
        ),
    ],
)
def test_sets_that_make_no_sense_are_refused(plan: Plan, changes: dict[str, object], message: str) -> None:
    assert problems(with_expand(plan, **changes))[0] == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"group-id": "$e"', '"group_id": "$e"', "unknown key 'group_id'"),
        ('"sets": [["country", "city"], ["country"], []]', '"sets": []', "expected at least 1 item, found 0"),
        ('["country"], []]', '["country", "country"]]', "'country' is given twice"),
        ('["country"], []]', '["country"]]', "its facts were changed by hand"),
    ],
)
def test_hand_edits_that_are_refused(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(PlanError, match=r"expand_orders") as caught:
        hintplan.loads(text.replace(old, new, 1))
    assert message in str(caught.value)
