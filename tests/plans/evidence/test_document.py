"""The evidence file: it keeps what was written, has no rows, and refuses any other content with its position."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.evidence.ages import ENDS, counts
from hintplan.plans.evidence.document import Evidence, StateEvidence, dumps, loads
from hintplan.plans.evidence.period import Period

TEXT = """\
{
  "evidence": 1,
  "plan": "paid",
  "at": "2026-03-13T10:00:00.000Z",
  "states": {
    "join_o_p.leftState": {
      "ttl": "1 d",
      "rows": 3,
      "bytes": 192,
      "row-ages": [[60000, 2], [null, 1]],
      "periods": [
        {
          "since": "2026-03-01T06:00:00.000Z",
          "until": "2026-03-13T10:00:00.000Z",
          "ttl": "1 d",
          "hits": [[240000, 5]],
          "misses": [[129600000, 1]],
          "written": 6,
          "expired": 2,
          "sampled": false
        }
      ]
    },
    "aggregate_revenue.windowState": { "ttl": null, "rows": 0, "bytes": 0, "row-ages": [], "periods": [] }
  }
}
"""
"""Written by hand: 1772344800 and 1773396000 are the seconds of the two times in ``date -u -d ... +%s``."""

PAID = Evidence(
    plan="paid",
    at=1_773_396_000_000,
    states=(
        StateEvidence(
            operator="join_o_p",
            name="leftState",
            ttl=86_400_000,
            rows=3,
            bytes=192,
            row_ages=counts({ENDS.index(60_000): 2, len(ENDS): 1}),
            periods=(
                Period(
                    since=1_772_344_800_000,
                    until=1_773_396_000_000,
                    ttl=86_400_000,
                    hits=counts({ENDS.index(240_000): 5}),
                    misses=counts({ENDS.index(129_600_000): 1}),
                    written=6,
                    expired=2,
                ),
            ),
        ),
        StateEvidence(operator="aggregate_revenue", name="windowState", ttl=None),
    ),
)


def test_the_file_is_the_text_that_people_read() -> None:
    assert dumps(PAID).decode() == TEXT
    assert loads(TEXT, file="paid.evidence.json") == PAID


HISTOGRAMS = st.dictionaries(st.integers(0, len(ENDS)), st.integers(1, 10**12), max_size=5).map(counts)
TIMES = st.integers(0, 4 * 10**12)
PERIODS = st.builds(
    lambda since, length, **rest: Period(since=since, until=since + length, **rest),
    since=TIMES,
    length=st.integers(0, 10**12),
    ttl=st.integers(0, 10**12),
    hits=HISTOGRAMS,
    misses=HISTOGRAMS,
    written=st.integers(0, 10**12),
    expired=st.integers(0, 10**12),
    sampled=st.booleans(),
)
STATES = st.builds(
    lambda ages, **rest: StateEvidence(rows=sum(ages), row_ages=ages, **rest),
    ages=HISTOGRAMS,
    operator=st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
    name=st.sampled_from(["leftState", "rightState"]),
    ttl=st.none() | st.integers(0, 10**12),
    bytes=st.integers(0, 10**15),
    periods=st.lists(PERIODS, max_size=2).map(tuple),
    lateness=st.none() | HISTOGRAMS,
)


@settings(max_examples=40, deadline=None)
@given(plan=st.text(st.characters(exclude_categories=["Cs"])), at=TIMES, states=st.lists(STATES, max_size=3))
def test_what_is_written_is_read_again(plan: str, at: int, states: list[StateEvidence]) -> None:
    unique = tuple({state.path: state for state in states}.values())
    evidence = Evidence(plan=plan, at=at, states=unique)
    assert loads(dumps(evidence)) == evidence


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_evidence_or_an_error_with_its_line(data: st.DataObject) -> None:
    text = TEXT
    fragments = st.sampled_from([*'"\\{}[],:-0 \n', "null", "1e9", "true", "-1", "[1000, 2]", '"a":1,', '"rows"'])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + data.draw(st.just("") | fragments) + text[end:]
    problem = refusal(text)
    assert problem is None or problem.line is not None


def refusal(text: str) -> Diagnostic | None:
    try:
        loads(text, file="e.json")
    except PlanError as error:
        return error.diagnostics[0]
    return None


REFUSED = [
    ('"evidence": 1', '"evidence": 2', "e.json:2:15: evidence: expected the format 1 of evidence files, found 2"),
    ('  "evidence": 1,\n', "", "e.json:1:1: this is no evidence file: it has no 'evidence'"),
    ('"bytes": 192', '"bytes": 192, "values": [1]', "e.json:9:31: states.join_o_p.leftState.values: unknown key"),
    ('"rows": 3', '"rows": 4', "expected the ages of 4 rows, found 3"),
    ('"rows": 3', '"rows": true', "e.json:8:15: states.join_o_p.leftState.rows: expected a whole number of at least 0"),
    ('"bytes": 192', '"bytes": -1', "e.json:9:16: states.join_o_p.leftState.bytes: expected a whole number"),
    ("[60000, 2]", "[60001, 2]", "e.json:10:21: states.join_o_p.leftState.row-ages.0.0: no bucket ends at 60001 ms"),
    ("[60000, 2]", "[60000, 2, 3]", "expected the end of a bucket and a count, found a list of 3 values"),
    ("[60000, 2], [null, 1]", "[null, 1], [60000, 2]", "the buckets must be in order"),
    ('"2026-03-01T06:00:00.000Z"', '"2026-02-30T06:00:00.000Z"', "expected a time, found '2026-02-30T06:00:00.000Z'"),
    ('"2026-03-01T06:00:00.000Z"', '"2026-03-14T06:00:00.000Z"', "the period ends before it begins"),
    ('"ttl": "1 d",\n      "rows"', '"ttl": "1 day old",\n      "rows"', "bad duration '1 day old'"),
    ('"sampled": false', '"sampled": 0', "expected true or false, found 0"),
    ('"join_o_p.leftState"', '"join_o_p"', "'join_o_p' is no path of a state"),
    ('"written": 6,', "", "e.json:12:9: states.join_o_p.leftState.periods.0: the key 'written' is missing"),
]


@pytest.mark.parametrize(("old", "new", "expected"), REFUSED, ids=[expected for _, _, expected in REFUSED])
def test_a_wrong_value_is_refused_with_its_position(old: str, new: str, expected: str) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(PlanError) as refused:
        loads(TEXT.replace(old, new, 1), file="e.json")
    assert expected in str(refused.value)
    assert refused.value.diagnostics[0].line is not None
