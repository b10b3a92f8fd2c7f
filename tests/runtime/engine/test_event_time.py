"""Watermarks through the engine, without Spark: marks, operators one above the other, cuts, partitions and replays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hintplan.runtime.engine.rows import Report
from hintplan.runtime.engine.watermarks import EventTime, MarkSource
from hintplan.runtime.operator import FOREVER, NEVER, Inheritance, Result, SegmentStore
from hintplan.runtime.storage.files import files_at
from hintplan.runtime.storage.place import Scale
from hintplan.runtime.storage.read import read_manifest_file
from tests.runtime.engine.in_process import Stages
from tests.runtime.engine.tumbling import ROWS, Model, Row, TumblingCount

FIRST, SECOND = TumblingCount(size=2_000), TumblingCount(size=10_000)
DELAY = 3_000
OF_SOURCE = EventTime(number=7, sources=(MarkSource(number=0, delay=DELAY),))
OF_FIRST = EventTime(number=8, sources=(MarkSource(number=7, is_operator=True),))

Batch = list[Row]


def events(rng: random.Random, disorder: int) -> Batch:
    clock, rows = 100_000, []
    for _ in range(60):
        clock += rng.randint(0, 1_400)
        rows.append((rng.randint(1, 5), clock - rng.randint(0, disorder)))
    return rows


def cut(rows: Batch, rng: random.Random) -> list[Batch]:
    found, at = [], 0
    while at < len(rows):
        size = rng.randint(1, max(2, len(rows) // 6))
        found.append(rows[at : at + size])
        at += size
    return found


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table([[k for k, _ in rows], [ts for _, ts in rows]], schema=ROWS)


def two_operators(stages: Stages, number: int, rows: Batch, *, tasks: int = 1, ending: Sequence[int] = ()) -> list:
    """The rows that a batch puts out: counts of 2 s, and above them counts of 10 s."""
    first = stages.operator(
        "first", number, FIRST, OF_SOURCE, [stages.source(table(rows), 0, tasks=tasks)], ending=ending
    )
    return stages.output(stages.operator("second", number, SECOND, OF_FIRST, [first]))


class FirstKey:
    """An operator that keeps the rows of key 1 only, as one does that replaces rows; it does not go by time."""

    inputs = FIRST.inputs
    output = ROWS

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        rows = ROWS.empty_table() if deltas[0] is None else deltas[0].select(ROWS.names)
        rows = rows.filter(pc.equal(rows["k"], 1))
        return Result(output=rows, manifest=None, rows_in=0, state_rows=0, state_bytes=0, oldest_write=None)

    def inherit(self, store: Inheritance) -> bytes | None:
        return None


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_that_an_operator_in_between_replaces_move_the_watermark_of_their_split(
    tmp_path: Path, partitions: int
) -> None:
    stages = Stages(tmp_path, partitions=partitions)

    def batch(number: int, *rows: tuple[int, int, str]) -> list[tuple[int, ...]]:
        given = table([row[:2] for row in rows]).append_column("split", pa.array([row[2] for row in rows]))
        replaced = stages.operator("replaced", number, FirstKey(), None, [stages.source(given, 0, split="split")])
        return stages.output(stages.operator("first", number, FIRST, OF_SOURCE, [replaced]))

    assert batch(0, (1, 1_000, "a"), (2, 9_000, "a")) == [(1, 1_999, 1)]  # the delay is 3 s
    assert batch(1, (1, 7_000, "b"), (1, 7_500, "a")) == []
    assert batch(2, (2, 11_000, "b")) == []  # of split "a", 9 s is the highest
    assert batch(3, (3, 12_000, "a")) == [(1, 7_999, 2)]


@pytest.mark.parametrize("idle_timeout", [0, 10_000])
def test_partitions_without_rows_write_no_manifest_for_a_mark_that_changes_nothing(
    tmp_path: Path, idle_timeout: int
) -> None:
    stages, partitions = Stages(tmp_path, partitions=4), range(4)
    sources = (MarkSource(number=0, delay=DELAY, idle_timeout=idle_timeout),)

    def written(number: int, *rows: Row) -> int:
        """Run a batch, and return the number of manifests that it writes."""
        given = stages.source(table(rows), 0)
        stages.output(
            stages.operator("first", number, FIRST, EventTime(number=7, sources=sources), [given], now=number)
        )
        return len([*(tmp_path / "first").rglob(f"{number}.*.manifest")])

    assert written(0, (1, 9_000)) == len(partitions)
    assert written(1, (1, 8_000)) == (len(partitions) if idle_timeout else 1)  # of the partition with the row
    assert written(2, (1, 9_000)) == (len(partitions) if idle_timeout else 1)
    assert written(3, (1, 10_000)) == len(partitions)
    again = Stages(tmp_path, partitions=4, run=2)  # of the same batch, from manifests alone
    assert again.output(
        again.operator("first", 4, FIRST, EventTime(number=7, sources=sources), [again.source(table([(2, 13_000)]), 0)])
    ) == [(1, 9_999, 3)]


def model_of_two(batches: Sequence[Batch]) -> list[list[tuple[int, int, int]]]:
    """The second operator never has a late row, and closes in the batch whose rows moved the watermark."""
    first = Model(size=2_000, delay=DELAY).counts([{"a": batch} for batch in batches], ["a"])
    windows: dict[tuple[int, int], int] = {}
    output, at = [], NEVER
    for batch, counted in zip(batches, first, strict=True):
        at = max([at, *(ts - DELAY for _, ts in batch)])
        for key, last, _ in counted:
            place = key, last // 10_000 * 10_000 + 9_999
            windows[place] = windows.get(place, 0) + 1
        closed = sorted((key, last, n) for (key, last), n in windows.items() if last <= at)
        for key, last, _ in closed:
            del windows[key, last]
        output.append(closed)
    return output


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("disorder", [DELAY, 3 * DELAY], ids=["no row late", "late rows"])
def test_two_operators_close_in_the_batch_that_moved_the_watermark(
    tmp_path: Path, partitions: int, disorder: int
) -> None:
    rng = random.Random(partitions)
    rows = events(rng, disorder)
    for number, batches in enumerate(([rows], cut(rows, rng), [[row] for row in rows[:8]] + [rows[8:]])):
        stages = Stages(tmp_path / str(number), partitions)
        output = [two_operators(stages, n, batch, tasks=rng.randint(1, 3)) for n, batch in enumerate(batches)]
        assert output == model_of_two(batches)
        assert sum(report.metrics[-2] for report in stages.reports["second"]) == 0, "late rows of the second"


def test_any_cut_ends_with_the_same_rows_if_no_row_is_late(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = events(rng, DELAY)
    endings = []
    for number, batches in enumerate(([rows], cut(rows, rng), [[row] for row in rows])):
        stages = Stages(tmp_path / str(number), 2)
        output = [row for n, batch in enumerate(batches) for row in two_operators(stages, n, batch)]
        output += two_operators(stages, len(batches), [], ending=[0])
        endings.append(sorted(output))
    assert endings[0] == endings[1] == endings[2]
    assert sum(n for _, _, n in endings[0]) == len({(k, ts // 2_000) for k, ts in rows})


def test_after_the_end_of_the_source_nothing_is_open(tmp_path: Path) -> None:
    stages = Stages(tmp_path, 2)
    assert two_operators(stages, 0, [(1, 1_000), (2, 2_500), (1, 3_000)]) == []
    assert two_operators(stages, 1, [], ending=[0]) == [(1, 9_999, 2), (2, 9_999, 1)]
    for name in ("first", "second"):
        watermark, _, _, late, still_open = zip(*(report.metrics[-5:] for report in stages.reports[name]), strict=True)
        assert (set(watermark), sum(late), sum(still_open)) == ({FOREVER}, 0, 0)


def test_of_two_sources_the_lower_counts_and_one_without_rows_holds_all(tmp_path: Path) -> None:
    stages = Stages(tmp_path, 2)
    both = EventTime(number=9, sources=(MarkSource(number=0), MarkSource(number=1)))
    operator = TumblingCount(size=2_000, sides=2)
    batches = [
        {"a": [(1, 1_000)]},
        {"a": [(1, 30_000)]},
        {"a": [(1, 40_000)], "b": [(2, 10_000)]},
        {"b": [(2, 12_345), (1, 11_000)]},
    ]
    output = []
    for number, batch in enumerate(batches):
        inputs = [stages.source(table(batch.get(name, [])), n) for n, name in enumerate("ab")]
        output.append(stages.output(stages.operator("both", number, operator, both, inputs)))
    assert (
        output
        == Model(size=2_000).counts(batches, ["a", "b"])
        == [[], [], [(1, 1_999, 1)], [(1, 11_999, 1), (2, 11_999, 1)]]
    )
    held = {report.metrics[-4] for report in stages.reports["both"]}
    assert held == {1}, "the second source holds the watermark back"


def test_a_split_counts_from_its_first_row_and_then_the_lowest_counts(tmp_path: Path) -> None:
    stages = Stages(tmp_path, 2)
    alone = EventTime(number=7, sources=(MarkSource(number=0),))

    def batch(number: int, splits: dict[str, list[Row]]) -> list:
        rows = [(k, ts, split) for split, split_rows in splits.items() for k, ts in split_rows]
        schema = pa.schema([*ROWS, ("split", pa.string())])
        made = pa.table([[row[place] for row in rows] for place in range(3)], schema=schema)
        return stages.output(stages.operator("first", number, FIRST, alone, [stages.source(made, 0, split="split")]))

    assert batch(0, {"t/0": [(1, 1_000), (1, 9_000)]}) == [(1, 1_999, 1)]
    assert batch(1, {"t/0": [(1, 30_000)], "t/1": [(2, 9_500)]}) == []
    assert batch(2, {"t/1": [(2, 15_000)]}) == [(1, 9_999, 1), (2, 9_999, 1)]


def test_a_batch_that_runs_again_puts_out_and_stores_the_same(tmp_path: Path) -> None:
    rng = random.Random(5)
    batches = cut(events(rng, 2 * DELAY), rng)
    stages = Stages(tmp_path, 2)
    for number, batch in enumerate(batches):
        first = two_operators(stages, number, batch)
        stored = {path: path.read_bytes() for path in tmp_path.rglob(f"{number}.1.manifest")}
        assert len(stored) >= 2, "each partition publishes, for there is a new mark"
        assert two_operators(stages, number, batch) == first
        assert {path: path.read_bytes() for path in stored} == stored


def test_after_a_restart_the_watermark_goes_on_and_a_delay_edited_meanwhile_counts_at_once(tmp_path: Path) -> None:
    stages = Stages(tmp_path, 2)

    def batch(number: int, rows: Batch, delay: int) -> list:
        event_time = replace(OF_SOURCE, sources=(MarkSource(number=0, delay=delay),))
        return stages.output(stages.operator("first", number, FIRST, event_time, [stages.source(table(rows), 0)]))

    assert batch(0, [(1, 1_000), (1, 6_000)], 0) == [(1, 1_999, 1)]
    stages.run = 2
    assert batch(1, [(1, 6_500), (1, 7_500)], 60_000) == [], "the watermark stands, and what is open stays open"
    assert batch(2, [(1, 1_500)], 60_000) == [], "late: what was closed does not open again"
    stages.run = 3
    assert batch(3, [(1, 8_000)], 0) == [(1, 7_999, 3)]


def test_new_partitions_inherit_the_watermark(tmp_path: Path) -> None:
    rng = random.Random(9)
    batches = cut(events(rng, 2 * DELAY), rng)
    stages, scales, output = Stages(tmp_path, 2), [Scale(2)], []
    for number, batch in enumerate(batches):
        if number and number % 2 == 0:
            stages.partitions = rng.choice([1, 2, 3, 5])
            scales.append(Scale(stages.partitions, number))
            stages.scales, stages.run = tuple(scales), number + 1
        output.append(two_operators(stages, number, batch))
    assert output == model_of_two(batches)
    root = tmp_path / "second"
    paths = sorted(root.rglob(f"{len(batches) - 1}.*.manifest"))
    stored = {read_manifest_file(files_at(str(root)), str(path.relative_to(root))).watermark for path in paths}
    assert len(paths) == stages.partitions
    assert len(stored) == 1, "all partitions agree"


def test_a_batch_without_new_marks_writes_nothing(tmp_path: Path) -> None:
    stages = Stages(tmp_path, 1)
    two_operators(stages, 0, [(1, 1_000)])
    assert two_operators(stages, 1, []) == []
    assert [path.name for path in sorted(tmp_path.glob("second/0/0/*.manifest"))] == ["0.1.manifest"]


def test_only_partition_0_reports_the_watermark_to_the_operators_above(tmp_path: Path) -> None:
    stages = Stages(tmp_path, 5)
    tasks = stages.operator("first", 0, FIRST, OF_SOURCE, [stages.source(table([(1, 9_000)]), 0)])
    reports = [Report() for _ in tasks]
    for (batches, read), report in zip(tasks, reports, strict=True):
        list(read(batches, report))
    assert [report.marks for report in reports] == [{(7, ""): 6_000}, {}, {}, {}, {}]
