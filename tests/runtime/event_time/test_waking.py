"""Batches without rows, and processing time: what is due runs by itself, at the times that operators ask for.

Clocks are numbers, and nothing waits. tests/runtime/spark/test_waking.py has the source that starts these batches.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hintplan import read_state
from hintplan.plans.declarations.windows import Window
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from hintplan.runtime.engine.watermarks import EventTime, MarkSource, moved_watermark
from hintplan.runtime.operator import FOREVER, NEVER
from tests.runtime.event_time.compiled import COMPUTED, left_by, plan_of, run, wake
from tests.runtime.event_time.hand_built import plan_of as built_by_hand
from tests.runtime.event_time.hand_built import window_aggregate
from tests.runtime.event_time.histories import millis
from tests.runtime.event_time.models import Model, Row, Sessions, WindowAggregate, Windows
from tests.runtime.event_time.recorded import RECORDED, flink_output
from tests.runtime.event_time.test_programs import netted
from tests.runtime.event_time.times import Zone, milliseconds
from tests.runtime.event_time.verdicts import NETTED, OF_PROCESSING_TIME, OPEN_AT_THE_END
from tests.runtime.event_time.watermarks import Marks, moved
from tests.runtime.partitioned import Partitioned
from tests.runtime.pipeline import Pipeline
from tests.runtime.stored import run_on

SECOND, MINUTE = 1000, 60_000
AUTUMN = milliseconds("2024-10-26T22:00")
"""Three hours before the clocks of Berlin go back."""


@pytest.mark.parametrize("name", OF_PROCESSING_TIME)
def test_a_program_that_runs_only_when_something_is_due_puts_out_what_flink_did(name: str, tmp_path: Path) -> None:
    (query,) = run_on(plan_of(name), tmp_path).values()
    query.computed = COMPUTED
    steps, expected = run(name, query, woken=True), flink_output(name)
    if name in OPEN_AT_THE_END:
        del steps[len(RECORDED[name]["steps"])]
    assert (netted(steps) == netted(expected)) if name in NETTED else (steps == expected)


@pytest.mark.parametrize("name", OPEN_AT_THE_END)
def test_the_end_closes_windows_of_processing_time_and_keeps_nothing(name: str) -> None:
    pipeline = Pipeline(plan_of(name), computed=COMPUTED)
    steps = run(name, pipeline)
    assert set(pipeline.waiting_rows.values()) == {0}
    last = steps[len(RECORDED[name]["steps"])]
    assert left_by({0: last}), "rows of windows that no clock has closed"
    assert sum(pipeline.late_rows.values()) == 0


def by_clock(window: Window) -> Plan:
    """Count and sum by key and window of processing time."""
    above = replace(window_aggregate("scan_s", window), time=None)
    return built_by_hand(above, time="TIMESTAMP_LTZ(3)")


def of_clock(kind: Any, zone: str = "UTC", **durations: str) -> Window:
    return Window(type=kind, zone=zone, processing_time=True, **durations)


BERLIN = "Europe/Berlin"
CASES: dict[str, tuple[Window, Callable[[], Model]]] = {
    "tumble": (
        of_clock("tumble", size="5 s", offset="-2 s"),
        partial(WindowAggregate, Windows("tumble", 5 * SECOND, offset=-2 * SECOND)),
    ),
    "hop": (
        of_clock("hop", size="10 s", slide="2 s"),
        partial(WindowAggregate, Windows("hop", 10 * SECOND, 2 * SECOND)),
    ),
    "hop of many slices": (
        of_clock("hop", size="70 s", slide="1 s"),
        partial(WindowAggregate, Windows("hop", 70 * SECOND, SECOND)),
    ),
    "cumulate": (
        of_clock("cumulate", size="10 s", step="2 s"),
        partial(WindowAggregate, Windows("cumulate", 10 * SECOND, 2 * SECOND)),
    ),
    "session": (of_clock("session", gap="3 s"), partial(Sessions, 3 * SECOND)),
    "hours of Berlin": (
        of_clock("tumble", BERLIN, size="1 h"),
        partial(WindowAggregate, Windows("tumble", 60 * MINUTE), Zone(BERLIN)),
    ),
    "sessions of Berlin": (of_clock("session", BERLIN, gap="20 min"), partial(Sessions, 20 * MINUTE, Zone(BERLIN))),
}


def history(dice: random.Random, window: Window) -> Iterator[tuple[int, list[Row]]]:
    """Batches of rows, with their times; some come in the very millisecond of a bound."""
    now, pace = (0, SECOND) if window.zone == "UTC" else (AUTUMN, 10 * MINUTE)
    for _ in range(25):
        now += dice.choice((1, pace // 3, pace, pace, 4 * pace))
        rows = [Row(now, dice.choice("abcd"), dice.randrange(9)) for _ in range(dice.randrange(5))]
        yield now, rows


def as_model(kind: str, row: tuple) -> tuple:
    key, count, total, start, end = row
    assert kind == "+I"
    return 1, (key, millis(start), millis(end), count, total)


@pytest.mark.parametrize("name", CASES)
def test_windows_of_processing_time_are_windows_of_the_times_of_batches(name: str) -> None:
    window, new_model = CASES[name]
    for seed in range(2):
        dice = random.Random(f"{name} {seed}")
        model, before = new_model(), NEVER
        pipeline = Partitioned(by_clock(window), 2, tasks=seed % 3)
        for now, rows in history(dice, window):
            if dice.random() < 0.3:
                pipeline = pipeline.rescaled(dice.choice((1, 2, 5)))
            pipeline.batch({"s": [(row.key, row.value, None) for row in rows]}, now)
            expected = model.batch(rows, before, now - 1)
            assert Counter(as_model(*event) for event in pipeline.events) == Counter(expected)
            pipeline.events.clear()
            before = now - 1
        assert pipeline.late_rows.total() == 0


@pytest.mark.parametrize("name", CASES)
def test_each_window_closes_in_the_batch_that_is_due_at_its_end(name: str) -> None:
    window, _ = CASES[name]
    zone = Zone(window.zone)
    dice = random.Random(name)
    pipeline = Partitioned(by_clock(window), 3)
    closed = 0
    for now, rows in islice(history(dice, window), 12):
        while dues := [due for each in pipeline.dues.values() for due in each if due < now]:
            pipeline.batch({}, min(dues))
            for _, row in pipeline.events:
                assert zone.closes(millis(row[4])) + 1 == min(dues)
            assert pipeline.events, "a batch without a result"
            closed += len(pipeline.events)
            pipeline.events.clear()
        pipeline.batch({"s": [(row.key, row.value, None) for row in rows]}, now)
        pipeline.events.clear()
    assert closed > 2
    pipeline.events.clear()
    wake(pipeline, now + 24 * 60 * MINUTE)
    assert set(pipeline.waiting_rows.values()) == {0}
    assert not any(pipeline.dues.values()), "an idle job has no batches"


def test_a_clock_that_is_set_back_loses_no_row_and_closes_nothing_twice() -> None:
    pipeline = Partitioned(by_clock(of_clock("tumble", size="5 s")), 2)
    for now in (1_000, 6_000, 2_000, 4_000, 11_000):
        pipeline.batch({"s": [("a", 1, None)]}, now)
    pipeline.drain(11_000)
    counts = [(millis(row[3]), row[1]) for _, row in pipeline.events]
    assert counts == [(0, 1), (5_000, 3), (10_000, 1)]
    assert pipeline.late_rows.total() == 0


def test_a_batch_that_runs_again_at_its_time_has_the_same_output(tmp_path: Path) -> None:
    plan = plan_of("tumble, processing time")
    (query,) = run_on(plan, tmp_path).values()
    query.computed = COMPUTED
    query.batch({"s": [("a", 1)]}, 1_000)
    query.batch({"s": [("b", 2)]}, 3_000, committed=False)
    first = list(query.events)
    query.events.clear()
    query.batch({"s": [("b", 2)]}, 3_000)
    assert query.events == first != []


def test_state_of_processing_time_has_rows_in_windows_and_no_watermark(tmp_path: Path) -> None:
    plan = plan_of("tumble, processing time")
    (query,) = run_on(plan, tmp_path).values()
    query.computed = COMPUTED
    query.batch({"s": [("a", 1), ("b", 2)]}, 1_000)
    (found,) = read_state(plan, str(tmp_path), at=1_000).queries
    (state,) = found.operators
    assert state.watermark is None
    assert [entry.amount.rows for entry in state.entries if entry.amount is not None] == [2]


def idle_source(dice: random.Random, number: int) -> MarkSource:
    return MarkSource(number=number, delay=dice.choice((0, 3)), idle_timeout=dice.choice((0, 5, 20)))


def test_an_idle_timeout_is_due_when_it_moves_the_watermark_and_not_before() -> None:
    """The oracle asks at each millisecond if the watermark has moved."""
    found = 0
    for seed in range(150):
        dice = random.Random(seed)
        sources = [idle_source(dice, number) for number in range(dice.choice((1, 2, 3)))]
        event_time = EventTime(number=9, sources=tuple(sources))
        oracles = [Marks() for _ in sources]
        stored, after, now = None, NEVER, 0
        for _ in range(5):
            now += dice.randrange(1, 15)
            marks = {
                (number, split): dice.randrange(30)
                for number in range(len(sources))
                for split in ("a", "b")
                if dice.random() < 0.4
            }
            for oracle in oracles:
                oracle.begin(now)
            for (number, split), mark in marks.items():
                oracles[number].see(split, max(mark, oracles[number].highest.get(split, NEVER)), now)
            result = moved_watermark(stored, marks, event_time, now)  # type: ignore[arg-type]
            stored = result.stored

            def watermark(at: int, before: int, sources=sources, oracles=oracles) -> int:
                return moved(
                    before,
                    [
                        oracle.watermark(delay=source.delay, idle_timeout=source.idle_timeout, now=at)
                        for source, oracle in zip(sources, oracles, strict=True)
                    ],
                )

            after = watermark(now, after)
            assert result.watermarks.after == after
            moves = next((at for at in range(now + 1, now + 30) if watermark(at, after) > after), None)
            assert stored.due == moves
            found += moves is not None
    assert found > 20


def test_without_idle_timeouts_nothing_is_due() -> None:
    event_time = EventTime(number=9, sources=(MarkSource(number=0), MarkSource(number=1)))
    assert moved_watermark(None, {(0, ""): 7}, event_time, now=1).stored.due is None


def test_the_clock_ends_when_the_run_drains() -> None:
    event_time = EventTime(number=3, by_clock=True)
    first = moved_watermark(None, {}, event_time, now=1_000)
    last = moved_watermark(first.stored, event_time.ends, event_time, now=1_001)
    assert (first.watermarks.after, last.watermarks.before, last.watermarks.after) == (999, 999, FOREVER)


def test_an_edited_timeout_wakes_a_job_whose_source_is_silent(tmp_path: Path) -> None:
    name = "union, one table is idle"
    plan = plan_of(name)
    slow, *_ = set_value(plan, "watermark_a.watermark.idle-timeout", "1 h")
    slow, *_ = set_value(slow, "watermark_b.watermark.idle-timeout", "1 h")
    (query,) = run_on(slow, tmp_path).values()
    rows = {"a": [("x", 1, time("00:00:20"))], "b": [("y", 3, time("00:00:02"))]}
    query.batch(rows, 1_000)
    assert not any(query.dues.values()), "both are idle at the same time, so nothing moves"
    (query,) = run_on(plan, tmp_path).values()
    query.batch({"a": [("x", 1, time("00:00:21"))]}, 1_200)
    assert {due for each in query.dues.values() for due in each} == {1_500}
    query.batch({}, 1_500)
    assert [row[0] for _, row in query.events] == ["y"]


def time(text: str) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(f"2024-01-01T{text}")
