"""Plans put out what the models of their operators do, batch by batch, over random rows of which some are late.

Rows come in random batches to one, two or five partitions, and the number of partitions changes between batches. The
assigners of the plans compute the watermarks. histories.py draws these, for tests of a kernel alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial, reduce
from typing import Any, NamedTuple

import pytest

from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.row_kinds import ALL_KINDS
from hintplan.plans.declarations.windows import Window, signed_duration
from hintplan.plans.edit.edit import set_value
from hintplan.plans.evidence.ages import ENDS, added, below
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import WatermarkAssigner
from hintplan.plans.settings.emit import LATENESS
from tests.runtime.event_time.hand_built import (
    first_by_time,
    interval_join,
    plan_of,
    table_function,
    temporal_sort,
    window_aggregate,
    window_deduplicate,
    window_join,
    window_rank,
)
from tests.runtime.event_time.histories import in_buckets
from tests.runtime.event_time.models import (
    FiredWindows,
    LastOfWindow,
    Model,
    Row,
    Sessions,
    WindowAggregate,
    WindowJoin,
    Windows,
    WindowTop,
)
from tests.runtime.event_time.models_of_rows import FirstByTime, IntervalJoin, Sort
from tests.runtime.event_time.recorded import SIGNS
from tests.runtime.event_time.times import EPOCH, MILLISECOND, NEVER, Zone, milliseconds
from tests.runtime.partitioned import Partitioned
from tests.sample import sampled

SECOND, MINUTE = 1000, 60_000
KEYS = ("a", "b", "c", "d", "e", None)
AUTUMN = milliseconds("2024-10-26T22:00")
"""Three hours before the clocks of Berlin go back."""
LTZ = "TIMESTAMP_LTZ(3)"
TUMBLE, HOP = Window(type="tumble", size="5 s"), Window(type="hop", size="10 s", slide="5 s")
UNEVEN = Window(type="hop", size="10 s", slide="4 s")


class Case(NamedTuple):
    """A plan, its model, and how the output of the plan is read as the output of the model."""

    plan: Plan
    model: Callable[[], Model]
    order: tuple[int, ...]
    """The columns of the plan in the order of the model."""
    begin: int = -20 * SECOND
    pace: int = SECOND
    """The time between rows is at most four times as long."""
    changes: bool = False
    keeps_keys: bool = False
    """Whether keys stay in state after the end."""


def aggregate(window: Window, model: Callable[[], Model], **more: Any) -> Case:
    """A case of an aggregate with a key: key, count, sum, start, end are key, start, end, count, sum of the model."""
    above = {name: more.pop(name) for name in ("time", "changelog") if name in more}
    plan = plan_of(window_aggregate("watermark_s", window), delay=more.pop("delay", "3 s"), **above)
    return Case(plan, model, (0, 3, 4, 1, 2), changes=above.get("changelog", False), **more)


def fired(
    window: Window, early: bool, late: bool, *, lateness: int = 0, changelog: bool = False, delay: str = "3 s"
) -> Case:
    """A case of a group window with early and late fire without a delay."""
    fires = [name for name, on in (("early", early), ("late", late)) if on]
    emit = {LATENESS: format_duration(lateness)}
    kinds = ALL_KINDS if changelog else ("+I", "-U", "+U")
    operator = window_aggregate("watermark_s", window, fires=tuple(fires), emit=emit, kinds=kinds)
    windows = Windows("hop" if window.type == "hop" else "tumble", window.size_ms, window.step_ms)
    model = partial(FiredWindows, windows, 0 if early else None, 0 if late else None, lateness)
    return Case(plan_of(operator, delay=delay, changelog=changelog), model, (0, 3, 4, 1, 2), changes=changelog)


def without_key(window: Window, model: Callable[[], Model]) -> Case:
    return Case(plan_of(window_aggregate("watermark_s", window, keys=()), delay="3 s"), model, (2, 3, 0, 1))


def berlin(window: Window, model: Callable[[], Model]) -> Case:
    return aggregate(window, model, time=LTZ, delay="20 min", begin=AUTUMN, pace=10 * MINUTE)


def top(window: Window, windows: Windows, *, keyed: bool, numbers: tuple[int, int], descending: bool) -> Case:
    rank = window_rank("function", window, keys=("k",) if keyed else (), numbers=numbers, descending=descending)
    plan = plan_of(table_function("watermark_s", window), rank, delay="3 s")
    order = (lambda row: -row.value) if descending else (lambda row: row.value)
    model = partial(WindowTop, windows, order, numbers, is_keyed=keyed, is_numbered=True)
    return Case(plan, model, (0, 1, 2, 3, 4, 6))


def deduplicate(window: Window, model: Callable[[], Model], keep: str) -> Case:
    above = window_deduplicate("function", window, keep=keep)
    return Case(plan_of(table_function("watermark_s", window), above, delay="3 s"), model, (0, 1, 2, 3, 4))


def joined(kind: Any) -> Case:
    sides = [table_function(f"watermark_{side}", TUMBLE, f"function_{side}") for side in ("a", "b")]
    join = window_join("function_a", "function_b", TUMBLE, kind)
    plan = plan_of(*sides, join, tables=("a", "b"), delay="3 s")
    return Case(plan, partial(WindowJoin, kind, 5 * SECOND), (0, 1) if kind in ("semi", "anti") else (0, 1, 2, 3))


def bounded(kind: Any, lower: str, upper: str, condition: str | None = None, **more: Any) -> Case:
    """A case of an interval join; the condition is that the values of the two rows differ."""
    join = replace(interval_join("watermark_a", "watermark_b", kind, lower, upper), condition=condition)
    plan = plan_of(join, tables=("a", "b"), **{"delay": "3 s", **more})
    low, high = -signed_duration(lower), signed_duration(upper)
    pairs = {"condition": lambda left, right: left.value % 3 != right.value % 3} if condition is not None else {}
    return Case(plan, partial(IntervalJoin, kind, low, high, **pairs), (0, 1, 2, 3))


IN_BERLIN = {"zone": "Europe/Berlin"}
BERLIN = Zone("Europe/Berlin")
CASES: dict[str, Case] = {
    "tumble": aggregate(TUMBLE, partial(WindowAggregate, Windows("tumble", 5 * SECOND))),
    "tumble with an offset": aggregate(
        Window(type="tumble", size="5 s", offset="-2 s"),
        partial(WindowAggregate, Windows("tumble", 5 * SECOND, offset=-2 * SECOND)),
    ),
    "tumble without a key": without_key(
        TUMBLE, partial(WindowAggregate, Windows("tumble", 5 * SECOND), is_keyed=False)
    ),
    "tumble over changes": aggregate(TUMBLE, partial(WindowAggregate, Windows("tumble", 5 * SECOND)), changelog=True),
    "hop": aggregate(HOP, partial(WindowAggregate, Windows("hop", 10 * SECOND, 5 * SECOND))),
    "hop with many windows a row": aggregate(
        Window(type="hop", size="12 s", slide="1 s"), partial(WindowAggregate, Windows("hop", 12 * SECOND, SECOND))
    ),
    "hop over changes": aggregate(
        HOP, partial(WindowAggregate, Windows("hop", 10 * SECOND, 5 * SECOND)), changelog=True
    ),
    "cumulate": aggregate(
        Window(type="cumulate", size="15 s", step="5 s"),
        partial(WindowAggregate, Windows("cumulate", 15 * SECOND, 5 * SECOND)),
    ),
    "cumulate over changes": aggregate(
        Window(type="cumulate", size="15 s", step="5 s"),
        partial(WindowAggregate, Windows("cumulate", 15 * SECOND, 5 * SECOND)),
        changelog=True,
    ),
    "group window, hop of any size": Case(
        plan_of(window_aggregate("watermark_s", UNEVEN, emit={LATENESS: "0 ms"}), delay="3 s"),
        partial(WindowAggregate, Windows("hop", 10 * SECOND, 4 * SECOND)),
        (0, 3, 4, 1, 2),
    ),
    "group window, early fire": fired(TUMBLE, early=True, late=False),
    "group window, late fire": fired(TUMBLE, early=False, late=True, lateness=8 * SECOND),
    "group window, early and late fire": fired(TUMBLE, early=True, late=True, lateness=8 * SECOND),
    "group window, early and late fire over changes": fired(
        TUMBLE, early=True, late=True, lateness=5 * SECOND, changelog=True
    ),
    "group window, late fire over changes": fired(TUMBLE, early=False, late=True, lateness=5 * SECOND, changelog=True),
    "group window, hop of any size, early and late fire": fired(UNEVEN, early=True, late=True, lateness=3 * SECOND),
    "session": aggregate(Window(type="session", gap="2 s"), partial(Sessions, 2 * SECOND), delay="1 s"),
    "session without a key": without_key(Window(type="session", gap="1 s"), partial(Sessions, SECOND, is_keyed=False)),
    "hours of Berlin": berlin(
        Window(type="tumble", size="1 h", **IN_BERLIN),
        partial(WindowAggregate, Windows("tumble", 60 * MINUTE), BERLIN),
    ),
    "hop in Berlin": berlin(
        Window(type="hop", size="2 h", slide="30 min", **IN_BERLIN),
        partial(WindowAggregate, Windows("hop", 120 * MINUTE, 30 * MINUTE), BERLIN),
    ),
    "cumulate in Berlin": berlin(
        Window(type="cumulate", size="1 d", step="1 h", **IN_BERLIN),
        partial(WindowAggregate, Windows("cumulate", 1440 * MINUTE, 60 * MINUTE), BERLIN),
    ),
    "session in Berlin": berlin(
        Window(type="session", gap="12 min", **IN_BERLIN), partial(Sessions, 12 * MINUTE, BERLIN)
    ),
    "first rows": top(TUMBLE, Windows("tumble", 5 * SECOND), keyed=True, numbers=(1, 2), descending=True),
    "first rows of hop": top(
        HOP, Windows("hop", 10 * SECOND, 5 * SECOND), keyed=False, numbers=(2, 4), descending=False
    ),
    "first by time": deduplicate(
        TUMBLE, partial(WindowTop, Windows("tumble", 5 * SECOND), lambda row: row.time), "first"
    ),
    "last by time": deduplicate(HOP, partial(LastOfWindow, Windows("hop", 10 * SECOND, 5 * SECOND)), "last"),
    "first at the watermark": Case(
        plan_of(first_by_time("watermark_s"), delay="3 s"), FirstByTime, (0, 1, 2), keeps_keys=True
    ),
    "sort": Case(plan_of(temporal_sort("watermark_s"), delay="3 s"), Sort, (0, 1, 2)),
    **{f"{kind} join": joined(kind) for kind in ("inner", "left", "right", "full", "semi", "anti")},
    **{f"{kind} interval join": bounded(kind, "-3 s", "5 s") for kind in ("inner", "left", "right", "full")},
    **{
        f"full interval join from {lower} to {upper}": bounded("full", lower, upper)
        for lower, upper in (("0 ms", "0 ms"), ("2 s", "6 s"), ("-6 s", "-2 s"), ("-20 s", "1500 ms"))
    },
    "impossible interval join": bounded("full", "0 ms", "-1 ms"),
    "left interval join with a condition": bounded("left", "-4 s", "4 s", "l.v % 3 <> r.v % 3"),
    "inner interval join of TIMESTAMP_LTZ": bounded("inner", "-10 s", "0 ms", time=LTZ),
}


def history(dice: random.Random, case: Case) -> list[Row]:
    """Rows whose times ascend, apart from some; of a changelog, some rows are deleted later."""
    tables = len(case.plan.scans)
    rows: list[Row] = []
    at = case.begin
    for _ in range(150):
        at += dice.choice((0, 0, 1, case.pace // 2, case.pace, 4 * case.pace))
        time = at - dice.choice((0, 0, 0, 1, case.pace, 5 * case.pace, 15 * case.pace))
        if case.changes and rows and dice.random() < 0.3:
            kept = [row for row in rows if row.sign > 0 and row._replace(sign=-1) not in rows]
            rows += [dice.choice(kept)._replace(sign=-1)] if kept else []
        else:
            rows.append(Row(time, dice.choice(KEYS), len(rows), 1, dice.randrange(tables)))
    return rows


def batches_of(dice: random.Random, rows: list[Row]) -> list[list[Row]]:
    ends = sorted(dice.sample(range(1, len(rows)), dice.choice((1, 10, 40))))
    return [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]


def given(case: Case, rows: list[Row]) -> dict[str, list[tuple]]:
    """The rows of a batch as the tables have them."""
    result: dict[str, list[tuple]] = {scan.table: [] for scan in case.plan.scans}
    for row in rows:
        values = (row.key, row.value, (EPOCH + row.time * MILLISECOND).replace(tzinfo=None))
        kind = ("+I" if row.sign > 0 else "-D",) if case.changes else ()
        result[case.plan.scans[row.side].table].append((*kind, *values))
    return result


def taken(case: Case, pipeline: Partitioned) -> Counter:
    """The rows that the pipeline has put out since it was last asked, in the form of the model's."""
    rows = Counter((SIGNS[kind], tuple(_plain(row[place]) for place in case.order)) for kind, row in pipeline.events)
    pipeline.events.clear()
    return rows


def _plain(value: Any) -> Any:
    return milliseconds(value.replace(tzinfo=None).isoformat()) if isinstance(value, datetime) else value


@pytest.mark.parametrize("seed", sampled(range(50), keep=2))
@pytest.mark.parametrize("name", CASES)
def test_an_operator_puts_out_what_its_model_does(name: str, seed: int) -> None:
    case, dice = CASES[name], random.Random(f"{name} {seed}")
    model, pipeline, before = case.model(), Partitioned(case.plan, 1), NEVER
    operator = case.plan.operators[-2].id
    for rows in batches_of(dice, history(dice, case)):
        pipeline = pipeline.rescaled(dice.choice((1, 1, 2, 5)))
        pipeline.batch(given(case, rows))
        after = pipeline.watermarks[operator]
        in_order = sorted(rows, key=lambda row: row.side)
        expected = Counter((sign, row[: len(case.order)]) for sign, row in model.batch(in_order, before, after))
        assert taken(case, pipeline) == expected
        before = after
    pipeline.drain()
    assert taken(case, pipeline) == Counter(
        (sign, row[: len(case.order)]) for sign, row in model.batch([], before, pipeline.watermarks[operator])
    )
    assert pipeline.late_rows[operator] == model.late
    assert pipeline.lateness[operator] == in_buckets(model.lateness, len(case.plan.scans))
    assert case.keeps_keys or {part.state_rows for part in pipeline.parts[operator]} == {0}
    assert pipeline.waiting_rows[operator] == 0


@pytest.mark.parametrize(
    "name",
    ["tumble", "hop", "cumulate", "session", "first rows", "inner join", "hours of Berlin", "full interval join"],
)
def test_some_rows_of_a_history_are_late_and_some_behind_the_watermark_are_not(name: str) -> None:
    case, dice = CASES[name], random.Random(name)
    model, before, behind = case.model(), NEVER, 0
    for row in history(dice, case):
        behind += row.time <= before
        after = max(before, row.time - 3 * case.pace)
        model.batch([row], before, after)
        before = after
    assert 0 < model.late < behind


@pytest.mark.parametrize(
    "name",
    ["tumble", "hop", "cumulate", "first by time", "inner join", "hours of Berlin", "full interval join", "sort"],
)
def test_a_longer_delay_keeps_as_many_late_rows_as_their_lateness_says(name: str) -> None:
    case, dice = CASES[name], random.Random(name)
    batches = batches_of(dice, history(dice, case))
    operator = case.plan.operators[-2].id
    delays = {one.id: parse_duration(one.delay) for one in case.plan.operators if isinstance(one, WatermarkAssigner)}

    def run(longer: int) -> Partitioned:
        plan = case.plan
        for assigner, delay in delays.items():
            plan, _ = set_value(plan, f"{assigner}.watermark.delay", format_duration(delay + longer))
        pipeline = Partitioned(plan, 2)
        for rows in batches:
            pipeline.batch(given(case, rows))
        return pipeline

    first = run(0)
    lateness = reduce(added, first.lateness[operator])
    assert sum(lateness) == first.late_rows[operator] > 0
    for longer in ENDS:
        if longer in (1_000, 4_000, 20_000, 15 * MINUTE, 3 * 60 * MINUTE):
            assert run(longer).late_rows[operator] == sum(lateness) - below(lateness, longer)
