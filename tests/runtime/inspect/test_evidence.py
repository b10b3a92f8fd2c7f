"""The evidence in a checkpoint, counted by hand, and its file, which has no rows."""

from __future__ import annotations

from pathlib import Path

import hintplan
from hintplan.plans.evidence.ages import NONE, bucket_of
from hintplan.plans.evidence.ages import counts as histogram
from hintplan.plans.evidence.document import StateEvidence, loads
from hintplan.plans.evidence.period import Period
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect.evidence import read_evidence
from hintplan.runtime.inspect.read import read_state
from hintplan.runtime.inspect.report import state_json
from tests.plans.in_process import hintplan as in_process
from tests.runtime.stored import run_on

HOUR, MINUTE, DAY = 3_600_000, 60_000, 86_400_000
FIRST, SECOND, THIRD = 100 * HOUR, 101 * HOUR, 131 * HOUR
SQL = """
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE l (k BIGINT, a STRING) WITH ('connector' = 'datagen');
CREATE TABLE r (k BIGINT, b STRING) WITH ('connector' = 'datagen');
CREATE TABLE joined (a STRING, b STRING) WITH ('connector' = 'blackhole');
CREATE TABLE counted (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO joined SELECT a, b FROM l JOIN r ON l.k = r.k;
INSERT INTO counted SELECT k, COUNT(DISTINCT a) FROM l GROUP BY k;
"""


def run(checkpoint: Path) -> Plan:
    plan = hintplan.compile_sql(SQL, name="kept")
    for query in run_on(plan, checkpoint).values():
        query.batch({"l": [(1, "secret1"), (2, "secret2"), (2, "secret2")]}, FIRST)
        query.batch({"l": [(2, "secret2"), (4, "secret4")], "r": [(1, "b1"), (4, "b4")]}, SECOND)
        query.batch({"l": [(2, "secret5")], "r": [(1, "b2")]}, THIRD)
    return plan


def test_hits_misses_and_ages_are_those_counted_by_hand(tmp_path: Path) -> None:
    plan = run(tmp_path / "checkpoint")
    found = read_evidence(plan, tmp_path / "checkpoint", at=THIRD + 10 * MINUTE)
    assert (found.plan, found.at) == ("kept", THIRD + 10 * MINUTE)
    left, right, groups = (
        found.state(path) for path in ("join_l_r.leftState", "join_l_r.rightState", "aggregate_l.groupAggregateState")
    )
    assert left is not None
    assert right is not None
    assert groups is not None
    # b1 finds the row of key 1 after an hour. b4 finds that of key 4 in the same batch, which does not count. b2 would
    # find that of key 1 after 31 hours. (2, secret2) was written again in the second batch, 30 hours before the third.
    ten = histogram({bucket_of(10 * MINUTE): 1})
    hour = histogram({bucket_of(HOUR): 1})
    assert left == StateEvidence(
        operator="join_l_r",
        name="leftState",
        ttl=DAY,
        rows=1,
        bytes=left.bytes,
        row_ages=ten,
        periods=(
            Period(
                since=FIRST,
                until=THIRD,
                ttl=DAY,
                hits=hour,
                misses=histogram({bucket_of(31 * HOUR): 1}),
                written=5,  # secret1, secret2, secret2 again, secret4, secret5
                expired=left.periods[0].expired,
            ),
        ),
    )
    assert left.bytes > 0
    # The rows of the first batch have been expired for more than a quarter of the TTL, and so are dropped.
    assert left.periods[0].expired >= 1
    assert right.periods[0].hits == right.periods[0].misses == NONE
    # Group 2 and its value secret2 are hit after an hour; after 30 hours the group has expired.
    assert groups.periods[0].hits == histogram({bucket_of(HOUR): 2})
    assert groups.periods[0].misses == histogram({bucket_of(30 * HOUR): 1})
    assert (groups.rows, groups.row_ages) == (2, histogram({bucket_of(10 * MINUTE): 2}))


def test_the_state_as_json_has_what_it_has_observed(tmp_path: Path) -> None:
    found = state_json(read_state(run(tmp_path / "checkpoint"), tmp_path / "checkpoint", at=THIRD))
    states = {
        f"{operator['id']}.{state['name']}": state.get("observed")
        for query in found["queries"]
        for operator in query["operators"]
        for state in operator["state"]
    }
    (left,) = states["join_l_r.leftState"]
    # The bucket of an hour ends after one and a half, that of 31 hours after 36.
    assert (left["hits"], left["misses"], left["ttl"]) == ([[90 * MINUTE, 1]], [[36 * HOUR, 1]], "1 d")


def test_the_command_writes_counters_and_no_rows(tmp_path: Path) -> None:
    plan = run(tmp_path / "checkpoint")
    hintplan.dump(plan, tmp_path / "plan.json")
    given = ["state", f"{tmp_path}/plan.json", "--checkpoint", f"{tmp_path}/checkpoint", "--at", "1970-01-06T11:10:00Z"]
    target = tmp_path / "evidence.json"
    done = in_process(*given, "--evidence", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{target}: 3 states, 3 hits\n"
    written = target.read_bytes()
    assert loads(written) == read_evidence(plan, tmp_path / "checkpoint", at=THIRD + 10 * MINUTE)
    assert b"secret" not in written
    assert b"b1" not in written
    refused = in_process(*given, "--evidence", str(target), "--json")
    assert refused.returncode == 64
    assert "--evidence FILE has the counters of all states" in refused.stderr
