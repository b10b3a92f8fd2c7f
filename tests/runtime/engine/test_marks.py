"""Marks of rows from Spark and in Arrow, and on their way through packed and shared rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.engine.marks import (
    MARK_COLUMNS,
    Marking,
    Marks,
    decode_marks,
    encode_marks,
    give_marks,
    mark_rows,
    take_marks,
)
from hintplan.runtime.engine.pack import MARK, TICK, Packing
from hintplan.runtime.engine.rows import Report
from hintplan.runtime.engine.shared import _Packing, unpacked, unpacked_input
from hintplan.runtime.operator import DELETE, INSERT, KIND, NEVER, UPDATE_AFTER

DATA = pa.schema([("k", pa.int64())])
TIMES = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us")), ("split", pa.string())])


def marked(*rows: tuple[int, int | None, str | None, int | None, bool]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([list(column) for column in columns], schema=pa.schema([*DATA, *MARK_COLUMNS]))


def test_rows_from_spark_that_do_not_count_leave_their_mark() -> None:
    marks: Marks = {}
    rows = marked((1, 7, "a", 10, True), (2, 7, "a", 30, False), (3, 7, "b", None, True), (4, None, None, None, True))
    assert take_marks(rows, marks).to_pylist() == [{"k": 1}, {"k": 3}, {"k": 4}]
    assert marks == {(7, "a"): 30, (7, "b"): NEVER}


def test_marks_cross_spark_between_two_operators() -> None:
    marks: Marks = {(7, "a"): 30, (8, ""): NEVER, (9, ""): None}
    empty = pa.concat_tables([give_marks(DATA.empty_table()), mark_rows({}, DATA)])
    rows = pa.concat_tables([empty, give_marks(pa.table({"k": [1, 2]}, schema=DATA)), mark_rows(marks, DATA)])
    found: Marks = {}
    assert take_marks(rows, found).to_pylist() == [{"k": 1}, {"k": 2}]
    assert found == marks


def test_marks_are_decoded_as_they_were_encoded() -> None:
    marks: Marks = {(7, "a"): 30, (8, ""): NEVER, (9, ""): None, (9, None): (1 << 63) - 1}
    found: Marks = {(7, "a"): 40}
    decode_marks(encode_marks(marks), found)
    assert found == {**marks, (7, "a"): 40}


def times(*rows: tuple[int, int | None, str]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([list(column) for column in columns], schema=TIMES)


def base(rows: pa.Table) -> pa.ChunkedArray:
    return rows["ts"]


def test_marks_are_whole_milliseconds_also_before_1970() -> None:
    marks: Marks = {}
    marking = Marking(operator="w", column="ts", base=base, source=7)
    assert marking(times((1, -1_001, "a"), (2, -2_999, "a")), marks).num_rows == 2
    assert marks == {(7, ""): -2}


def test_each_split_has_its_mark_and_readers_do_not_see_it() -> None:
    marks: Marks = {}
    marking = Marking(operator="w", column="ts", base=base, source=7, split="split")
    rows = marking(times((1, 5_000, "t/0"), (2, 9_000, "t/1"), (3, 8_000, "t/0")), marks)
    assert rows.column_names == ["k", "ts"]
    assert marks == {(7, "t/0"): 8, (7, "t/1"): 9}
    assert marking(times((1, 0, "a")).slice(0, 0), marks).column_names == ["k", "ts"]


def test_a_null_in_the_rowtime_fails_with_the_operator_the_column_and_what_to_do() -> None:
    marking = Marking(operator="watermark_bid", column="ts", base=base, source=7)
    with pytest.raises(
        RunError, match="operator watermark_bid: 'ts' is the rowtime, and a row has NULL in it"
    ) as caught:
        marking(times((1, 5_000, "a"), (2, None, "a")), {})
    assert "COALESCE(ts," in (caught.value.diagnostics[0].hint or "")


def test_a_deletion_may_have_no_rowtime() -> None:
    marks: Marks = {}
    marking = Marking(operator="w", column="ts", base=base, source=7)
    rows = times((1, 5_000, "a"), (2, None, "a"))
    assert marking(rows.append_column(KIND, pa.array([INSERT, DELETE], pa.int8())), marks).num_rows == 2
    assert marks == {(7, ""): 5}
    with pytest.raises(RunError, match="a row has NULL in it"):
        marking(rows.append_column(KIND, pa.array([DELETE, UPDATE_AFTER], pa.int8())), {})


def reading(batches: object, report: Report) -> Iterator[pa.Table]:
    report.marks[7, ""] = 30
    yield pa.table({"k": [1, 2, 3]}, schema=DATA)


@pytest.mark.parametrize("marks", [True, False])
def test_a_task_sends_its_marks_to_every_partition_only_if_the_receiver_goes_by_time(marks: bool) -> None:
    packing = Packing(side=0, schema=DATA, route=("k",), buckets=(2, 0, 9), tables=reading, marks=marks)
    packed = pa.Table.from_batches(packing([])).to_pylist()
    found = [(row["bucket"], row["blob"]) for row in packed if row["side"] == MARK]
    assert found == ([(bucket, b'[[7,"",30]]') for bucket in (2, 0, 9)] if marks else [])
    assert sorted(row["bucket"] for row in packed if row["side"] == TICK) == [0, 2, 9]


@pytest.mark.parametrize("marks", [True, False])
def test_shared_rows_pass_marks_on(marks: bool) -> None:
    packing = _Packing(tables=reading, schema=DATA, buckets=(0,), kept=True, counted={}, marks=marks)
    report = Report()
    rows = pa.concat_tables(unpacked(packing([]), report))
    assert rows["k"].to_pylist() == [1, 2, 3]
    assert report.marks == ({(7, ""): 30} if marks else {})


@pytest.mark.parametrize("marks", [True, False])
def test_rows_packed_for_a_join_are_rows_for_other_readers(marks: bool) -> None:
    packing = Packing(side=1, schema=DATA, route=("k",), buckets=(2, 0), tables=reading, as_they_are=True, marks=marks)
    rows, reports = [], []
    for bucket in (2, 0):
        report = Report()
        packed = (batch.filter(pa.compute.equal(batch["bucket"], bucket)) for batch in packing([]))
        rows += [row for table in unpacked_input(packed, report) for row in table.to_pylist()]
        reports.append(report.marks)
    assert sorted(row["k"] for row in rows) == [1, 2, 3]
    assert [set(row) for row in rows] == [{"k"}] * 3
    assert reports == [{(7, ""): 30} if marks else {}] * 2
