"""The programs that Flink was recorded for, as tests of models and of our runtime read them.

A program is a timeline of steps. Its output has the step after which a row came. The number of steps stands for the
end of the input, where Flink sends the last watermark.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.runtime.event_time.times import NEVER, milliseconds

RECORDED: Mapping[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "flink" / "event_time.json").read_text(encoding="utf-8")
)
SIGNS = {"+I": 1, "+U": 1, "-U": -1, "-D": -1}
UNITS = {"SECOND": 1000, "MINUTE": 60_000}
DELAY = re.compile(r"WATERMARK FOR ts AS ts(?: - INTERVAL '(\d+)' (SECOND|MINUTE))?(?=,| WITH|$)")

Steps = dict[int, Counter[tuple[str, tuple[str | None, ...]]]]
"""For each step, the number of rows by kind and values."""


class Step(NamedTuple):
    """A step of a timeline: a row of a table, or another command, whose words are the values."""

    table: str | None
    subtask: int
    kind: str
    values: tuple[str | None, ...]


def steps_of(name: str) -> Iterator[Step]:
    """The steps of a program.

    >>> next(steps_of("tumble"))
    Step(table='s', subtask=0, kind='+I', values=('a', '1', '2024-01-01T00:00:01'))
    """
    for step in RECORDED[name]["steps"]:
        words = re.split(r" (?!\d\d:)", step)  # a text with a date and a time is one value
        if words[0] == "row":
            values = tuple(None if word == "\\N" else word for word in words[4:])
            yield Step(words[1], int(words[2]), words[3], values)
        else:
            yield Step(None, 0, words[0], tuple(words[1:]))


def delay_of(name: str, table: str) -> int:
    """The milliseconds that the watermark of a table is behind its rowtime.

    >>> delay_of("tumble", "s"), delay_of("tumble, boundaries", "s")
    (2000, 0)
    """
    match = DELAY.search(RECORDED[name]["tables"][table])
    assert match is not None, f"{name}: no plain watermark"
    return int(match[1] or 0) * UNITS[match[2] or "SECOND"]


def rows_behind(name: str) -> int | None:
    """The number of rows that come behind the watermark of the rows before them; None if it is no plain watermark.

    >>> rows_behind("tumble"), rows_behind("cumulate, gaps"), rows_behind("watermark that is NULL, or goes back")
    (3, 0, None)
    """
    tables = RECORDED[name]["tables"]
    if not all(DELAY.search(body) for body in tables.values()):
        return None
    splits = range(RECORDED[name].get("parallelism", 1))
    marks = {(table, split): NEVER for table in tables for split in splits}
    behind = 0
    for step in steps_of(name):
        if step.table is not None:
            time = milliseconds(step.values[-1] or "")
            behind += time <= min(marks.values())
            place = step.table, step.subtask
            marks[place] = max(marks[place], time - delay_of(name, step.table))
    return behind


def flink_output(name: str) -> Steps:
    """The rows that Flink put out, by step."""
    result: Steps = defaultdict(Counter)
    for step, kind, *values in RECORDED[name]["output"]:
        result[step][kind, tuple(values)] += 1
    return result


def flink_late(name: str) -> int:
    """The number of late rows that Flink counted."""
    return sum(RECORDED[name].get("late", {}).values())


def random_cuts(name: str, seed: int, count: int) -> list[frozenset[int]]:
    """Sets of steps after which a batch ends, from all rows in one batch to nearly a batch a row."""
    rng = random.Random(f"{seed} {name}")
    last = len(RECORDED[name]["steps"])
    return [_cut(rng, last, (0.0, 0.2, 0.5, 0.8)[number % 4]) for number in range(count)]


def _cut(rng: random.Random, last: int, density: float) -> frozenset[int]:
    return frozenset(step for step in range(last) if rng.random() < density)


def batches_of(count: int, cut: Collection[int] | None) -> list[range]:
    """The steps of each batch; without a ``cut``, a step a batch.

    >>> batches_of(5, {1}), batches_of(2, None)
    ([range(0, 2), range(2, 5)], [range(0, 1), range(1, 2)])
    """
    ends = range(count) if cut is None else [*sorted(step for step in cut if step < count - 1), count - 1]
    starts = [0, *(end + 1 for end in ends)]
    return [range(start, end + 1) for start, end in zip(starts, ends, strict=False) if start <= end]
