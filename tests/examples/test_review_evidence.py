"""The pull request of examples/review that shortens a TTL: its comment, its refusal, and evidence without rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hintplan as api
from hintplan.plans.ci.checks import check_plan
from hintplan.plans.ci.report import ci_markdown
from hintplan.plans.ci.state_policy import policies_for, with_policy
from hintplan.plans.edit.edit import set_value
from hintplan.plans.evidence.document import dumps, loads

EXAMPLE = Path(__file__).parents[2] / "examples" / "review"
LEFT = "join_o_c.state.leftState.ttl"


@pytest.fixture(scope="module")
def plan() -> api.Plan:
    script = (EXAMPLE / "jobs" / "orders.sql").read_text(encoding="utf-8").replace("'o' = '1 d'", "'o' = '2 d'")
    return set_value(api.compile_sql(script, name="orders"), LEFT, "4 d")[0]


def test_the_comment_shows_state_and_matches_lost_and_the_policy_refuses(plan: api.Plan) -> None:
    evidence = loads((EXAMPLE / "evidence.json").read_bytes())
    policies = policies_for(EXAMPLE / "jobs" / "orders.json")
    texts = {}
    for ttl in ("6 h", "1 d"):
        edited = set_value(plan, LEFT, ttl, reason="the disk is small")[0]
        checked = check_plan("orders.json", api.dumps(edited), base=api.dumps(plan), evidence=evidence)
        found = with_policy(checked, policies, evidence)
        assert found.failed == (ttl == "6 h")
        texts[ttl] = ci_markdown([found], base="main")
    # By the file: 640 of 50,000 hits are in buckets that end after 6 hours, 23 in buckets that end after a day.
    assert (
        "49,076 of 52,310 rows go, 2.9 of 3.0 MiB; 1.28 % of matches of the last 90 d came later than that"
        in texts["6 h"]
    )
    assert "keeps 98.72 % of matches; the policy wants at least 99.9 %" in texts["6 h"]
    assert "0.05 % of matches of the last 90 d came later than that" in texts["1 d"]


def test_the_evidence_has_counters_and_no_rows_of_data(plan: api.Plan) -> None:
    text = (EXAMPLE / "evidence.json").read_text(encoding="utf-8")
    assert dumps(loads(text)).decode() == text
    document = json.loads(text)
    states = {f"{operator.id}.{entry.name}" for operator in plan.operators for entry in operator.state}
    assert set(document["states"]) == states

    def texts(value: object) -> list[str]:
        if isinstance(value, dict):
            return [each for child in value.values() for each in texts(child)]
        if isinstance(value, list):
            return [each for child in value for each in texts(child)]
        return [value] if isinstance(value, str) else []

    # Every text is the name of the plan, a time or a TTL.
    values = [
        each for each in texts(document) if not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d+ (d|h|min|s|ms)", each)
    ]
    assert values == ["orders"]
    rows = [json.loads(line) for file in (EXAMPLE / "data").rglob("*.json") for line in file.read_text().splitlines()]
    names = {key for row in rows for key in row}
    assert names
    assert not names & set(re.findall(r'"([^"]+)":', text))
