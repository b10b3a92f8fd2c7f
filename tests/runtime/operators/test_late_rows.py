"""Operators that also emit the rows which they drop: for each kernel, rows with known times against a known watermark.

Batch 1 moves the watermark to 0.2 s. In batch 2 some rows are behind it. A source row is in the column of its scan, and
must come out as it went in, once for each row that was dropped.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hintplan.plans.declarations.windows import Window
from hintplan.runtime.operator import TimeOperator
from hintplan.runtime.operators.late_rows import LATE_BY, EmitsLateRows, Late, OnTime, WithSourceRows, late_column
from tests.runtime.event_time.histories import moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.window_aggregates import REPEATED, SUMS
from tests.runtime.event_time.window_aggregates import operator as window_aggregate
from tests.runtime.operators import (
    test_session_operator,
    test_session_rows_operator,
    test_temporal_join_operator,
    test_window_join_operator,
    test_window_rows_operator,
)

ROW = pa.struct([("id", pa.int64()), ("note", pa.string())])
CARRIED = pa.schema([(late_column("scan_t"), ROW)])
TUMBLE, HOP = Window(type="tumble", size="100 ms"), Window(type="hop", size="200 ms", slide="100 ms")
CUMULATE = Window(type="cumulate", size="200 ms", step="100 ms")


def source(number: int) -> dict[str, object]:
    return {"id": number, "note": f"row {number}"}


def with_windows(row: tuple, time: int, size: int = 100) -> tuple:
    start = time // size * size
    return (*row, moment(start), moment(start + size))


def aggregated(operator: TimeOperator, time: int) -> tuple:
    """A row of an aggregate: key, value, something, time."""
    values = {"k": "a", "v": 1, "at": moment(time)}
    return tuple(values.get(name) for name in operator.inputs[0].columns.names)


KERNELS = {
    "tumble": (window_aggregate(TUMBLE, SUMS), aggregated),
    "tumble, distinct": (window_aggregate(TUMBLE, REPEATED), aggregated),
    "hop": (window_aggregate(HOP, SUMS), aggregated),
    "cumulate": (window_aggregate(CUMULATE, SUMS), aggregated),
    "session": (test_session_operator.operator(), aggregated),
    "session, rows": (test_session_rows_operator.operator(), aggregated),
    "first rows": (
        test_window_rows_operator.operator(TUMBLE, test_window_rows_operator.by("v")),
        lambda _, time: with_windows(("a", 1, moment(time)), time),
    ),
}
DROPPED = {"hop": [0], "cumulate": [0, 1]}
"""The numbers of the times below that are late: of 90, 110 and 210 ms, unless another list is here."""


def emitting(kernel: TimeOperator, *scans: str | None) -> EmitsLateRows:
    """``kernel`` whose inputs carry rows of ``scans``, or none."""
    carried = tuple(pa.schema([] if scan is None else [(late_column(scan), ROW)]) for scan in scans or ("scan_t",))
    return EmitsLateRows(operator=kernel, carried=carried)


def late_of(run: KernelRun) -> list[tuple]:
    """The late rows of the last batch: the watermark, and the source rows."""
    tables = [result.late for result in run.results if result.late is not None]
    columns = [name for name in run.operator.output.names if name.startswith("__late_")]
    rows = [row for table in tables for row in table.select(columns).to_pylist()]
    for table in tables:
        assert table.schema.equals(run.operator.output)
        assert all(table[name].null_count == table.num_rows for name in table.column_names if name not in columns)
    return [(row.pop(LATE_BY), *row.values()) for row in rows]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_a_row_behind_the_watermark_comes_out_as_its_source_had_it(name, partitions) -> None:
    kernel, row = KERNELS[name]
    run = KernelRun(emitting(kernel), partitions, tasks=2)
    run.batch([[(*row(kernel, 50), source(1))]], 200)
    assert late_of(run) == []
    times = (90, 110, 210)
    run.batch([[(*row(kernel, time), source(10 + place)) for place, time in enumerate(times)]], 200)
    dropped = DROPPED.get(name, [0, 1])
    assert sorted(late_of(run), key=lambda each: each[1]["id"]) == [(200, source(10 + place)) for place in dropped]
    assert run.late == len(dropped)


def test_both_sides_of_a_join_have_late_rows_of_their_own_sources() -> None:
    kernel = test_window_join_operator.operator("inner")
    run = KernelRun(emitting(kernel, "scan_l", "scan_r"), 2)
    run.batch([[(*with_windows(("a", 1), 50), source(1))], [(*with_windows(("a", 1), 50), source(2))]], 200)
    assert late_of(run) == []
    run.batch(
        [
            [(*with_windows(("a", 1), time), source(time)) for time in (20, 230)],
            [(*with_windows((None, 1), time), source(time)) for time in (40, 240)],
        ],
        200,
    )
    assert sorted(late_of(run), key=str) == [(200, None, source(40)), (200, source(20), None)]


def test_a_side_whose_late_rows_go_to_no_table_only_counts_them() -> None:
    run = KernelRun(emitting(test_window_join_operator.operator("inner"), "scan_l", None), 2)
    run.batch([[], []], 200)
    run.batch([[(*with_windows(("a", 1), 20), source(20))], [with_windows(("b", 1), 40)]], 200)
    assert late_of(run) == [(200, source(20))]
    assert run.late == 2


def test_a_temporal_join_drops_no_row_so_none_comes_out_as_late() -> None:
    run = KernelRun(emitting(test_temporal_join_operator.operator(), "scan_l", "scan_r"), 2)
    run.batch([[], [("a", 7, moment(10), source(1))]], 200)
    rows = run.batch([[(1, "a", moment(20), source(2)), (2, "b", moment(30), source(3))], []], 300)
    assert sorted((row[0], row[3]) for row in rows) == [(1, 7), (2, None)]
    assert late_of(run) == []
    assert run.late == 0


@pytest.mark.parametrize("name", KERNELS)
def test_each_late_row_comes_out_once_and_the_results_stay_the_same(name) -> None:
    kernel, row = KERNELS[name]
    rng = random.Random(name)
    plain, run = KernelRun(kernel, 2), KernelRun(emitting(kernel), 2, tasks=3)
    number, late = 0, []
    for batch in range(20):
        times = [max(0, batch * 80 + rng.randrange(-500, 80)) for _ in range(4)]
        rows = [row(kernel, time) for time in times]
        expected = plain.batch([rows], batch * 80)
        carried = [(*each, source(number + place)) for place, each in enumerate(rows)]
        shown = run.batch([carried], batch * 80)
        assert sorted(each[: len(kernel.output)] for each in shown) == sorted(expected)
        assert all(value is None for each in shown for value in each[len(kernel.output) :])
        assert [result.manifest for result in run.results] == [result.manifest for result in plain.results]
        late += [each for _, each in late_of(run)]
        number += len(rows)
    assert len(late) == run.late == plain.late > 0
    assert len({each["id"] for each in late}) == len(late)


def test_rows_part_into_results_and_late_rows_of_each_table() -> None:
    output = pa.schema([("n", pa.int64())])
    rows = pa.table(
        {
            "n": pa.array([1, None, None], pa.int64()),
            "__late_scan_a": pa.array([None, source(1), None], ROW),
            "__late_scan_b": pa.array([None, None, source(2)], ROW),
            LATE_BY: pa.array([None, 1500, 1500], pa.int64()),
        }
    )
    assert OnTime(output)(rows).to_pylist() == [{"n": 1}]
    target = pa.schema([("watermark", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("operator", pa.string())])
    late = Late(operator="window_a", scans=("scan_b",), names=("operator", "watermark"), schema=target)
    moved = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert late(rows).to_pylist() == [{"watermark": moved, "id": 2, "operator": "window_a"}]
    both = Late(operator="window_a", scans=("scan_a", "scan_b"), names=("operator", "watermark"), schema=target)
    assert both(rows)["id"].to_pylist() == [1, 2]


def test_a_scan_adds_its_rows_and_keeps_the_columns_of_the_query() -> None:
    rows = pa.table({"k": ["x"], "id": pa.array([7], pa.int32()), "note": ["late"]})
    wanted = pa.schema([("k", pa.string()), *CARRIED])
    assert WithSourceRows(late_column("scan_t"), ROW, wanted)(rows).to_pylist() == [
        {"k": "x", "__late_scan_t": {"id": 7, "note": "late"}}
    ]
