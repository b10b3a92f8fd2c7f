"""Interval joins by processing time: the time of a row is the time of its batch, and the clock pads and removes rows.

Clocks are numbers, and nothing waits. The reference compares all rows with each other.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hintplan import compile_sql, read_state
from hintplan.plans.declarations.windows import signed_duration
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators.interval_join import IntervalJoinType
from hintplan.plans.settings.state import StateEntry
from tests.runtime.event_time.hand_built import interval_join, plan_of
from tests.runtime.partitioned import Partitioned
from tests.runtime.stored import run_on

KINDS: tuple[IntervalJoinType, ...] = ("inner", "left", "right", "full")
BOUNDS = (("-3 s", "2 s"), ("0 ms", "0 ms"), ("-5 s", "0 ms"), ("1 s", "4 s"), ("-900 ms", "-1 ms"), ("2 s", "1 s"))
Output = tuple[str | None, int | None, str | None, int | None]


def by_clock(kind: IntervalJoinType, lower: str, upper: str, *, is_keyed: bool = True) -> Plan:
    join = interval_join("scan_a", "scan_b", kind, lower, upper, is_keyed=is_keyed)
    states = tuple(StateEntry(index=index, name=name, input="ab"[index]) for index, name in enumerate(join.state_names))
    join = replace(join, left_time=None, right_time=None, processing_time=True, state=states)
    return plan_of(join, tables=("a", "b"), time="TIMESTAMP_LTZ(3)")


@dataclass
class Came:
    """A row with the time of its batch."""

    side: int
    time: int
    key: str | None
    value: int
    is_open: bool = True


@dataclass
class Reference:
    """All rows that ever came, each compared with each other."""

    kind: IntervalJoinType
    lower: int
    upper: int
    rows: list[Came] = field(default_factory=list)
    now: int = 0

    def batch(self, now: int, sides: tuple[list[tuple[str | None, int]], list[tuple[str | None, int]]]) -> list[Output]:
        """The rows that come out of a batch; a clock that goes back stands still."""
        self.now = max(self.now, now)
        new = [Came(side, self.now, *row) for side, rows in enumerate(sides) for row in rows]
        known = len(self.rows)
        self.rows += new
        found: list[Output] = []
        for i, left in enumerate(self.rows):
            for j, right in enumerate(self.rows):
                is_new = i >= known or j >= known
                is_near = self.lower <= left.time - right.time <= self.upper
                if (left.side, right.side) == (0, 1) and is_new and is_near and left.key == right.key is not None:
                    left.is_open = right.is_open = False
                    found.append((left.key, left.value, right.key, right.value))
        return found + self.passed(self.now)

    def last(self, row: Came) -> int:
        """The last time at which another row can meet ``row``."""
        return row.time + (-self.lower, self.upper)[row.side] if self.lower <= self.upper else row.time - 1

    def padded(self) -> list[Came]:
        """The rows that will be padded unless they meet another."""
        sides = {"inner": (), "left": (0,), "right": (1,), "full": (0, 1)}[self.kind]
        return [row for row in self.rows if row.is_open and row.side in sides]

    def passed(self, now: float) -> list[Output]:
        ended = [row for row in self.padded() if self.last(row) < now]
        for row in ended:
            row.is_open = False
        return [(None, None, r.key, r.value) if r.side else (r.key, r.value, None, None) for r in ended]


def history(dice: random.Random) -> Iterator[tuple[int, tuple[list, list]]]:
    """Batches of rows of both sides; some at the time of the batch before, some after the clock was set back."""
    now = 100_000
    for number in range(30):
        now += dice.choice((0, 1, 300, 1000, 1000, 2000, 9000))
        rows = [
            [(dice.choice(("a", "b", "c", None)), number) for _ in range(dice.choice((0, 0, 1, 3)))] for _ in range(2)
        ]
        yield now - dice.choice((0, 0, 0, 1500)), (rows[0], rows[1])


def came_out(pipeline: Partitioned) -> Counter:
    assert {kind for kind, _ in pipeline.events} <= {"+I"}
    found = Counter(row for _, row in pipeline.events)
    pipeline.events.clear()
    return found


def given(sides: tuple[list, list]) -> dict[str, list[tuple]]:
    return {table: [(*row, None) for row in rows] for table, rows in zip("ab", sides, strict=True)}


def dues(pipeline: Partitioned) -> list[int]:
    return [due for each in pipeline.dues.values() for due in each]


@pytest.mark.sampled
@pytest.mark.parametrize("bounds", BOUNDS, ids=" to ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_batches_are_joined_by_the_times_of_the_batches(
    kind: IntervalJoinType, bounds: tuple[str, str]
) -> None:
    for seed in range(4):
        dice = random.Random(f"{kind} {bounds} {seed}")
        pipeline = Partitioned(by_clock(kind, *bounds), 2, tasks=seed % 3)
        reference = Reference(kind, *map(signed_duration, bounds))
        for now, sides in history(dice):
            if dice.random() < 0.3:
                pipeline = pipeline.rescaled(dice.choice((1, 2, 5)))
            pipeline.batch(given(sides), now)
            assert came_out(pipeline) == Counter(reference.batch(now, sides))
        pipeline.drain(now)
        assert came_out(pipeline) == Counter(reference.passed(float("inf")))
        assert set(pipeline.waiting_rows.values()) == {0}
        assert pipeline.late_rows.total() == 0


@pytest.mark.parametrize("bounds", BOUNDS[:-1], ids=" to ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_without_a_match_is_due_when_the_clock_has_passed_its_last_match(
    kind: IntervalJoinType, bounds: tuple[str, str]
) -> None:
    """Batches at times that are due pad each row at the earliest time, or they remove state."""
    dice = random.Random(f"due {kind} {bounds}")
    pipeline = Partitioned(by_clock(kind, *bounds), 3)
    reference = Reference(kind, *map(signed_duration, bounds))
    last, silent = 0, 0

    def wake(until: float) -> None:
        nonlocal silent
        while (due := min(dues(pipeline), default=until)) < until:
            assert due > reference.now
            wanted = min((reference.last(row) + 1 for row in reference.padded()), default=due)
            assert due <= wanted
            before = sum(pipeline.waiting_rows.values())
            pipeline.batch({}, due)
            found = came_out(pipeline)
            assert found == Counter(reference.batch(due, ([], [])))
            assert found or sum(pipeline.waiting_rows.values()) < before, "a batch that did nothing"
            silent += not found

    for now, sides in history(dice):
        last = max(last, now)
        wake(last)
        pipeline.batch(given(sides), last)
        assert came_out(pipeline) == Counter(reference.batch(last, sides))
    wake(float("inf"))
    assert not reference.padded()
    if kind == "inner":
        assert silent == 0
        assert not dues(pipeline)
    elif kind == "full":
        assert set(pipeline.waiting_rows.values()) == {0}, "an idle job keeps no state"


def test_without_keys_all_rows_within_the_bounds_meet() -> None:
    pipeline = Partitioned(by_clock("inner", "-1 s", "0 ms", is_keyed=False), 2)
    pipeline.batch(given(([("a", 1), (None, 2)], [])), 5_000)
    pipeline.batch(given(([], [("b", 3)])), 6_000)
    pipeline.batch(given(([], [("b", 4)])), 6_001)
    assert came_out(pipeline) == Counter({("a", 1, "b", 3): 1, (None, 2, "b", 3): 1})


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_that_runs_again_at_its_time_has_the_same_output(kind: IntervalJoinType, tmp_path: Path) -> None:
    (query,) = run_on(by_clock(kind, "-3 s", "0 ms"), tmp_path).values()
    query.batch(given(([("a", 1), ("b", 2), ("c", 3)], [("c", 4)])), 10_000)
    query.events.clear()
    again = given(([], [("a", 5), ("d", 6)]))
    query.batch(again, 13_000, committed=False)
    first = list(query.events)
    query.events.clear()
    query.batch(again, 13_000)
    assert query.events == first != []


FILES = "WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x')"
SCRIPT = f"""
CREATE TABLE a (k STRING, v BIGINT, pt AS PROCTIME()) {FILES};
CREATE TABLE b (k STRING, v BIGINT, pt AS PROCTIME()) {FILES};
CREATE TABLE r (k STRING, v BIGINT, w BIGINT) WITH ('connector' = 'print');
INSERT INTO r SELECT a.k, a.v, b.v FROM a LEFT JOIN b
ON a.k = b.k AND b.pt BETWEEN a.pt AND a.pt + INTERVAL '3' SECOND;
"""


def test_state_has_rows_and_no_watermark(tmp_path: Path) -> None:
    plan = compile_sql(SCRIPT)
    (query,) = run_on(plan, tmp_path).values()
    query.batch({"a": [("a", 1), ("b", 2)], "b": [("c", 4)]}, 10_000)
    assert {due for each in query.stored_dues.values() for due in each} == {13_001}
    (found,) = read_state(plan, str(tmp_path), at=10_000).queries
    (state,) = found.operators
    assert state.watermark is None
    assert [entry.amount.rows for entry in state.entries if entry.amount is not None] == [2, 1]
