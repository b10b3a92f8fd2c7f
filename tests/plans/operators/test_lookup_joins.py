"""A lookup join in a plan: its facts, its settings and their layers, hand edits, `set`, `diff` and `explain`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hintplan
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.report import changes_text
from hintplan.plans.edit.edit import set_value
from hintplan.plans.files.rewrite import rewrite
from hintplan.plans.format.schema import schema_text
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import LookupJoin
from hintplan.plans.settings.lookup import SETTINGS
from hintplan.plans.settings.lookup_layers import layered_cache, resolve_lookup
from hintplan.plans.settings.setting import SettingError, Value, parse_value
from hintplan.plans.settings.views import RetrySettings
from hintplan.plans.show.explain import explain_json, plan_tree

PLAN_FILE = Path(__file__).parents[1] / "enriched_orders.json"
ROWS = "lookup.partial-cache.max-rows"
INTERVAL = "lookup.full-cache.periodic-reload.interval"

CHOSEN = '"lookup.cache": "PARTIAL",\n        "lookup.partial-cache.max-rows": 100'

Refusal = Callable[..., str]


@pytest.fixture(scope="module")
def text() -> str:
    return PLAN_FILE.read_text(encoding="utf-8")


@pytest.fixture
def plan(text: str) -> Plan:
    return hintplan.loads(text)


def lookup(plan: Plan) -> LookupJoin:
    found = plan.operator("lookup_rates")
    assert isinstance(found, LookupJoin)
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


def test_the_file_written_by_hand_is_canonical(text: str, plan: Plan) -> None:
    assert hintplan.dumps(plan).decode() == text


def test_the_digest_covers_the_facts_and_no_setting(text: str) -> None:
    document = json.loads(text)
    facts = dict(document["operators"][1])
    for group in ("async", "retry", "cache"):
        del facts[group]
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    assert document["digests"]["operators"]["lookup_rates"] == hashlib.sha256(canonical.encode()).hexdigest()[:16]


def test_a_setting_is_one_line_of_the_file(text: str, plan: Plan) -> None:
    new = hintplan.dumps(edited(plan, ("lookup_rates.async.capacity", "50"))).decode()
    lines = [(a, b) for a, b in zip(text.splitlines(), new.splitlines(), strict=True) if a != b]
    assert lines == [('        "capacity": 20,', '        "capacity": 50,')]


@pytest.mark.parametrize(
    "edit",
    [
        ('"capacity": 20,\n        "timeout"', '"capacity": 50,\n        "timeout"'),
        ('"timeout": "3 min",\n', '"timeout": "170 s",\n'),
        ('"max-attempts": 3,\n        "mode"', '"max-attempts": 9,\n        "mode"'),
        ('"lookup.partial-cache.max-rows": 100,\n', '"lookup.partial-cache.max-rows": 5000,\n'),
        (
            '"lookup.partial-cache.max-rows": 100,\n',
            '"lookup.partial-cache.max-rows": 100, "lookup.partial-cache.expire-after-write": "10 min",\n',
        ),
        ('"enabled": true,\n        "output-mode"', '"enabled": false,\n        "output-mode"'),
    ],
)
def test_settings_are_free_to_edit_by_hand(text: str, edit: tuple[str, str]) -> None:
    assert lookup(hintplan.loads(patched(text, edit))) != lookup(hintplan.loads(text))


PREFIX = "operators.lookup_rates."


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([('"capacity": 20,\n', '"capacity": 0,\n')], "async.capacity: expected at least 1, found 0"),
        ([('"capacity": 20,\n', '"capacity": "20",\n')], "async.capacity: expected a whole number, found '20'"),
        ([('"output-mode": "ordered",\n', '"output-mode": "unordered",\n')],
         "async.output-mode: expected one of 'ordered', 'allow_unordered', found 'unordered'"),
        ([('"timeout": "3 min",\n', '"timeout": "180",\n')], "async.timeout: bad duration '180'"),
        ([('"capacity": 20,\n', '"capacty": 20,\n')], "async.capacty: unknown key 'capacty'\n  hint: did you mean"),
        ([('"lookup.max-retries": 3,\n', "")], "cache: missing key 'lookup.max-retries'"),
        ([('"max-attempts": 3,\n', '"max-attempts": 0,\n')], "retry.max-attempts: expected at least 1, found 0"),
        ([('"mode": "inline",\n', '"mode": "deferred",\n')],
         "retry.mode: a row that waits in state is overtaken, but the output-mode is 'ordered'"),
        ([(CHOSEN, CHOSEN.replace("PARTIAL", "NONE"))],
         "cache.lookup.partial-cache.max-rows: 'lookup.partial-cache.max-rows' is set, but 'lookup.cache' is NONE"),
        ([('"lookup.partial-cache.max-rows": 100,\n', "")],
         "cache.lookup.cache: the cache would never drop anything and grow without end"),
        ([('"lookup.partial-cache.cache-missing-key": true,\n', "")],
         "cache: 'lookup.partial-cache.cache-missing-key' is missing, which goes with 'lookup.cache' PARTIAL"),
        ([('"lookup.partial-cache.max-rows": 100,\n',
           f'"lookup.partial-cache.max-rows": 100, "{INTERVAL}": "1 h",\n')],
         f"'{INTERVAL}' is set, but 'lookup.cache' is PARTIAL"),
        # an origin is no place for an edit
        ([('"hint": { "capacity": 20 }', '"hint": { "capacity": 50 }'), ('"timeout": "3 min"', '"timeout": "4 min"')],
         None),
        ([('"config": { "timeout": "3 min" }', '"config": { "timeout": "9 min" }')],
         "async.origin: according to the origin, 'timeout' is 9 min, but config has 3 min"),
        ([('"table.exec.async-lookup.timeout": "3 min"', '"table.exec.async-lookup.timeout": "9 min"')],
         "async.origin: according to the origin, 'timeout' is 3 min, but config has 9 min\n  hint: hintplan set "
         "plan.json config.table.exec.async-lookup.timeout='9 min' brings all origins in step"),
        ([('"lookup.partial-cache.max-rows": "100"', '"lookup.partial-cache.max-rows": "200"')],
         f"cache.origin: according to the origin, '{ROWS}' is 100, but table 'rates' has 200\n  hint: hintplan set "
         f"plan.json tables.rates.options.{ROWS}='200' brings all origins in step"),
        # facts
        ([('"filter": "rate > 0"', '"filter": null')], "its facts were changed by hand"),
        ([('"join-type": "left"', '"join-type": "right"')], "join-type: expected one of 'inner', 'left'"),
        ([('"keys": [{ "left": "currency", "column": "code" }', '"keys": [{ "column": "code" }')],
         "keys[0]: expected"),
        ([('"column": "code" }', '"column": "cod" }')], "keys[0].column: 'cod' is no fetched column (see 'columns')"),
        ([('{ "left": "currency"', '{ "left": "o_id"')],
         "keys[0]: the columns of a lookup key must have the same type: 'o_id' is BIGINT, 'code' is STRING"),
        ([('"columns": ["code", "base", "rate"]', '"columns": ["code", "base"]')],
         "'rate' is no column of the table that is fetched (see 'columns')"),
        ([('"table": "rates"', '"table": "result"')], "table 'result' cannot be looked up: its connector is 'print'"),
    ],
)  # fmt: skip
def test_a_hand_edit_that_makes_no_sense_is_refused_where_it_stands(
    text: str, edits: list[tuple[str, str]], message: str | None, refusal: Refusal
) -> None:
    new = patched(text, *edits)
    if message is None:
        hintplan.loads(new)
        return
    found = refusal(new)
    assert message in found
    assert found.startswith("plan.json:")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            ('"config": {', '"config": {\n    "lookup.cache": "SOME",'),
            "config.lookup.cache: expected one of NONE, PARTIAL, FULL, found 'SOME'\n  hint: write 'NONE'",
        ),
        (
            ('"config": {', '"config": {\n    "table.local-time-zone": "Mars",'),
            "config.table.local-time-zone: 'Mars' is not a time zone",
        ),
        (
            ('"lookup.partial-cache.max-rows": "100"', '"lookup.partial-cache.max-rows": "many"'),
            f"tables.rates.options.{ROWS}: '{ROWS}': expected a whole number of at least 0, found 'many'",
        ),
    ],
)
def test_a_wrong_value_in_config_or_options_is_refused_where_it_stands(
    text: str, edit: tuple[str, str], message: str, refusal: Refusal
) -> None:
    assert message in refusal(patched(text, edit))


@pytest.mark.parametrize(
    "edit", [('"inputs": ["scan_orders"]', '"inputs": ["scan_x"]'), ('"table": "rates"', '"table": "ratez"')]
)
def test_a_broken_plan_is_explained_and_compared_and_takes_edits(text: str, edit: tuple[str, str]) -> None:
    broken = hintplan.loads(patched(text, edit), allow_fact_edits=True, check_meaning=False)
    assert "LOOKUP JOIN" in plan_tree(broken)
    new, _ = set_value(broken, "config.lookup.max-retries", "7")
    assert new.config["lookup.max-retries"] == "7"
    assert compare_plans(broken, new)


def test_a_full_cache_answers_at_once_and_knows_no_retry(text: str, refusal: Refusal) -> None:
    full = f'"lookup.cache": "FULL", "lookup.full-cache.reload-strategy": "PERIODIC", "{INTERVAL}": "1 h",'
    full += ' "lookup.full-cache.periodic-reload.schedule-mode": "FIXED_RATE",\n'
    new = patched(
        text,
        (CHOSEN + ",\n", full),
        ('"lookup.partial-cache.cache-missing-key": true,\n', ""),
    )
    found = refusal(new)
    assert "async.enabled: a FULL cache answers every row at once from memory" in found
    assert "retry: a FULL cache holds the whole table" in found


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("async.capacity", "50", "50"),
        ("async.timeout", "90s", "90 s"),
        ("async.timeout", "0", "0 ms"),
        ("async.enabled", "FALSE", "False"),
        ("async.output-mode", "ALLOW_UNORDERED", "allow_unordered"),
        ("retry.max-attempts", "5", "5"),
        ("retry.fixed-delay", "500 ms", "500 ms"),
        (f"cache.{ROWS}", "5000", "5000"),
        ("cache.lookup.partial-cache.expire-after-write", "600 s", "10 min"),
        ("cache.lookup.max-retries", "0", "0"),
    ],
)
def test_set_writes_one_setting_in_its_canonical_form(plan: Plan, path: str, value: str, shown: str) -> None:
    new, changes = set_value(plan, f"lookup_rates.{path}", value)
    (setting,) = [s for s in explain_json(new)["operators"][1]["settings"] if s["setting"] == path]
    assert (str(setting["value"]), setting["set-by"]) == (shown, "edit")
    assert [change.path for change in changes] == [f"lookup_rates.{path}"]
    assert plan_problems(new) == ()
    assert lookup(hintplan.loads(rewrite(hintplan.dumps(plan), plan, new))) == lookup(new)


@pytest.mark.parametrize(
    ("path", "value", "message", "hint"),
    [
        ("async.capacity", "0", "'capacity': expected a whole number of at least 1, found '0'", "write 1 or more"),
        ("async.capcity", "5", "'async' has no setting 'capcity'", "did you mean 'capacity'?"),
        ("async.origin.hint", "5", "an origin records what default, config and hint set", "set "),
        ("cache.lookup.cahce", "NONE", "'cache' has no setting 'lookup.cahce'", "did you mean 'lookup.cache'?"),
        (f"cache.{INTERVAL}", "1 h", f"'{INTERVAL}' does not go with 'lookup.cache' PARTIAL", "= 'FULL'"),
        ("keys", "x", "'keys' of an operator is a fact of the query", "can be set: lookup_rates.async.<setting>"),
        ("retry", "often", "expected attempts and delay, found 'often'", "write '<attempts> x <delay>'"),
        ("retry", "0 x 10 s", "expected a whole number of at least 1, found '0'", "write 1 or more"),
        ("nothing", "1", "'nothing' is not a setting", "can be set: "),
    ],
)  # fmt: skip
def test_set_refuses_what_is_no_setting_or_no_value(plan: Plan, path: str, value: str, message: str, hint: str) -> None:
    with pytest.raises(hintplan.PlanError) as caught:
        set_value(plan, f"lookup_rates.{path}", value)
    (found,) = caught.value.diagnostics
    assert found.path == f"lookup_rates.{path}"
    assert message in found.message
    assert hint in (found.hint or "")


def test_retry_is_switched_off_and_on(plan: Plan) -> None:
    off = edited(plan, ("lookup_rates.retry", "off"))
    assert lookup(off).retry is None
    with pytest.raises(hintplan.PlanError, match="does not retry, so there is no 'max-attempts' to set"):
        set_value(off, "lookup_rates.retry.max-attempts", "5")
    on = edited(off, ("lookup_rates.retry", "5 x 30s"))
    assert lookup(on).retry == RetrySettings(fixed_delay="30 s", max_attempts=5, mode="inline")
    retry = lookup(on).settings["retry"]
    assert (retry.values["retry-predicate"], retry.values["retry-strategy"]) == ("lookup_miss", "fixed_delay")
    assert retry.origin == {"default": {"mode": "inline"}}
    assert plan_problems(on) == plan_problems(off) == ()


def test_another_cache_brings_the_settings_that_go_with_it(plan: Plan) -> None:
    none = edited(plan, ("lookup_rates.cache.lookup.cache", "NONE"))
    assert lookup(none).cache.values == {"lookup.cache": "NONE", "lookup.max-retries": 3}
    assert lookup(none).cache.origin == lookup(plan).cache.origin
    assert edited(none, ("lookup_rates.cache.lookup.cache", "PARTIAL")) == plan
    full = edited(plan, ("lookup_rates.cache.lookup.cache", "full"), (f"lookup_rates.cache.{INTERVAL}", "1 h"))
    assert lookup(full).cache.values == {
        "lookup.cache": "FULL",
        "lookup.full-cache.reload-strategy": "PERIODIC",
        INTERVAL: "1 h",
        "lookup.full-cache.periodic-reload.schedule-mode": "FIXED_DELAY",
        "lookup.max-retries": 3,
    }
    assert (lookup(full).async_.enabled, lookup(full).retry) == (False, None)
    assert plan_problems(full) == ()


def test_rows_that_must_stay_in_order_do_not_wait_in_state(plan: Plan) -> None:
    deferred = edited(
        plan, ("lookup_rates.async.output-mode", "allow_unordered"), ("lookup_rates.retry.mode", "deferred")
    )
    assert plan_problems(deferred) == ()
    retry = lookup(edited(deferred, ("lookup_rates.async.output-mode", "ordered"))).retry
    assert retry is not None
    assert retry.mode == "inline"


def test_a_new_config_moves_what_follows_it_and_keeps_hints_and_edits(plan: Plan) -> None:
    moved = edited(plan, ("config.table.exec.async-lookup.timeout", "60s"))
    assert (lookup(moved).async_.timeout, lookup(moved).settings["async"].origin["config"]) == (
        "1 min",
        {"timeout": "1 min"},
    )
    kept = edited(
        plan,
        ("lookup_rates.async.timeout", "7 s"),
        ("config.table.exec.async-lookup.timeout", "60s"),
        ("config.table.exec.async-lookup.buffer-capacity", "9"),
    )
    assert (lookup(kept).async_.timeout, lookup(kept).async_.capacity) == ("7 s", 20)
    assert lookup(kept).settings["async"].origin["config"] == {"capacity": 9, "timeout": "1 min"}
    assert plan_problems(moved) == plan_problems(kept) == ()


def test_a_new_table_option_moves_what_follows_it(plan: Plan) -> None:
    moved = edited(plan, (f"tables.rates.options.{ROWS}", "7"))
    assert lookup(moved).cache.values[ROWS] == lookup(moved).cache.origin["table"][ROWS] == 7
    kept = edited(plan, (f"lookup_rates.cache.{ROWS}", "50"), (f"tables.rates.options.{ROWS}", "7"))
    assert lookup(kept).cache.values[ROWS] == 50
    assert plan_problems(moved) == plan_problems(kept) == ()


def test_a_source_that_cannot_wait_for_many_rows_looks_up_one_by_one(plan: Plan) -> None:
    moved = edited(plan, ("tables.rates.options.url", "jdbc:sqlite:rates.db"))
    assert lookup(moved).async_.enabled is False
    assert plan_problems(moved) == ()


def test_differences_say_who_set_it_and_what_becomes_of_the_cache(plan: Plan) -> None:
    new = edited(
        plan,
        ("lookup_rates.async.capacity", "50"),
        ("lookup_rates.retry.max-attempts", "5"),
        (f"lookup_rates.cache.{ROWS}", "5000"),
    )
    at_start = "state kept, applies at the next start"
    assert [(c.path, c.before, c.after, c.note, c.effect.text) for c in compare_plans(plan, new)] == [
        ("lookup_rates.async.capacity", "20", "50", "edit over hint 20", at_start),
        ("lookup_rates.retry.max-attempts", "3", "5", "edit over hint 3", at_start),
        (
            f"lookup_rates.cache.{ROWS}",
            "100",
            "5000",
            "edit over table 100",
            "applies at the next start, with an empty cache",
        ),
    ]
    assert changes_text(compare_plans(plan, new)).endswith(
        "3 settings changed · no operator changed · running state stays readable"
    )


def test_waiting_rows_in_state_are_not_found_by_a_plan_that_has_none(plan: Plan) -> None:
    unordered = edited(plan, ("lookup_rates.async.output-mode", "allow_unordered"))
    deferred = edited(unordered, ("lookup_rates.retry.mode", "deferred"))
    off = edited(deferred, ("lookup_rates.retry", "off"))
    (change,) = compare_plans(unordered, deferred)
    assert (change.effect.level, change.keeps_state) == ("restart", True), "nothing waits yet"
    for after in (unordered, off):
        (change,) = compare_plans(deferred, after)
        assert (change.effect.text, change.keeps_state) == ("rows that wait are left behind", False)


def test_explain_shows_settings_layers_and_the_longest_wait(plan: Plan) -> None:
    new = edited(plan, ("lookup_rates.async.capacity", "50"))
    assert plan_tree(new).split("\n")[3:8] == [
        "sink_result                        print",
        "└─ lookup_rates                    "
        "LEFT LOOKUP JOIN rates (jdbc) ON rates.code = currency AND rates.base = 'EUR' AND rate > 0",
        "   │  async                        "
        "async · output-mode ordered · capacity 50 (edit · hint 20) · timeout 3 min (config)",
        "   │  retry                        "
        "lookup_miss (hint) · fixed-delay 10 s (hint) · max-attempts 3 (hint) · mode inline · "
        "a row that finds nothing waits up to 30 s",
        "   │  cache                        "
        "PARTIAL (table) · max-rows 100 (table) · cache-missing-key true · max-retries 3",
    ]


@pytest.mark.parametrize(
    ("attempts", "delay", "timeout", "said"),
    [
        ("3", "10 s", "3 min", "waits up to 30 s"),
        ("3", "10 s", "0 ms", "waits up to 30 s"),
        ("20", "10 s", "3 min", "waits up to 200 s, but fails the job after its timeout, 3 min"),
        ("18", "10 s", "3 min", "waits up to 3 min, but fails the job after its timeout, 3 min"),
    ],
)
def test_the_longest_wait_is_attempts_times_delay_and_the_timeout_ends_it(
    plan: Plan, attempts: str, delay: str, timeout: str, said: str
) -> None:
    new = edited(plan, ("lookup_rates.retry", f"{attempts} x {delay}"), ("lookup_rates.async.timeout", timeout))
    (line,) = [line for line in plan_tree(new).split("\n") if "│  retry" in line]
    assert line.endswith(said)


def test_only_rows_that_hold_up_an_asynchronous_lookup_meet_its_timeout(plan: Plan) -> None:
    long = edited(plan, ("lookup_rates.retry", "20 x 10 s"))
    sync = edited(long, ("lookup_rates.async.enabled", "false"))
    unordered = edited(long, ("lookup_rates.async.output-mode", "allow_unordered"))
    deferred = edited(unordered, ("lookup_rates.retry.mode", "deferred"))
    waits = [
        line.split("waits ")[1] for p in (sync, deferred) for line in plan_tree(p).split("\n") if "│  retry" in line
    ]
    assert waits == ["up to 200 s", "up to 200 s in state, which no TTL cuts short"]


# Flink's rules, one by one: what the layers ask for, and what runs.
@pytest.mark.parametrize(
    ("asked", "running"),
    [
        ({}, {"lookup.cache": "NONE"}),
        ({"table": {"lookup.cache": "PARTIAL", ROWS: 1}}, {"lookup.cache": "PARTIAL", ROWS: 1}),
        ({"config": {ROWS: 1}, "table": {"lookup.cache": "PARTIAL"}}, {"lookup.cache": "PARTIAL", ROWS: 1}),
        # the hint chooses another cache: the table's options of the old one do not go with it
        ({"table": {"lookup.cache": "PARTIAL", ROWS: 1}, "hint": {"lookup.cache": "NONE"}}, {"lookup.cache": "NONE"}),
        ({"config": {"lookup.cache": "PARTIAL", ROWS: 1}, "table": {"lookup.cache": "FULL", INTERVAL: "1 h"}},
         {"lookup.cache": "FULL", INTERVAL: "1 h"}),
    ],
)  # fmt: skip
def test_the_chosen_cache_decides_which_options_count(
    asked: dict[str, dict[str, Any]], running: dict[str, Any]
) -> None:
    values = layered_cache(asked, strict=True).values
    assert {name: value for name, value in values.items() if name in ("lookup.cache", ROWS, INTERVAL)} == running


def test_a_hint_that_the_source_cannot_follow_is_told_apart() -> None:
    hint: dict[str, Value] = {"enabled": True, "output-mode": "allow_unordered"}
    found = resolve_lookup({"async": {"hint": hint}}, {"sync"}, insert_only=False)
    assert [(unmet.name, unmet.layer) for unmet in found.unmet] == [("enabled", "hint"), ("output-mode", "hint")]
    assert found.groups["async"].values["enabled"] is False
    assert found.groups["async"].values["output-mode"] == "ordered"
    assert "hint" not in found.groups["async"].origin


@pytest.mark.parametrize("text", ["10:15", "10:15:30", "10:15Z", "10:15+07:00", "23:59:59.5-01:30"])
def test_a_time_of_day_is_read_as_iso_time(text: str) -> None:
    assert parse_value(SETTINGS["cache"]["lookup.full-cache.timed-reload.iso-time"], text) == text


@pytest.mark.parametrize("text", ["25:99", "10", "1015", "10:15 Z", "", "noon", "10:15+7"])
def test_another_text_is_no_time_of_day(text: str) -> None:
    with pytest.raises(SettingError, match="expected a time of day"):
        parse_value(SETTINGS["cache"]["lookup.full-cache.timed-reload.iso-time"], text)


def test_the_schema_knows_the_settings_and_no_others() -> None:
    definitions = json.loads(schema_text())["$defs"]
    for group, specs in SETTINGS.items():
        assert list(definitions[f"lookup-{group}-layer"]["properties"]) == list(specs)
        assert set(definitions[f"lookup-{group}"]["properties"]) == {*specs, "origin"}
        for name, spec in specs.items():
            assert definitions[f"lookup-{group}"]["properties"][name].get("enum", []) == list(spec.choices)
