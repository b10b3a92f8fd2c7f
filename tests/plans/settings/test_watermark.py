"""The settings of a watermark: their layers, what `set`, `why` and `diff` tell of them, and what becomes of state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hintplan.planner.compile import compile_script
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.analysis.watermarks import slowest_of
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.lineage import state_lineages
from hintplan.plans.connectors.check import check_table
from hintplan.plans.declarations.windows import Window
from hintplan.plans.edit.edit import remove_value, set_value
from hintplan.plans.edit.why import explain_setting
from hintplan.plans.errors import PlanError
from hintplan.plans.lint.unused_rules import unused_options
from hintplan.plans.merge.merge import merge_plans
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.flink_keys import why_idle
from hintplan.plans.show.explain import explain_json, plan_tree
from hintplan.plans.show.notebook import plan_html
from hintplan.plans.show.page import plan_page
from hintplan.plans.show.picture import picture
from tests.plans.windowed import BID, TUMBLE, assigner, counted, hot_items, plan_of, ranked, scan, united

KEY = "table.exec.source.idle-timeout"
OPTION = "scan.watermark.idle-timeout"


def idle(plan: Plan) -> tuple[object, object]:
    """The timeout in force, and the layers that set it."""
    settings = plan.operator("watermark_bid").settings["watermark"]
    return settings.values["idle-timeout"], {
        layer: values["idle-timeout"] for layer, values in settings.origin.items() if "idle-timeout" in values
    }


def with_values(plan: Plan, **values: str) -> Plan:
    for path, value in values.items():
        plan, _ = set_value(plan, path.replace("__", "."), value)
    return plan


@pytest.mark.parametrize(
    "path", ["watermark_bid.delay", "watermark_bid.watermark.delay", "operators.watermark_bid.delay"]
)
def test_a_longer_delay_keeps_windows_for_longer(path: str) -> None:
    edited, (change,) = set_value(hot_items(), path, "3600 s")
    assert edited.operator("watermark_bid").settings["watermark"].values["delay"] == "1 h"
    assert (change.path, change.before, change.after) == ("watermark_bid.watermark.delay", "4 s", "1 h")
    assert change.note == "edit over table 4 s"
    assert change.effect.level == "restart"
    assert change.effect.text == "windows close 1 h after their end, and are kept so long; nothing closed reopens"
    assert plan_problems(edited) == ()


@pytest.mark.parametrize("delay", ["2 s", "0 ms"])
def test_a_shorter_delay_drops_later_rows(delay: str) -> None:
    _, (change,) = set_value(hot_items(), "watermark_bid.delay", delay)
    assert change.effect.text == f"rows more than {delay} late are dropped"


def test_no_timeout_is_longer_than_any() -> None:
    timed, (first,) = set_value(hot_items(), "watermark_bid.idle-timeout", "1 min")
    _, (second,) = set_value(timed, "watermark_bid.idle-timeout", "0 ms")
    assert "no longer holds the watermark back" in first.effect.because
    assert "holds the watermark back for longer" in second.effect.because


def test_the_timeout_follows_config_the_table_and_an_edit() -> None:
    plan = with_values(hot_items(), **{f"config.{KEY}": "30 s"})
    assert idle(plan) == ("30 s", {"config": "30 s"})
    plan = with_values(plan, **{f"tables.bid.options.{OPTION}": "20 s"})
    assert idle(plan) == ("20 s", {"config": "30 s", "table": "20 s"})
    plan = with_values(plan, **{"watermark_bid.idle-timeout": "10 s"})
    assert idle(plan) == ("10 s", {"config": "30 s", "table": "20 s"})
    assert plan.operator("watermark_bid").settings["watermark"].origin["table"]["delay"] == "4 s"
    assert plan_problems(plan) == ()
    plan, _ = remove_value(plan, f"tables.bid.options.{OPTION}")
    plan, _ = remove_value(plan, f"config.{KEY}")
    assert idle(plan) == ("10 s", {"default": "0 ms"})
    assert plan_problems(plan) == ()


def test_a_hand_edit_of_config_or_table_is_told_how_to_bring_origins_in_step() -> None:
    plan = replace(hot_items(), config={KEY: "30 s"})
    (problem,) = plan_problems(plan)
    assert str(problem) == (
        "operators.watermark_bid.watermark.origin: according to the origin, there was no value for 'idle-timeout', but "
        f"config has 30 s\n  hint: hintplan set plan.json config.{KEY}='30 s' brings all origins in step"
    )
    options = {**BID.options, OPTION: "20 s"}
    plan = replace(hot_items(), tables={**hot_items().tables, "bid": replace(BID, options=options)})
    (problem,) = plan_problems(plan)
    assert "but table 'bid' has 20 s" in str(problem)
    assert f"hintplan set plan.json tables.bid.options.{OPTION}='20 s' brings all origins in step" in str(problem)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("window_bid.windowAggregateState.ttl", "it keeps rows until the watermark passes the window"),
        ("watermark_bid.base", "'base' of an operator is a fact of the query"),
        ("watermark_bid.watermark.lag", "'watermark' has no setting 'lag'"),
        ("watermark_bid.watermark.origin", "an origin records what default, config, table and hint set"),
    ],
)
def test_other_parts_cannot_be_set(path: str, answer: str) -> None:
    with pytest.raises(PlanError, match=answer):
        set_value(hot_items(), path, "1 h")


def test_why_names_the_layers_and_what_a_change_does() -> None:
    explained = explain_setting(with_values(hot_items(), **{"watermark_bid.delay": "1 h"}), "watermark_bid.delay")
    assert (explained.value, explained.set_by, explained.undo) == ("1 h", "edit", "4 s")
    assert [(step.layer, step.value) for step in explained.steps] == [("table", "4 s"), ("edit", "1 h")]
    assert "nothing closed reopens" in explained.effect


def test_edits_of_both_sides_are_merged() -> None:
    base = hot_items()
    ours = with_values(base, **{"watermark_bid.delay": "1 h"})
    theirs = with_values(base, **{"watermark_bid.idle-timeout": "5 s"})
    merged = merge_plans(base, ours, theirs)
    assert not merged.conflicts
    assert merged.plan.operator("watermark_bid").settings["watermark"].values == {"delay": "1 h", "idle-timeout": "5 s"}


def test_explain_shows_windows_states_and_delays() -> None:
    assert plan_tree(hot_items()).split("\n\n")[1].splitlines() == [
        "sink_result                        print",
        "└─ rank_bid                        FIRST 1 BY num DESC NULLS LAST IN WINDOW window_start, window_end",
        "   │  windowRankState  bid         until the watermark passes the window",
        "   └─ window_bid                   HOP 10 s EVERY 2 s OF ts, GROUP BY auction: COUNT(*)",
        "      │  windowAggregateState  bid until the watermark passes the window",
        "      └─ watermark_bid             ts - 4 s",
        "         │  watermark              delay 4 s (table) · idle-timeout never",
        "         └─ scan_bid               filesystem · 4 of 4 columns · read in Arrow",
    ]


def test_a_union_names_the_sources_that_hold_it_back() -> None:
    assert slowest_of(united()) == {"union_ab": ("scan_a", "scan_b")}
    stored = replace(united().tables["bid"], options={"connector": "jdbc", "url": "jdbc:sqlite:b", "table-name": "b"})
    assert slowest_of(replace(united(), tables={**united().tables, "bid": stored})) == {}
    assert "UNION ALL of 2 inputs · waits for the slowest of scan_a, scan_b" in plan_tree(united())
    assert any("waits for the slowest of scan_a, scan_b" in box.text for box in picture(united()).boxes)
    document = next(operator for operator in explain_json(united())["operators"] if operator["id"] == "union_ab")
    assert document["description"] == "UNION ALL of 2 inputs · waits for the slowest of scan_a, scan_b"


def test_json_and_notebooks_show_states_without_a_ttl() -> None:
    states = [state for operator in explain_json(hot_items())["operators"] for state in operator["state"]]
    assert states == [
        {"name": "windowAggregateState", "input": "bid", "ttl": None},
        {"name": "windowRankState", "input": "bid", "ttl": None},
    ]
    assert "<td>until the watermark passes the window</td>" in plan_html(hot_items())


def test_a_watermark_and_its_settings_are_no_part_of_a_state() -> None:
    plan = hot_items()
    before = state_lineages(plan)
    edited = with_values(plan, **{"watermark_bid.delay": "1 h", "watermark_bid.idle-timeout": "1 min"})
    assert state_lineages(edited) == before
    other_base = replace(assigner(), base="ts + INTERVAL '1' SECOND")
    assert state_lineages(plan_of(scan(), other_base, counted(), ranked())) == before
    renamed = replace(counted(), start="ws", end="we", window_time=None)
    assert state_lineages(plan_of(scan(), assigner(), renamed))["window_bid"] == before["window_bid"]


@pytest.mark.parametrize(
    "window",
    [
        TUMBLE,
        Window(type="hop", size="20 s", slide="2 s"),
        Window(type="hop", size="10 s", slide="2 s", offset="1 s"),
    ],
)
def test_another_window_is_another_state(window: Window) -> None:
    before = state_lineages(hot_items())
    after = state_lineages(plan_of(scan(), assigner(), counted(window), ranked(window)))
    assert before["window_bid"] != after["window_bid"]
    assert before["rank_bid"] != after["rank_bid"]


def test_diff_says_that_another_window_starts_empty() -> None:
    after = plan_of(scan(), assigner(), counted(TUMBLE), ranked(TUMBLE))
    changes = {change.path: change for change in compare_plans(hot_items(), after)}
    change = (
        changes["window_bid.window.size"] if "window_bid.window.size" in changes else changes["window_bid.window.type"]
    )
    assert change.effect.level == "drop"
    assert change.effect.emptied == {"window_bid", "rank_bid"}


def test_flinks_other_options_for_watermarks_are_known() -> None:
    def checked(**options: str) -> list[str]:
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        table = replace(BID, options={**BID.options, **{f"scan.watermark.{key}": text for key, text in named.items()}})
        return [str(problem) for problem in check_table("bid", table)]

    assert checked(idle_timeout="1 min", emit__strategy="on-periodic") == []
    (refused,) = checked(emit__strategy="on-event")
    expected = "'on-periodic': a micro-batch has one watermark, which moves after its rows"
    assert f"'scan.watermark.emit.strategy' is 'on-event', expected {expected}" in refused
    (bad,) = checked(idle_timeout="soon")
    assert "tables.bid.options.scan.watermark.idle-timeout" in bad
    (aligned,) = checked(alignment__group="g")
    assert "has no effect: a micro-batch has one watermark, which moves after its rows" in aligned
    assert why_idle("pipeline.auto-watermark-interval") == "a micro-batch has one watermark, which moves after its rows"
    assert why_idle(KEY) is None


def test_pictures_and_pages_show_states_without_a_ttl() -> None:
    (box,) = (box for box in picture(hot_items()).boxes if box.id == "window_bid")
    assert [(row.label, row.value) for row in box.states] == [("windowAggregateState bid", "until the watermark")]
    assert "until the watermark passes the window" in plan_page(hot_items())


def test_a_ttl_in_config_has_no_effect_if_all_states_go_by_the_watermark() -> None:
    (finding,) = unused_options(replace(hot_items(), config={"table.exec.state.ttl": "1 d"}))
    assert finding.path == "config.table.exec.state.ttl"
    assert finding.message == (
        "'table.exec.state.ttl' has no effect: all states keep rows until the watermark passes the window"
    )


def test_a_timeout_of_a_table_without_windows_has_no_effect() -> None:
    options = {**BID.options, OPTION: "20 s"}
    plain = plan_of(scan())
    plan = replace(plain, tables={**plain.tables, "bid": replace(BID, options=options)})
    (finding,) = unused_options(plan)
    assert (finding.path, finding.message) == (
        f"tables.bid.options.{OPTION}",
        f"the option '{OPTION}' has no effect: no operator above the table goes by its watermark",
    )
    assert not [*unused_options(with_values(hot_items(), **{f"tables.bid.options.{OPTION}": "20 s"}))]


def test_why_finds_the_timeout_in_the_script() -> None:
    sql = f"""
CREATE TABLE bid (auction BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
WITH ('connector' = 'filesystem', 'path' = '/in/bid', 'format' = 'json', '{OPTION}' = '20 s');
CREATE TABLE counts (auction BIGINT, num BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT auction, COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY auction, window_start, window_end;
"""
    compiled = compile_script(sql)
    place = compiled.positions["watermark_bid", "watermark.idle-timeout", "table"]
    assert (place.line, sql.splitlines()[place.line - 1][place.column - 1 :]) == (3, f"'{OPTION}' = '20 s');")
