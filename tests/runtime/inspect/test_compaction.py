"""A compaction takes away what nobody will see again, and nothing else; the next run continues unaffected."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hintplan
from hintplan import read_state
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.checkpoint import local_lock, run_lock
from hintplan.runtime.checkpoint.lease import WAITS, claim
from hintplan.runtime.checkpoint.lease_stores import directory_store
from hintplan.runtime.checkpoint.lock_owner import ourselves
from hintplan.runtime.inspect.command import state_command
from hintplan.runtime.inspect.compact import compact_state
from hintplan.runtime.inspect.snapshot import take_snapshot
from tests.operator_kinds import compiled, expected
from tests.runtime.changelog import Event, fold
from tests.runtime.inspect.test_snapshots import HOUR, STATEFUL, batch, counting, files, left_by, one
from tests.runtime.stored import StoredQuery, run_on


def stored(plan: Plan, checkpoint: Path, at: int) -> tuple[int, int]:
    """The rows that are there, and those that have expired and are there all the same."""
    total = read_state(plan, str(checkpoint), at=at).total
    return total.rows, total.expired or 0


def manifests(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in checkpoint.rglob("*.manifest"))


@pytest.fixture
def expiring(tmp_path: Path) -> Plan:
    """A count under a TTL of a day: group 1 was written at 0 h, group 2 at 20 h, and it and group 3 at 25 h."""
    plan = counting("1 d")
    (query,) = run_on(plan, tmp_path / "checkpoint", partitions=1).values()
    for hour, groups in ((0, [1]), (20, [2]), (25, [2, 3])):
        query.batch({"l": [(group, "a") for group in groups]}, HOUR * hour)
    return plan


@pytest.mark.parametrize("op", STATEFUL)
def test_a_run_goes_on_after_it_and_with_other_partitions_as_if_nothing_had_been(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    events: list[Event] = []
    query = one(plan, tmp_path / "checkpoint")
    for number, partitions in enumerate((2, 2, 3)):
        query = one(plan, tmp_path / "checkpoint", partitions=partitions)
        query.result = fold(events, Counter())
        batch(query, number, events)
        compact_state(str(tmp_path / "checkpoint"), at=HOUR * (number + 1))
        compact_state(str(tmp_path / "checkpoint"), at=HOUR * (number + 1))
    assert left_by(op, events) == expected(op)


def test_rows_that_have_expired_or_were_replaced_go(expiring: Plan, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    assert stored(expiring, checkpoint, HOUR * 32) == (2, 1)
    found = compact_state(str(checkpoint), at=HOUR * 32)
    assert stored(expiring, checkpoint, HOUR * 32) == (2, 0)
    assert (found.total.before.rows, found.total.after.rows) == (3, 2)
    there = [
        path for path in checkpoint.rglob("*") if path.is_file() and "state" in path.parts[len(checkpoint.parts) :]
    ]
    assert found.total.after.files == len(there) == 2, "a manifest with all in it, and its mark"
    assert found.total.after.bytes == sum(path.stat().st_size for path in there) < found.total.before.bytes


def test_at_the_time_of_expiry_and_not_a_millisecond_before(expiring: Plan, tmp_path: Path) -> None:
    for at, left in ((HOUR * 24 - 1, 1), (HOUR * 24, 0)):
        take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / str(at)))
        compact_state(str(tmp_path / str(at)), at=at)
        assert stored(expiring, tmp_path / str(at), HOUR * 32) == (2, left)


def test_what_has_gone_stays_gone_under_a_longer_ttl_and_what_has_not_comes_back(
    expiring: Plan, tmp_path: Path
) -> None:
    longer, _ = set_value(expiring, "aggregate_l.groupAggregateState.ttl", "9 d")
    assert stored(longer, tmp_path / "checkpoint", HOUR * 32) == (3, 0)
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    assert stored(longer, tmp_path / "checkpoint", HOUR * 32) == (2, 0)
    # The plan that last ran says what has expired: now the longer one.
    run_on(longer, tmp_path / "checkpoint", partitions=1)
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 99)
    assert stored(longer, tmp_path / "checkpoint", HOUR * 99) == (2, 0)


def test_a_batch_that_runs_again_sees_what_it_saw(expiring: Plan, tmp_path: Path) -> None:
    """It had begun when group 2 was still there, so that it counts on."""
    (query,) = run_on(expiring, tmp_path / "checkpoint", partitions=1).values()
    query.batch({"l": [(77, "x")]}, HOUR * 40, committed=False)
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 99)
    (again,) = run_on(expiring, tmp_path / "checkpoint", partitions=1).values()
    again.result = Counter({(2, 2): 1})
    again.batch({"l": [(2, "a")]}, HOUR * 40)
    assert again.result == Counter({(2, 3): 1})


def test_a_second_one_changes_nothing(expiring: Plan, tmp_path: Path) -> None:
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    before = files(tmp_path / "checkpoint")
    found = compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    assert files(tmp_path / "checkpoint") == before
    assert found.total.before == found.total.after


def test_slices_of_other_partitions_are_written_anew(tmp_path: Path) -> None:
    plan, checkpoint = counting(), tmp_path / "checkpoint"
    (query,) = run_on(plan, checkpoint, partitions=2).values()
    query.batch({"l": [(number, "a") for number in range(40)]}, HOUR)
    (query,) = run_on(plan, checkpoint, partitions=5).values()
    query.batch({"l": [(100, "a")]}, HOUR)
    compact_state(str(checkpoint), at=HOUR)
    assert stored(plan, checkpoint, HOUR) == (41, 0)
    assert {path.parent.parent.name for path in checkpoint.rglob("*.manifest")} == {"1"}
    (query,) = run_on(plan, checkpoint, partitions=1).values()
    query.batch({"l": [(101, "a")]}, HOUR)
    assert stored(plan, checkpoint, HOUR) == (42, 0)


def test_a_snapshot_keeps_what_its_checkpoint_loses(expiring: Plan, tmp_path: Path) -> None:
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    assert stored(expiring, tmp_path / "copy", HOUR * 32) == (2, 1)


def test_a_time_to_come_is_refused(expiring: Plan, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="rows that expire later cannot go now"):
        compact_state(str(tmp_path / "checkpoint"), at=1 << 50)


def test_a_checkpoint_that_somebody_holds_is_left_alone(
    expiring: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(tmp_path / "checkpoint")
    lock = local_lock.lock_local("it", tmp_path / "checkpoint")
    try:
        with pytest.raises(RunError, match="is in use by this process"):
            compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    finally:
        lock.release()
    assert {name: text for name, text in files(tmp_path / "checkpoint").items() if name != local_lock.LOCK} == before
    store = directory_store(tmp_path / "checkpoint")
    elsewhere = replace(ourselves(None), host="elsewhere")
    assert claim(store, None, elsewhere, 60.0, WAITS) is not None
    monkeypatch.setattr(run_lock, "is_shared", lambda path: True)
    monkeypatch.setattr(run_lock, "TELLS", replace(WAITS, longest=0.0))
    with pytest.raises(RunError, match=r"was taken by process .* on elsewhere.*, and its lease has not run out"):
        compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    now = iter(range(0, 10_000, 10))
    monkeypatch.setattr(run_lock, "TELLS", replace(WAITS, clock=lambda: next(now), sleep=lambda seconds: None))
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)


def test_a_damaged_checkpoint_is_left_alone(expiring: Plan, tmp_path: Path) -> None:
    newest = max((tmp_path / "checkpoint").rglob("2.*.manifest"))
    newest.write_bytes(newest.read_bytes()[:-900])
    before = files(tmp_path / "checkpoint")
    with pytest.raises(RunError, match="is damaged"):
        compact_state(str(tmp_path / "checkpoint"), at=HOUR * 32)
    after = files(tmp_path / "checkpoint")
    assert {name: text for name, text in after.items() if name != local_lock.LOCK} == before


@pytest.mark.parametrize("operation", ["link", "open", "fsync", "unlink"])
def test_a_crash_at_any_operation_loses_nothing(
    operation: str, expiring: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call in turn ends it; a run continues, and another compaction ends what was begun."""
    real = getattr(os, operation)
    crashes = 0
    for at in range(200):
        calls = iter(range(at))

        def dies(*arguments: Any, calls: Iterator[int] = calls, **named: Any) -> Any:
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return real(*arguments, **named)

        checkpoint = tmp_path / f"copy{at}"
        take_snapshot(str(tmp_path / "checkpoint"), str(checkpoint))
        with monkeypatch.context() as patch:
            patch.setattr(os, operation, dies)
            try:
                compact_state(str(checkpoint), at=HOUR * 32)
            except KeyboardInterrupt:
                crashes += 1
            else:
                assert crashes > 0
                return
        assert stored(expiring, checkpoint, HOUR * 32) in ((2, 1), (2, 0))
        goes_on(expiring, checkpoint)
        compact_state(str(checkpoint), at=HOUR * 33)
        assert stored(expiring, checkpoint, HOUR * 33) == (3, 0)
        assert len(manifests(checkpoint)) == 1
    raise AssertionError("no end")


def goes_on(plan: Plan, checkpoint: Path) -> StoredQuery:
    (query,) = run_on(plan, checkpoint, partitions=1).values()
    query.result = Counter({(2, 2): 1, (3, 1): 1})
    query.batch({"l": [(2, "b"), (4, "b")]}, HOUR * 32)
    assert query.result == Counter({(2, 3): 1, (3, 1): 1, (4, 1): 1})
    return query


def test_state_that_the_last_plan_does_not_read_is_swept_only(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    for name in ("l", "m"):
        plan = hintplan.compile_sql(
            "CREATE TABLE l (k BIGINT) WITH ('connector' = 'datagen');"
            f"CREATE TABLE {name}_r (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');"
            f"INSERT INTO {name}_r SELECT k, COUNT(*) FROM l GROUP BY k;",
        )
        (query,) = (query for query in run_on(plan, checkpoint).values())
        query.batch({"l": [(1,)]}, HOUR)
        query.batch({"l": [(1,)]}, HOUR)
    kept = {state.query: state.kept for state in compact_state(str(checkpoint), at=HOUR).states}
    assert kept == {"sink_m_r": "", "sink_l_r": "the plan that last ran does not read it"}


def test_the_command_tells_rows_bytes_and_files(expiring: Plan, tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        options = [str(tmp_path / "checkpoint"), "--compact", "--at", "1970-01-02T08:00:00", *arguments]
        return CliRunner().invoke(state_command, options, catch_exceptions=False).stdout

    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    text = said()
    assert "expired at 1970-01-02 08:00:00 UTC" in text
    (line,) = (line for line in text.splitlines() if line.startswith("aggregate_l"))
    assert line.split()[1:4] == ["3", "to", "2"]
    document = json.loads(said("--json"))
    assert document["total"]["before"] == document["total"]["after"]
    assert document["total"]["after"]["rows"] == 2
