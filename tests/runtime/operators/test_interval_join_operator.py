"""Interval joins against the model: any history, cut into any batches, in any number of partitions."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.condition import compile_join_condition
from hintplan.runtime.operator import FOREVER
from hintplan.runtime.operators.interval_join import IntervalJoinOperator
from tests.runtime.changelog import colliding_hash, stable_hash
from tests.runtime.event_time.histories import cuts, history, in_buckets, in_order, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import JoinKind, Row
from tests.runtime.event_time.models_of_rows import IntervalJoin
from tests.runtime.expressions.checking import checked_over_sides

TIME = pa.timestamp("us")
LEFT = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", TIME)])
RIGHT = pa.schema([("rk", pa.string()), ("rv", pa.int64()), ("rat", TIME)])
KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full")
BOUNDS = ((-30, 50), (0, 0), (20, 90), (-400, -100), (-5000, 1), (10, 9))


def operator(
    kind: JoinKind, bounds: tuple[int, int], condition: str | None = None, *, is_keyed: bool = True
) -> IntervalJoinOperator:
    return IntervalJoinOperator(
        operator="join",
        kind=kind,
        left=LEFT,
        right=RIGHT,
        left_keys=("k",) if is_keyed else (),
        right_keys=("rk",) if is_keyed else (),
        times=("at", "rat"),
        bounds=bounds,
        condition=None
        if condition is None
        else compile_join_condition(checked_over_sides(condition, LEFT.names, RIGHT.names, "join"), LEFT, RIGHT),
        columns=(("k", "left", "k"), ("v", "left", "v"), ("rk", "right", "rk"), ("rv", "right", "rv")),
    )


def given(rows: list[Row]) -> list[list[tuple]]:
    return [[(row.key, row.value, moment(row.time)) for row in rows if row.side == side] for side in (0, 1)]


def of_model(model: IntervalJoin, rows: list[Row], before: int, after: int) -> Counter:
    return Counter(row for _, row in model.batch(rows, before, after))


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_joined_as_by_the_model(kind, bounds, hasher) -> None:
    rng = random.Random(f"{kind} {bounds}")
    for _ in range(4):
        run = KernelRun(operator(kind, bounds), rng.choice([1, 2, 5]), tasks=rng.choice([1, 2]), hasher=hasher)
        model = IntervalJoin(kind, -bounds[0], bounds[1])
        for rows, after in history(rng, size=rng.choice([3, 30]), sides=2):
            wanted = of_model(model, rows, run.before, max(after, run.before))
            assert Counter(run.batch(given(rows), after)) == wanted
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 2)
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))
        assert run.segments == 0


@pytest.mark.parametrize("kind", KINDS)
def test_only_pairs_that_satisfy_the_condition_meet(kind) -> None:
    rng = random.Random(kind)
    run = KernelRun(operator(kind, (-100, 200), "l.v < r.rv"), 2)
    model = IntervalJoin(kind, 100, 200, lambda left, right: left.value < right.value)
    for rows, after in history(rng, size=30, sides=2):
        wanted = of_model(model, rows, run.before, max(after, run.before))
        assert Counter(run.batch(given(rows), after)) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_any_cut_of_rows_in_order_leaves_the_same_rows(kind) -> None:
    rng = random.Random(kind)
    rows = in_order(rng, sides=2)
    results = []
    for cut in cuts(rng, rows):
        run = KernelRun(operator(kind, (-60, 200)), 2)
        results.append(sum((Counter(run.batch(given(batch), after)) for batch, after in cut), Counter()))
        assert run.late == 0
    assert all(result == results[0] for result in results)


def test_without_keys_only_the_times_decide_and_null_is_a_value_like_any_other() -> None:
    run = KernelRun(operator("full", (0, 5), is_keyed=False), 3)
    run.batch([[("a", 1, moment(100)), (None, 2, moment(106))], []], after=0)
    rows = run.batch([[], [("b", 3, moment(100)), (None, 4, moment(101))]], after=FOREVER)
    expected = [("a", 1, "b", 3), (None, 2, None, 4)]
    assert Counter(rows) == Counter(expected)


def test_equal_rows_meet_and_are_padded_as_often_as_they_came() -> None:
    run = KernelRun(operator("left", (-10, 0)))
    row = ("a", 1, moment(100))
    assert run.batch([[row, row], []], after=90) == []
    assert run.batch([[], [("a", 9, moment(105))]], after=107) == [("a", 1, "a", 9)] * 2
    # The match is no longer kept, so the third row, which is late, meets none; the others have met it.
    assert run.batch([[row], []], after=108) == []
    assert run.state_rows == 1
    assert run.batch([[], []], after=111) == [("a", 1, None, None)]
    assert run.batch([[], []], after=FOREVER) == []
    assert run.segments == 0


def test_a_bucket_goes_unread_and_the_state_stays_as_large_as_the_interval() -> None:
    run = KernelRun(operator("inner", (-8000, 0)))
    sizes = []
    for second in range(100):
        times = [second * 1000 + ms for ms in range(0, 1000, 10)]
        rows = [[(str(time), time, moment(time)) for time in times], [("none", time, moment(time)) for time in times]]
        if second == 50:
            part = run.parts[0]
            passed = {name for name in part.store.segments if name.startswith("left@42000/")}
            assert passed
            part.store.segments = {
                name: None if name in passed else table for name, table in part.store.segments.items()
            }
        run.batch(rows, after=second * 1000)
        sizes.append(run.state_rows)
    # By hand: the left rows of nine seconds, and the right rows of the last second.
    assert set(sizes[20:]) == {1000}
    run.batch([[], []], after=FOREVER)
    assert run.segments == 0


@pytest.mark.parametrize(("side", "column"), [(0, "at"), (1, "rat")])
def test_null_as_a_time_fails_with_the_operator_and_the_column(side: int, column: str) -> None:
    rows: list[list[tuple]] = [[], []]
    rows[side] = [("a", 1, None)]
    with pytest.raises(RunError, match=f"operator join: '{column}' is the rowtime, and a row has NULL in it") as caught:
        KernelRun(operator("full", (0, 10))).batch(rows, after=0)
    assert "COALESCE" in str(caught.value)
