"""Compactions, snapshots and other numbers of partitions keep the watermark and the rows of open windows.

The rows of the programs have the times 1 s to 3 s, then 4 s and 5 s, then 6 s, and the watermark has no delay. So all
windows up to 3 s, 5 s and 6 s are closed after the three batches, by hand.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import hintplan
from hintplan import read_state
from hintplan.plans.evidence.ages import ENDS, bucket_of, counts
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import KINDS
from hintplan.runtime.inspect.compact import compact_state
from hintplan.runtime.inspect.contents import OperatorWatermark
from hintplan.runtime.inspect.evidence import read_evidence
from hintplan.runtime.inspect.snapshot import take_snapshot
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.state.layout import bucket_end
from hintplan.runtime.state.manifest import read_tables
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.read import read_manifest_file
from tests.operator_kinds import compiled, expected
from tests.runtime.changelog import Event, fold
from tests.runtime.event_time.times import milliseconds
from tests.runtime.inspect.test_snapshots import HOUR, STATEFUL, batch, left_by, one
from tests.runtime.stored import StoredQuery

BEGIN = datetime(2026, 1, 1)
BEGIN_MS = milliseconds("2026-01-01T00:00:00")
BY_TIME = [op for op in STATEFUL if any(kind.op == op and kind.goes_by_time for kind in KINDS)]
"""The kinds of operators with state that go by the watermark."""
OF_WINDOWS = [op for op in BY_TIME if op.startswith("window-")]
LATE = (0, 7, 7, BEGIN + timedelta(seconds=1))
"""A row of ``t`` that is late once the watermark has passed 2 s."""


def after(seconds: int) -> OperatorWatermark:
    return OperatorWatermark(after=BEGIN_MS + 1000 * seconds, held_by="watermark_t")


def watermarks(plan: Plan, checkpoint: Path) -> set[OperatorWatermark | None]:
    """The stored watermarks of the operators that go by time."""
    found = read_state(plan, str(checkpoint), at=HOUR * 9)
    return {state.watermark for query in found.queries for state in query.operators}


def buckets(checkpoint: Path) -> list[set[int]]:
    """The ends of the buckets with stored rows, in seconds, by partition; of a checkpoint after a compaction."""
    found = []
    for path in sorted(checkpoint.rglob("*.manifest")):
        tables = read_manifest_file(files_at(str(path.parent)), path.name).tables
        ends = () if tables is None else map(bucket_end, read_tables(tables))
        found.append({(end - BEGIN_MS) // 1000 for end in ends})
    return found


def assert_kept(plan: Plan, checkpoint: Path, seconds: int, ends: set[int]) -> None:
    """The watermark is at ``seconds``, and rows are in the buckets with these ``ends``."""
    assert watermarks(plan, checkpoint) == {after(seconds)}
    assert set().union(*buckets(checkpoint)) == ends


def continued(plan: Plan, checkpoint: Path, events: list[Event], *, partitions: int) -> StoredQuery:
    query = one(plan, checkpoint, partitions=partitions)
    query.result = fold(events, Counter())
    return query


def test_all_windows_go_by_time() -> None:
    assert {f"window-{kind}" for kind in ("aggregate", "deduplicate", "join", "rank", "table-function")} <= {*BY_TIME}


@pytest.mark.parametrize("op", OF_WINDOWS)
def test_compactions_snapshots_and_partitions_keep_watermark_and_windows(op: str, tmp_path: Path) -> None:
    plan, checkpoint = compiled(tmp_path, op), tmp_path / "checkpoint"
    events: list[Event] = []
    # Rows of sessions are in buckets as wide as four gaps: the row of 5 s lies from 4 s to 8 s, and its session at 6 s.
    last = {6, 8} if op == "window-table-function" else {6}
    steps = ((1, 3, {4}), (3, 5, last), (2, 6, set()))
    for number, (partitions, seconds, ends) in enumerate(steps):
        batch(continued(plan, checkpoint, events, partitions=partitions), number, events)
        assert watermarks(plan, checkpoint) == {after(seconds)}
        compact_state(str(checkpoint), at=HOUR * (number + 1))
        assert_kept(plan, checkpoint, seconds, ends)
        take_snapshot(str(checkpoint), str(tmp_path / f"copy{number}"))
        checkpoint = tmp_path / f"copy{number}"
        assert_kept(plan, checkpoint, seconds, ends)
        # Compactions write the slices of other partitions again.
        query = continued(plan, checkpoint, events, partitions=partitions + 1)
        query.batch({}, HOUR * (number + 1))
        assert query.events == []
        compact_state(str(checkpoint), at=HOUR * (number + 1))
        assert_kept(plan, checkpoint, seconds, ends)
    assert left_by(op, events) == expected(op)
    query = continued(plan, checkpoint, events, partitions=4)
    query.drain(HOUR * 4)
    assert left_by(op, query.events) == Counter(), "all was put out before"
    assert watermarks(plan, checkpoint) == {OperatorWatermark(after=FOREVER)}


def test_compactions_snapshots_and_partitions_keep_versions_and_rows_that_wait(tmp_path: Path) -> None:
    plan, checkpoint = compiled(tmp_path, "temporal-join"), tmp_path / "checkpoint"
    events: list[Event] = []
    for number, (partitions, seconds) in enumerate(((1, 3), (3, 5), (2, 6))):
        batch(continued(plan, checkpoint, events, partitions=partitions), number, events)
        assert {each and each.after for each in watermarks(plan, checkpoint)} == {after(seconds).after}
        compact_state(str(checkpoint), at=HOUR * (number + 1))
        take_snapshot(str(checkpoint), str(tmp_path / f"copy{number}"))
        checkpoint = tmp_path / f"copy{number}"
        query = continued(plan, checkpoint, events, partitions=partitions + 1)
        query.batch({}, HOUR * (number + 1))
        assert query.events == []
        compact_state(str(checkpoint), at=HOUR * (number + 1))
    assert left_by("temporal-join", events) == expected("temporal-join")
    entries = {state.name: state for state in read_evidence(plan, checkpoint, at=HOUR * 9).states}
    assert (entries["leftState"].rows, entries["rightState"].rows) == (0, 3)


@pytest.mark.parametrize("op", OF_WINDOWS)
def test_a_late_row_is_late_after_all_of_them(op: str, tmp_path: Path) -> None:
    plan = compiled(tmp_path, op)
    events: list[Event] = []
    query = one(plan, tmp_path / "checkpoint")
    batch(query, 0, events)
    compact_state(str(tmp_path / "checkpoint"), at=HOUR)
    take_snapshot(str(tmp_path / "checkpoint"), str(tmp_path / "copy"))
    query = continued(plan, tmp_path / "copy", events, partitions=3)
    query.batch({"t": [LATE]}, HOUR)
    assert query.events == []
    assert sum(query.late_rows.values()) == (2 if op == "window-join" else 1)
    assert watermarks(plan, tmp_path / "copy") == {after(3)}
    # The row of 1 s is in a window that ends at 2 s, so the watermark had passed it for 3,000 - 1,999 ms.
    a_second = counts({ENDS.index(1_500): 1})
    states = [state for state in read_evidence(plan, tmp_path / "copy", at=HOUR * 9).states if state.ttl is None]
    assert [state.lateness for state in states] == [a_second] * (2 if op == "window-join" else 1)
    for number in (1, 2):
        batch(query, number, events)
    assert left_by(op, events) == expected(op)
    for number, partitions in enumerate((5, 2, 1)):
        compact_state(str(tmp_path / "copy"), at=HOUR * (number + 4))
        query = continued(plan, tmp_path / "copy", events, partitions=partitions)
        query.batch({"t": [LATE]}, HOUR * (number + 4))
    take_snapshot(str(tmp_path / "copy"), str(tmp_path / "last"))
    # By now, the watermark is 6 s.
    four = counts({ENDS.index(1_500): 1, bucket_of(6_000 - 1_999): 3})
    states = [state for state in read_evidence(plan, tmp_path / "last", at=HOUR * 9).states if state.ttl is None]
    assert [state.lateness for state in states] == [four] * (2 if op == "window-join" else 1)


def test_compactions_snapshots_and_partitions_keep_the_rows_of_an_interval_join(tmp_path: Path) -> None:
    plan, checkpoint, events = compiled(tmp_path, "interval-join"), tmp_path / "checkpoint", list[Event]()
    # A bucket is a second wide. The left rows, of 1 s and 2 s, are kept for 3 s. The right rows are not kept, because
    # a match is at least a second before them.
    steps: tuple[tuple[int, int, set[int]], ...] = ((1, 3, {2, 3}), (3, 5, {3}), (2, 6, set()))
    for number, (partitions, seconds, ends) in enumerate(steps):
        batch(continued(plan, checkpoint, events, partitions=partitions), number, events)
        compact_state(str(checkpoint), at=HOUR * (number + 1))
        take_snapshot(str(checkpoint), str(tmp_path / f"copy{number}"))
        checkpoint = tmp_path / f"copy{number}"
        assert_kept(plan, checkpoint, seconds, ends)
    assert left_by("interval-join", events) == expected("interval-join")
    query = continued(plan, checkpoint, events, partitions=4)
    query.batch({"t": [LATE]}, HOUR * 4)
    assert left_by("interval-join", query.events) == Counter({(0, None): 1}), "padded at once"
    assert sum(query.late_rows.values()) == 2


def test_windows_that_are_open_at_the_end_are_closed_by_it(tmp_path: Path) -> None:
    plan, events = compiled(tmp_path, "window-aggregate"), list[Event]()
    query = one(plan, tmp_path / "checkpoint")
    for number in (0, 1):
        batch(query, number, events)
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 2)
    query = continued(plan, tmp_path / "checkpoint", events, partitions=3)
    query.drain(HOUR * 3)
    assert left_by("window-aggregate", events + query.events) == expected("window-aggregate")


def test_a_batch_that_runs_again_begins_at_the_watermark_before_it(tmp_path: Path) -> None:
    plan, events = compiled(tmp_path, "window-rank"), list[Event]()
    query = one(plan, tmp_path / "checkpoint")
    batch(query, 0, events)
    query.batch({"t": [(6, 1, 1, BEGIN + timedelta(minutes=1))]}, HOUR * 2, committed=False)
    compact_state(str(tmp_path / "checkpoint"), at=HOUR * 2)
    assert watermarks(plan, tmp_path / "checkpoint") == {after(3)}
    query = continued(plan, tmp_path / "checkpoint", events, partitions=2)
    for number in (1, 2):
        batch(query, number, events)
    assert query.late_rows["window_rank_early"] == 0
    assert left_by("window-rank", events) == expected("window-rank")


def test_groups_that_were_replaced_go_from_their_bucket_and_the_rest_stays(tmp_path: Path) -> None:
    plan, checkpoint = counting_by_minute(), tmp_path / "checkpoint"
    query = one(plan, checkpoint, partitions=1)
    for minute, key in ((0, 1), (0, 1), (2, 1), (0, 2)):
        query.batch({"l": [(key, BEGIN + timedelta(minutes=minute, seconds=30))]}, HOUR)
    # 2 min 30 s less the delay: the window of the first minute is open.
    found = compact_state(str(checkpoint), at=HOUR)
    had, has = found.total.before, found.total.after
    assert (had.rows, has.rows) == (3, 3)
    assert has.bytes < had.bytes
    assert has.files == 2, "a manifest with all in it, and its mark"
    assert buckets(checkpoint) == [{60, 180}]
    assert watermarks(plan, checkpoint) == {OperatorWatermark(after=BEGIN_MS - 450_000, held_by="watermark_l")}
    query = one(plan, checkpoint, partitions=2)
    query.batch({"l": [(1, BEGIN + timedelta(minutes=0)), (1, BEGIN + timedelta(minutes=11))]}, HOUR)
    assert query.result == Counter({(1, 3, BEGIN): 1, (2, 1, BEGIN): 1})
    query.drain(HOUR)
    rest = {(1, 1, BEGIN + timedelta(minutes=minute)): 1 for minute in (2, 11)}
    assert query.result == Counter({(1, 3, BEGIN): 1, (2, 1, BEGIN): 1, **rest})


def counting_by_minute() -> Plan:
    """Counts by minute, of rows that are at most ten minutes behind."""
    return hintplan.compile_sql(
        "CREATE TABLE l (k BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '10' MINUTE) "
        "WITH ('connector' = 'datagen');"
        "CREATE TABLE r (k BIGINT, n BIGINT, at TIMESTAMP(3)) WITH ('connector' = 'blackhole');"
        "INSERT INTO r SELECT k, COUNT(*), window_start FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), "
        "INTERVAL '1' MINUTE)) GROUP BY k, window_start, window_end;",
        name="counted",
    )
