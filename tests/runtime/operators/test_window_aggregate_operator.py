"""Window aggregates against the models: any history, cut into any batches, in any number of partitions."""

from __future__ import annotations

import copy
import random
from collections import Counter
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest

from hintplan.plans.declarations.computations import AggregateCall
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.windows import closing_time, last_window_ends
from hintplan.runtime.operator import Watermarks
from hintplan.runtime.operators.window_aggregate import WindowAggregateOperator
from hintplan.runtime.state.layout import bucket_end
from hintplan.runtime.state.manifest import read_tables
from tests.runtime.changelog import colliding_hash, delta, stable_hash
from tests.runtime.event_time.histories import cuts, history, in_buckets, in_order, millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import Row, WindowAggregate
from tests.runtime.event_time.times import FOREVER, NEVER
from tests.runtime.event_time.window_aggregates import MANY_SLICES, REPEATED, SUMS, WINDOWS, given, model_of, operator


def shown(rows: list[tuple], keys: int = 1) -> Counter:
    """Rows as the model puts them out: keys, start, end, count, sum."""
    return Counter((*row[:keys], millis(row[-2]), millis(row[-1]), *row[keys : keys + 2]) for row in rows)


def wanted(model: WindowAggregate, rows: list[Row], before: int, after: int) -> Counter:
    return Counter(row for _, row in model.batch(rows, before, after))


def assert_holds_nothing_that_is_passed(run: KernelRun) -> None:
    operator, window = run.operator, run.operator.window
    for part in run.parts:
        for name in read_tables(part.manifest) if part.manifest is not None else ():
            ends = pa.array([bucket_end(name)], pa.int64()).to_numpy()
            last = last_window_ends(window, ends) if operator.kind == "hop" else ends
            assert closing_time(last, window.zone)[0] > run.before, name


@pytest.mark.parametrize(("keys", "hasher"), [(("k",), stable_hash), (("k",), colliding_hash), ((), stable_hash)])
@pytest.mark.parametrize(
    ("window", "calls"),
    [*((window, calls) for window in WINDOWS for calls in (SUMS, REPEATED)), (MANY_SLICES, SUMS)],
    ids=lambda each: each.over("at") if isinstance(each, Window) else "sums" if each is SUMS else "repeated",
)
def test_windows_are_those_of_the_model_for_any_history(window, calls, keys, hasher) -> None:
    rng = random.Random(f"{window} {keys} {len(calls)}")
    for number in range(2):
        made = operator(window, calls, keys=keys, phases=rng.choice(["AUTO", "ONE_PHASE", "TWO_PHASE"]))
        run = KernelRun(made, rng.choice([1, 2, 5]), tasks=rng.choice([1, 3]), hasher=hasher)
        model = model_of(window, keys)
        for rows, after in history(rng, batches=5, size=rng.choice([2, 20])):
            expected = wanted(model, rows, run.before, max(after, run.before))
            assert shown(run.batch([given(rows, made)], after), len(keys)) == expected, number
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 1)
            assert_holds_nothing_that_is_passed(run)
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))
        assert run.segments == 0


@pytest.mark.parametrize(
    ("window", "calls"),
    [*((window, calls) for window in WINDOWS[::2] for calls in (SUMS, REPEATED)), (MANY_SLICES, SUMS)],
    ids=lambda each: each.over("at") if isinstance(each, Window) else "sums" if each is SUMS else "repeated",
)
def test_changes_leave_the_windows_of_the_model(window, calls) -> None:
    rng = random.Random(f"{window} {len(calls)}")
    for _ in range(2):
        made = operator(window, calls, changelog=True)
        run, model, there = KernelRun(made, rng.choice([1, 3])), model_of(window), list[Row]()
        for rows, after in history(rng, batches=5, size=12):
            changes = list(rows)
            there += rows
            for row in rng.sample(there, rng.randint(0, len(there))):
                there.remove(row)
                changes.append(row._replace(sign=-1))
            expected = wanted(model, changes, run.before, max(after, run.before))
            assert shown(run.batch([given(changes, made)], after)) == expected
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 1)
            assert_holds_nothing_that_is_passed(run)
            if rng.random() < 0.3:
                run.rescale(rng.choice([1, 2, 5]))
        assert run.segments == 0


@pytest.mark.parametrize("calls", [SUMS, REPEATED], ids=["sums", "repeated"])
@pytest.mark.parametrize("window", WINDOWS[::2], ids=lambda window: window.over("at"))
def test_all_cuts_put_out_the_same_if_no_row_is_behind_the_watermark(window, calls) -> None:
    rng = random.Random(f"{window}")
    rows, results = in_order(rng, size=20), []
    for cut in cuts(rng, rows):
        run = KernelRun(operator(window, calls), rng.choice([1, 2]))
        results.append(sum((shown(run.batch([given(batch, run.operator)], after)) for batch, after in cut), Counter()))
        assert run.late == 0
    assert all(result == results[0] for result in results)
    assert results[0] == wanted(model_of(window), rows, NEVER, FOREVER)


ZONED = [
    Window(type="tumble", size="1 h", zone="Europe/Berlin"),
    Window(type="tumble", size="1 d", zone="Europe/Berlin"),
    Window(type="hop", size="4 h", slide="2 h", zone="Europe/Berlin"),
    Window(type="cumulate", size="1 d", step="6 h", zone="Asia/Kolkata"),
]


@pytest.mark.parametrize("change", ["2024-03-31", "2024-10-27"])
@pytest.mark.parametrize("window", ZONED, ids=lambda window: window.over("at"))
def test_windows_in_a_zone_are_those_of_the_model_when_clocks_change(window, change) -> None:
    rng = random.Random(f"{window} {change}")
    begin = millis(datetime.fromisoformat(change))
    span = begin - 12 * 3_600_000, begin + 24 * 3_600_000
    for _ in range(2):
        made = operator(window)
        run, model = KernelRun(made, rng.choice([1, 2, 5])), model_of(window)
        for rows, after in history(rng, batches=8, span=span):
            expected = wanted(model, rows, run.before, max(after, run.before))
            assert shown(run.batch([given(rows, made)], after)) == expected
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 1)
        assert run.segments == 0


@pytest.mark.parametrize("calls", [SUMS, REPEATED], ids=["sums", "repeated"])
@pytest.mark.parametrize("window", WINDOWS[::2], ids=lambda window: window.over("at"))
def test_a_batch_that_runs_twice_puts_out_and_stores_the_same(window, calls) -> None:
    rng = random.Random(f"{window}")
    made = operator(window, calls)
    run = KernelRun(made)
    for rows, after in history(rng, batches=4, size=20):
        (part,) = run.parts
        again = copy.deepcopy(part)
        deltas = (delta(made.inputs[0], [("+I", row) for row in given(rows, made)]),)
        marks = Watermarks(run.before, max(run.before, after))
        run.batch([given(rows, made)], after)
        result = made.process(deltas, again.manifest, again.store, 0, marks)
        assert result.output.equals(run.results[0].output)
        assert result.manifest == part.manifest
        assert result == replace(run.results[0], output=result.output)
        assert {name: table.to_pylist() for name, table in again.store.segments.items()} == {
            name: table.to_pylist() for name, table in part.store.segments.items()
        }


def attached(window: Window, keys=("k",), phases="AUTO") -> WindowAggregateOperator:
    """An aggregate of rows that have windows in columns."""
    columns = pa.schema([("k", pa.string()), ("v", pa.int64()), ("s", pa.timestamp("us")), ("e", pa.timestamp("us"))])
    made = replace(operator(window, keys=keys, phases=phases), columns=columns, time=None)
    return replace(made, attached=WindowColumns(start="s", end="e"))


@pytest.mark.parametrize("keys", [("k",), ()])
def test_rows_with_windows_wait_unless_their_window_is_due(keys) -> None:
    rng = random.Random(f"{keys}")
    window = WINDOWS[0]
    for _ in range(4):
        run, model = KernelRun(attached(window, keys), rng.choice([1, 2, 5])), model_of(window, keys)
        for rows, after in history(rng):
            spans = [model.windows.of(row.time)[0] for row in rows]
            with_windows = [(row.key, row.value, *map(moment, span)) for row, span in zip(rows, spans, strict=True)]
            expected = wanted(model, rows, run.before, max(after, run.before))
            assert shown(run.batch([with_windows], after), len(keys)) == expected
            assert run.late == model.late
            assert run.lateness == in_buckets(model.lateness, 1)
            assert_holds_nothing_that_is_passed(run)
        assert run.segments == 0


def test_rows_whose_window_is_due_are_never_stored_and_sessions_of_one_end_are_told_apart() -> None:
    run = KernelRun(attached(Window(type="session", gap="10 ms")))
    rows = [("a", 1, moment(0), moment(50)), ("a", 2, moment(0), moment(50)), ("a", 4, moment(20), moment(50))]
    assert shown(run.batch([rows], 49)) == Counter({("a", 0, 50, 2, 3): 1, ("a", 20, 50, 1, 4): 1})
    assert (run.segments, run.state_rows, run.late) == (0, 0, 0)
    assert run.batch([[("a", 1, moment(0), moment(50))]], 60) == []
    assert run.late == 1


def test_waiting_rows_are_the_groups_of_open_windows() -> None:
    run = KernelRun(operator(WINDOWS[0]))
    rows = [("a", 1, True, moment(10)), ("b", 1, True, moment(20)), ("a", 1, True, moment(210))]
    run.batch([rows], 50)
    assert (run.results[0].waiting_rows, run.results[0].rows_in, run.results[0].late_rows) == (3, 3, 0)
    run.batch([[]], 99)
    assert run.results[0].waiting_rows == 1


def test_late_rows_count_each_also_if_tasks_have_summed_them_up() -> None:
    for phases in ("ONE_PHASE", "TWO_PHASE"):
        run = KernelRun(operator(WINDOWS[0], phases=phases))
        run.batch([[]], 500)
        run.batch([[("a", 1, True, moment(10))] * 8], 500)
        assert (run.late, run.results[0].rows_in, run.segments) == (8, 8, 0)


def test_a_window_of_many_slices_has_few_buckets() -> None:
    hour = 3_600_000
    run = KernelRun(operator(Window(type="hop", size="1 h", slide="1 s")))
    for second in range(0, 3600, 60):  # a row in each second
        run.batch([[("a", 1, True, moment((second + n) * 1000)) for n in range(60)]], -1)
    (part,) = run.parts
    assert part.manifest is not None
    assert len(read_tables(part.manifest)) <= 3600 / 64 + 1
    assert run.batch([[]], 1_999) == [
        ("a", 1, 1, moment(1_000 - hour), moment(1_000)),
        ("a", 2, 2, moment(2_000 - hour), moment(2_000)),
    ]
    # The window of a row before 1970 that ends now has closed, and others have not.
    assert run.batch([[("a", 5, True, moment(-1))]], 3_999) == [
        ("a", 4, 8, moment(3_000 - hour), moment(3_000)),
        ("a", 5, 9, moment(4_000 - hour), moment(4_000)),
    ]


def test_a_null_time_is_refused() -> None:
    with pytest.raises(RunError, match="operator windows: 'at' is the rowtime, and a row has NULL in it"):
        KernelRun(operator(WINDOWS[0])).batch([[("a", 1, True, None)]], 0)


def test_results_come_in_order_of_windows_with_the_time_of_the_window() -> None:
    made = replace(operator(Window(type="tumble", size="1 h", zone="Europe/Berlin")), names=(None, None, "t"))
    begin = millis(datetime(2024, 10, 27))
    run = KernelRun(made)
    rows = [("a", 1, True, moment(begin + hour * 3_600_000, zoned=True)) for hour in (3, 1, 0, 2)]
    output = run.batch([rows], FOREVER)
    # The hour from 02:00 comes twice and is one window, whose time is in the first.
    hours = [(millis(row[3]) + 1 - begin) // 3_600_000 for row in output]
    assert [(row[1], hour) for row, hour in zip(output, hours, strict=True)] == [(2, 1), (1, 3), (1, 4)]


def test_state_of_other_windows_calls_is_refused() -> None:
    run = KernelRun(operator(WINDOWS[0]))
    run.batch([[("a", 1, True, moment(10))]], NEVER)
    run.operator = operator(WINDOWS[0], (*SUMS, AggregateCall(name="m", function="MAX", argument="v", type="BIGINT")))
    with pytest.raises(RunError, match="has another layout than the plan's operator needs"):
        run.batch([[]], NEVER)
