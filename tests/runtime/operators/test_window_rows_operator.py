"""The first rows of windows against the model: any history, cut into any batches, in any number of partitions."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from hintplan.plans.declarations.computations import SortKey
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.runtime.kernels.numbering import Numbering
from hintplan.runtime.operators.window_rows import WindowRowsOperator
from tests.runtime.changelog import colliding_hash, stable_hash
from tests.runtime.event_time.histories import cuts, history, in_buckets, in_order, millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import LastOfWindow, Row, Windows, WindowTop

TIME = pa.timestamp("us")
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", TIME), ("ws", TIME), ("we", TIME)])
TUMBLE = (Window(type="tumble", size="100 ms"), Windows("tumble", 100))
HOP = (Window(type="hop", size="200 ms", slide="50 ms"), Windows("hop", 200, 50))
LONG_HOP = (Window(type="hop", size="400 ms", slide="20 ms"), Windows("hop", 400, 20))
CUMULATE = (Window(type="cumulate", size="300 ms", step="100 ms", offset="20 ms"), Windows("cumulate", 300, 100, 20))


def operator(window: Window, order: tuple[SortKey, ...], numbers=(1, 1), *, key=("k",), number=None, latest=False):
    numbering = Numbering(order=order, latest=latest, start=numbers[0], end=numbers[1], number=number, kinds=("+I",))
    attached = WindowColumns(start="ws", end="we")
    return WindowRowsOperator(columns=COLUMNS, key=key, window=window, attached=attached, numbering=numbering)


def by(column: str, direction: str = "asc") -> tuple[SortKey, ...]:
    return (SortKey(column=column, direction=direction, nulls="first" if direction == "asc" else "last"),)


def given(rows: list[Row], windows: Windows) -> list[tuple]:
    return [
        (row.key, row.value, moment(row.time), moment(start), moment(end))
        for row in rows
        for start, end in windows.of(row.time)
    ]


def shown(rows: list[tuple]) -> Counter:
    return Counter((*row[:2], *map(millis, row[2:5]), *row[5:]) for row in rows)


TOPS = {
    "smallest": (by("v"), lambda row: row.value, (1, 1)),
    "two largest": (by("v", "desc"), lambda row: -row.value, (1, 2)),
    "second and third": (by("v"), lambda row: row.value, (2, 3)),
    "first by time": (by("at"), lambda row: row.time, (1, 1)),
}


@pytest.mark.parametrize("top", TOPS)
@pytest.mark.parametrize("windows", [TUMBLE, HOP, LONG_HOP, CUMULATE], ids=["tumble", "hop", "long hop", "cumulate"])
def test_the_first_rows_of_windows_are_those_of_the_model(windows, top) -> None:
    order, model_order, numbers = TOPS[top]
    rng = random.Random(f"{top} {windows}")
    for hasher in (stable_hash, stable_hash, colliding_hash):
        numbered, is_keyed = rng.random() < 0.5, rng.random() < 0.7
        kernel = operator(
            windows[0], order, numbers, key=("k",) if is_keyed else (), number="number" if numbered else None
        )
        model = WindowTop(windows[1], model_order, numbers, is_keyed=is_keyed, is_numbered=numbered)
        check(KernelRun(kernel, rng.choice([1, 2, 5]), tasks=rng.choice([1, 3]), hasher=hasher), model, windows[1], rng)


@pytest.mark.parametrize("windows", [TUMBLE, HOP], ids=["tumble", "hop"])
def test_of_rows_with_one_time_the_last_to_come_is_the_last_of_its_window(windows) -> None:
    rng = random.Random(2)
    for _ in range(6):
        kernel = operator(windows[0], by("at", "desc"), latest=True)
        check(KernelRun(kernel, rng.choice([1, 3])), LastOfWindow(windows[1]), windows[1], rng)


def check(run: KernelRun, model: WindowTop, windows: Windows, rng: random.Random) -> None:
    for rows, after in history(rng, size=rng.choice([2, 15])):
        expected = Counter(row for _, row in model.batch(rows, run.before, max(after, run.before)))
        assert shown(run.batch([given(rows, windows)], after)) == expected
        assert run.late == model.late
        assert run.lateness == in_buckets(model.lateness, 1)
        if rng.random() < 0.3:
            run.rescale(rng.choice([1, 2, 5]))
    assert run.segments == 0


def test_rows_that_come_with_the_end_of_their_window_are_not_stored() -> None:
    run = KernelRun(operator(TUMBLE[0], by("v")), 2)
    rows = [Row(time, "a", time) for time in (10, 20, 130, 140)]
    assert shown(run.batch([given(rows, TUMBLE[1])], 199)) == {("a", 10, 10, 0, 100): 1, ("a", 130, 130, 100, 200): 1}
    assert run.segments == 0
    assert all(result.manifest is None for result in run.results)


def test_state_keeps_only_rows_that_can_be_among_the_first() -> None:
    run = KernelRun(operator(TUMBLE[0], by("v"), (1, 2)))
    for value in (5, 3, 4, 1, 9):
        run.batch([given([Row(10, "a", value)], TUMBLE[1])], 0)
    assert run.state_rows == 2
    assert [row[1] for row in run.batch([[]], 99)] == [1, 3]


def test_a_cut_without_late_rows_does_not_change_the_rows() -> None:
    rng = random.Random(3)
    rows = in_order(rng)
    results = []
    for cut in cuts(rng, rows):
        run = KernelRun(operator(HOP[0], by("v"), (1, 2), number="number"), 2)
        results.append(Counter(row for batch, after in cut for row in run.batch([given(batch, HOP[1])], after)))
    assert all(result == results[0] for result in results)


def test_a_batch_that_runs_again_has_the_same_output_and_manifest() -> None:
    rng = random.Random(4)
    first, second = (KernelRun(operator(CUMULATE[0], by("v")), 2) for _ in range(2))
    for rows, after in history(rng):
        outputs = [run.batch([given(rows, CUMULATE[1])], after) for run in (first, second)]
        assert outputs[0] == outputs[1]
        assert [part.manifest for part in first.parts] == [part.manifest for part in second.parts]
