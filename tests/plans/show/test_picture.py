"""The picture of a plan, and its text for Mermaid and Graphviz."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.declarations.tables import Table
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Calc, Scan, SelectItem, Sink, Union
from hintplan.plans.show.graph_text import MERMAID_EDGES, MERMAID_TEXT, dot, mermaid
from hintplan.plans.show.picture import Picture, around, picture, without_pass_through

HOSTILE = 'x"]; end --> y</script><b>`%%{init}%%` #quot; \\ \x1b[2J \u202egnp.\n|{}'


def mermaid_statements(text: str) -> list[tuple[str, ...]]:
    """The statements of a flowchart, by the part of Mermaid's grammar that is used; fails on anything else."""
    head, *lines = text.split("\n")
    assert head == "flowchart LR"
    string = r'"((?:[^"#<>`{}%\\\x00-\x1f]|%(?!%)|#\d+;|<br/>)*)"'
    forms = (
        rf"(n\d+)\[{string}\]",
        rf"(n\d+)\[\({string}\)\]",
        r"(n\d+) (-->|==>|-\.->) (n\d+)",
        r"(classDef) (\w+) ([-\w:#, .]+)",
        r"(class) (n\d+(?:,n\d+)*) (\w+)",
        r"(%%) (.*)",
    )
    found = []
    for line in lines:
        matches = [match for form in forms if (match := re.fullmatch(form, line.strip()))]
        assert len(matches) == 1, line
        found.append(matches[0].groups())
    return found


def dot_tokens(text: str) -> list[str]:
    """The tokens of the dot language; fails on a character that starts none."""
    token = re.compile(r'\s*("(?:[^"\\\n]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?[0-9]+(?:\.[0-9]+)?|->|[][{};,=])')
    found, at = [], 0
    while text[at:].strip():
        match = token.match(text, at)
        assert match is not None, text[at : at + 40]
        found.append(match[1])
        at = match.end()
    return found


def chain(length: int) -> Plan:
    """A scan, that many calcs, and a sink."""
    calcs = [
        Calc(id=f"calc_{i}", inputs=(f"calc_{i - 1}" if i else "scan_o",), select=(SelectItem(name="a"),))
        for i in range(length)
    ]
    last = calcs[-1].id if calcs else "scan_o"
    operators = (Scan(id="scan_o", table="o", columns=("a",)), *calcs, Sink(id="sink_r", inputs=(last,), table="r"))
    return Plan(name="chain", operators=operators)


def hostile() -> Plan:
    table = Table(columns=(), options={"connector": HOSTILE})
    calc = Calc(id="calc_o", inputs=("scan_o",), select=(SelectItem(name=HOSTILE, expression=HOSTILE, type="INT"),))
    operators = (
        Scan(id="scan_o", table=HOSTILE, columns=(HOSTILE,)),
        calc,
        Sink(id="sink_r", inputs=("calc_o",), table="r"),
    )
    return Plan(name=HOSTILE, tables={HOSTILE: table}, operators=operators)


def test_a_box_has_the_states_of_its_operator_and_who_set_them(plan: Plan) -> None:
    (join,) = [box for box in picture(plan).boxes if box.id == "join_o_c"]
    assert [(row.label, row.value, row.set_by) for row in join.states] == [
        ("leftState o", "3 d", "edit"),
        ("rightState c", "20 d", "hint"),
    ]
    assert (join.kind, join.text, join.edited) == ("join", "LEFT JOIN ON o.o_custkey = c.c_custkey", True)


def test_a_plan_against_an_older_one_marks_what_was_added_removed_and_changed(plan: Plan) -> None:
    edited, _ = set_value(plan, "join_o_c.state.rightState.ttl", "5 d")
    audit = Sink(id="sink_audit", inputs=("join_o_c",), table="audit")
    after = replace(edited, operators=(*edited.operators, audit))
    shown = picture(after, before=plan, changes=compare_plans(plan, after))
    marks = {box.id: box.mark for box in shown.boxes if box.mark}
    assert marks == {"join_o_c": "changed", "sink_audit": "added"}
    (right,) = [row for box in shown.boxes for row in box.rows if row.label == "rightState c"]
    assert (right.before, right.value) == ("20 d", "5 d")
    assert [(a.source, a.target) for a in shown.arrows if a.mark == "added"] == [("join_o_c", "sink_audit")]

    back = picture(plan, before=after, changes=compare_plans(after, plan))
    assert {box.id: box.mark for box in back.boxes if box.mark} == {"join_o_c": "changed", "sink_audit": "removed"}
    assert [(a.source, a.target) for a in back.arrows if a.mark == "removed"] == [("join_o_c", "sink_audit")]


def test_an_operator_put_between_two_others_moves_the_arrow() -> None:
    shown = picture(chain(1), before=chain(0), changes=compare_plans(chain(0), chain(1)))
    assert {(a.source, a.target): a.mark for a in shown.arrows} == {
        ("scan_o", "calc_0"): "added",
        ("calc_0", "sink_r"): "added",
        ("scan_o", "sink_r"): "removed",
    }


def test_folding_keeps_what_has_settings_several_readers_or_marks(plan: Plan) -> None:
    assert [box.id for box in without_pass_through(picture(plan)).boxes] == [
        o.id for o in plan.operators if o.id != "calc_o"
    ]
    (arrow,) = [a for a in without_pass_through(picture(plan)).arrows if a.via]
    assert (arrow.source, arrow.via, arrow.target) == ("scan_orders", ("calc_o",), "join_o_c")
    (only,) = without_pass_through(picture(chain(3))).arrows
    assert only.via == ("calc_0", "calc_1", "calc_2")


def test_a_fold_into_a_right_input_stays_a_right_input(plan: Plan) -> None:
    join = plan.operator("join_o_c")
    turned = replace(join, inputs=("scan_customers", "calc_o"))
    operators = tuple(turned if o.id == join.id else o for o in plan.operators)
    (arrow,) = [a for a in without_pass_through(picture(replace(plan, operators=operators))).arrows if a.via]
    assert (arrow.source, arrow.port) == ("scan_orders", 1)


def test_around_shows_neighbours_only(plan: Plan) -> None:
    near = around(picture(plan), ["scan_customers"], hops=1)
    assert [box.id for box in near.boxes] == ["scan_customers", "join_o_c"]
    assert len(near.arrows) == 1


def test_mermaid_has_a_node_for_every_operator_and_an_arrow_for_every_input(plan: Plan) -> None:
    statements = mermaid_statements(mermaid(picture(plan)))
    labels = {s[0]: s[1].split("<br/>")[0] for s in statements if re.fullmatch(r"n\d+", s[0]) and len(s) == 2}
    assert list(labels.values()) == [operator.id for operator in plan.operators]
    arrows = [(labels[s[0]], labels[s[2]]) for s in statements if s[1:2] == ("-->",)]
    assert arrows == [(source, operator.id) for operator in plan.operators for source in operator.inputs]
    assert ("class", "n3", "edit") in statements


def test_dot_has_a_node_for_every_operator_and_an_edge_for_every_input(plan: Plan) -> None:
    text = dot(picture(plan))
    tokens = dot_tokens(text)
    assert tokens[:3] == ["digraph", '"revenue_by_country"', "{"]
    assert tokens[-1] == "}"
    assert tokens.count("->") == sum(len(operator.inputs) for operator in plan.operators)
    assert all(f'label="{operator.id}\\n' in text for operator in plan.operators)


@pytest.mark.parametrize("draw", [mermaid, dot])
def test_names_cannot_leave_their_labels(draw: object) -> None:
    assert callable(draw)
    text = draw(picture(hostile()))
    assert text.replace("\n", "").isprintable()
    if draw is mermaid:
        nodes = [s for s in mermaid_statements(text) if len(s) == 2 and s[0].startswith("n")]
        assert len(nodes) == 3
    else:
        assert dot_tokens(text).count("->") == 2


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed (apt-get install graphviz)")
@pytest.mark.parametrize("name", ["example", "hostile"])
def test_graphviz_reads_what_dot_writes(plan: Plan, name: str) -> None:
    text = dot(picture(plan if name == "example" else hostile()))
    done = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\nnode ") == (len(plan.operators) if name == "example" else 3)


def test_mermaid_folds_what_it_could_not_draw() -> None:
    statements = mermaid_statements(mermaid(picture(chain(MERMAID_EDGES + 1))))
    assert statements[0] == ("%%", f"{MERMAID_EDGES + 1} operators that only pass rows on are not shown")
    assert len(statements) == 4
    assert len(mermaid(picture(chain(MERMAID_EDGES - 1)))) < MERMAID_TEXT


def test_a_cycle_is_drawn_as_it_is() -> None:
    a = Union(id="union_a", inputs=("union_b", "union_b"))
    b = Union(id="union_b", inputs=("union_a",))
    shown = picture(Plan(name="cycle", operators=(a, b)))
    assert isinstance(without_pass_through(shown), Picture)
    assert len(mermaid_statements(mermaid(shown))) == 5


def test_the_picture_is_the_same_in_any_process(plan: Plan, plan_text: str) -> None:
    assert mermaid(picture(plan)) == mermaid(picture(hintplan.loads(plan_text)))


def test_an_operator_that_only_has_another_id_is_not_removed_and_added(plan: Plan) -> None:
    renamed = tuple(
        replace(o, id="join_x_y")
        if o.id == "join_o_c"
        else replace(o, inputs=tuple("join_x_y" if i == "join_o_c" else i for i in o.inputs))
        if o.inputs
        else o
        for o in plan.operators
    )
    after = replace(plan, operators=renamed)
    shown = picture(after, before=plan, changes=compare_plans(plan, after))
    assert [box.id for box in shown.boxes] == [operator.id for operator in after.operators]
    assert {box.id: box.mark for box in shown.boxes if box.mark} == {"join_x_y": "changed"} | {
        box.id: "changed" for box in shown.boxes if "join_x_y" in plan_inputs(after, box.id)
    }
    assert all(not arrow.mark for arrow in shown.arrows)


def plan_inputs(plan: Plan, operator_id: str) -> tuple[str, ...]:
    return plan.operator(operator_id).inputs


def test_an_operator_that_reads_from_another_that_was_there_has_moved() -> None:
    before = chain(2)
    swapped = {"calc_0": ("calc_1",), "calc_1": ("scan_o",), "sink_r": ("calc_0",)}
    operators = [replace(o, inputs=swapped[o.id]) if o.id in swapped else o for o in before.operators]
    after = replace(before, operators=(operators[0], operators[2], operators[1], operators[3]))
    marks = {box.id: box.mark for box in picture(after, before=before, changes=compare_plans(before, after)).boxes}
    assert marks == {"scan_o": "", "calc_1": "moved", "calc_0": "moved", "sink_r": "moved"}


def test_a_retry_is_told_as_it_is_set() -> None:
    plan = hintplan.load(Path(__file__).parents[1] / "enriched_orders.json")
    (lookup,) = [box for box in picture(plan).boxes if box.id == "lookup_rates"]
    assert [(row.label, row.value) for row in lookup.rows] == [
        ("async", "capacity 20, timeout 3 min"),
        ("retry", "3 x 10 s"),
        ("cache", "PARTIAL, max-rows 100"),
    ]
