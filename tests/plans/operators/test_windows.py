"""Windows in a plan: how they are read and written, and what a hand edit of them receives."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import hintplan
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.analysis.watermarks import edges_with_marks, time_operators, watermark_sources
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import PlanError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Union, WatermarkAssigner
from hintplan.plans.settings.state import ttl_settings
from tests.plans.windowed import (
    HOP,
    SESSION,
    TUMBLE,
    assigner,
    counted,
    deduplicated,
    hot_items,
    joined,
    plan_of,
    ranked,
    regular_join,
    scan,
    table_function,
    united,
)

BY_CLOCK = replace(TUMBLE, zone="UTC", processing_time=True)


def problems(plan: Plan) -> list[str]:
    return [f"{problem.path}: {problem.message}" for problem in plan_problems(plan)]


def two_counts() -> Plan:
    """A join of the counts in each window with themselves."""
    again = replace(counted(), id="window_again")
    return plan_of(scan(), assigner(), counted(), again, joined("window_bid", "window_again"))


PLANS = {
    "rank": hot_items(),
    "union": united(),
    "join": two_counts(),
    "rows of windows": plan_of(scan(), assigner(), table_function(), deduplicated()),
    "rows of sessions": plan_of(scan(), assigner(), table_function(SESSION, ("auction",))),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_plan_with_windows_is_valid_and_read_as_it_was_written(plan: Plan) -> None:
    assert problems(plan) == []
    text = hintplan.dumps(plan)
    assert hintplan.loads(text.decode()) == plan
    assert hintplan.dumps(hintplan.loads(text.decode())) == text


def test_the_json_of_an_assigner_and_a_window() -> None:
    document = json.loads(hintplan.dumps(hot_items()))
    _, watermark, window, *_ = document["operators"]
    assert watermark == {
        "id": "watermark_bid",
        "op": "watermark-assigner",
        "inputs": ["scan_bid"],
        "column": "ts",
        "base": "ts",
        "watermark": {
            "delay": "4 s",
            "idle-timeout": "0 ms",
            "origin": {"default": {"idle-timeout": "0 ms"}, "table": {"delay": "4 s"}},
        },
    }
    assert window["window"] == {"type": "hop", "size": "10 s", "slide": "2 s"}
    assert window["state"] == [{"index": 0, "name": "windowAggregateState", "input": "bid"}]


def test_the_columns_of_a_window_follow_the_calls() -> None:
    columns = output_columns(hot_items())["window_bid"]
    assert [f"{column.name} {column.type}" for column in columns] == [
        "auction BIGINT",
        "num BIGINT NOT NULL",
        "window_start TIMESTAMP(3) NOT NULL",
        "window_end TIMESTAMP(3) NOT NULL",
        "window_time TIMESTAMP(3) NOT NULL",
    ]


def test_windows_in_a_zone_have_wall_clock_bounds_and_the_time_of_an_instant() -> None:
    berlin = Window(type="tumble", size="1 d", zone="Europe/Berlin")
    plan = plan_of(scan(), assigner(column="at"), counted(berlin, time="at"))
    assert problems(plan) == []
    assert [column.type for column in output_columns(plan)["window_bid"][2:]] == [
        "TIMESTAMP(3) NOT NULL",
        "TIMESTAMP(3) NOT NULL",
        "TIMESTAMP_LTZ(3) NOT NULL",
    ]


@pytest.mark.parametrize(
    ("window", "answer"),
    [
        (
            Window(type="hop", size="10 s", slide="3 s"),
            "window.size: the size of a hop window is a multiple of its slide, but 10 s is none of 3 s",
        ),
        (
            Window(type="hop", size="5 s", slide="10 s"),
            "window.size: the size of a hop window is a multiple of its slide, but 5 s is none of 10 s",
        ),
        (
            Window(type="cumulate", size="10 s", step="4 s"),
            "window.size: the size of a cumulate window is a multiple of its step, but 10 s is none of 4 s",
        ),
        (Window(type="tumble"), "window.size: a window of type 'tumble' needs 'size'"),
        (Window(type="tumble", size="10 s", gap="1 s"), "window.gap: a window of type 'tumble' has no 'gap'"),
        (Window(type="tumble", size="0 ms"), "window.size: expected more than zero, found '0 ms'"),
        (Window(type="tumble", size="10"), "window.size: bad duration '10': the duration '10' has no unit"),
        (
            Window(type="tumble", size="60 s"),
            "window.size: a window has its durations in the shortest form, found '60 s'",
        ),
        (
            Window(type="tumble", size="10 s", offset="-10 s"),
            "window.offset: an offset is less than the size of the window, 10 s, found '-10 s'",
        ),
        (
            Window(type="hop", size="10 s", slide="2 s", offset="2 s"),
            "window.offset: an offset is less than the slide of the window, 2 s, found '2 s'",
        ),
        (Window(type="session", gap="10 s", offset="2 s"), "window.offset: sessions have no offset"),
        (
            Window(type="tumble", size="10 s", zone="Europe/Berlin"),
            "window.zone: windows have a zone only over TIMESTAMP_LTZ, but 'ts' is TIMESTAMP(3)",
        ),
        (Window(type="tumble", size="10 s", zone="Europe/Bonn"), "window.zone: there is no time zone 'Europe/Bonn'"),
    ],
)
def test_a_wrong_window_is_refused_with_its_place(window: Window, answer: str) -> None:
    plan = plan_of(scan(), assigner(), counted(window))
    assert f"operators.window_bid.{answer}" in problems(plan)


def test_an_offset_may_be_negative() -> None:
    assert problems(plan_of(scan(), assigner(), counted(Window(type="tumble", size="1 d", offset="-8 h")))) == []


@pytest.mark.parametrize(
    ("operators", "answer"),
    [
        (
            (scan(), assigner(), counted(time="when")),
            "operators.window_bid.time: 'when' is no column of the input",
        ),
        (
            (scan(), assigner(), counted(time="price")),
            "operators.window_bid.time: a rowtime is TIMESTAMP or TIMESTAMP_LTZ of precision 0 to 3, "
            "but 'price' is BIGINT",
        ),
        (
            (scan(), assigner(), counted(time="at")),
            "operators.window_bid.window: windows over 'at', which is TIMESTAMP_LTZ(3), need a zone",
        ),
        (
            (scan(), assigner(), counted(Window(type="tumble", size="10 s", zone="UTC"), time="at")),
            "operators.window_bid.time: 'at' is no rowtime: no watermark holds for this column of 'watermark_bid'",
        ),
        (
            (scan(), counted(source="scan_bid")),
            "operators.window_bid.inputs[0]: 'window_bid' goes by time, but no watermark reaches it from 'scan_bid'",
        ),
        (
            (scan(), assigner(), regular_join("watermark_bid", "watermark_bid"), counted(source="join_bid")),
            "operators.window_bid.inputs[0]: 'window_bid' goes by time, but no watermark reaches it from 'join_bid'",
        ),
        (
            (scan(), assigner(), counted(), ranked(TUMBLE)),
            "operators.rank_bid.window: the window is TUMBLE 10 s, but 'window_start' and 'window_end' of 'window_bid' "
            "hold HOP 10 s EVERY 2 s",
        ),
        (
            (scan(), assigner(), replace(counted(), time=None)),
            "operators.window_bid: a window aggregate has either 'time' or 'attached'",
        ),
        (
            (scan(), assigner(), replace(counted(), window=BY_CLOCK)),
            "operators.window_bid.time: windows of processing time have no 'time': a row has the time of its batch",
        ),
        (
            (scan(), assigner(), replace(counted(), time=None, window=replace(BY_CLOCK, zone=None))),
            "operators.window_bid.window.zone: windows of processing time need a zone",
        ),
        (
            (scan(), assigner(), counted(), ranked(BY_CLOCK)),
            "operators.rank_bid.window.processing-time: only an aggregate right at the rows has windows of processing "
            "time",
        ),
        (
            (scan(), assigner(), replace(table_function(), window=BY_CLOCK)),
            "operators.windows_bid.time: a processing time is TIMESTAMP_LTZ(3), but 'ts' is TIMESTAMP(3)",
        ),
        (
            (scan(), assigner(), table_function(keys=("auction",))),
            "operators.windows_bid.keys: only sessions have keys: other windows do not depend on other rows",
        ),
    ],
)
def test_a_hand_edit_of_the_time_is_refused_with_its_place(operators: tuple[Operator, ...], answer: str) -> None:
    assert answer in problems(plan_of(*operators))


def test_columns_that_are_no_window_are_refused() -> None:
    swapped = replace(ranked(), attached=WindowColumns(start="window_end", end="window_start"))
    assert problems(plan_of(scan(), assigner(), counted(), swapped)) == [
        "operators.rank_bid.attached: 'window_end' and 'window_start' of 'window_bid' are not the start and the end of "
        "a window"
    ]
    wrong = replace(ranked(), attached=WindowColumns(start="num", end="window_end"))
    assert problems(plan_of(scan(), assigner(), counted(), wrong)) == [
        "operators.rank_bid.attached.start: the start of a window is a TIMESTAMP, but 'num' is BIGINT NOT NULL"
    ]


def test_a_join_of_different_windows_is_refused() -> None:
    other = replace(counted(TUMBLE), id="window_again")
    plan = plan_of(scan(), assigner(), counted(), other, joined("window_bid", "window_again"))
    assert problems(plan) == [
        "operators.join_bid.window: the windows of the two inputs differ: HOP 10 s EVERY 2 s and TUMBLE 10 s"
    ]


def test_a_rowtime_of_microseconds_is_refused() -> None:
    plan = plan_of(scan(), assigner(), counted())
    columns = tuple(
        replace(column, type="TIMESTAMP(6)") if column.name == "ts" else column for column in plan.tables["bid"].columns
    )
    micros = replace(plan, tables={**plan.tables, "bid": replace(plan.tables["bid"], columns=columns)})
    problem = next(iter(plan_problems(micros)))
    assert str(problem) == (
        "operators.watermark_bid.column: a rowtime is TIMESTAMP or TIMESTAMP_LTZ of precision 0 to 3, but 'ts' is "
        "TIMESTAMP(6)\n  hint: declare it as TIMESTAMP(3)"
    )


def test_a_state_that_lives_by_the_watermark_has_no_ttl() -> None:
    document = json.loads(hintplan.dumps(hot_items()))
    document["operators"][2]["state"][0] |= {"ttl": "1 d", "origin": {"default": "0 ms"}}
    with pytest.raises(PlanError) as caught:
        hintplan.loads(json.dumps(document))
    assert "operators.window_bid.state.windowAggregateState.ttl: " in str(caught.value)
    assert "'windowAggregateState' has no TTL: it keeps rows until the watermark passes the window" in str(caught.value)
    assert "hint: remove 'ttl' and 'origin'" in str(caught.value)


def test_another_state_needs_its_ttl() -> None:
    join = regular_join("watermark_bid", "watermark_bid")
    without = replace(join, state=tuple(replace(entry, settings=None) for entry in join.state))
    plan = plan_of(scan(), assigner(), without)
    assert "operators.join_bid.state.leftState: the state 'leftState' has no 'ttl'" in problems(plan)


def test_sessions_and_ranks_take_added_rows_only() -> None:
    bid = replace(hot_items().tables["bid"], options={**hot_items().tables["bid"].options, "source.changelog": "true"})
    plan = plan_of(scan(), assigner(), counted(SESSION))
    changing = replace(plan, tables={**plan.tables, "bid": bid})
    found = problems(changing)
    assert any("'window_bid' takes +I, but gets -U, +U, -D from the scan 'scan_bid'" in problem for problem in found), (
        found
    )


def test_watermarks_go_through_unions_and_windows_and_no_further_than_needed() -> None:
    assert time_operators(hot_items()) == ("window_bid", "rank_bid")
    assert watermark_sources(hot_items()) == {"window_bid": ("watermark_bid",), "rank_bid": ("window_bid",)}
    assert edges_with_marks(hot_items()) == {"watermark_bid", "window_bid"}
    assert watermark_sources(united()) == {"window_bid": ("watermark_a", "watermark_b")}
    assert edges_with_marks(united()) == {"watermark_a", "watermark_b", "union_ab"}


def test_a_watermark_that_nobody_goes_by_marks_no_edge() -> None:
    plan = plan_of(scan(), assigner())
    assert problems(plan) == []
    assert (time_operators(plan), edges_with_marks(plan)) == ((), frozenset())


def test_a_batch_plan_needs_no_watermark() -> None:
    batch = replace(counted(source="scan_bid"), state=())
    assert problems(replace(plan_of(scan(), batch), mode="batch")) == []


def test_a_union_of_other_windows_has_no_window() -> None:
    other = replace(counted(TUMBLE), id="window_again")
    union = Union(id="union_w", inputs=("window_bid", "window_again"))
    found = problems(plan_of(scan(), assigner(), counted(HOP), other, union, ranked(source="union_w")))
    assert found == [
        "operators.rank_bid.attached: 'window_start' and 'window_end' of 'union_w' are not the start and the end of a "
        "window"
    ]


def test_the_base_of_a_watermark_reads_columns_of_its_input() -> None:
    wrong = WatermarkAssigner(
        id="watermark_bid", inputs=("scan_bid",), column="ts", base="tz", settings=assigner().settings
    )
    assert "operators.watermark_bid.base: 'tz' is no column of the input" in problems(plan_of(scan(), wrong, counted()))


def test_edited_ttls_stay_out_of_windows() -> None:
    entry = hot_items().operator("window_bid").state[0]
    with_ttl = replace(entry, settings=ttl_settings(edit="1 d"))
    plan = plan_of(scan(), assigner(), replace(counted(), state=(with_ttl,)))
    assert problems(plan) == [
        "operators.window_bid.state.windowAggregateState.ttl: 'windowAggregateState' has no TTL: it keeps rows until "
        "the watermark passes the window"
    ]
