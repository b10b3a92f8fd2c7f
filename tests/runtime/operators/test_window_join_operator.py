"""Joins of windows against the model: any history, cut into any batches, in any number of partitions."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.runtime.expressions.condition import compile_join_condition
from hintplan.runtime.operators.window_join import WindowJoinOperator
from tests.runtime.changelog import colliding_hash, stable_hash
from tests.runtime.event_time.histories import cuts, history, in_buckets, in_order, millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import JoinKind, Row, WindowJoin
from tests.runtime.expressions.checking import checked_over_sides

TIME = pa.timestamp("us")
LEFT = pa.schema([("k", pa.string()), ("v", pa.int64()), ("ws", TIME), ("we", TIME)])
RIGHT = pa.schema([("rk", pa.string()), ("rv", pa.int64()), ("rs", TIME), ("re", TIME)])
KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti")
SIZE = 100


def operator(kind: JoinKind, condition: str | None = None, keys=(("k",), ("rk",))) -> WindowJoinOperator:
    left = [("k", "left", "k"), ("v", "left", "v")]
    right = [("rk", "right", "rk"), ("rv", "right", "rv"), ("rs", "right", "rs")]
    return WindowJoinOperator(
        kind=kind,
        left=LEFT,
        right=RIGHT,
        left_keys=keys[0],
        right_keys=keys[1],
        window=Window(type="tumble", size=f"{SIZE} ms"),
        left_window=WindowColumns(start="ws", end="we"),
        right_window=WindowColumns(start="rs", end="re"),
        condition=None
        if condition is None
        else compile_join_condition(checked_over_sides(condition, LEFT.names, RIGHT.names, "join"), LEFT, RIGHT),
        columns=tuple(left if kind in ("semi", "anti") else [*left, ("ws", "left", "ws"), *right]),
    )


def given(rows: list[Row], side: int) -> list[tuple]:
    start = [row.time // SIZE * SIZE for row in rows]
    return [
        (row.key, row.value, moment(at), moment(at + SIZE))
        for row, at in zip(rows, start, strict=True)
        if row.side == side
    ]


def shown(kind: JoinKind, rows: list[tuple]) -> Counter:
    """Rows as the model puts them out: the columns of both sides without the window, then its start."""
    if kind in ("semi", "anti"):
        return Counter(rows)
    return Counter((*row[:2], *row[3:5], millis(row[2] or row[5])) for row in rows)


def expected(kind: JoinKind, model: WindowJoin, rows: list[Row], before: int, after: int) -> Counter:
    of_model = (row for _, row in model.batch(rows, before, after))
    return Counter(row[:2] for row in of_model) if kind in ("semi", "anti") else Counter(of_model)


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_joined_as_by_the_model(kind, hasher) -> None:
    rng = random.Random(kind)
    for _ in range(4):
        run = KernelRun(operator(kind), rng.choice([1, 2, 5]), tasks=rng.choice([1, 2]), hasher=hasher)
        model = WindowJoin(kind, SIZE)
        for rows, after in history(rng, size=rng.choice([3, 30]), sides=2):
            wanted = expected(kind, model, rows, run.before, max(after, run.before))
            assert shown(kind, run.batch([given(rows, 0), given(rows, 1)], after)) == wanted
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 2)
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))
        assert run.segments == 0


class ConditionedJoin(WindowJoin):
    """The model with the condition that the left value is smaller."""

    def joined(self, left: list[Row], right: list[Row]) -> list[tuple]:
        pairs = [(a, b) for a in left for b in right if a.key is not None and a.key == b.key and a.value < b.value]
        met = {id(row) for pair in pairs for row in pair}
        if self.kind in ("semi", "anti"):
            return [(a.key, a.value) for a in left if (id(a) in met) == (self.kind == "semi")]
        result = [(a.key, a.value, b.key, b.value) for a, b in pairs]
        result += [(a.key, a.value, None, None) for a in left if self.kind in ("left", "full") and id(a) not in met]
        return result + [
            (None, None, b.key, b.value) for b in right if self.kind in ("right", "full") and id(b) not in met
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_only_pairs_that_satisfy_the_condition_meet(kind) -> None:
    rng = random.Random(kind)
    run, model = KernelRun(operator(kind, "l.v < r.rv"), 2), ConditionedJoin(kind, SIZE)
    for rows, after in history(rng, size=30, sides=2):
        wanted = expected(kind, model, rows, run.before, max(after, run.before))
        assert shown(kind, run.batch([given(rows, 0), given(rows, 1)], after)) == wanted


def test_a_join_without_keys_pairs_all_rows_of_a_window() -> None:
    run = KernelRun(operator("inner", keys=((), ())), 3)
    assert run.batch([[("a", 1, moment(0), moment(100))], []], after=0) == []
    rows = run.batch([[(None, 2, moment(0), moment(100))], [("b", 3, moment(0), moment(100))]], after=99)
    assert sorted(row[1] for row in rows) == [1, 2]
    assert run.segments == 0


def test_rows_that_come_with_the_end_of_their_window_are_not_stored() -> None:
    run = KernelRun(operator("full"), 2)
    left, right = [("a", 1, moment(0), moment(100))], [("b", 2, moment(0), moment(100))]
    assert len(run.batch([left, right], 99)) == 2
    assert run.segments == 0
    assert all(result.manifest is None for result in run.results)


def test_rows_that_can_neither_match_nor_be_padded_are_not_stored() -> None:
    run = KernelRun(operator("left"))
    null = [(None, 1, moment(0), moment(100))]
    run.batch([null, null], 0)
    assert run.state_rows == 1
    assert len(run.batch([[], []], 99)) == 1


@pytest.mark.parametrize("kind", ["inner", "full"])
def test_a_cut_without_late_rows_does_not_change_the_pairs(kind) -> None:
    rng = random.Random(3)
    rows = in_order(rng, sides=2)
    results = []
    for cut in cuts(rng, rows):
        run = KernelRun(operator(kind), 2)
        sides = [([given(batch, 0), given(batch, 1)], after) for batch, after in cut]
        results.append(Counter(row for batch, after in sides for row in run.batch(batch, after)))
    assert all(result == results[0] for result in results)


def test_a_batch_that_runs_again_has_the_same_output_and_manifest() -> None:
    rng = random.Random(4)
    first, second = KernelRun(operator("full"), 2), KernelRun(operator("full"), 2)
    for rows, after in history(rng, sides=2):
        outputs = [run.batch([given(rows, 0), given(rows, 1)], after) for run in (first, second)]
        assert outputs[0] == outputs[1]
        assert [part.manifest for part in first.parts] == [part.manifest for part in second.parts]
