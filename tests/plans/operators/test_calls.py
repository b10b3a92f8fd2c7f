"""Functions and the operators that call them in a plan: facts, settings and layers, hand edits, `set`, `diff`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import hintplan
from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.fingerprints import meaning
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import changes_text
from hintplan.plans.edit.edit import set_value
from hintplan.plans.files.rewrite import rewrite
from hintplan.plans.format.schema import schema_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.operators import Correlate
from hintplan.plans.settings.setting import value_text
from hintplan.plans.settings.views import CallRetry, CallSettings
from hintplan.plans.show.explain import explain_json, plan_tree

PLAN_FILE = Path(__file__).parents[1] / "located_orders.json"

Refusal = Callable[..., str]


@pytest.fixture(scope="module")
def text() -> str:
    return PLAN_FILE.read_text(encoding="utf-8")


@pytest.fixture
def plan(text: str) -> Plan:
    return hintplan.loads(text)


def call(plan: Plan, operator: str = "correlate_locate") -> Correlate:
    found = plan.operator(operator)
    assert isinstance(found, Correlate)
    return found


def edited(plan: Plan, *assignments: tuple[str, str]) -> Plan:
    for path, value in assignments:
        plan, _ = set_value(plan, path, value)
    return plan


def patched(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_the_file_written_by_hand_is_canonical_and_valid_to_the_standard_validator(text: str, plan: Plan) -> None:
    assert hintplan.dumps(plan).decode() == text
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(json.loads(text))


def test_the_digest_of_a_call_covers_its_facts_and_no_setting(text: str) -> None:
    document = json.loads(text)
    facts = {key: value for key, value in document["operators"][1].items() if key not in ("async", "retry")}
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:16]
    assert document["digests"]["operators"]["correlate_locate"] == digest


def test_a_plan_without_functions_has_no_digests_of_functions(text: str, plan_text: str) -> None:
    assert "functions" in json.loads(text)["digests"]
    assert "functions" not in json.loads(plan_text)["digests"]


def test_row_kinds_pass_through_a_call(plan: Plan) -> None:
    assert output_kinds(plan)["correlate_words"] == ("+I",)


@pytest.mark.parametrize(
    "edit",
    [
        ('"buffer-capacity": 10,\n        "timeout"', '"buffer-capacity": 50,\n        "timeout"'),
        ('"timeout": "1 min",\n        "origin"', '"timeout": "2 min",\n        "origin"'),
        ('"retry-strategy": "fixed_delay",\n', '"retry-strategy": "no_retry",\n'),
        ('"max-attempts": 3,\n        "origin"', '"max-attempts": 0,\n        "origin"'),
    ],
)
def test_settings_of_calls_are_free_to_edit_by_hand(text: str, edit: tuple[str, str]) -> None:
    assert call(hintplan.loads(patched(text, edit))) != call(hintplan.loads(text))


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([('"buffer-capacity": 10,\n', '"buffer-capacity": 0,\n')],
         "operators.correlate_locate.async.buffer-capacity: expected at least 1, found 0"),
        ([('"buffer-capacity": 10,\n', '"capacity": 10,\n')],
         "operators.correlate_locate.async.capacity: unknown key 'capacity'\n  hint: did you mean 'buffer-capacity'?"),
        ([('"retry-strategy": "fixed_delay",\n', '"retry-strategy": "FIXED_DELAY",\n')],
         "retry.retry-strategy: expected one of 'fixed_delay', 'no_retry', found 'FIXED_DELAY'"),
        ([('"timeout": "1 min",\n        "origin"', '"timeout": "60",\n        "origin"')],
         "async.timeout: bad duration '60'"),
        ([('"table.exec.async-table.timeout": "1 min"', '"table.exec.async-table.timeout": "2 min"')],
         "async.origin: according to the origin, 'timeout' is 1 min, but config has 2 min\n  hint: hintplan set "
         "plan.json config.table.exec.async-table.timeout='2 min' brings all origins in step"),
        ([('"config": {', '"config": {\n    "table.exec.async-table.max-retries": "3",')],
         "a plan calls 'table.exec.async-table.max-retries' by its other name\n"
         "  hint: write 'table.exec.async-table.max-attempts'"),
        # facts
        ([('"arguments": ["STRING", "INT"]', '"arguments": ["STRING", "BIGINT"]')],
         "function 'locate': its facts were changed by hand"),
        ([('"class": "geo.functions.Locate"', '"class": "os.Locate"')],
         "functions.locate: function 'locate': its facts were changed by hand"),
        ([('"join-type": "left"', '"join-type": "inner"')],
         "operator 'correlate_locate': its facts were changed by hand"),
        ([('"function": "locate"', '"function": "locat"')],
         "operators.correlate_locate.function: there is no function 'locat'\n  hint: did you mean 'locate'?"),
        ([('["city", { "constant": "2" }]', '["city"]')],
         "correlate_locate.arguments: 'locate' takes 2 arguments (STRING, INT), found 1"),
        ([('["city", { "constant": "2" }]', '["o_id", { "constant": "2" }]')],
         "correlate_locate.arguments[0]: 'locate' takes STRING, but 'o_id' is BIGINT"),
        ([('["city", { "constant": "2" }]', '["citi", { "constant": "2" }]')],
         "correlate_locate.arguments[0]: 'citi' is no column of the input\n  hint: did you mean 'city'?"),
        ([('"arguments": ["STRING"]', '"arguments": ["STRING NOT NULL"]')],
         "correlate_words.arguments[0]: 'words' takes STRING NOT NULL, but 'city' may be NULL"),
        ([('"from": "right.lat"', '"from": "right.lad"')], "'lad' is no column of function 'locate'"),
        ([('"type": "DOUBLE", "from": "right.lat"', '"type": "FLOAT", "from": "right.lat"')],
         "correlate_locate.output.lat.type: the type is FLOAT, but right.lat is DOUBLE"),
        ([('"kind": "table"', '"kind": "async-table"')],
         "correlate_words.async: 'words' is asynchronous, so its calls have the settings 'async'"),
        ([('"kind": "async-table"', '"kind": "table"')],
         "correlate_locate.async: 'locate' is synchronous: its calls neither wait nor retry\n  hint: write null"),
        ([('"kind": "async-table"', '"kind": "async-scalar"')],
         "functions.locate.output: a scalar function returns one column, found 2"),
        ([('"kind": "async-table"', '"kind": "async-scalar"')],
         "correlate_locate.join-type: 'locate' returns one value for every row, so there is nothing to keep or drop"),
    ],
)  # fmt: skip
def test_a_hand_edit_that_makes_no_sense_is_refused_where_it_stands(
    text: str, edits: list[tuple[str, str]], message: str, refusal: Refusal
) -> None:
    found = refusal(patched(text, *edits))
    assert message in found
    assert found.startswith("plan.json:")


def test_a_function_that_was_removed_by_hand_is_missed(text: str, refusal: Refusal) -> None:
    document = json.loads(text)
    document["functions"], document["operators"] = {}, document["operators"][:1]
    assert "function 'locate': it was removed or renamed by hand" in refusal(json.dumps(document))


def test_set_changes_one_line_of_the_file(text: str, plan: Plan) -> None:
    new = rewrite(text.encode(), plan, edited(plan, ("correlate_locate.async.buffer-capacity", "50"))).decode()
    lines = [(a, b) for a, b in zip(text.splitlines(), new.splitlines(), strict=True) if a != b]
    assert lines == [('        "buffer-capacity": 10,', '        "buffer-capacity": 50,')]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("async.buffer-capacity", "50", ("buffer_capacity", 50)),
        ("async.timeout", "90 s", ("timeout", "90 s")),
        ("retry.max-attempts", "0", ("max_attempts", 0)),
        ("retry.retry-strategy", "NO_RETRY", ("strategy", "no_retry")),
        ("retry", "off", ("strategy", "no_retry")),
        ("retry", "5 x 100 ms", ("fixed_delay", "100 ms")),
    ],
)
def test_settings_of_calls_can_be_set(plan: Plan, path: str, value: str, expected: tuple[str, object]) -> None:
    new = call(edited(plan, (f"correlate_locate.{path}", value)))
    group = new.async_ if path.startswith("async") else new.retry
    assert getattr(group, expected[0]) == expected[1]
    assert hintplan.loads(hintplan.dumps(edited(plan, (f"correlate_locate.{path}", value))))


@pytest.mark.parametrize(
    ("path", "value", "message", "hint"),
    [
        ("correlate_locate.async.capacity", "5", "has no setting 'capacity'", "did you mean 'buffer-capacity'?"),
        ("correlate_locate.async.buffer-capacity", "0", "expected a whole number of at least 1, found '0'", "write 1"),
        ("correlate_locate.cache.x", "0", "'cache.x' is not a setting", "can be set: correlate_locate.async.<setting>"),
        ("correlate_locate.arguments", "o_id", "'arguments' of an operator is a fact of the query", "compile it again"),
        ("correlate_locate.retry.origin", "x", "an origin records what", "set correlate_locate.retry.retry-strategy"),
        ("correlate_words.async.timeout", "1 s", "'words' is synchronous", "'correlate_words' has nothing to set"),
        ("correlate_words.retry", "off", "calls 'words', which is synchronous", "'correlate_words' has nothing to set"),
    ],
)  # fmt: skip
def test_set_refuses_what_is_no_setting_or_no_value(plan: Plan, path: str, value: str, message: str, hint: str) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        set_value(plan, path, value)
    (found,) = caught.value.diagnostics
    assert (found.path, found.hint) == (path, found.hint)
    assert message in found.message
    assert hint in (found.hint or "")


@pytest.mark.parametrize(("name", "value"), [("max-attempts", "7"), ("fixed-delay", "1 s")])
def test_what_goes_with_a_retry_is_refused_where_there_is_none(plan: Plan, name: str, value: str) -> None:
    without = edited(plan, ("correlate_locate.retry", "off"))
    with pytest.raises(
        hintplan.PlanError, match=f"'{name}' has no effect here: the 'retry-strategy' is no_retry"
    ) as caught:
        set_value(without, f"correlate_locate.retry.{name}", value)
    assert "set correlate_locate.retry='<attempts> x <delay>'" in str(caught.value)
    again = call(edited(without, ("correlate_locate.retry", "7 x 1 s"))).retry
    assert again is not None
    assert (again.strategy, again.max_attempts, again.fixed_delay) == ("fixed_delay", 7, "1 s")


@pytest.mark.parametrize("name", ["fixed-delay", "retry-delay"])
def test_a_new_config_moves_what_follows_it_and_leaves_edits_alone(plan: Plan, name: str) -> None:
    first = edited(plan, ("correlate_locate.async.timeout", "5 min"))
    prefix = "config.table.exec.async-table"
    new = edited(first, (f"{prefix}.{name}", "100 ms"), (f"{prefix}.timeout", "2 min"))
    assert new.config == {"table.exec.async-table.fixed-delay": "100 ms", "table.exec.async-table.timeout": "2 min"}
    assert call(new).async_ == CallSettings(buffer_capacity=10, timeout="5 min")
    assert call(new).settings["async"].origin == {"default": {"buffer-capacity": 10}, "config": {"timeout": "2 min"}}
    assert call(new).retry == CallRetry(strategy="fixed_delay", fixed_delay="100 ms", max_attempts=3)
    assert call(new).settings["retry"].origin == {
        "default": {"retry-strategy": "fixed_delay", "max-attempts": 3},
        "config": {"fixed-delay": "100 ms"},
    }
    assert hintplan.loads(hintplan.dumps(new)) == new


def test_the_config_of_scalar_functions_leaves_table_functions_alone(plan: Plan) -> None:
    assert call(edited(plan, ("config.table.exec.async-scalar.timeout", "7 s"))) == call(plan)


def test_diff_says_who_set_what(plan: Plan) -> None:
    new = edited(plan, ("correlate_locate.async.timeout", "5 min"), ("correlate_locate.retry.max-attempts", "1"))
    changes = compare_plans(plan, new)
    assert [(c.path, c.before, c.after, c.note, c.keeps_state) for c in changes] == [
        ("correlate_locate.async.timeout", "1 min", "5 min", "edit over config 1 min", True),
        ("correlate_locate.retry.max-attempts", "3", "1", "edit over default 3", True),
    ]
    assert "2 settings changed · no operator changed" in changes_text(changes)


def test_explain_shows_calls_their_settings_and_the_worst_delay(plan: Plan) -> None:
    assert plan_tree(plan).splitlines()[3:] == [
        "sink_result                        print",
        "└─ correlate_words                 LATERAL TABLE(words(city))",
        "   └─ correlate_locate             LEFT JOIN LATERAL TABLE(locate(city, 2))",
        "      │  async                     buffer-capacity 10 · timeout 1 min (config)",
        "      │  retry                     fixed-delay 10 s · max-attempts 3 · a call that fails is made up to 3 more "
        "times, over 30 s",
        "      └─ scan_orders               datagen · 2 of 2 columns",
    ]
    late = plan_tree(edited(plan, ("correlate_locate.retry", "9 x 10 s")))
    assert "max-attempts 9 (edit · default 3)" in late
    assert "up to 9 more times, over 90 s, but fails the job after its timeout, 1 min" in late
    off = plan_tree(edited(plan, ("correlate_locate.retry", "off")))
    assert "retry                     off (edit · default fixed_delay) · a call that fails fails the job" in off


def test_explain_of_a_scalar_function_names_its_column(text: str) -> None:
    scalar = patched(text, ('"kind": "table"', '"kind": "scalar"'))
    assert "word = words(city)" in plan_tree(hintplan.loads(scalar, allow_fact_edits=True))


def test_explain_json_lists_every_setting(plan: Plan) -> None:
    (found,) = [o for o in explain_json(plan)["operators"] if o["id"] == "correlate_locate"]
    assert found["settings"][1] == {
        "setting": "async.timeout",
        "value": "1 min",
        "set-by": "config",
        "origin": {"config": "1 min"},
    }
    assert [s["setting"] for s in found["settings"]] == [
        "async.buffer-capacity",
        "async.timeout",
        "retry.retry-strategy",
        "retry.fixed-delay",
        "retry.max-attempts",
    ]


def test_the_list_of_settings_is_what_can_be_set(plan: Plan) -> None:
    for setting in operator_settings(call(plan)):
        edited(plan, (setting.path, value_text(setting.value)))
    assert list(operator_settings(call(plan, "correlate_words"))) == []


def test_calls_of_another_class_under_the_same_name_do_not_mean_the_same(text: str) -> None:
    other = hintplan.loads(patched(text, ("geo.functions.Locate", "geo.maps.Locate")), allow_fact_edits=True)
    renamed = hintplan.loads(text.replace('"locate"', '"find"'), allow_fact_edits=True)
    mine = meaning(hintplan.loads(text), "correlate_locate")
    assert meaning(other, "correlate_locate") != mine
    assert meaning(renamed, "correlate_locate") == mine
