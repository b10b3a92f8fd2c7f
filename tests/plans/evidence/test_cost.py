"""The cost of an edit of a TTL: against calculations by hand, and in each form of a review."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest

import hintplan as api
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.costs import with_costs
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.json_report import changes_json
from hintplan.plans.compare.report import changes_text, cost_lines
from hintplan.plans.edit.edit import set_value
from hintplan.plans.evidence.ages import ENDS, NONE, Counts, counts
from hintplan.plans.evidence.cost import cost_of
from hintplan.plans.evidence.document import Evidence, StateEvidence, dumps
from hintplan.plans.evidence.period import Period
from hintplan.plans.review.annotations import remarks_of_changes
from hintplan.plans.review.diff_html import report_html
from hintplan.plans.review.diff_markdown import report_markdown
from hintplan.plans.review.diff_notebook import diff_cell
from hintplan.plans.review.locations import Location
from tests.plans.in_process import hintplan as command

HOUR, DAY = 3_600_000, 86_400_000
SIX, TWELVE, ONE_DAY, TWO_DAYS = (ENDS.index(hours * HOUR) for hours in (6, 12, 24, 48))


def observed(ttl: int, hits: Counts, misses: Counts = NONE) -> StateEvidence:
    """Return a state of 41,702 rows, of which 10,940 are younger than 6 hours; 2,411,724 bytes are 2.3 MiB."""
    period = Period(since=0, until=12 * DAY, ttl=ttl, hits=hits, misses=misses)
    return StateEvidence(
        operator="join_o_c",
        name="leftState",
        ttl=ttl,
        rows=41_702,
        bytes=2_411_724,
        row_ages=counts({SIX: 10_940, ONE_DAY: 30_762}),
        periods=(period,),
    )


HITS = counts({SIX: 9_961, ONE_DAY: 39})
LINE = "30,762 of 41,702 rows go, 1.7 of 2.3 MiB; 0.39 % of matches of the last 12 d came later than that"


def test_a_shorter_ttl_costs_rows_bytes_and_matches() -> None:
    assert cost_of(observed(DAY, HITS), DAY, 6 * HOUR).text == LINE


@pytest.mark.parametrize(
    ("state", "before", "after", "text"),
    [
        (
            observed(DAY, counts({SIX: 199, ONE_DAY: 1})),
            DAY,
            6 * HOUR,
            "30,762 of 41,702 rows go, 1.7 of 2.3 MiB; 0.5 % of the 200 matches of the last 12 d came later than that",
        ),
        (
            observed(DAY, counts({SIX: 200})),
            DAY,
            6 * HOUR,
            "30,762 of 41,702 rows go, 1.7 of 2.3 MiB; none of the 200 matches of the last 12 d came later than that",
        ),
        (observed(0, HITS), 0, DAY, "no row goes; no match of the last 12 d came later than that"),
        (
            observed(DAY, HITS),
            DAY,
            5 * HOUR,  # inside a bucket: the 9,961 matches below 6 hours may all be later than 5 hours
            "41,702 of 41,702 rows go, 2.3 of 2.3 MiB; 0.39 to 100 % of matches of the last 12 d came later than that",
        ),
        (
            observed(DAY, HITS, counts({TWO_DAYS: 214})),
            DAY,
            2 * DAY,
            "no row goes; at least 214 matches of the last 12 d came too late for the TTL before",
        ),
        (
            observed(DAY, HITS),
            DAY,
            0,
            "no row goes; no match of the last 12 d was seen to come too late for the TTL before",
        ),
        (
            observed(DAY, HITS),
            7 * DAY,
            2 * DAY,
            "no row goes; the matches that it loses are not known: no TTL of the last 12 d was as long",
        ),
        (
            observed(DAY, NONE),
            DAY,
            12 * HOUR,
            "30,762 of 41,702 rows go, 1.7 of 2.3 MiB; no match of the state was observed",
        ),
    ],
)
def test_the_cost_names_what_was_not_observable(state: StateEvidence, before: int, after: int, text: str) -> None:
    assert cost_of(state, before, after).text == text


@pytest.fixture
def changes(plan: api.Plan) -> tuple[Change, ...]:
    """The changes from a TTL of 1 day to 6 hours, and of another state without evidence."""
    before, _ = set_value(plan, "join_o_c.state.leftState.ttl", "1 d")
    after, _ = set_value(before, "join_o_c.state.leftState.ttl", "6 h")
    after, _ = set_value(after, "join_o_c.state.rightState.ttl", "1 d")
    evidence = Evidence(plan="p", at=0, states=(observed(DAY, HITS),))
    return with_costs(compare_plans(before, after), evidence)


def test_every_form_of_a_diff_has_the_cost(changes: tuple[Change, ...], plan: api.Plan) -> None:
    assert changes_text(changes).count(LINE) == 1
    assert f"<br>{LINE} |" in report_markdown(changes)
    assert f"<div>{LINE}</div>" in report_html(changes, title="t")
    assert LINE in diff_cell(plan, plan, changes)
    remarks = remarks_of_changes(changes, [Location()] * len(changes))
    assert sum(LINE in remark.message for remark in remarks) == 1


def test_the_json_of_a_diff_has_the_numbers_and_fits_its_schema(changes: tuple[Change, ...]) -> None:
    document = changes_json(changes)
    schema = json.loads(files("hintplan.plans").joinpath("compare", "diff.schema.json").read_text())
    jsonschema_rs.validate(schema, document)
    costs = [change["cost"] for change in document["changes"] if "cost" in change]
    assert [(cost["rows-before"], cost["rows-after"], cost["kept-least"]) for cost in costs] == [
        (41_702, 10_940, 0.9961)
    ]


def test_states_that_follow_one_config_show_at_most_five_costs(changes: tuple[Change, ...]) -> None:
    one = next(change for change in changes if change.cost is not None)
    assert cost_lines(one, [one] * 2) == [f"join_o_c.leftState.ttl: {LINE}"] * 2
    assert cost_lines(one, [one] * 7)[5:] == ["the costs of 2 more states: hintplan diff --full"]


def test_set_and_diff_read_the_evidence(tmp_path: Path, plan_text: str) -> None:
    old, new, evidence = (tmp_path / name for name in ("old.json", "new.json", "evidence.json"))
    api.dump(set_value(api.loads(plan_text), "join_o_c.state.leftState.ttl", "1 d")[0], old)
    new.write_bytes(old.read_bytes())
    evidence.write_bytes(dumps(Evidence(plan="revenue_by_country", at=0, states=(observed(DAY, HITS),))))
    done = command("set", new, "join_o_c.leftState.ttl=6 h", "--evidence", evidence)
    assert LINE in done.stdout
    assert LINE in command("diff", old, new, "--evidence", evidence).stdout
    assert LINE not in command("diff", old, new).stdout
