"""The policy for states: what an edit must keep, and what `hintplan ci` prints if it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan as api
from hintplan.plans.ci.checks import check_plan
from hintplan.plans.ci.report import ci_markdown
from hintplan.plans.ci.state_policy import StatePolicy, policies_for, with_policy
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError
from hintplan.plans.evidence.document import Evidence, dumps
from tests.plans.commands.test_diff_command import git
from tests.plans.evidence.test_cost import DAY, HITS, LINE, observed
from tests.plans.in_process import hintplan

LEFT = "join_o_c.state.leftState.ttl"
EVIDENCE = Evidence(plan="revenue_by_country", at=0, states=(observed(DAY, HITS),))
KEEP = StatePolicy(pattern="join_*.leftState", keep=0.999)

Problems = Callable[..., list[str]]


@pytest.fixture
def base(plan: api.Plan) -> api.Plan:
    return set_value(plan, LEFT, "1 d")[0]


@pytest.fixture
def problems(base: api.Plan) -> Problems:
    """The problems of an edit of the TTL of 1 day."""

    def of(
        ttl: str,
        *policies: StatePolicy,
        evidence: Evidence | None = EVIDENCE,
        reason: str | None = None,
        path: str = LEFT,
    ) -> list[str]:
        plan = set_value(base, path, ttl, reason=reason)[0]
        checked = check_plan("p.json", api.dumps(plan), base=api.dumps(base), evidence=evidence)
        found = with_policy(checked, policies, evidence)
        assert found.marks["policy"] == ("failed" if found.failed else "ok")
        return [remark.message for remark in found.remarks if remark.rule == "policy"]

    return of


def test_an_edit_that_loses_too_many_matches_is_refused_with_the_ttl_that_does_not(problems: Problems) -> None:
    # 9,961 of 10,000 matches came within 6 hours, the others within a day.
    assert problems("6 h", KEEP) == [
        "join_o_c.leftState: the TTL 6 h keeps 99.61 % of matches; the policy wants at least 99.9 % "
        "(hint: the shortest TTL that does so is 1 d: it keeps 100 %)"
    ]
    assert problems("6 h", replace(KEEP, keep=0.99)) == []


def test_a_longer_ttl_and_a_state_outside_the_pattern_pass(problems: Problems) -> None:
    assert problems("2 d", KEEP) == []
    assert problems("6 h", replace(KEEP, pattern="aggregate_*")) == []


def test_an_edit_that_cannot_be_judged_is_refused(problems: Problems) -> None:
    (without,) = problems("6 h", KEEP, evidence=None)
    assert (
        "keeps is not known, no evidence was given; the policy wants at least 99.9 % (hint: give --evidence" in without
    )
    none = replace(EVIDENCE, states=(replace(EVIDENCE.states[0], periods=()),))
    (unseen,) = problems("6 h", KEEP, evidence=none)
    assert "is not known, no match of so long a TTL was observed" in unseen


def test_a_state_that_takes_too_many_bytes_is_refused_even_without_an_edit(problems: Problems, base: api.Plan) -> None:
    # 2,411,724 bytes for 41,702 rows, of which 10,940 are younger than 6 hours.
    small = StatePolicy(pattern="*", most_bytes=2**20)
    checked = check_plan("p.json", api.dumps(base), base=api.dumps(base), evidence=EVIDENCE)
    (remark,) = [r for r in with_policy(checked, [small], EVIDENCE).remarks if r.rule == "policy"]
    assert remark.message == (
        "join_o_c.leftState takes 2.3 MiB with the TTL 1 d; the policy allows 1.0 MiB "
        "(hint: a TTL of 18 h would take 617.9 KiB)"
    )
    assert problems("6 h", small) == []
    assert problems("2 d", small)[0].startswith("join_o_c.leftState takes at least 2.3 MiB with the TTL 2 d")


def test_an_edit_without_a_reason_is_refused(problems: Problems) -> None:
    wanted = StatePolicy(pattern="*", reason=True)
    assert problems("2 d", wanted) == [
        "join_o_c.leftState: the policy requires a reason for the TTL 2 d "
        f"(hint: hintplan set PLAN {LEFT}='2 d' --reason TEXT)"
    ]
    assert problems("2 d", wanted, reason="late payments") == []


def test_the_policy_is_in_the_project_of_the_plan(tmp_path: Path) -> None:
    assert policies_for(tmp_path / "plan.json") == ()
    (tmp_path / "hintplan.toml").write_text(
        '[policy."*"]\nreason = true\n[policy."join_o_c.state.leftState.ttl"]\nkeep = "99.9 %"\nmost-bytes = "2 GiB"\n'
    )
    assert policies_for(tmp_path / "plan.json") == (
        StatePolicy(pattern="*", reason=True),
        StatePolicy(pattern="join_o_c.leftState", keep=0.999, most_bytes=2 * 2**30),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[policy]\nkeep = "99 %"', "'policy.keep' must be a table"),
        ('[policy."*"]\nkep = "99 %"', "unknown key 'kep' in policy.\"*\"\n  hint: did you mean 'keep'?"),
        ('[policy."*"]\nkeep = "100 %"', "expected more than 0 % and less than 100 %, found '100 %'"),
        ('[policy."*"]\nmost-bytes = "2 GB"', "expected a size such as 2 GiB, found '2 GB'"),
        ('[policy."*"]\nreason = "yes"', "'reason' in policy.\"*\" must be true or false"),
    ],
)
def test_a_wrong_policy_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "hintplan.toml").write_text(text)
    with pytest.raises(PlanError) as refused:
        policies_for(tmp_path / "plan.json")
    assert message in str(refused.value)


@pytest.mark.slow
def test_ci_fails_by_the_policy_and_its_comment_has_the_cost(tmp_path: Path, base: api.Plan) -> None:
    base = set_value(base, "aggregate_t.groupAggregateState.ttl", "30 d")[0]
    base = replace(base, source=None)
    api.dump(base, tmp_path / "plan.json")
    (tmp_path / "hintplan.toml").write_text('[policy."*"]\nkeep = "99.9 %"\n')
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    api.dump(set_value(base, LEFT, "6 h")[0], tmp_path / "plan.json")
    (tmp_path / "evidence.json").write_bytes(dumps(EVIDENCE))
    (tmp_path / "other.json").write_bytes(dumps(replace(EVIDENCE, plan="other")))
    given = ("--evidence", "evidence.json", "--evidence", "other.json")
    done = hintplan("ci", "--base", "git:main", "plan.json", *given, "--comment", "comment.md", folder=tmp_path)
    assert done.returncode == 1
    assert "  error: line 78: join_o_c.leftState: the TTL 6 h keeps 99.61 % of matches" in done.stdout
    assert LINE in done.stdout
    assert done.stderr == "warning: no plan here is called 'other', so its evidence is not used\n"
    comment = (tmp_path / "comment.md").read_text()
    assert LINE in comment
    assert "- **error** policy: line" in comment


def test_a_comment_without_a_policy_has_no_column_for_it(base: api.Plan) -> None:
    checked = with_policy(check_plan("p.json", api.dumps(base), base=api.dumps(base)), (), None)
    assert "policy" not in ci_markdown([checked], base="main")
