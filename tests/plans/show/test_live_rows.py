"""The rows for numbers of a run in the boxes of a plan, and the page that has them."""

from __future__ import annotations

import re

import pytest

import hintplan
from hintplan.planner.compile import compile_sql
from hintplan.plans.model.plan import Plan
from hintplan.plans.show.live_rows import LiveRun, live_rows, with_live_rows
from hintplan.plans.show.page import plan_page
from hintplan.plans.show.picture import picture, without_pass_through
from hintplan.plans.show.svg import draw
from tests.runtime.page.recorded import recorded_plan

LIVE = LiveRun(digest="d1", url="data", seconds=2)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return recorded_plan()


def test_each_kind_of_operator_has_its_rows(plan: Plan) -> None:
    rows = live_rows(plan)
    assert rows["scan_orders"] == ("rows", "lag")
    assert rows["join_o_p"] == ("rows", "state")
    assert rows["lookup_p"] == ("lookups",)
    assert rows["watermark_payments"] == ("watermark",)
    assert rows["window_payments"] == ("rows", "state", "watermark", "late")
    assert rows["sink_paid"] == ("rows", "batch")
    assert "calc_by_plane" not in rows


def test_a_batch_plan_has_rows_only_where_its_jobs_report_something() -> None:
    batch = compile_sql(
        """SET 'execution.runtime-mode' = 'batch';
        CREATE TABLE o (a BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
        CREATE TABLE s (a BIGINT) WITH ('connector' = 'blackhole');
        INSERT INTO s SELECT COUNT(*) FROM o;"""
    )
    assert live_rows(batch) == {"sink_s": ("rows", "job")}


def test_boxes_have_room_for_their_rows_and_the_others_stay_as_they_are(plan: Plan) -> None:
    still = picture(plan)
    live = with_live_rows(still, live_rows(plan))
    sizes = [{name: size for name, (_, _, *size) in draw(each).places.items()} for each in (still, live)]
    for operator, rows in live_rows(plan).items():
        assert sizes[1][operator][1] - sizes[0][operator][1] == 18 * len(rows) + 8
        assert sizes[1][operator][0] >= 214
    assert sizes[1]["calc_by_plane"] == sizes[0]["calc_by_plane"]


def test_folding_keeps_boxes_with_numbers(plan: Plan) -> None:
    folded = {box.id for box in without_pass_through(with_live_rows(picture(plan), live_rows(plan))).boxes}
    assert {box.id for box in picture(plan).boxes} - folded == {"calc_by_plane"}


def test_only_the_page_of_a_run_may_ask_its_server(plan: Plan) -> None:
    policies = [
        re.findall(r'Content-Security-Policy" content="([^"]*)"', plan_page(plan, live=live)) for live in (None, LIVE)
    ]
    assert ["connect-src 'self'" in policy for (policy,) in policies] == [False, True]
    assert not any("unsafe" in policy for (policy,) in policies)
    assert "data-row" not in plan_page(plan)


def test_the_same_plan_has_the_same_page(plan: Plan) -> None:
    assert plan_page(plan, live=LIVE) == plan_page(hintplan.loads(hintplan.dumps(plan)), live=LIVE)
