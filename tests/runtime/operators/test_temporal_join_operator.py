"""Temporal joins against the model: any history, cut into any batches, in any number of partitions; then their TTL."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.plans.evidence.ages import ENDS
from hintplan.plans.evidence.uses import Uses
from hintplan.runtime.expressions.condition import compile_join_condition
from hintplan.runtime.operators.temporal_join import TemporalJoinOperator
from hintplan.runtime.operators.waiting_rows import bounds_of
from hintplan.runtime.state.manifest import read_tables
from tests.runtime.changelog import colliding_hash, stable_hash
from tests.runtime.event_time.histories import millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.models_of_rows import TemporalJoin
from tests.runtime.event_time.times import FOREVER, NEVER
from tests.runtime.expressions.checking import checked_over_sides

LEFT = pa.schema([("id", pa.int64()), ("k", pa.string()), ("ts", pa.timestamp("us"))])
RIGHT = pa.schema([("rk", pa.string()), ("rate", pa.int64()), ("rts", pa.timestamp("us"))])
DAY = 86_400_000


def operator(
    kind: Any = "left",
    *,
    changes: tuple[bool, bool] = (False, False),
    ascending: bool = False,
    condition: str | None = None,
    ttl: int = 0,
) -> TemporalJoinOperator:
    return TemporalJoinOperator(
        operator="join_o_r",
        kind=kind,
        left=LEFT,
        right=RIGHT,
        left_keys=("k",),
        right_keys=("rk",),
        left_time="ts",
        right_time="rts",
        changelog=changes,
        ascending=ascending,
        condition=None
        if condition is None
        else compile_join_condition(checked_over_sides(condition, LEFT.names, RIGHT.names, "join"), LEFT, RIGHT),
        ttl=ttl,
        columns=(*((name, "left", name) for name in LEFT.names), *((n, "right", n) for n in ("rate", "rts"))),
    )


def given(rows: Sequence[Row], changes: tuple[bool, bool] = (False, False)) -> list[list[tuple]]:
    """The rows of both sides; of a side with changes, with their kinds."""
    sides: list[list[tuple]] = [[], []]
    for row in rows:
        values = (row.key, row.value, moment(row.time))
        sides[row.side].append(("+I" if row.sign > 0 else "-D", values) if changes[row.side] else values)
    return sides


def shown(rows: Sequence[tuple]) -> Counter:
    """Rows of the output as the model has them."""
    return Counter((i, k, millis(ts), rate, None if rts is None else millis(rts)) for i, k, ts, rate, rts in rows)


def history(rng: random.Random, changes: tuple[bool, bool], span: int) -> list[tuple[list[Row], int]]:
    """Rows in any order, many of them late, with few keys; some batches do not move the watermark."""
    result: list[tuple[list[Row], int]] = []
    after, number, kept = NEVER, 0, []
    for _ in range(8):
        rows = []
        for _ in range(rng.randint(0, 25)):
            number, time, key = number + 1, rng.randint(-span // 5, span), rng.choice(["a", "b", "c", None])
            side = rng.randrange(2)
            row = Row(time, number, key, 1, 0) if side == 0 else Row(time, key, number, 1, 1)
            if changes[0] and side == 0 and kept and rng.random() < 0.4:
                row = kept.pop(rng.randrange(len(kept)))._replace(sign=-1)
            elif changes[1] and side == 1 and rng.random() < 0.3:
                row = row._replace(sign=-1)
            if row.side == 0 and row.sign > 0:
                kept.append(row)
            if row.side == 0 or row.key is not None:
                rows.append(row)
        after = max(after, rng.choice([NEVER, after, rng.randint(0, span), rng.randint(0, span)]))
        result.append((rows, after))
    return [*result, ([], FOREVER)]


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.parametrize("changes", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", ["inner", "left"])
def test_rows_meet_the_versions_of_the_model(kind: str, changes: tuple[bool, bool], hasher: Any) -> None:
    rng = random.Random(f"{kind} {changes}")
    for _ in range(3):
        span = rng.choice([20, 5_000, 40 * DAY])
        run = KernelRun(operator(kind, changes=changes), rng.choice([1, 2, 5]), hasher=hasher)
        model = TemporalJoin(is_outer=kind == "left")
        for rows, after in history(rng, changes, span):
            before = run.before
            wanted = model.batch(sorted(rows, key=lambda row: -row.side), before, max(before, after))
            assert shown(run.batch(given(rows, changes), after)) == Counter(row for _, row in wanted)
            assert sum(r.waiting_rows for r in run.results) <= run.state_rows
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))
        assert run.late == 0
        assert sum(r.waiting_rows for r in run.results) == 0
        assert run.state_rows == sum(len(known) > 0 for known in model.versions.values())


def test_rows_of_a_view_that_come_out_of_order_are_no_versions() -> None:
    rng = random.Random(5)
    for _ in range(6):
        run = KernelRun(operator(ascending=True), rng.choice([1, 2, 5]))
        model = TemporalJoin(is_outer=True, ascending=True)
        for rows, after in history(rng, (False, False), rng.choice([20, 5_000])):
            before = run.before
            wanted = model.batch(sorted(rows, key=lambda row: -row.side), before, max(before, after))
            assert shown(run.batch(given(rows), after)) == Counter(row for _, row in wanted)
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))


def test_changes_of_left_rows_come_out_in_the_order_in_which_they_came() -> None:
    run = KernelRun(operator(changes=(True, False)))
    old, new = (1, "a", moment(50)), (2, "a", moment(50))
    run.batch([[("+I", old)], [("a", 10, moment(1))]], 0)
    run.batch([[("-U", old), ("+U", new)], []], 0)
    run.batch([[("-U", new), ("+U", old)], []], 10)
    (result,) = run.results
    assert result.output.num_rows == 0
    run.batch([[], []], 50)
    (result,) = run.results
    assert result.output["id"].to_pylist() == [1, 1, 2, 2, 1]
    assert result.output["__kind"].to_pylist() == [0, 1, 2, 1, 2]


def test_a_condition_decides_of_the_version_that_is_met_and_not_of_older_ones() -> None:
    versions = [("a", 1, moment(1)), ("a", 9, moment(5))]
    orders = [(1, "a", moment(3)), (2, "a", moment(7))]
    for kind, expected in (("inner", [(1, 1)]), ("left", [(1, 1), (2, None)])):
        run = KernelRun(operator(kind, condition="r.rate < 5"))
        rows = run.batch([orders, versions], 100)
        assert [(row[0], row[3]) for row in rows] == expected


def test_a_version_that_only_withdraws_the_one_before_it_is_none() -> None:
    run = KernelRun(operator(changes=(False, True)))
    versions = [("+I", ("a", 1, moment(1))), ("-U", ("a", 1, moment(1))), ("+U", ("a", 2, moment(5)))]
    rows = run.batch([[(1, "a", moment(3)), (2, "a", moment(6))], versions], 100)
    assert [row[3] for row in rows] == [1, 2]


def test_a_deletion_needs_a_time() -> None:
    run = KernelRun(operator(changes=(False, True)))
    with pytest.raises(RunError, match="'rts' is NULL in a row that is deleted"):
        run.batch([[], [("-D", ("a", None, None))]], 100)


def test_far_rows_are_in_few_buckets_and_a_batch_reads_only_near_ones() -> None:
    """A row of each minute of three days waits; then the watermark passes half an hour in steps of a minute."""
    run = KernelRun(operator())
    orders = [(number, "a", moment(number * 60_000)) for number in range(1, 4_320)]
    run.batch([orders, [("a", 1, moment(0))]], 0)
    (part,) = run.parts
    assert part.manifest is not None
    buckets = [bounds_of(int(name.split("@")[1])) for name in read_tables(part.manifest) if name.startswith("left@")]
    assert len(buckets) < 60
    for number in range(1, 31):
        read = part.store.read
        rows_read: list[int] = []
        part.store.read = lambda segment, read=read, rows=rows_read: _noted(read(segment), rows)  # type: ignore[method-assign]
        assert [row[0] for row in run.batch([[], []], number * 60_000)] == [number]
        part.store.read = read  # type: ignore[method-assign]
        assert sum(rows_read) < 20


def _noted(table: pa.Table, rows: list[int]) -> pa.Table:
    rows.append(table.num_rows)
    return table


def test_a_batch_that_runs_again_puts_out_and_stores_the_same() -> None:
    rng = random.Random(3)
    run = KernelRun(operator(changes=(True, True)))
    for rows, after in history(rng, (True, True), 5_000):
        (part,), before = run.parts, run.before
        segments, manifest = dict(part.store.segments), part.manifest
        first = run.batch(given(rows, (True, True)), after), part.manifest, dict(part.store.segments)
        part.store.segments, part.manifest, run.before = segments, manifest, before
        assert (run.batch(given(rows, (True, True)), after), part.manifest, part.store.segments) == first


HOUR = 3_600_000


def test_a_version_lives_for_its_ttl_after_it_was_written_or_met() -> None:
    run = KernelRun(operator(ttl=HOUR))
    run.batch([[], [("a", 1, moment(0)), ("b", 2, moment(0))]], 0, now=0)
    met = run.batch([[(1, "a", moment(1))], []], 1, now=HOUR // 2)
    assert [row[3] for row in met] == [1]
    late = run.batch([[(2, "a", moment(2)), (3, "b", moment(2))], []], 2, now=HOUR)
    assert sorted((row[0], row[3]) for row in late) == [(2, 1), (3, None)]
    gone = run.batch([[(4, "a", moment(3))], []], 3, now=3 * HOUR)
    assert [row[3] for row in gone] == [None]


def test_a_version_that_is_met_is_written_again_once_in_a_quarter_of_its_ttl() -> None:
    run = KernelRun(operator(ttl=HOUR))
    run.batch([[], [("a", 1, moment(0))]], 0, now=0)
    (part,) = run.parts
    written = []
    for minute in range(1, 61):
        before = read_tables(part.manifest or b"")["right"].segments
        assert [r[3] for r in run.batch([[(minute, "a", moment(minute))], []], minute, now=minute * 60_000)] == [1]
        if read_tables(part.manifest or b"")["right"].segments != before:
            written.append(minute)
    assert written == [15, 30, 45, 60]


def test_rows_that_wait_have_no_ttl() -> None:
    run = KernelRun(operator(ttl=HOUR))
    run.batch([[(1, "a", moment(500))], [("a", 7, moment(400))]], 0, now=0)
    assert [row[3] for row in run.batch([[], []], 500, now=100 * HOUR)] == [7]


def test_a_version_is_found_again_after_its_ttl_was_edited() -> None:
    run = KernelRun(operator(ttl=HOUR))
    run.batch([[], [("a", 1, moment(0))]], 0, now=0)
    run.operator = operator(ttl=DAY)
    assert [row[3] for row in run.batch([[(1, "a", moment(1))], []], 1, now=5 * HOUR)] == [1]
    run.operator = operator(ttl=HOUR)
    assert [row[3] for row in run.batch([[(2, "a", moment(2))], []], 2, now=7 * HOUR)] == [None]


def test_the_latest_time_of_a_view_is_forgotten_with_its_version() -> None:
    run = KernelRun(operator(ttl=HOUR, ascending=True))
    run.batch([[], [("a", 1, moment(100))]], 100, now=0)
    assert [r[3] for r in run.batch([[(1, "a", moment(50))], [("a", 2, moment(40))]], 101, now=1)] == [None]
    assert [r[3] for r in run.batch([[(2, "a", moment(50))], [("a", 2, moment(40))]], 102, now=3 * HOUR)] == [2]


def test_versions_that_are_met_are_observed_with_their_ages_and_those_that_have_expired_as_misses() -> None:
    run = KernelRun(operator(ttl=HOUR))
    run.batch([[], [("a", 1, moment(0)), ("b", 1, moment(0))]], 0, now=0)
    orders = [(1, "a", moment(1)), (2, "a", moment(1)), (3, "x", moment(1)), (4, "b", moment(-5))]
    run.batch([orders, []], 1, now=HOUR // 2)
    ages = [end for end, count in zip(ENDS, run.results[0].uses[1].hits, strict=False) for _ in range(count)]
    assert len(ages) == 2
    assert set(ages) == {next(end for end in ENDS if end > HOUR // 2)}
    run.batch([[(5, "b", moment(2)), (6, "b", moment(-5))], []], 2, now=HOUR)
    left, right = run.results[0].uses
    assert left == Uses()
    assert sum(right.misses) == 1
    (period,) = read_tables(run.parts[0].manifest or b"")["right"].observed
    assert (sum(period.hits), sum(period.misses)) == (2, 1)
