"""OVER by rowtime and by processing time puts out what a model of some lines does, batch by batch.

Rows come in random batches to one, two or five partitions, and the number of partitions changes between batches. Some
rows are late, some values are NULL, and some times are equal.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from statistics import pvariance
from typing import Any

import pytest

from hintplan.planner.compile import compile_sql
from hintplan.plans.edit.edit import set_value
from hintplan.plans.model.plan import Plan
from tests.runtime.event_time.histories import in_buckets
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.models_of_rows import InOrderOfTime
from tests.runtime.event_time.test_invariants import Twice
from tests.runtime.event_time.times import EPOCH, MILLISECOND, NEVER
from tests.runtime.partitioned import Partitioned
from tests.sample import sampled

SECOND = 1000
KEYS = ("a", "b", "c", None)
VALUES = (None, -3, 0, 1, 7, 2**61)
COLUMNS = "k STRING, v BIGINT, d DECIMAL(20, 2), f DOUBLE, s STRING, ts TIMESTAMP(3), pt AS PROCTIME()"

Frame = list[Row]


def values(frame: Frame) -> list[int]:
    return [row.value for row in frame if row.value is not None]


def wrapped(number: int) -> int:
    """A sum of BIGINT, which wraps around."""
    return (number + 2**63) % 2**64 - 2**63


def total(frame: Frame) -> int | None:
    return wrapped(sum(values(frame))) if values(frame) else None


def mean(frame: Frame) -> int | None:
    """AVG of BIGINT: the wrapped sum, divided towards zero."""
    whole = total(frame)
    if whole is None:
        return None
    return abs(whole) // len(values(frame)) * (1 if whole >= 0 else -1)


def decimal_mean(frame: Frame) -> Decimal | None:
    numbers = values(frame)
    if not numbers:
        return None
    return (Decimal(sum(numbers)) / 100 / len(numbers)).quantize(Decimal("0.000001"), ROUND_HALF_UP)


def variance(frame: Frame) -> float | None:
    return pvariance(map(float, values(frame))) if values(frame) else None


AGGREGATES: dict[str, Callable[[Frame], Any]] = {
    "COUNT(*)": len,
    "COUNT(v)": lambda frame: len(values(frame)),
    "SUM(v)": total,
    "AVG(v)": mean,
    "SUM(d)": lambda frame: Decimal(sum(values(frame))) / 100 if values(frame) else None,
    "AVG(d)": decimal_mean,
    "SUM(f)": lambda frame: math.fsum(each / 4 for each in values(frame)) if values(frame) else None,
    "MIN(v)": lambda frame: min(values(frame), default=None),
    "MAX(s)": lambda frame: max(map(str, values(frame)), default=None),
    "MIN(d)": lambda frame: Decimal(min(values(frame))) / 100 if values(frame) else None,
    "FIRST_VALUE(v)": lambda frame: next(iter(values(frame)), None),
    "LAST_VALUE(s)": lambda frame: str(values(frame)[-1]) if values(frame) else None,
    "VAR_POP(f)": lambda frame: None if variance(frame) is None else variance(frame) / 16,  # type: ignore[operator]
}
DISTINCT: dict[str, Callable[[Frame], Any]] = {
    "COUNT(DISTINCT s)": lambda frame: len(set(values(frame))),
    "SUM(DISTINCT v)": lambda frame: wrapped(sum(set(values(frame)))) if values(frame) else None,
}
NUMBERS: dict[str, Callable[[Frame, int], Any]] = {
    "ROW_NUMBER()": lambda rows, place: place + 1,
    "RANK()": lambda rows, place: 1 + sum(row.time < rows[place].time for row in rows[:place]),
    "DENSE_RANK()": lambda rows, place: len({row.time for row in rows[: place + 1]}),
    "LAG(v)": lambda rows, place: rows[place - 1].value if place else None,
    "LAG(s, 3, 'none')": lambda rows, place: _text(rows[place - 3]) if place >= 3 else "none",
    "LAG(d, 0)": lambda rows, place: _decimal(rows[place]),
}
FRAMES: dict[str, tuple[str, int | None]] = {
    "": ("range", None),
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": ("range", None),
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": ("rows", None),
    "RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW": ("range", 6 * SECOND),
    "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW": ("range", 60 * SECOND),
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW": ("range", 0),
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW": ("rows", 1),
    "ROWS BETWEEN 7 PRECEDING AND CURRENT ROW": ("rows", 7),
    "ROWS BETWEEN CURRENT ROW AND CURRENT ROW": ("rows", 0),
}
CASES = [(frame, "aggregates") for frame in FRAMES] + [("", "numbers")]


def calls_of(frame: str, kind: str) -> list[str]:
    if kind == "numbers":
        return [*NUMBERS, "SUM(v)"]
    return [*AGGREGATES, *(DISTINCT if FRAMES[frame][1] is not None else ())]


def _text(row: Row) -> str | None:
    return None if row.value is None else str(row.value)


def _decimal(row: Row) -> Decimal | None:
    return None if row.value is None else Decimal(row.value) / 100


class Functions:
    """The results of calls for rows that come in order, by key. A frame has all rows of a time, or none after a row."""

    def __init__(self, calls: Sequence[str], frame: str, *, has_peers: bool, keyed: bool = True) -> None:
        self.calls, (self.unit, self.amount) = calls, FRAMES[frame]
        self.has_peers, self.keyed = has_peers, keyed
        self.rows: dict[Any, Frame] = defaultdict(list)

    def of(self, due: Sequence[Row]) -> list[tuple]:
        places = []
        for row in due:
            rows = self.rows[row.key if self.keyed else None]
            places.append(len(rows))
            rows.append(row)
        return [
            (row.key, row.value, row.time, *self.results(self.rows[row.key if self.keyed else None], place))
            for row, place in zip(due, places, strict=True)
        ]

    def results(self, rows: Frame, place: int) -> list[Any]:
        frame = self.frame_of(rows, place)
        return [
            NUMBERS[call](rows, place) if call in NUMBERS else {**AGGREGATES, **DISTINCT}[call](frame)
            for call in self.calls
        ]

    def frame_of(self, rows: Frame, place: int) -> Frame:
        if self.unit == "rows":
            return rows[0 if self.amount is None else max(0, place - self.amount) : place + 1]
        known = rows if self.has_peers else rows[: place + 1]
        first = NEVER if self.amount is None else rows[place].time - self.amount
        return [each for each in known if first <= each.time <= rows[place].time]


@cache
def plan_of(frame: str, calls: tuple[str, ...], order: str, keyed: bool = True) -> Plan:
    kinds = {"COUNT": "BIGINT", "ROW": "BIGINT", "RANK": "BIGINT", "DENSE": "BIGINT", "VAR": "DOUBLE"}
    of_column = {"v": "BIGINT", "d": "DECIMAL(38, 6)", "f": "DOUBLE", "s": "STRING"}
    types = [kinds.get(call.split("(")[0].split("_")[0]) or of_column[_argument(call)] for call in calls]
    columns = ", ".join(f"x{number} {kind}" for number, kind in enumerate(types))
    computed = ", ".join(f"{call} OVER w AS x{number}" for number, call in enumerate(calls))
    partition = "PARTITION BY k" if keyed else ""
    return compile_sql(
        f"""CREATE TABLE s ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
 WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE r (k STRING, v BIGINT, ts TIMESTAMP(3), {columns}) WITH ('connector' = 'print');
INSERT INTO r SELECT k, v, ts, {computed} FROM s WINDOW w AS ({partition} ORDER BY {order} {frame});"""
    )


def _argument(call: str) -> str:
    return call.split("(")[1].removeprefix("DISTINCT ")[0]


def history(dice: random.Random, count: int = 80) -> list[Row]:
    """Rows whose times ascend, apart from some."""
    rows, at = [], -20 * SECOND
    for _ in range(count):
        at += dice.choice((0, 0, 1, 500, SECOND, 4 * SECOND))
        time = at - dice.choice((0, 0, 0, 1, SECOND, 3 * SECOND, 15 * SECOND))
        rows.append(Row(time, dice.choice(KEYS), dice.choice(VALUES)))
    return rows


def batches_of(dice: random.Random, rows: list[Row]) -> list[list[Row]]:
    ends = sorted(dice.sample(range(1, len(rows)), dice.choice((3, 8, 25))))
    return [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]


def given(rows: Sequence[Row]) -> list[tuple]:
    return [
        (
            row.key,
            row.value,
            _decimal(row),
            None if row.value is None else row.value / 4,
            _text(row),
            (EPOCH + row.time * MILLISECOND).replace(tzinfo=None),
        )
        for row in rows
    ]


def emitted(pipeline: Partitioned) -> Counter:
    rows = Counter(tuple(map(_plain, row)) for kind, row in pipeline.events if kind == "+I")
    assert sum(rows.values()) == len(pipeline.events)
    pipeline.events.clear()
    return rows


def expected(rows: list[tuple]) -> Counter:
    return Counter(tuple(map(_plain, row)) for row in rows)


def _plain(value: Any) -> Any:
    """A value that can be compared: a time in ms, and a DOUBLE with 8 digits, for the order of additions differs."""
    if isinstance(value, datetime):
        return (value - EPOCH.replace(tzinfo=None)) // MILLISECOND
    # Numbers such as 1.04296875 are not left half way between two texts of 8 digits.
    return f"{value * (1 + 1e-10) + 0.0:.8g}" if isinstance(value, float) else value


@pytest.mark.parametrize("seed", sampled(range(50), keep=1))
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(("frame", "kind"), CASES)
def test_rows_come_in_order_of_time_with_the_results_of_their_frames(
    frame: str, kind: str, keyed: bool, seed: int
) -> None:
    calls = calls_of(frame, kind)
    plan = plan_of(frame, tuple(calls), "ts", keyed)
    operator = plan.operators[-2].id if plan.operators[-2].op == "over-aggregate" else plan.operators[-3].id
    dice = random.Random(f"{frame} {kind} {keyed} {seed}")
    model, functions = InOrderOfTime(), Functions(calls, frame, has_peers=True, keyed=keyed)
    pipeline, before, late = Partitioned(plan, 1), NEVER, []
    for rows in batches_of(dice, history(dice)):
        pipeline = pipeline.rescaled(dice.choice((1, 1, 2, 5)))
        pipeline.batch({"s": given(rows)})
        after = pipeline.watermarks[operator]
        late += [(0, before - row.time) for row in rows if row.time <= before]
        assert emitted(pipeline) == expected(functions.of(model.due(rows, before, after)))
        assert pipeline.waiting_rows[operator] == len(model.waiting)
        before = after
    pipeline.drain()
    assert emitted(pipeline) == expected(functions.of(model.due([], before, pipeline.watermarks[operator])))
    assert pipeline.late_rows[operator] == model.late
    assert pipeline.lateness[operator] == in_buckets(late, 1)


def test_some_rows_of_the_histories_are_late_and_most_are_not() -> None:
    late = []
    for seed in range(20):
        dice, model, before = random.Random(seed), InOrderOfTime(), NEVER
        for rows in batches_of(dice, history(dice)):
            after = max(before, *(row.time - 3 * SECOND - 1 for row in rows))
            model.due(rows, before, after)
            before = after
        late.append(model.late)
    assert sum(number > 0 for number in late) > 15
    assert max(late) < 40


@pytest.mark.parametrize("seed", sampled(range(5), keep=1))
@pytest.mark.parametrize(("frame", "kind"), CASES)
def test_rows_come_at_once_by_processing_time(frame: str, kind: str, seed: int) -> None:
    calls = [call for call in calls_of(frame, kind) if call != "DENSE_RANK()"]
    plan = plan_of(frame, tuple(calls), "pt")
    dice, functions = random.Random(f"{frame} {kind} {seed}"), Functions(calls, frame, has_peers=False)
    if kind == "numbers":  # rows of one time have an order
        functions.calls = [call.replace("RANK()", "ROW_NUMBER()") for call in calls]
    pipeline, now = Partitioned(plan, 1), 0
    for rows in batches_of(dice, history(dice)):
        now += dice.choice((0, 1, SECOND, 4 * SECOND, 30 * SECOND))
        pipeline = pipeline.rescaled(dice.choice((1, 1, 2, 5)))
        pipeline.batch({"s": given(rows)}, now)
        results = functions.of([row._replace(time=now) for row in rows])
        shown = [(*row[:2], source.time, *row[3:]) for row, source in zip(results, rows, strict=True)]
        assert emitted(pipeline) == expected(shown)


@pytest.mark.parametrize("order", ["ts", "pt"])
@pytest.mark.parametrize("frame", ["", *(frame for frame, (_, amount) in FRAMES.items() if amount)])
def test_a_batch_that_runs_again_has_the_same_output_and_state(frame: str, order: str) -> None:
    plan, dice = plan_of(frame, ("SUM(v)", "MAX(s)", "SUM(f)"), order), random.Random(f"{frame} {order}")
    batches = batches_of(dice, history(dice))
    outputs = []
    for kind in (Partitioned, Twice):
        pipeline = kind(plan, 2)
        for number, rows in enumerate(batches):
            pipeline.batch({"s": given(rows)}, number * SECOND)
        pipeline.drain()
        outputs.append([row for _, row in pipeline.events])
    assert list(map(str, outputs[0])) == list(map(str, outputs[1]))


def test_the_order_of_the_rows_is_the_order_of_time_and_then_of_arrival() -> None:
    plan = plan_of("", ("ROW_NUMBER()",), "ts", False)
    times = (5, 3, 5, 4, 3, 5)
    pipeline = Partitioned(plan, 1)
    for number, time in enumerate(times):  # each in a batch of the same time
        pipeline.batch({"s": given([Row(time, "a", number)])}, 7)
    pipeline.drain()
    assert [(row[1], row[3]) for _, row in pipeline.events] == [(1, 1), (4, 2), (3, 3), (0, 4), (2, 5), (5, 6)]


@pytest.mark.parametrize(
    "clock", [(7,) * 9, range(9, 0, -1), (7, 8, 6, 7) * 3], ids=["stands still", "goes back", "both"]
)
@pytest.mark.parametrize("order", ["ts", "pt"])
@pytest.mark.parametrize("frame", [frame for frame, (unit, amount) in FRAMES.items() if unit == "range" and amount])
def test_no_row_of_a_frame_is_lost_by_a_clock_that_does_not_go_on(frame: str, order: str, clock: Sequence[int]) -> None:
    pipeline = Partitioned(plan_of(frame, ("SUM(v)",), order), partitions=5)
    for number, now in enumerate(clock):
        # Of the partition of a, no row waits, and all rows lie in the same bucket of time.
        rows = [Row(2 * number, "a", 1 << number), Row(2 * number + 3001, "b", 0)]
        pipeline.batch({"s": given(rows)}, now)
    sums = [row[3] for _, row in pipeline.events if row[0] == "a"]
    assert sums == [(2 << number) - 1 for number in range(len(clock))]  # also after segments were merged


def test_a_ttl_ends_the_sum_of_a_key_and_loses_no_row_that_waits() -> None:
    plan, _ = set_value(plan_of("", ("SUM(v)", "COUNT(*)"), "ts"), "over_s.overState.ttl", "10 s")
    pipeline = Partitioned(plan, 1)
    pipeline.batch({"s": given([Row(0, "a", 1), Row(0, "b", 2), Row(10 * SECOND, "a", 4)])}, 0)
    pipeline.batch({"s": given([Row(20 * SECOND, "b", 8)])}, 9 * SECOND)
    pipeline.batch({"s": given([Row(60 * SECOND, "c", 16)])}, 25 * SECOND)
    # The sum of b ended at 10 s, and the sum of a at 19 s of processing time.
    assert [row[:2] + row[3:] for _, row in pipeline.events] == [
        ("a", 1, 1, 1),
        ("b", 2, 2, 1),
        ("a", 4, 5, 2),
        ("b", 8, 8, 1),
    ]


def test_a_ttl_ends_the_last_rows_of_a_key_by_processing_time() -> None:
    frame = "ROWS BETWEEN 7 PRECEDING AND CURRENT ROW"
    plan, _ = set_value(plan_of(frame, ("SUM(v)",), "pt"), "over_s.overState.ttl", "10 s")
    pipeline = Partitioned(plan, 1)
    for now, value in ((0, 1), (9, 2), (18, 4), (28, 8), (30, 16)):
        pipeline.batch({"s": given([Row(0, "a", value)])}, now * SECOND)
    assert [row[3] for _, row in pipeline.events] == [1, 3, 7, 8, 24]


@pytest.mark.parametrize("order", ["ts", "pt"])
def test_a_state_of_recent_rows_has_only_rows_that_a_frame_may_have(order: str) -> None:
    frame = "RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW"
    pipeline = Partitioned(plan_of(frame, ("SUM(v)",), order), 1)
    most = 0
    for number in range(200):
        now = number * 100
        pipeline.batch({"s": given([Row(now, "abc"[number % 3], 1)])}, now)
        (parts,) = pipeline.parts.values()
        most = max(most, parts[0].state_rows)
    # 6 s of recent rows, a bucket that is passed in part, and 3 s that wait for the watermark: 10 rows a second.
    assert most <= 60 + 10 + (30 if order == "ts" else 0)
    assert most >= 60


def test_doubles_are_added_in_the_order_of_the_rows_in_any_cut() -> None:
    numbers = [1e16, 1.0, -1e16, 0.1, 0.2, 0.3, 1e300, -1e300, 0.7]
    rows = [("a", None, None, number, None, datetime(2026, 1, 1, 0, 0, at)) for at, number in enumerate(numbers)]
    one_by_one = [sum(numbers[1 : place + 1], numbers[0]) for place in range(len(numbers))]
    for step in (1, 2, 4, 9):
        pipeline = Partitioned(plan_of("", ("SUM(f)",), "ts"), 1)
        for start in range(0, len(rows), step):
            pipeline.batch({"s": rows[start : start + step]})
        pipeline.drain()
        assert [row[3] for _, row in pipeline.events] == one_by_one


def test_a_frame_does_not_depend_on_numbers_outside_of_it() -> None:
    numbers = [math.inf, 1.5, math.nan, 2.5, -math.inf, 0.25, 0.5, 0.125]
    rows = [("a", None, None, number, None, datetime(2026, 1, 1, 0, 0, at)) for at, number in enumerate(numbers)]
    pipeline = Partitioned(plan_of("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", ("SUM(f)", "MAX(f)"), "ts"), 1)
    pipeline.batch({"s": rows})
    pipeline.drain()
    sums = [(str(row[3]), str(row[4])) for _, row in pipeline.events]
    assert sums == [
        ("inf", "inf"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("nan", "nan"),
        ("-inf", "2.5"),
        ("-inf", "0.25"),
        ("0.75", "0.5"),
        ("0.625", "0.5"),
    ]


def test_a_decimal_sum_of_too_many_digits_is_null_and_a_frame_without_it_is_not() -> None:
    most = Decimal(10**18 - 1)
    query = """CREATE TABLE s (v DECIMAL(38, 0), ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
 WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'x');
CREATE TABLE r (x DECIMAL(38, 0), y DECIMAL(38, 0)) WITH ('connector' = 'print');
INSERT INTO r SELECT v, SUM(v) OVER (ORDER BY ts {}) FROM s;"""
    numbers = [Decimal(10**38 - 1), Decimal(1), Decimal(-5), most]
    rows = [(number, datetime(2026, 1, 1, 0, 0, at)) for at, number in enumerate(numbers)]
    for frame, sums in (
        ("", [numbers[0], None, None, None]),
        ("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", [numbers[0], None, Decimal(-4), most - 5]),
    ):
        for step in (1, 4):
            pipeline = Partitioned(compile_sql(query.format(frame)), 1)
            for start in range(0, len(rows), step):
                pipeline.batch({"s": rows[start : start + step]})
            pipeline.drain()
            assert [row[1] for _, row in pipeline.events] == sums
