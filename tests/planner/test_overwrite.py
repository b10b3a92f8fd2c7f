"""What ``hintplan compile -o`` replaces, and what it does not lose."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import hintplan
from hintplan.plans.commands.root import root

SQL = """
CREATE TABLE o (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
CREATE TABLE r (k BIGINT, n BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT /*+ STATE_TTL('o' = '1 d') */ k, COUNT(*) FROM o GROUP BY k;
"""
TTL = "aggregate_o.groupAggregateState.ttl"


def run(*words: str) -> Result:
    return CliRunner().invoke(root, list(words))


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("job.sql").write_text(SQL)
    assert run("compile", "job.sql", "-o", "plan.json").exit_code == 0
    return Path("plan.json")


def test_a_plan_without_edits_is_replaced(plan: Path) -> None:
    Path("job.sql").write_text(SQL.replace("1 d", "2 d"))
    assert run("compile", "job.sql", "-o", "plan.json").exit_code == 0
    assert '"ttl": "2 d"' in plan.read_text()


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ([f"{TTL}=3 d"], "aggregate_o.state.groupAggregateState.ttl"),
        (["name=other"], "name"),
        (["config.parallelism.default=4"], "config.parallelism.default"),
        (["tables.r.options.print-identifier=x"], "tables.r.options.print-identifier"),
        ([f"{TTL}=3 d", "name=other", "--reason", "why not"], "name, aggregate_o.state.groupAggregateState.ttl"),
        (["aggregate_o.phases.agg-phase-strategy=ONE_PHASE"], "aggregate_o.phases"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_edits_are_not_lost_in_silence(plan: Path, edit: list[str], named: str) -> None:
    assert run("set", "plan.json", *edit).exit_code == 0
    edited = plan.read_bytes()
    done = run("compile", "job.sql", "-o", "plan.json")
    assert isinstance(done.exception, hintplan.PlanError)
    assert f"this plan has edits, which a recompilation of the script would lose: {named}" in str(done.exception)
    assert "--keep-edits plan.json carries them over, --overwrite drops them" in str(done.exception)
    assert plan.read_bytes() == edited
    assert run("compile", "job.sql", "-o", "plan.json", "--keep-edits", "plan.json").exit_code == 0
    assert hintplan.load("plan.json") == hintplan.loads(edited)
    assert run("compile", "job.sql", "-o", "plan.json", "--overwrite").exit_code == 0
    assert plan.read_bytes() != edited


def test_facts_that_were_changed_by_hand_are_not_lost_either(plan: Path) -> None:
    plan.write_text(plan.read_text().replace('"columns": ["k"]', '"columns": ["v"]'))
    done = run("compile", "job.sql", "-o", "plan.json")
    assert "would lose: facts of operator 'scan_o'" in str(done.exception)


@pytest.mark.parametrize("data", [b"", b"SELECT 1", b"{}", b'{"format": "9.0"}', b"\xff"])
def test_what_is_no_plan_is_not_replaced(plan: Path, data: bytes) -> None:
    plan.write_bytes(data)
    done = run("compile", "job.sql", "-o", "plan.json")
    assert "plan.json: this file exists and is no plan that this version reads" in str(done.exception)
    assert plan.read_bytes() == data
    assert run("compile", "job.sql", "-o", "plan.json", "--overwrite").exit_code == 0
    hintplan.load("plan.json")
