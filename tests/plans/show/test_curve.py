"""The curve of a state: its points are the shares by hand, its marks are labelled, and the page shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import hintplan as api
from hintplan.plans.evidence.ages import ENDS, counts
from hintplan.plans.evidence.document import Evidence, StateEvidence, dumps
from hintplan.plans.evidence.period import Period
from hintplan.plans.show.curve import curve_of, curve_svg
from hintplan.plans.show.page import plan_page
from tests.plans.in_process import hintplan

HOUR, DAY = 3_600_000, 86_400_000
SIX, TWELVE = ENDS.index(6 * HOUR), ENDS.index(12 * HOUR)
STATE = StateEvidence(
    operator="join_o_c",
    name="leftState",
    ttl=DAY,
    rows=4,
    bytes=400,
    row_ages=counts({SIX: 1, TWELVE: 3}),
    periods=(Period(since=0, until=9 * DAY, ttl=DAY, hits=counts({SIX: 9_900, TWELVE: 100})),),
)
EVIDENCE = Evidence(plan="revenue_by_country", at=0, states=(STATE,))


def test_the_points_are_the_shares_and_bytes_of_each_ttl() -> None:
    curve = curve_of(STATE, 0.99)
    assert [(point.ttl // HOUR, point.kept, point.bytes) for point in curve.points] == [
        (4, 0.0, 0),
        (6, 0.99, 100),
        (8, 0.99, 100),
        (12, 1.0, 400),
        (18, 1.0, 400),
        (24, 1.0, 400),
        (36, None, 400),
    ]
    assert (curve.now, curve.proposed) == (DAY, 6 * HOUR)


def test_the_picture_is_labelled_and_ends_where_nothing_was_observable() -> None:
    svg = ElementTree.fromstring(curve_svg(STATE, 0.99))
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == (
        "join_o_c.leftState: matches kept and bytes over the TTL; now 1 d: 100 % of matches, 400 B; "
        "proposed 6 h: 99 % of matches, 100 B"
    )
    texts = [text.text for text in svg.iter("text")]
    assert {"1 d now", "6 h proposed", "0 %", "100 %", "400 B"} <= set(texts)
    (kept,) = (path for path in svg.iter("path") if path.get("class") == "kept")
    assert kept.get("d", "").count("L") == 5, "6 points: the line ends at the TTL in force"


def test_a_state_without_observations_or_ttl_has_no_curve() -> None:
    assert curve_svg(replace(STATE, ttl=None)) == ""
    assert curve_svg(StateEvidence(operator="j", name="leftState", ttl=DAY)) == ""


def test_a_state_without_ttl_in_force_has_no_mark_for_it() -> None:
    forever = replace(STATE, ttl=0, periods=tuple(replace(period, ttl=0) for period in STATE.periods))
    assert "now" not in [text.split()[-1] for text in re.findall(r">([^<>]+)</text>", curve_svg(forever, 0.99))]


def test_the_page_shows_the_curve_and_loads_nothing(plan: api.Plan) -> None:
    page = plan_page(plan, evidence=EVIDENCE)
    assert '<figure class="evidence">' in page
    assert "TTL 3 d (edit), in the run 1 d" in page
    assert not re.search(r"(src|href)=\"?(https?:)?//", page)
    assert " style=" not in page[page.index('<figure class="evidence">') : page.index("</figure>")]
    assert "<figure" not in plan_page(plan)


def test_show_takes_evidence_for_a_page_only(tmp_path: Path, plan_text: str) -> None:
    plan, evidence = tmp_path / "plan.json", tmp_path / "evidence.json"
    plan.write_text(plan_text)
    evidence.write_bytes(dumps(EVIDENCE))
    done = hintplan("show", plan, "--evidence", evidence, "-o", tmp_path / "plan.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert "join_o_c.leftState: matches kept and bytes" in (tmp_path / "plan.html").read_text()
    assert "only a page shows evidence" in hintplan("show", plan, "--evidence", evidence).stderr
    evidence.write_bytes(dumps(replace(EVIDENCE, plan="other")))
    done = hintplan("show", plan, "--evidence", evidence, "-o", tmp_path / "plan.html")
    assert "the evidence is of the plan 'other', not of 'revenue_by_country'" in done.stderr
