"""The model of each recorded program that has one, and the run of a program's steps through a model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from tests.runtime.event_time.models import (
    LastOfWindow,
    Model,
    Result,
    Row,
    Sessions,
    WindowAggregate,
    WindowJoin,
    Windows,
    WindowTop,
)
from tests.runtime.event_time.models_of_rows import (
    CurrentWatermark,
    FirstByTime,
    IntervalJoin,
    Over,
    Sort,
    TemporalJoin,
)
from tests.runtime.event_time.recorded import RECORDED, SIGNS, Step, batches_of, delay_of, steps_of
from tests.runtime.event_time.times import FOREVER, NEVER, Zone, milliseconds

SECOND, HOUR = 1000, 3_600_000
BERLIN, KOLKATA = Zone("Europe/Berlin"), Zone("Asia/Kolkata")
TUMBLE = Windows("tumble", 5 * SECOND)
HOP = Windows("hop", 10 * SECOND, 5 * SECOND)
CUMULATE = Windows("cumulate", 15 * SECOND, 5 * SECOND)
HOURS = Windows("tumble", HOUR)

MODELS: dict[str, Callable[[], Model]] = {
    **{
        name: partial(WindowAggregate, TUMBLE)
        for name in (
            "tumble, one phase",
            "tumble, boundaries",
            "tumble, before the epoch",
            "tumble, mini-batch",
            "tumble, named arguments",
            "tumble, two-phase, what flushes",
            "tumble over changes",
            "tumble over changes, one phase",
            "late rows, periodic watermarks",
            "last watermark at the end",
            "union of two tables",
            "union, one table has no rows",
            "two parallel sources",
            "two parallel sources, one without rows",
        )
    },
    "tumble, all rows": partial(WindowAggregate, TUMBLE, is_keyed=False),
    "tumble, offset": partial(WindowAggregate, TUMBLE._replace(offset=2 * SECOND)),
    "tumble, negative offset": partial(WindowAggregate, TUMBLE._replace(offset=-2 * SECOND)),
    "tumble, offset, watermark between": partial(WindowAggregate, TUMBLE._replace(offset=2 * SECOND)),
    **{
        name: partial(WindowAggregate, HOP)
        for name in ("hop", "hop, one phase", "hop, late for some windows", "hop over changes")
    },
    "hop, offset": partial(WindowAggregate, HOP._replace(offset=SECOND)),
    **{
        name: partial(WindowAggregate, CUMULATE)
        for name in ("cumulate", "cumulate, late for some windows", "cumulate, gaps")
    },
    "cumulate, offset": partial(WindowAggregate, CUMULATE._replace(offset=SECOND)),
    **{
        name: partial(Sessions, 5 * SECOND)
        for name in (
            "session",
            "session, bridged",
            "session, late rows",
            "session over changes",
            "session over changes, the first row goes",
            "session over changes, the bridge goes",
        )
    },
    "session, without PARTITION BY": partial(Sessions, 5 * SECOND, is_keyed=False),
    "LTZ, four hours in Berlin, autumn": partial(WindowAggregate, Windows("tumble", 4 * HOUR), BERLIN),
    "LTZ, hop of days in Berlin, autumn": partial(WindowAggregate, Windows("hop", 24 * HOUR, 12 * HOUR), BERLIN),
    "LTZ, session in Berlin, autumn": partial(Sessions, 90 * 60 * SECOND, BERLIN),
    "TIMESTAMP, days in Berlin": partial(WindowAggregate, Windows("tumble", 24 * HOUR)),
    **{
        name: partial(WindowAggregate, HOURS, KOLKATA)
        for name in (
            "LTZ, hours in Kolkata",
            "LTZ, hours in Kolkata, watermark between",
            "LTZ, hours in Kolkata, watermark between, one phase",
        )
    },
    **{
        f"window join, {kind}": partial(WindowJoin, kind, 5 * SECOND)
        for kind in ("inner", "left", "right", "full", "semi")
    },
    "window top-n": partial(WindowTop, TUMBLE, lambda row: -row.value, (1, 2), is_numbered=True),
    "window top-n, of all keys": partial(WindowTop, TUMBLE, lambda row: -row.value, (1, 2), is_keyed=False),
    "window top-n, from the second on": partial(
        WindowTop, TUMBLE, lambda row: row.value, (2, 3), is_keyed=False, is_numbered=True
    ),
    "window top-n, ties": partial(WindowTop, TUMBLE, lambda row: row.value, (1, 2), is_keyed=False, is_numbered=True),
    "window top-n over hop": partial(WindowTop, HOP, lambda row: -row.value, is_keyed=False),
    "window deduplicate, first": partial(WindowTop, TUMBLE, lambda row: row.time),
    "window deduplicate, last": partial(LastOfWindow, TUMBLE),
    "current watermark": CurrentWatermark,
    **{
        f"interval join, {kind}": partial(IntervalJoin, kind, 3 * SECOND, 5 * SECOND)
        for kind in ("inner", "left", "right", "full")
    },
    "interval join, with a condition": partial(
        IntervalJoin, "left", 3 * SECOND, 5 * SECOND, lambda left, right: left.value != 1
    ),
    "interval join, one side only moves": partial(IntervalJoin, "left", 3 * SECOND, 5 * SECOND),
    "temporal join, inner": partial(TemporalJoin, is_outer=False),
    **{
        f"temporal join, {name}": partial(TemporalJoin, is_outer=True)
        for name in (
            *("left", "equal times of versions", "left side changes", "added rows with a primary key"),
            "view of the last rows by processing time",
        )
    },
    "temporal join, versioned view": partial(TemporalJoin, is_outer=True, ascending=True),
    "over, rows unbounded": partial(Over, "rows"),
    "over, range unbounded": partial(Over, "range"),
    "over, without a frame": partial(Over, "range"),
    "over, rows bounded": partial(Over, "rows", 1),
    "over, range bounded": partial(Over, "range", 2 * SECOND),
    "sort by rowtime": Sort,
    "deduplicate, first by rowtime": FirstByTime,
    "deduplicate, first by rowtime, late rows": FirstByTime,
}


class Run(NamedTuple):
    """A run of a model: its results by step, the rows behind the watermark, and the model with its last state."""

    results: list[tuple[int, list[Result]]]
    behind: int
    model: Model


def run(name: str, cut: Collection[int] | None = None) -> Run:
    """Give the model of a program the rows of the program, a row a batch or in the batches of ``cut``, then FOREVER."""
    tables, steps, model = list(RECORDED[name]["tables"]), list(steps_of(name)), MODELS[name]()
    splits = range(RECORDED[name].get("parallelism", 1))
    marks = {(table, split): NEVER for table in tables for split in splits}
    results, behind, before = [], 0, NEVER
    for batch in batches_of(len(steps), cut):
        rows = []
        for step in (steps[number] for number in batch):
            row, delay = row_of(step, tables), delay_of(name, str(step.table))
            behind += row.time <= before
            rows.append(row)
            place = str(step.table), step.subtask
            marks[place] = max(marks[place], row.time - delay)
        if name == "tumble, two-phase, what flushes":  # a view drops them after their times have counted
            rows = [row for row in rows if row.key != "x"]
        after = max(before, min(marks.values()))
        results.append((batch[-1], model.batch(rows, before, after)))
        before = after
    results.append((len(steps), model.batch([], before, FOREVER)))
    return Run(results, behind, model)


def row_of(step: Step, tables: list[str]) -> Row:
    """The row of a step: two columns and a rowtime. The first table is the left side of a join."""
    key, value, time = step.values
    assert time is not None
    side = tables.index(str(step.table)) if len(tables) == 2 else 0
    columns = (integer(key), integer(value))
    return Row(milliseconds(time), *columns, SIGNS[step.kind], side)


def integer(word: str | None) -> int | str | None:
    return int(word) if word is not None and word.isdecimal() else word
