"""`diff`: by meaning, with who set what and what becomes of running state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

import hintplan
from hintplan import compile_sql
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.json_report import changes_json
from hintplan.plans.compare.report import changes_text
from hintplan.plans.declarations.tables import Table
from hintplan.plans.edit.edit import set_value
from hintplan.plans.format.digest import plan_digests
from hintplan.plans.model.plan import Plan
from hintplan.plans.review.diff_markdown import mermaid_of, report_markdown
from hintplan.plans.settings.effects import UNREADABLE, emptied

Patched = Callable[..., str]

DIFF_SCHEMA = files("hintplan.plans").joinpath("compare", "diff.schema.json")


def lines(before: Plan, after: Plan) -> list[str]:
    """The lines of the report with runs of blanks as one |, which leaves layout out of most tests."""
    report = changes_text(compare_plans(before, after), width=400).splitlines()
    return [" | ".join(part.strip() for part in line.split("     ") if part.strip()) for line in report]


def accept(text: str) -> Plan:
    return hintplan.loads(text, allow_fact_edits=True, check_meaning=False)


def test_the_same_plan_in_another_layout_has_no_differences(plan_text: str, plan: Plan) -> None:
    other = hintplan.loads(json.dumps(json.loads(plan_text), sort_keys=True).replace('"20 d"', '"480 h"'))
    assert compare_plans(plan, other) == ()
    assert changes_text(()) == "no differences"


def test_a_ttl_edit_is_one_calm_line(plan: Plan) -> None:
    before, _ = set_value(plan, "join_o_c.leftState.ttl", "1 d")
    assert changes_text(compare_plans(before, plan)) == (
        "~ join_o_c.leftState.ttl               1 d → 3 d     edit over hint 1 d     "
        "from the next start, for existing rows too\n"
        "1 setting changed · no operator changed · running state stays readable"
    )


def test_a_changed_hint_below_an_edit_has_no_effect(plan: Plan, patched: Patched) -> None:
    assert lines(plan, hintplan.loads(patched(('"hint": "1 d"', '"hint": "2 d"'))))[0] == (
        "~ join_o_c.leftState.origin.hint | 1 d → 2 d | 3 d stays, from edit | no effect"
    )


def test_a_changed_stateful_operator_starts_empty_with_all_above_it(plan: Plan, patched: Patched) -> None:
    assert lines(plan, accept(patched(('"join-type": "left"', '"join-type": "full"')))) == [
        "-/+ join_o_c.join-type | left → full | the states of aggregate_t and join_o_c start empty",
        "no setting changed · 1 operator changed · both states start empty; a run is refused without "
        "--allow-state-drop",
    ]


def test_a_changed_filter_empties_the_states_that_it_feeds(plan: Plan, patched: Patched) -> None:
    assert lines(plan, accept(patched(('"o_total > 0"', '"o_total > 1"'))))[0] == (
        "~ calc_o.filter | o_total > 0 → o_total > 1 | "
        "the states of aggregate_t and join_o_c start empty, unless they are kept"
    )
    assert lines(plan, accept(patched(('"o_total > 0"', '"o_total > 1"'))))[-1].endswith(
        " · both states start empty; a run is refused without --allow-state-drop or --keep-state"
    )


def test_a_change_that_empties_one_of_two_states_says_so(plan: Plan, patched: Patched) -> None:
    changed = accept(patched(('"name": "revenue", "function": "SUM"', '"name": "revenue", "function": "MAX"')))
    assert lines(plan, changed)[-1].endswith(
        " · 1 of 2 states starts empty; a run is refused without --allow-state-drop"
    )


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a", "the state of a starts empty, unless it is kept"),
        ("ab", "the states of a and b start empty, unless they are kept"),
        ("cab", "the states of a, b and c start empty, unless they are kept"),
    ],
)
def test_emptied_states_are_listed_as_a_sentence_does(names: str, text: str) -> None:
    assert emptied([*names], names, 3).text == text


def test_list_facts_say_what_came_and_went(plan: Plan, patched: Patched) -> None:
    text = patched(('"columns": ["o_custkey", "o_total"]', '"columns": ["o_custkey", "o_id"]'))
    assert lines(plan, accept(text))[0].startswith("~ scan_orders.columns | added o_id; removed o_total | ")


def test_operators_that_come_and_go_are_named_with_their_kind(plan: Plan) -> None:
    assert lines(plan, replace(plan, operators=plan.operators[:-1])) == [
        "- sink_result | sink: print | state left behind",
        "no setting changed · 1 operator removed · some running state is dropped; a run is refused without "
        "--allow-state-drop",
    ]
    fewer = replace(plan, operators=plan.operators[:3])
    assert (
        lines(fewer, plan)[0]
        == "+ join_o_c | join: LEFT JOIN ON o.o_custkey = c.c_custkey | begins with the next start"
    )


def test_another_parallelism_keeps_state_and_waits_for_a_new_checkpoint(plan: Plan) -> None:
    assert lines(plan, set_value(plan, "config.parallelism.default", "8")[0]) == [
        "+ config.parallelism.default | 8 | state kept, redistributed when the run starts",
        "1 setting changed · no operator changed · running state stays readable",
    ]


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        (('"input": "o"', '"input": "ord"'), [("join_o_c.state.leftState.input", "")]),
        (('{ "name": "c_name", "type": "STRING" },\n', ""), [("tables.customers.columns", "removed c_name (STRING)")]),
    ],
)
def test_an_alias_and_a_column_that_nobody_reads_are_no_part_of_a_state(
    plan: Plan, patched: Patched, edit: tuple[str, str], changes: list[tuple[str, str]]
) -> None:
    other = accept(patched(edit))
    found = compare_plans(plan, other)
    assert plan_digests(other) != plan_digests(plan)
    assert [(change.path, change.note) for change in found] == changes
    assert [change.effect.level for change in found] == ["restart"]


def test_a_state_that_nothing_goes_on_with_is_a_drop(plan: Plan, patched: Patched) -> None:
    edit = ('"op": "sink",\n      "inputs": ["aggregate_t"]', '"op": "sink",\n      "inputs": ["join_o_c"]')
    assert [change.effect.level for change in compare_plans(plan, accept(patched(edit)))] == ["drop"]


def test_a_refused_option_value_is_not_shown(plan: Plan) -> None:
    options = {"connector": "jdbc", "url": "jdbc:sqlite:x.db", "table-name": "r", "password": "hunter2"}
    before = replace(plan, tables={"r": Table(columns=(), options={**options, "password": "${env:PW}"})})
    after = replace(plan, tables={"r": Table(columns=(), options=options)})
    changes = compare_plans(before, after)
    assert [(c.before, c.after) for c in changes] == [("${env:PW}", "(refused)")]
    assert "hunter2" not in json.dumps(changes_json(changes))


def test_control_characters_in_names_do_not_reach_the_report() -> None:
    report = changes_text(compare_plans(Plan(name="a"), Plan(name="\x1b[2Kb\n| c")))
    assert "\x1b" not in report
    assert len(report.splitlines()) == 2


def test_markdown_escapes_what_would_break_the_table() -> None:
    report = report_markdown(compare_plans(Plan(name="a"), Plan(name="x|`y`<b>")))
    assert "| ~ | `name` | `a` → ``x\\|`y`<b>`` |" in report


def _many(number: int) -> list[Change]:
    change = Change(kind="~", subject="setting", name="n", path="p" * 100, before="a", after="b", effect=UNREADABLE)
    return [replace(change, name=str(index)) for index in range(number)]


def test_long_markdown_is_folded_and_stays_below_the_limit_of_a_review_comment() -> None:
    assert "<summary>30 changes" not in report_markdown(_many(30))
    folded = report_markdown(_many(2000))
    assert "<details><summary>2000 changes</summary>" in folded
    assert len(folded) < 65_536
    rows = sum(line.startswith("| ~ |") for line in folded.splitlines())
    assert rows > 100
    assert f"{2000 - rows} more changes" in folded


def test_json_has_every_change_its_effect_and_the_reason_of_that(plan: Plan) -> None:
    before, _ = set_value(plan, "join_o_c.leftState.ttl", "1 d")
    found = changes_json(compare_plans(before, plan))
    jsonschema.validate(found, json.loads(DIFF_SCHEMA.read_text(encoding="utf-8")))
    because = found["changes"][0].pop("because")
    assert "time of its last write" in because
    assert found == {
        "format": "hintplan-diff-1",
        "different": True,
        "effect": "ttl",
        "keeps-state": True,
        "summary": "1 setting changed · no operator changed · running state stays readable",
        "effects": {"ttl": 1},
        "changes": [
            {
                "kind": "changed",
                "subject": "setting",
                "path": "join_o_c.leftState.ttl",
                "setting": "join_o_c.state.leftState.ttl",
                "operator": "join_o_c",
                "before": "1 d",
                "after": "3 d",
                "note": "edit over hint 1 d",
                "layers": {"config": "1 h", "hint": "1 d"},
                "reason": None,
                "reason-given-for": None,
                "follows": None,
                "effect": "ttl",
                "verdict": "from the next start, for existing rows too",
                "keeps-state": True,
            }
        ],
    }


def test_an_operator_that_only_has_another_id_is_renamed(plan: Plan, plan_text: str) -> None:
    other = accept(plan_text.replace('"join_o_c"', '"join_x_c"'))
    assert lines(plan, other) == [
        "~ join_x_c | join_o_c → join_x_c | join renamed, the same facts under another id | "
        "state kept, applies at the next start",
        "~ aggregate_t.inputs | join_o_c is now called join_x_c | state kept, applies at the next start",
        "no setting changed · 1 operator changed, 1 operator renamed · running state stays readable",
    ]


def test_a_renamed_operator_keeps_its_settings_in_view(plan: Plan, plan_text: str) -> None:
    text = plan_text.replace('"join_o_c"', '"join_x_c"').replace('"ttl": "3 d"', '"ttl": "4 d"')
    assert "~ join_x_c.leftState.ttl | 3 d → 4 d | edit over hint 1 d | from the next start, for existing rows too" in [
        line.strip() for line in lines(plan, accept(text))
    ]


def test_an_operator_at_another_place_is_moved(plan: Plan, patched: Patched) -> None:
    # The sink reads the join instead of the aggregate; both are in both plans.
    edit = ('"op": "sink",\n      "inputs": ["aggregate_t"]', '"op": "sink",\n      "inputs": ["join_o_c"]')
    assert lines(plan, accept(patched(edit)))[0] == (
        "~ sink_result.inputs | moved: reads join_o_c instead of aggregate_t | the state of aggregate_t is left behind"
    )


def test_the_order_of_independent_operators_is_no_difference(plan: Plan) -> None:
    first, second, *rest = plan.operators
    assert compare_plans(plan, replace(plan, operators=(second, first, *rest))) == ()


@pytest.mark.parametrize(
    ("before", "after", "level"),
    [
        ("1 d", "6 h", "expire"),
        ("6 h", "1 d", "ttl"),
        ("0 ms", "400 d", "expire"),
        ("400 d", "0 ms", "ttl"),
        ("24 h", "23 h", "expire"),
    ],
)
def test_a_shorter_ttl_is_told_apart_from_a_longer_one(plan: Plan, before: str, after: str, level: str) -> None:
    old, _ = set_value(plan, "join_o_c.leftState.ttl", before)
    new, _ = set_value(plan, "join_o_c.leftState.ttl", after)
    (change,) = compare_plans(old, new)
    assert change.effect.level == level
    counted = "older rows of running state expire: hintplan check PLAN --checkpoint DIR counts them"
    fate = counted if level == "expire" else "running state stays readable"
    assert changes_text([change]).endswith(f" · {fate}")


def test_many_states_that_follow_config_are_one_line_unless_all_are_asked_for(plan_text: str) -> None:
    document = json.loads(plan_text)
    join = next(o for o in document["operators"] if o["op"] == "join")
    for entry in join["state"]:
        entry.update(ttl="1 h", origin={"config": "1 h"})
    copies = [{**join, "id": f"join_{n}"} for n in range(5)]
    document["operators"] = [*document["operators"][:3], *copies]
    before = accept(json.dumps(document))
    _, changes = set_value(before, "config.table.exec.state.ttl", "2 h")
    report = changes_text(changes).splitlines()
    assert len(changes) == 11
    assert len(report) == 4
    assert report[1].startswith("~ 10 states that follow config")
    assert report[2].strip() == "join_0.leftState.ttl, join_0.rightState.ttl, join_1.leftState.ttl and 7 more"
    assert len(changes_text(changes, detail="full").splitlines()) > 22


def test_full_says_why_and_concise_one_line_an_operator(plan: Plan, patched: Patched) -> None:
    edits = (('"ttl": "3 d"', '"ttl": "4 d"'), ('"ttl": "20 d"', '"ttl": "30 d"'))
    changes = compare_plans(plan, hintplan.loads(patched(*edits)))
    full = changes_text(changes, detail="full").splitlines()
    assert full[1].strip().startswith("ttl: each row of state keeps the time of its last write")
    assert full[2].strip() == "layers: config 1 h · hint 1 d"
    assert changes_text(changes, detail="concise").splitlines() == [
        "~ join_o_c                             leftState.ttl, rightState.ttl     "
        "from the next start, for existing rows too",
        "2 settings changed · no operator changed · running state stays readable",
    ]


def test_concise_counts_what_it_leaves_out(plan: Plan, patched: Patched) -> None:
    changes = compare_plans(plan, hintplan.loads(patched(('"hint": "1 d"', '"hint": "2 d"'))))
    assert changes_text(changes, detail="concise").splitlines()[0] == "1 change without effect not shown"


def test_a_reason_stands_below_its_setting(plan: Plan) -> None:
    edited, changes = set_value(plan, "join_o_c.leftState.ttl", "5 d", reason="late payments")
    assert [c.path for c in changes] == ["join_o_c.leftState.ttl", "reasons.join_o_c.state.leftState.ttl"]
    assert changes_text(changes).splitlines()[1:] == [
        "    reason: late payments",
        "1 setting changed · no operator changed · running state stays readable",
    ]
    assert compare_plans(edited, edited) == ()
    removed = changes_text(compare_plans(edited, set_value(edited, "join_o_c.leftState.ttl", "5 d", reason="")[0]))
    assert removed.startswith("- reasons.join_o_c.state.leftState.ttl     late payments     no effect")


def test_the_picture_in_markdown_is_of_what_changed_and_its_neighbours(plan: Plan) -> None:
    edited, changes = set_value(plan, "join_o_c.leftState.ttl", "5 d")
    graph = mermaid_of(plan, edited, changes)
    assert graph.startswith("flowchart LR\n")
    assert "3 d → 5 d" in graph
    assert "sink_result" not in graph
    report = report_markdown(changes, graph=graph)
    assert f"<details><summary>Picture</summary>\n\n```mermaid\n{graph}\n```\n\n</details>" in report
    assert mermaid_of(plan, replace(plan, name="other"), compare_plans(plan, replace(plan, name="other"))) == ""


def test_markdown_has_nothing_from_a_plan_outside_code(plan: Plan) -> None:
    evil = "@everyone #1 https://evil.example <img src=x> [a](b) | ` `` \n\n# head"
    edited, changes = set_value(plan, "join_o_c.leftState.ttl", "5 d", reason=evil)
    changes += compare_plans(edited, replace(edited, name=evil))
    changes += compare_plans(
        edited, replace(edited, operators=(replace(edited.operators[0], id=evil), *edited.operators[1:]))
    )
    graph = mermaid_of(edited, edited, changes)
    report = report_markdown(changes, graph=graph)
    assert report.count("everyone") >= 4
    # A fence ends at a line of backticks, a code span at the next run of as many backticks (CommonMark 4.5, 6.1).
    prose = re.sub(r"^```.*?^```$", "", report, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", prose)
    assert not re.search(r"everyone|@|https|<img|\]\(|# head", prose)
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)


def test_a_configuration_key_that_nobody_knows_is_a_difference_that_no_run_takes(plan: Plan) -> None:
    (change,) = compare_plans(plan, replace(plan, config={**plan.config, "table.exec.state.tll": "1 d"}))
    assert (change.path, change.kind, change.effect.level) == ("config.table.exec.state.tll", "+", "incompatible")


def test_what_came_and_went_is_described_in_every_form(plan: Plan) -> None:
    fewer = replace(plan, operators=plan.operators[:3])
    text = "join: LEFT JOIN ON o.o_custkey = c.c_custkey"
    changes = compare_plans(fewer, plan)
    assert [change.note for change in changes if change.path == "join_o_c"] == [text]
    assert text in changes_text(changes, width=80)
    assert f"`{text}`" in report_markdown(changes)


def test_an_id_that_passed_to_another_operator_is_one_that_went_and_one_that_came(plan: Plan, patched: Patched) -> None:
    other = accept(patched(('"table": "customers"', '"table": "orders"')))
    found = [change for change in compare_plans(plan, other) if change.path == "scan_customers"]
    assert [(change.kind, change.note.partition(" ")[0]) for change in found] == [("-", "scan:"), ("+", "scan:")]
    assert "1 operator added, 1 operator removed" in changes_text(compare_plans(plan, other)).replace(
        " changed, 1", ", 1"
    )


def test_an_operator_with_other_facts_is_changed_and_not_another(plan: Plan, patched: Patched) -> None:
    other = accept(patched(('"join-type": "left"', '"join-type": "inner"')))
    assert {change.kind for change in compare_plans(plan, other) if change.operator == "join_o_c"} <= {"~", "-/+"}


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_longer_than_the_screen_and_nothing_is_cut(plan: Plan, width: int) -> None:
    long = replace(plan.operator("calc_o"), filter=" OR ".join(f"o_total > {n}" for n in range(60)))
    other = replace(plan, operators=tuple(long if o.id == "calc_o" else o for o in plan.operators))
    for detail in ("normal", "full", "concise"):
        for changes in (compare_plans(plan, other), compare_plans(replace(plan, operators=plan.operators[:3]), plan)):
            report = changes_text(changes, detail=detail, width=width).splitlines()
            assert max(map(len, report[:-1])) <= width
    words = " ".join(changes_text(compare_plans(plan, other), width=width).split())
    assert "o_total > 58 OR o_total > 59" in words


def test_other_layers_under_the_same_value_are_told_one_by_one() -> None:
    hint = "/*+ LOOKUP('table' = 'd', 'async' = 'true'{}) */"
    before, after = (compile_sql(LOOKUP.format(hint.format(t)), name="p") for t in ("", ", 'timeout' = '3 min'"))
    (change,) = compare_plans(before, after)
    assert (change.path, change.effect.level) == ("lookup_d.async.origin", "none")
    assert change.note == "the same runs; hint timeout 3 min"
    (back,) = compare_plans(after, before)
    assert back.note == "the same runs; hint timeout (none), was 3 min"


LOOKUP = """
SET 'table.exec.async-lookup.timeout' = '3 min';
CREATE TABLE o (k INT, p AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE d (k INT, v INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://localhost/d', 'table-name' = 'd');
CREATE TABLE r (k INT, v INT) WITH ('connector' = 'print');
INSERT INTO r SELECT {} o.k, d.v FROM o JOIN d FOR SYSTEM_TIME AS OF o.p AS d ON o.k = d.k;
"""
