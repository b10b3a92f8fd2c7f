"""Damaged and hostile files: a plan or a PlanError, never anything else, and never for long."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hintplan
from hintplan.plans.analysis.run_limits import MAX_DEPTH
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Join
from hintplan.plans.text.jsontext import JsonText

FRAGMENTS = st.sampled_from(
    [*'"\\{}[],:-0 \n\x00é\ufeff', "null", "NaN", "1e999", "\\u", "\\ud800", '"id"', "true", "//", "9" * 30, '"a":1,']
)


def refusal(data: str | bytes) -> hintplan.PlanError | None:
    try:
        hintplan.loads(data, file="plan.json")
    except hintplan.PlanError as error:
        return error
    return None


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_text_is_a_plan_or_a_plan_error(plan_text: str, data: st.DataObject) -> None:
    text = plan_text
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + data.draw(st.just("") | FRAGMENTS) + text[end:]
    error = refusal(text)
    # Nothing here makes more than a hundred mistakes, so every one has its place.
    for problem in error.diagnostics if error else ():
        assert problem.line is not None
        assert 1 <= problem.line <= text.count("\n") + 1
        assert str(problem).startswith(f"plan.json:{problem.line}:")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_are_a_plan_or_a_plan_error(plan_text: str, data: st.DataObject) -> None:
    content = bytearray(plan_text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    error = refusal(bytes(content))
    assert error is None or str(error).startswith("plan.json:")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(value=JSON, indent=st.sampled_from([None, 0, 3]), ascii_only=st.booleans())
def test_every_value_is_found_where_it_stands(value: object, indent: int | None, ascii_only: bool) -> None:
    text = JsonText(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert text.value == value

    def places(node: object, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], object]]:
        children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        return [(path, node), *(place for key, child in children for place in places(child, (*path, key)))]

    expected = places(value, ())
    spans = text.spans({path for path, _ in expected})
    for path, node in expected:
        key_start, start, end = spans[path]
        assert json.loads(text.text[start:end]) == node
        if path and isinstance(path[-1], str):
            assert json.JSONDecoder().raw_decode(text.text, key_start)[0] == path[-1]


def _large(plan: Plan, number: int) -> Plan:
    """The sample with ``number`` operators: cascades of joins, as deep as may be, each with its sink."""
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    *scans, _, aggregate, sink = plan.operators
    found = [*scans]
    while len(found) < number:
        rest = number - len(found)
        cascade = [replace(join, id=f"join_{len(found)}")]
        while len(cascade) < MAX_DEPTH - 4 and rest - len(cascade) > 2:
            above = cascade[-1].id
            cascade.append(
                replace(
                    join,
                    id=f"join_{len(found) + len(cascade)}",
                    inputs=(above, "scan_customers"),
                    keys=(replace(join.keys[0], left="c_country", right="c_country"),),
                    state=(replace(join.state[0], input=above), join.state[1]),
                    output=tuple(replace(column, side="left", column=column.name) for column in join.output),
                )
            )
        ends = f"aggregate_{len(found)}", f"sink_{len(found)}"
        found += [
            *cascade,
            replace(aggregate, id=ends[0], inputs=(cascade[-1].id,)),
            replace(sink, id=ends[1], inputs=(ends[0],)),
        ]
    return replace(plan, operators=tuple(found))


@pytest.mark.slow
def test_a_plan_of_ten_thousand_operators_loads_in_seconds(plan: Plan) -> None:
    written = hintplan.dumps(_large(plan, 10_000))
    assert len(json.loads(written)["operators"]) == 10_000
    started = time.perf_counter()
    hintplan.loads(written)
    # About 1.5 s on two idle cores; the bound only has to tell linear from quadratic.
    assert time.perf_counter() - started < 15


@pytest.mark.slow
def test_a_flood_of_unknown_names_is_refused_quickly(plan_text: str) -> None:
    document = json.loads(plan_text)
    document["operators"][0]["columns"] = [f"o_custke{index}" for index in range(200_000)]
    document["operators"][3] |= {f"join-typ{index}": 1 for index in range(100_000)}
    started = time.perf_counter()
    error = refusal(json.dumps(document))
    assert error is not None
    del document["operators"][3]
    document["operators"][3]["inputs"] = ["scan_orders"]
    assert refusal(json.dumps(document)) is not None
    assert time.perf_counter() - started < 20


def test_an_error_about_long_names_can_be_read() -> None:
    name = "x" * 70_000
    problem = hintplan.PlanError(
        f"unknown key '{name}'", file="plan.json", line=3, column=7, path=f"a.{name}", hint=name
    )
    assert len(str(problem)) < 16_000
    assert str(problem).startswith("plan.json:3:7: a.xxx")
    many = hintplan.PlanError(diagnostics=problem.diagnostics * 100)
    assert len(str(many)) < 64 << 10
    assert str(many).endswith("more")
