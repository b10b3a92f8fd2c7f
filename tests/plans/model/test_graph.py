"""The operators of a plan as a graph, in time that grows with the size of the plan."""

from __future__ import annotations

import time

from hintplan.plans.model.graph import dependency_order
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Scan, Sink

LENGTH = 20_000


def chain(length: int) -> tuple[Scan | Calc | Sink, ...]:
    calcs = (Calc(id=f"c{n}", inputs=(f"c{n - 1}",) if n else ("scan",), select=()) for n in range(length))
    scan = Scan(id="scan", table="t", columns=())
    return (scan, *calcs, Sink(id="sink", inputs=(f"c{length - 1}",), table="r"))


def test_upstream_is_told_from_near_to_far_and_once() -> None:
    left, right = (Calc(id=name, inputs=("scan",), select=()) for name in ("left", "right"))
    both = Calc(id="both", inputs=("left", "right", "nowhere"), select=())
    plan = Plan(name="p", operators=(Scan(id="scan", table="t", columns=()), left, right, both))

    assert plan.upstream("both") == ("both", "left", "right", "scan")
    assert list(plan.readers["scan"]) == [left, right]
    assert list(plan.readers["both"]) == []


def test_upstream_of_a_cycle_ends() -> None:
    a, b = Calc(id="a", inputs=("b",), select=()), Calc(id="b", inputs=("a",), select=())

    assert Plan(name="p", operators=(a, b)).upstream("a") == ("a", "b")
    assert dependency_order({"a": ["b"], "b": ["a"], "c": []}) == ("c",)


def test_replaced_operators_keep_their_places() -> None:
    plan = Plan(name="p", operators=chain(2))
    edited = Calc(id="c0", inputs=("scan",), filter="true", select=())

    assert plan.replaced(edited).operators == (plan.operators[0], edited, *plan.operators[2:])


def test_a_long_chain_takes_time_that_grows_with_its_length() -> None:
    plan = Plan(name="p", operators=chain(LENGTH))
    start = time.perf_counter()
    found = plan.upstream("sink")
    order = dependency_order({name: operator.inputs for name, operator in plan.by_id.items()})

    assert len(found) == len(order) == LENGTH + 2
    assert time.perf_counter() - start < 5
