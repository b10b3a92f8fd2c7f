"""What a person can do to a plan file in an editor, and what hintplan answers, word by word."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.operators import Join
from hintplan.plans.settings.layers import layers_of

pytestmark = pytest.mark.usefixtures("worded_for_commands")

Patched = Callable[..., str]
Refusal = Callable[..., str]

JOIN_STATES = "\n  hint: a join has the states 0 'leftState', 1 'rightState'"
FREE = (
    "\n  hint: free to edit are config, the ttl of states, max-rows-per-key, async, retry, cache, phases, "
    "watermark and emit of operators, cached, and table options but 'connector'; --allow-fact-edits accepts the change"
)


def test_a_ttl_is_edited_by_changing_its_value(patched: Patched) -> None:
    plan = hintplan.loads(patched(('"ttl": "20 d"', '"ttl": "36000s"')))
    join = plan.operator("join_o_c")
    assert isinstance(join, Join)
    assert join.state[1].ttl == "10 h"
    assert layers_of(join.state[1].settings, "ttl") == {"config": "1 h", "hint": "20 d"}


def test_formatting_and_key_order_do_not_matter(plan_text: str, plan: hintplan.Plan) -> None:
    document = json.loads(plan_text)
    document["operators"] = [dict(reversed(operator.items())) for operator in document["operators"]]
    assert hintplan.loads(json.dumps(document, indent=None)) == plan


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (
            '"3 dy"',
            "bad duration '3 dy': 'dy' is not a unit; the units are d, h, min, s, ms\n  hint: write '3 d'",
        ),
        (
            '"-3 d"',
            "bad duration '-3 d': text does not start with a number, and is not a valid ISO-8601 duration format: -3 d"
            "\n"
            "  hint: a duration cannot be negative",
        ),
        (
            '"PT-3H"',
            "bad duration 'PT-3H': negative duration is not supported\n"
            "  hint: write '0 ms' for a state that never expires",
        ),
        ('"5000"', "bad duration '5000': the duration '5000' has no unit\n  hint: write its unit: ms, s, min, h or d"),
        (
            '"100 ns"',
            "bad duration '100 ns': the duration '100 ns' is not a whole number of milliseconds\n  hint: write '1 ms'",
        ),
        (
            '""',
            "bad duration '': argument is an empty- or whitespace-only string\n  hint: write a duration such as '1 h'",
        ),
        (
            '"soon"',
            "bad duration 'soon': text does not start with a number, and is not a valid ISO-8601 duration format: soon"
            "\n  hint: write a number and a unit: '500 ms', '10 s', '15 min', '12 h', '1 d'",
        ),
        (
            '"9223372036854775807 d"',
            "bad duration '9223372036854775807 d': The value '9223372036854775807' cannot be represented as Duration "
            "(numeric overflow).",
        ),
        (
            "5000",
            "expected a string, found the number 5000\n"
            '  hint: write a number with its unit, in double quotes, such as "5000 ms"',
        ),
        ("null", "expected a string, found null"),
        ('["3 d"]', "expected a string, found an array"),
    ],
)
def test_a_bad_ttl_is_refused(patched: Patched, refusal: Refusal, written: str, answer: str) -> None:
    text = patched(('"ttl": "3 d"', f'"ttl": {written}'))
    assert refusal(text) == f"plan.json:78:65: operators.join_o_c.state.leftState.ttl: {answer}"


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (
            ('"ttl": "3 d"', '"tll": "3 d"'),
            "plan.json:78:58: operators.join_o_c.state.leftState.tll: unknown key 'tll'\n  hint: did you mean 'ttl'?",
        ),
        (
            ('"hint": "1 d"', '"hnt": "1 d"'),
            "plan.json:78:101: operators.join_o_c.state.leftState.origin.hnt: unknown key 'hnt'\n"
            "  hint: did you mean 'hint'?",
        ),
        (
            ('"mode": "streaming",', '"mode": "streaming",\n  "notes": 1,'),
            "plan.json:5:3: notes: unknown key 'notes'\n  hint: other keys here: source, init, reasons",
        ),
        (
            ('"mode": "streaming"', '"mode": "bach"'),
            "plan.json:4:11: mode: expected one of 'streaming', 'batch', found 'bach'\n  hint: did you mean 'batch'?",
        ),
        (
            ('"format": "1.0"', '"format": "2.0"'),
            "plan.json:2:13: format: plan format '2.0' is not supported\n"
            "  hint: this version of hintplan reads format '1.0'; compile the plan again from its SQL",
        ),
        (('  "functions": {},\n', ""), "plan.json:1:1: missing key 'functions'"),
        (
            ('"functions": {}', '"functions": { "f": "x" }'),
            "plan.json:44:23: functions.f: expected an object, found 'x'",
        ),
        (
            ('"op": "join"', '"op": "joyn"'),
            "plan.json:67:13: operators.join_o_c.op: expected one of 'scan', 'values', 'calc', 'join', 'lookup-join', "
            "'correlate', 'expand', 'unnest', 'aggregate', 'deduplicate', 'rank', 'changelog-normalize', "
            "'watermark-assigner', 'window-table-function', 'window-aggregate', 'window-rank', 'window-deduplicate', "
            "'window-join', 'interval-join', 'temporal-join', 'temporal-sort', 'union', 'sort', 'over-aggregate', "
            "'sink-materialize', 'sink', "
            "found 'joyn'\n  hint: did you mean 'join'?",
        ),
        (
            ('"join-type": "left"', '"join-type": "LEFT"'),
            "plan.json:69:20: operators.join_o_c.join-type: expected one of 'inner', 'left', 'right', 'full', 'semi', "
            "'anti', found 'LEFT'\n  hint: did you mean 'left'?",
        ),
        (
            ('"index": 0, "name": "leftState"', '"index": "0", "name": "leftState"'),
            "plan.json:78:20: operators.join_o_c.state.leftState.index: expected a whole number, found '0'\n"
            "  hint: write 0, without quotes",
        ),
        (
            ('"index": 0, "name": "leftState"', '"index": -1, "name": "leftState"'),
            "plan.json:78:20: operators.join_o_c.state.leftState.index: expected at least 0, found -1",
        ),
        (
            ('"index": 0, "name": "leftState"', '"index": true, "name": "leftState"'),
            "plan.json:78:20: operators.join_o_c.state.leftState.index: expected a whole number, found true",
        ),
        (
            ('"from": "left.net"', '"from": "net"'),
            "plan.json:73:52: operators.join_o_c.output.net.from: expected text that matches "
            "^(left|right)[.][\\s\\S], found 'net'\n  hint: write it like 'left.o_id'",
        ),
        (
            ('"type": "DOUBLE", "from"', '"type": "DUBLE", "from"'),
            "plan.json:73:34: operators.join_o_c.output.net.type: bad type 'DUBLE': type DUBLE is not supported",
        ),
        (
            ('"keys": ["c_country"]', '"keys": "c_country"'),
            "plan.json:86:15: operators.aggregate_t.keys: expected an array, found 'c_country'",
        ),
        (
            ('"inputs": ["calc_o", "scan_customers"]', '"inputs": ["calc_o"]'),
            "plan.json:68:17: operators.join_o_c.inputs: expected 2 items, found 1",
        ),
        (
            ('["+I", "-D"]', '["+I", "+I"]'),
            "plan.json:76:27: operators.join_o_c.changelog[1]: '+I' is given twice",
        ),
    ],
)
def test_what_the_schema_refuses(patched: Patched, refusal: Refusal, edit: tuple[str, str], answer: str) -> None:
    assert refusal(patched(edit)) == answer


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (
            ('"ttl": "3 d",', '"ttl": "3 d", "ttl": "4 d",'),
            "plan.json:78:72: duplicate key 'ttl', first in line 78\n  hint: remove one of the two",
        ),
        (
            ('"ttl": "3 d"', '"ttl": NaN'),
            "plan.json:78:65: expected a value, found 'NaN'\n  hint: write a finite number",
        ),
        (
            ('"ttl": "3 d"', '"ttl": -Infinity'),
            "plan.json:78:65: expected a value, found '-Infinity'\n  hint: write a finite number",
        ),
        (('"ttl": "3 d"', '"ttl": 1e999'), "plan.json:78:65: expected a finite number, found '1e999'"),
        (
            ('"index": 0', '"index": 18446744073709551616'),
            "plan.json:78:20: expected a whole number of at most 64 bit, found '18446744073709551616'",
        ),
        (('"ttl": "3 d"', '"ttl": 3 d'), "plan.json:78:67: expected ',' or '}', found 'd'"),
        (
            ('"ttl": "3 d"', "\"ttl\": '3 d'"),
            "plan.json:78:65: expected a value, found ''3'\n  hint: write text in double quotes",
        ),
        (('"ttl": "3 d", ', '"ttl": "3 d" '), "plan.json:78:71: expected ',' or '}', found '\"'"),
        (
            ('"hint": "1 d" }', '"hint": "1 d", }'),
            "plan.json:78:114: expected no comma before '}'\n  hint: remove the comma",
        ),
        (
            ('"ttl": "3 d"', '// three days\n"ttl": "3 d"'),
            "plan.json:78:58: expected a key in double quotes, found '//'\n"
            "  hint: JSON has no comments; why an edit was made is kept with it: "
            "hintplan set PLAN PATH=VALUE --reason TEXT",
        ),
        (
            ('"ttl": "3 d"', '"ttl": "3 d'),
            "plan.json:78:72: expected ',' or '}', found 'origin'",
        ),
        (
            ('"ttl": "3 d"', '"ttl": "\\ud800"'),
            "plan.json:78:65: the text has half of a surrogate pair in it, which is no character",
        ),
    ],
)
def test_what_is_no_strict_json(patched: Patched, refusal: Refusal, edit: tuple[str, str], answer: str) -> None:
    assert refusal(patched(edit)) == answer


def test_a_truncated_file_is_refused_where_it_ends(plan_text: str, refusal: Refusal) -> None:
    cut = plan_text[: plan_text.index('"ttl": "3 d"')]
    assert refusal(cut) == (
        "plan.json:78:58: expected a key in double quotes, found the end of the file\n"
        "  hint: the file seems to be cut off"
    )


def test_no_prefix_of_a_plan_is_a_plan(plan_text: str) -> None:
    complete = len(plan_text.rstrip())
    for length in range(0, complete, 7):
        with pytest.raises(hintplan.PlanError):
            hintplan.loads(plan_text[:length])


def test_text_after_the_plan_is_refused(plan_text: str, refusal: Refusal) -> None:
    assert refusal(plan_text + "{}") == "plan.json:116:1: expected the end of the file, found '{'"


def test_a_byte_order_mark_is_refused(plan_text: str, refusal: Refusal) -> None:
    said = "plan.json:1:1: the file begins with a byte order mark\n  hint: save the file as UTF-8 without it"
    assert refusal(b"\xef\xbb\xbf" + plan_text.encode()).startswith(said)
    assert refusal("\ufeff" + plan_text).startswith(said)


def test_other_encodings_are_refused(plan_text: str, refusal: Refusal) -> None:
    data = plan_text.replace("revenue_by_country", "umsätze", 1).encode("latin-1")
    assert refusal(data) == "plan.json:3:15: expected UTF-8, found byte 0xe4\n  hint: save the file as UTF-8"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [65, 10_000, 1_000_000])
def test_deep_nesting_is_refused_quickly(refusal: Refusal, opening: str, depth: int) -> None:
    started = time.perf_counter()
    answer = refusal(opening * depth)
    assert answer.endswith("nested more than 64 levels deep")
    assert time.perf_counter() - started < 5


def test_a_file_of_100_mb_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.load(path)
    assert str(caught.value) == f"{path}: the file has 100,000,000 bytes, more than 16 MiB"


def test_more_than_10000_operators_are_refused(plan_text: str, refusal: Refusal) -> None:
    document = json.loads(plan_text)
    document["operators"] = document["operators"] * 1667
    assert refusal(json.dumps(document)).endswith("operators: expected at most 10000 items, found 10002")


@pytest.mark.parametrize("text", ["[]", "1", '"plan"', "null"])
def test_json_that_is_no_object_is_no_plan(refusal: Refusal, text: str) -> None:
    assert refusal(text).startswith("plan.json:1:1: expected a plan, which is an object, found ")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        hintplan.load(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'}: cannot be read: No such file or directory"


LEFT_STATE = (
    '        { "index": 0, "name": "leftState", "input": "o", "ttl": "3 d", '
    '"origin": { "config": "1 h", "hint": "1 d" } },\n'
)


@pytest.mark.parametrize(
    ("edit", "answer"),
    [
        (
            ('"index": 0, "name": "leftState"', '"index": 1, "name": "leftState"'),
            [
                "plan.json:77:16: operators.join_o_c.state: the entry with state index 0, 'leftState', is missing"
                + JOIN_STATES,
                "plan.json:78:31: operators.join_o_c.state.leftState.name: the state with index 1 is called "
                "'rightState', found 'leftState'" + JOIN_STATES,
                "plan.json:79:20: operators.join_o_c.state.rightState.index: state index 1 is given twice"
                + JOIN_STATES,
            ],
        ),
        (
            (LEFT_STATE, ""),
            ["plan.json:77:16: operators.join_o_c.state: the entry with state index 0, 'leftState', is missing"],
        ),
        (
            (LEFT_STATE, LEFT_STATE * 2),
            ["plan.json:79:20: operators.join_o_c.state[1].index: state index 0 is given twice" + JOIN_STATES],
        ),
        (
            ('"index": 0, "name": "leftState"', '"index": 2, "name": "leftState"'),
            ["plan.json:78:20: operators.join_o_c.state.leftState.index: there is no state index 2" + JOIN_STATES],
        ),
        (
            ('"name": "groupAggregateState"', '"name": "state"'),
            [
                "plan.json:90:31: operators.aggregate_t.state.state.name: the state with index 0 is called "
                "'groupAggregateState', found 'state'\n  hint: an aggregate has the states 0 'groupAggregateState'"
            ],
        ),
    ],
)
def test_states_must_be_complete(patched: Patched, refusal: Refusal, edit: tuple[str, str], answer: list[str]) -> None:
    found = refusal(patched(edit))
    for expected in answer:
        assert expected in found
    assert "its facts were changed by hand" in found


def test_a_changed_fact_is_refused_with_the_operator_named(patched: Patched, refusal: Refusal) -> None:
    text = patched(('"filter": "o_total > 0"', '"filter": "o_total > 1"'))
    # A calc has no settings: its digest is over all of its JSON, with sorted keys and no blanks.
    document = next(o for o in json.loads(text)["operators"] if o["id"] == "calc_o")
    digest = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
    recorded = json.loads(text)["digests"]["operators"]["calc_o"]
    assert refusal(text) == (
        "plan.json:52:5: operators.calc_o: operator 'calc_o': its facts were changed by hand "
        f"(digest {digest}, in the file {recorded}){FREE}"
    )


def test_a_changed_fact_can_be_accepted(patched: Patched) -> None:
    text = patched(('"filter": "o_total > 0"', '"filter": "o_total > 1"'))
    plan = hintplan.loads(text, allow_fact_edits=True)
    assert hintplan.loads(hintplan.dumps(plan)) == plan


def test_another_connector_is_a_changed_fact_and_another_path_is_not(patched: Patched, refusal: Refusal) -> None:
    moved = hintplan.loads(patched(('"path": "data/orders"', '"path": "elsewhere"')))
    assert moved.tables["orders"].options["path"] == "elsewhere"
    assert "table 'result': its facts were changed by hand" in refusal(
        patched(('"connector": "print"', '"connector": "blackhole"'))
    )


def test_a_renamed_operator_is_refused_at_both_ends(patched: Patched, refusal: Refusal) -> None:
    answer = refusal(patched(('"id": "sink_result"', '"id": "sink_other"')))
    assert "operators.sink_other: operator 'sink_other': it was added or renamed by hand (it has no digest)" in answer
    assert "digests.operators.sink_result: operator 'sink_result': it was removed or renamed by hand" in answer


def test_missing_digests_are_refused_unless_fact_edits_are_allowed(plan_text: str, refusal: Refusal) -> None:
    document = json.loads(plan_text)
    del document["digests"]
    assert refusal(json.dumps(document)) == (
        "plan.json:1:1: the plan has no digests, so hintplan cannot check whether its facts were changed by hand\n"
        "  hint: --allow-fact-edits accepts the plan unchanged"
    )
    assert hintplan.loads(json.dumps(document), allow_fact_edits=True) == hintplan.loads(plan_text)


def test_several_mistakes_are_reported_at_once_in_the_order_of_the_file(patched: Patched, refusal: Refusal) -> None:
    text = patched(('"ttl": "3 d"', '"ttl": "3"'), ('"ttl": "20 d"', '"ttl": "x"'), ('"mode"', '"mod"'))
    lines = [line for line in refusal(text).splitlines() if line.startswith("plan.json")]
    assert [line.split(":")[1] for line in lines] == ["4", "78", "79"]


def test_a_secret_in_the_text_is_refused_without_repeating_it(patched: Patched, refusal: Refusal) -> None:
    text = patched(
        (
            '"connector": "print"',
            '"connector": "jdbc",\n"url": "jdbc:sqlite:x.db", "table-name": "r",\n"password": "hunter2"',
        )
    )
    answer = refusal(text, allow_fact_edits=True)
    assert "tables.result.options.password: 'password' is a secret" in answer
    assert "hunter2" not in answer


def test_a_flood_of_mistakes_is_cut_and_says_so(plan_text: str, refusal: Refusal) -> None:
    document = json.loads(plan_text)
    document["operators"] = [7] * 150
    lines = refusal(json.dumps(document)).splitlines()
    assert len(lines) == 101
    assert lines[-1] == "plan.json: there are more problems than these"
