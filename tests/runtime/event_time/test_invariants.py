"""Laws of every operator that goes by windows, over random rows: a test for each law, over one list of operators.

- (a) Each row has Flink's output: test_programs.py.
- (b) Without rows behind the watermark, all cuts into batches leave the same rows.
- (c) A coarser cut has no more late rows.
- (d) Partitions, and a change of their number, change nothing, also if the clock is set back.
- (e) A batch that runs again has the same output and state.
- (f) After the end, no state is left.
- (g) What the watermark has let go never comes back.
- (h) State holds nothing that the watermark has passed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.windows import Window
from hintplan.plans.operators import KINDS, OverAggregate, TemporalJoin, WatermarkAssigner, WindowAggregate
from hintplan.plans.operators.contract.output import JoinColumn
from hintplan.plans.settings.watermark import DELAY, WATERMARK
from hintplan.runtime.operator import StatefulOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.event_time.hand_built import (
    interval_join,
    plan_of,
    table_function,
    window_aggregate,
    window_join,
    window_rank,
)
from tests.runtime.event_time.models import Row, Windows
from tests.runtime.event_time.recorded import SIGNS
from tests.runtime.event_time.test_histories import CASES, HOP, TUMBLE, Case, batches_of, given, history
from tests.runtime.event_time.times import NEVER, Zone
from tests.runtime.partitioned import Partitioned

pytestmark = pytest.mark.part(of=10)

SESSION = Window(type="session", gap="2 s")


def _without_model(*operators: Any, tables: tuple[str, ...] = ("s",)) -> Case:
    return Case(plan_of(*operators, tables=tables, delay="3 s"), list, ())  # type: ignore[arg-type]


def _of_windows() -> dict[str, Case]:
    """Operators above the windows of other operators."""
    counts = window_aggregate("watermark_s", TUMBLE)
    near = interval_join("watermark_a", "watermark_b", "left", "-3 s", "2 s")
    time = JoinColumn(name="time", type="TIMESTAMP(3)", side="left", column="ts")
    near = replace(near, output=(*near.output, time))
    above_near = window_aggregate("join", TUMBLE, keys=("left_k",), time="time", value="left_v")
    again = window_aggregate("windows", Window(type="tumble", size="10 s"), name="again", time="window_end", value="s")
    return {
        "aggregate of an aggregate": _without_model(counts, again),
        "aggregate of a join by time": _without_model(near, above_near, tables=("a", "b")),
        "session without an aggregate": _without_model(table_function("watermark_s", SESSION)),
        "first rows of sessions": _without_model(
            table_function("watermark_s", SESSION),
            window_rank("function", SESSION, keys=("k",), numbers=(1, 2), descending=True),
        ),
        "join of hops": _without_model(
            table_function("watermark_a", HOP, "function_a"),
            table_function("watermark_b", HOP, "function_b"),
            window_join("function_a", "function_b", HOP, "full"),
            tables=("a", "b"),
        ),
    }


KERNELS: dict[str, Case] = {**CASES, **_of_windows()}
del KERNELS["impossible interval join"]  # it keeps no rows, so none is late
PADDING = [name for name in KERNELS if "interval join" in name and "inner" not in name]
"""Joins that put out a late row without a match at once."""
PARTITIONS = (1, 2, 5)


def delay_of(case: Case) -> int:
    (delay, *_) = (
        parse_duration(str(each.settings[WATERMARK.name].values[DELAY]))
        for each in case.plan.operators
        if isinstance(each, WatermarkAssigner)
    )
    return delay


def in_order(dice: random.Random, case: Case) -> list[Row]:
    """Rows of which none is behind the watermark, if each is a batch."""
    delay, tables = delay_of(case), len(case.plan.scans)
    rows: list[Row] = []
    at = case.begin
    for _ in range(45):
        at += dice.choice((0, 1, case.pace // 2, case.pace, 3 * case.pace))
        time = at - dice.randrange(delay)
        watermark = max((row.time for row in rows), default=NEVER) - delay
        deleted = [row for row in rows if row.sign > 0 and row._replace(sign=-1) not in rows and row.time > watermark]
        if case.changes and deleted and dice.random() < 0.3:
            rows.append(dice.choice(deleted)._replace(sign=-1))
        else:
            rows.append(Row(time, dice.choice("abcde"), len(rows), 1, dice.randrange(tables)))
    return rows


class Run:
    """A case, batch by batch; ``outputs`` has what each batch put out, and then what the end did.

    Batches have the times of ``clock`` in turn.
    """

    def __init__(
        self,
        case: Case,
        partitions: Sequence[int] = (1,),
        kind: type[Partitioned] = Partitioned,
        clock: Sequence[int] = (0,),
    ) -> None:
        self.case, self.partitions, self.clock, self.number = case, partitions, clock, 0
        self.pipeline = kind(case.plan, partitions[0])
        self.outputs: list[Counter] = []

    def batch(self, rows: Sequence[Row]) -> None:
        partitions = self.partitions[self.number % len(self.partitions)]
        if partitions != self.pipeline.partitions:
            self.pipeline = self.pipeline.rescaled(partitions)
        now = self.clock[self.number % len(self.clock)]
        self.number += 1
        self.pipeline.batch(given(self.case, list(rows)), now)
        self._take()

    def end(self) -> Run:
        self.pipeline.drain()
        self._take()
        return self

    def _take(self) -> None:
        self.outputs.append(Counter(self.pipeline.events))
        self.pipeline.events.clear()

    @property
    def rows(self) -> Counter:
        """All rows that were put out."""
        return sum(self.outputs, Counter())

    @property
    def left(self) -> Counter:
        """The rows that were put out and not taken back."""
        left: Counter = Counter()
        for (kind, row), count in self.rows.items():
            left[row] += SIGNS[kind] * count
        return +left

    @property
    def late(self) -> int:
        return sum(self.pipeline.late_rows.values())

    @property
    def state_rows(self) -> int:
        return sum(part.state_rows for parts in self.pipeline.parts.values() for part in parts)


def run(case: Case, batches: Sequence[Sequence[Row]], *more: Any) -> Run:
    running = Run(case, *more)
    for rows in batches:
        running.batch(rows)
    return running


def test_every_operator_that_goes_by_time_is_in_the_list() -> None:
    tested = {type(operator) for case in KERNELS.values() for operator in case.plan.operators if operator.goes_by_time}
    by_time = {kind for kind in KINDS if kind.goes_by_time}
    assert tested == by_time - {OverAggregate, TemporalJoin}  # which have histories of their own


@pytest.mark.parametrize("name", KERNELS)
def test_without_rows_behind_the_watermark_all_cuts_leave_the_same_rows(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"cuts {name}")
    rows = in_order(dice, case)
    finest = run(case, [[row] for row in rows]).end()
    assert finest.late == 0
    assert finest.rows
    for partitions in PARTITIONS:
        coarser = run(case, batches_of(dice, rows), (partitions,)).end()
        assert coarser.left == finest.left
        assert coarser.late == 0


@pytest.mark.parametrize("name", KERNELS)
def test_a_coarser_cut_has_no_more_late_rows(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"late {name}")
    rows = history(dice, case)[:50]
    finest = run(case, [[row] for row in rows]).end()
    cuts = [run(case, batches_of(dice, rows)).end().late for _ in range(3)]
    assert max(cuts) <= finest.late
    assert finest.late > 0


@pytest.mark.parametrize("name", KERNELS)
def test_partitions_and_a_change_of_their_number_change_nothing(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"partitions {name}")
    batches = batches_of(dice, history(dice, case)[:80])
    clock = [dice.choice((0, 1_000, 5_000, 60_000)) for _ in batches]
    one = run(case, batches, (1,), Partitioned, clock).end()
    for partitions in ((2,), (5,), (1, 5, 2, 3)):
        several = run(case, batches, partitions, Partitioned, clock).end()
        assert several.outputs == one.outputs
        assert several.late == one.late


class Twice(Partitioned):
    """Each operator runs each batch twice, as after a crash, and the second run starts with the state of before."""

    def _process(self, name: str, operator: StatefulOperator, deltas: Sequence[pa.Table | None], now: int) -> pa.Table:
        before = [(_copy(part.store), part.manifest) for part in self.parts.get(name, ())]
        late, opened = getattr(operator, "late_rows", 0), getattr(operator, "waiting_rows", 0)
        output = super()._process(name, operator, deltas, now)
        first = [(part.store.segments, part.manifest, part.state_rows) for part in self.parts[name]]
        if before:
            for part, (store, manifest) in zip(self.parts[name], before, strict=True):
                part.store, part.manifest = store, manifest
            if hasattr(operator, "late_rows"):
                operator.late_rows, operator.waiting_rows = late, opened  # type: ignore[attr-defined]
            again = super()._process(name, operator, deltas, now)
            assert again.equals(output)
            assert [(part.store.segments, part.manifest, part.state_rows) for part in self.parts[name]] == first
        return output


def _copy(store: MemoryStore) -> MemoryStore:
    copied = MemoryStore()
    copied.segments = dict(store.segments)
    return copied


@pytest.mark.parametrize("name", KERNELS)
def test_a_batch_that_runs_again_has_the_same_output_and_state(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"twice {name}")
    batches = batches_of(dice, history(dice, case)[:80])
    assert run(case, batches, (2,), Twice).end().outputs == run(case, batches, (2,)).end().outputs


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in PADDING])
def test_after_the_end_no_state_is_left_and_nothing_comes_back(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"end {name}")
    rows = history(dice, case)
    ended = run(case, batches_of(dice, rows), (2,)).end()
    assert ended.rows
    late = ended.late
    for batch in (rows, []):
        ended.batch(batch)
        assert ended.outputs[-1] == Counter()
        assert set(ended.pipeline.waiting_rows.values()) == {0}
        if not case.keeps_keys:
            assert {part.manifest for parts in ended.pipeline.parts.values() for part in parts} == {None}
    assert ended.late >= late + len(rows)


@pytest.mark.parametrize("name", PADDING)
def test_after_the_end_a_row_without_a_match_comes_back_at_once_and_no_state_is_left(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"end {name}")
    rows = history(dice, case)
    ended = run(case, batches_of(dice, rows), (2,)).end()
    ended.batch(rows)
    assert all(None in (row[1], row[3]) for _, row in ended.outputs[-1])
    assert sum(ended.outputs[-1].values()) > 0
    assert ended.state_rows == 0


def windows_of(case: Case) -> Callable[[Row], list[int]]:
    """The lowest watermarks that close the windows of a row, or pass the row, by its own time.

    Of late fire, they end the lateness of the windows.
    """
    window = next((operator.windowing[1] for operator in case.plan.operators if operator.windowing is not None), None)
    if window is None:
        return lambda row: [row.time]
    lateness = sum(o.lateness_ms for o in case.plan.operators if isinstance(o, WindowAggregate))
    zone = Zone(window.zone)
    assert window.type != "session"
    windows = Windows(window.type, window.size_ms, window.step_ms, window.offset_ms)
    return lambda row: [zone.closes(end) + lateness for _, end in windows.of(zone.wall(row.time))]


OF_ROWS = [
    name
    for name, case in KERNELS.items()
    if name not in ("aggregate of an aggregate", "aggregate of a join by time")
    if any(operator.windowing for operator in case.plan.operators)
    if not any(operator.windowing and operator.windowing[1].type == "session" for operator in case.plan.operators)
]
"""The operators of which the windows of a row do not depend on other rows, nor on other operators."""


@pytest.mark.parametrize("name", [name for name in OF_ROWS if not KERNELS[name].keeps_keys])
def test_state_has_what_open_windows_need_and_nothing_that_the_watermark_has_passed(name: str) -> None:
    """A second run, which gets only the rows of open windows, and all of them at once, has as many rows in state."""
    case, dice = KERNELS[name], random.Random(f"state {name}")
    closes = windows_of(case)
    rows = [row for row in history(dice, case) if not case.changes or row.sign > 0]
    long, count = Run(case), 0
    seen: list[Row] = []
    before = NEVER
    for batch in batches_of(dice, rows):
        long.batch(batch)
        after = min(long.pipeline.watermarks.values())
        seen = [
            row for row in [*seen, *(row for row in batch if max(closes(row)) > before)] if max(closes(row)) > after
        ]
        before = after
        short = Run(case)
        short.pipeline.marks = long.pipeline.marks
        short.batch(seen)
        assert long.state_rows == short.state_rows
        assert long.pipeline.waiting_rows == short.pipeline.waiting_rows
        count += long.state_rows
    assert count


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_of_closed_windows_change_nothing(name: str) -> None:
    case, dice = KERNELS[name], random.Random(f"closed {name}")
    closes = windows_of(case)
    rows = history(dice, case)
    undisturbed, disturbed = Run(case, (2,)), Run(case, (2,))
    gone: list[Row] = []
    for batch in (rows[start : start + 10] for start in range(0, len(rows), 10)):
        before = min(disturbed.pipeline.watermarks.values(), default=NEVER)
        passed = [row for row in gone if max(closes(row)) <= before]
        undisturbed.batch(batch)
        disturbed.batch([*passed, *batch])
        assert disturbed.outputs[-1] == undisturbed.outputs[-1]
        assert disturbed.state_rows == undisturbed.state_rows
        gone += batch
    assert undisturbed.end().rows == disturbed.end().rows
    assert disturbed.late > undisturbed.late
