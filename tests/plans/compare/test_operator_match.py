"""Which operator of one plan is which of another, when ids differ."""

from __future__ import annotations

from dataclasses import replace

from hintplan.plans.compare.match import match
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Operator, Scan, SelectItem, Sink


def scan(name: str, table: str = "t") -> Scan:
    return Scan(id=f"scan_{name}", table=table, columns=("a",))


def calc(name: str, above: Operator, condition: str = "a > 0") -> Calc:
    return Calc(id=f"calc_{name}", inputs=(above.id,), select=(SelectItem(name="a"),), filter=condition)


def plan(*operators: Operator) -> Plan:
    return Plan(name="p", operators=operators)


def test_a_whole_branch_under_another_alias_is_renamed() -> None:
    old = plan(a := scan("a"), calc("a", a), Sink(id="sink_s", inputs=("calc_a",), table="s"))
    new = plan(b := scan("b"), calc("b", b), Sink(id="sink_s", inputs=("calc_b",), table="s"))
    found = match(old, new)
    assert found.renamed == {"scan_a": "scan_b", "calc_a": "calc_b"}
    assert (found.removed, found.added) == ((), ())


def test_an_operator_is_known_again_although_what_leads_to_it_has_changed() -> None:
    old = plan(a := scan("a"), calc("x", a))
    new = plan(b := scan("b", "other"), calc("y", b))
    found = match(old, new)
    assert found.renamed == {"calc_x": "calc_y"}
    assert [o.id for o in found.removed] == ["scan_a"]
    assert [o.id for o in found.added] == ["scan_b"]


def test_equal_branches_are_told_apart_by_what_leads_to_them() -> None:
    old = plan(a := scan("a", "t1"), b := scan("b", "t2"), calc("a", a), calc("b", b))
    new = plan(c := scan("c", "t2"), d := scan("d", "t1"), calc("c", c), calc("d", d))
    assert match(old, new).renamed == {"scan_a": "scan_d", "scan_b": "scan_c", "calc_a": "calc_d", "calc_b": "calc_c"}


def test_what_could_be_either_of_two_is_not_guessed() -> None:
    old = plan(scan("a"), scan("b"))
    new = plan(scan("c"), scan("d"))
    found = match(old, new)
    assert found.renamed == {}
    assert len(found.removed) == len(found.added) == 2


def test_an_id_that_both_plans_have_is_never_a_new_name() -> None:
    old = plan(a := scan("a"), calc("a", a))
    new = plan(a, calc("a", a, "a > 1"), replace(calc("b", a), filter="a > 0"))
    found = match(old, new)
    assert found.renamed == {}
    assert [o.id for o in found.added] == ["calc_b"]
