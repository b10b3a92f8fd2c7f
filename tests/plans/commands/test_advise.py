"""`hintplan advise` at the command line: its report in three forms, and the evidence that it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hintplan
from hintplan.plans.edit.edit import set_value
from hintplan.plans.evidence.advice_report import advice_text, advise
from hintplan.plans.evidence.ages import ENDS, NONE, counts
from hintplan.plans.evidence.document import Evidence, StateEvidence, dumps
from hintplan.plans.evidence.period import Period
from tests.plans.in_process import hintplan as command
from tests.plans.windowed import hot_items

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
AT = 1_773_396_000_000  # 2026-03-13T10:00:00Z


def below(**numbers: int) -> tuple[int, ...]:
    """A histogram whose buckets end at these hours: ``below(h6=3)``."""
    return counts({ENDS.index(int(name[1:]) * HOUR): number for name, number in numbers.items()})


EVIDENCE = Evidence(
    plan="revenue_by_country",
    at=AT,
    states=(
        StateEvidence(
            operator="join_o_c",
            name="leftState",
            ttl=3 * DAY,
            rows=40_000,
            bytes=2 * 2**20,
            row_ages=below(h1=10_000, h12=10_000, h48=20_000),
            periods=(
                Period(
                    since=AT - 12 * DAY - 4 * HOUR,
                    until=AT,
                    ttl=3 * DAY,
                    hits=below(h1=15_000, h2=4_900, h12=90, h48=10),
                    written=60_000,
                    expired=100,
                ),
            ),
        ),
        StateEvidence(
            operator="join_o_c",
            name="rightState",
            ttl=0,
            rows=500,
            bytes=1_000,
            row_ages=below(h1=500),
            periods=(Period(since=AT - 2 * HOUR, until=AT, ttl=0, hits=below(h1=30), written=500, sampled=True),),
        ),
    ),
)

REPORT = """\
join_o_c.leftState   o   TTL 3 d (edit) · 2.0 MiB · 40,000 rows · observed 12 d 4 h, 20,000 hits
  half of the rows of c find their row of o within 1 h, 99 % within 2 h, 99.9 % within 12 h, all within 2 d
  TTL     matches kept              rows              bytes
  6 h           99.5 %            10,000          512.0 KiB
  12 h         99.95 %            20,000            1.0 MiB   <- keeps 99.9 %
  3 d    at most 100 %            40,000            2.0 MiB   now
  7 d        not known   at least 40,000   at least 2.0 MiB
  hintplan set PLAN join_o_c.state.leftState.ttl='12 h' --reason '99.95 % of matches in 12 d 4 h'

join_o_c.rightState   c   TTL 20 d (hint), in the run never · 1000 B · 500 rows · observed 2 h, 30 hits
  half of the rows of o find their row of c within 1 h, 99 % within 1 h, 99.9 % within 1 h, all within 1 h
  TTL     matches kept   rows    bytes
  never          100 %    500   1000 B   now
  no advice: 30 matches are too few to find what keeps 99.9 %, which takes 10,000
  observed for 2 h only: matches that come later than that were not seen yet
  hits were sampled: counts and shares are estimates

aggregate_t.groupAggregateState   t   TTL 1 h (config) · not in the evidence
"""


@pytest.fixture
def files(tmp_path: Path, plan_text: str) -> tuple[Path, Path]:
    plan, evidence = tmp_path / "plan.json", tmp_path / "evidence.json"
    plan.write_text(plan_text)
    evidence.write_bytes(dumps(EVIDENCE))
    return plan, evidence


def test_the_report_has_a_paragraph_for_each_state(files: tuple[Path, Path]) -> None:
    done = command("advise", files[0], "--evidence", files[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.replace(str(files[0]), "PLAN") == REPORT


def test_the_report_as_markdown_has_tables(files: tuple[Path, Path]) -> None:
    text = command("advise", files[0], "--evidence", files[1], "--markdown").stdout
    assert "### `join_o_c.leftState`" in text
    assert "| 12 h | 99.95 % | 20,000 | 1.0 MiB | <- keeps 99.9 % |" in text


def test_the_report_as_json_has_the_numbers(files: tuple[Path, Path]) -> None:
    found = json.loads(command("advise", files[0], "--evidence", files[1], "--json", "--keep", "99 %").stdout)
    left, right, _ = found["states"]
    assert (found["keep"], left["partner"], left["setting"]) == (0.99, "c", "join_o_c.state.leftState.ttl")
    assert (left["advice"]["proposed"], left["advice"]["proposed-is-least"]) == ("2 h", False)
    kept = {one["ttl"]: one["kept-least"] for one in left["advice"]["ttls"]}
    assert kept == {"1 h": 0.75, "2 h": 0.995, "3 d": 1.0, "7 d": None}
    assert right["advice"]["observed"]["sampled"] is True


REFUSED = [
    (("--keep", "100%"), "expected more than 0 % and less than 100 %"),
    (("--keep", "many"), "found 'many'"),
    (("--json", "--markdown"), "exclude each other"),
    (("--checkpoint", "state"), "--evidence and --checkpoint exclude each other"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[" ".join(options) for options, _ in REFUSED])
def test_options_that_contradict_are_refused(files: tuple[Path, Path], options: tuple[str, ...], message: str) -> None:
    done = command("advise", files[0], "--evidence", files[1], *options)
    assert done.returncode == 64
    assert message in done.stderr


def test_a_plan_is_no_evidence(files: tuple[Path, Path]) -> None:
    done = command("advise", files[0], "--evidence", files[0])
    assert done.returncode == 1
    assert f"{files[0]}:1:1: this is no evidence file" in done.stderr


def test_a_state_of_event_time_has_sizes_and_the_delay_that_would_have_kept_late_rows() -> None:
    plan = hot_items()
    path, (operator, name) = next(
        (f"{operator.id}.{entry.name}", (operator.id, entry.name))
        for operator in plan.operators
        for entry in operator.state
        if entry.ttl is None
    )
    # Of 100 late rows, 60 were less than 2 s late, 35 more less than 10 s, and 5 more less than 30 s.
    late = counts({ENDS.index(2_000): 60, ENDS.index(10_000): 35, ENDS.index(30_000): 5})
    state = StateEvidence(operator=operator, name=name, ttl=None, rows=12, bytes=2_048, row_ages=below(h1=12))
    texts = {}
    for lateness in (None, NONE, late):
        evidence = Evidence(plan=plan.name, at=AT, states=(replace(state, lateness=lateness),))
        report = advice_text(advise(plan, evidence, 0.999), "plan.json")
        (texts[lateness],) = (part for part in report.split("\n\n") if part.startswith(f"{path} "))
    assert "rows stay until the watermark passes the window · 2.0 KiB · 12 rows" in texts[late]
    assert texts[late].split("\n")[1:] == [
        "  a watermark delay longer by 2 s would have kept 60 of 100 late rows",
        "  a watermark delay longer by 10 s would have kept 95 of 100 late rows",
        "  a watermark delay longer by 30 s would have kept 100 of 100 late rows",
        "  the delay now: watermark_bid.watermark.delay = 4 s; all results wait as long",
        "  late rows were counted since the state began, also under other delays",
    ]
    assert texts[NONE].endswith("  no row was late")
    assert texts[None].endswith("  no advice on the watermark delay: the lateness of rows was not recorded")


def test_a_lower_bound_is_no_reason_to_shorten_a_ttl(plan_text: str) -> None:
    # In the run, the TTL of 1 hour lost a tenth of the matches; the plan has 3 days.
    period = Period(since=0, until=DAY, ttl=HOUR, hits=below(h1=9_000), misses=below(h2=1_000))
    state = StateEvidence(operator="join_o_c", name="leftState", ttl=HOUR, periods=(period,))
    evidence = Evidence(plan="p", at=AT, states=(state,))
    texts = {}
    for ttl in ("3 d", "1 h"):
        plan = set_value(hintplan.loads(plan_text), "join_o_c.state.leftState.ttl", ttl)[0]
        texts[ttl] = advice_text(advise(plan, evidence, 0.95), "plan.json")
    assert "<- at least this for 95 %" in texts["3 d"]
    assert "hintplan set" not in texts["3 d"]
    reason = "95 % of matches in 1 d need at least this"
    assert f"hintplan set plan.json join_o_c.state.leftState.ttl='2 h' --reason '{reason}'" in texts["1 h"]
