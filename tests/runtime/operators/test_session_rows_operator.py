"""SESSION without an aggregate: rows come out with their session when it closes, against the sessions of the model."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest

from hintplan.plans.declarations.windows import Window
from hintplan.runtime.operators.session_rows import SessionRowsOperator
from hintplan.runtime.operators.window_function import window_fields
from hintplan.runtime.types import to_arrow
from tests.runtime.changelog import colliding_hash, stable_hash
from tests.runtime.event_time.histories import history, in_buckets, millis, moment
from tests.runtime.event_time.kernel_run import KernelRun
from tests.runtime.event_time.models import Row
from tests.runtime.event_time.times import Zone, milliseconds

GAP = 50


def operator(*, keys: tuple[str, ...] = ("k",), zone: str | None = None, gap: str = "50 ms") -> SessionRowsOperator:
    time = to_arrow("TIMESTAMP(3)" if zone is None else "TIMESTAMP_LTZ(3)")
    columns = pa.schema([("k", pa.string()), ("v", pa.int64()), ("at", time)])
    names = ("ws", "we", "wt")
    return SessionRowsOperator(
        operator="sessions",
        columns=columns,
        keys=keys,
        time="at",
        window=Window(type="session", gap=gap, zone=zone),
        names=names,
        output=pa.schema([*columns, *window_fields(names, zone)]),
    )


class Model:
    """Rows by key and session; rows and sessions that touch are one."""

    def __init__(self, gap: int, zone: Zone) -> None:
        self.gap, self.zone, self.late = gap, zone, 0
        self.lateness: list[tuple[int, int]] = []
        self.open: dict[Any, list[tuple[int, int, list[Row]]]] = defaultdict(list)

    def batch(self, rows: list[Row], before: int, after: int) -> Counter:
        added = defaultdict(list)
        for row in rows:
            wall = self.zone.wall(row.time)
            added[row.key].append((wall, wall + self.gap, [row]))
        for key, intervals in added.items():
            merged: list[tuple[int, int, list[Row]]] = []
            for start, end, held in sorted([*self.open[key], *intervals], key=lambda each: each[:2]):
                if merged and start <= merged[-1][1]:
                    first, last, known = merged[-1]
                    merged[-1] = (first, max(last, end), known + held)
                else:
                    merged.append((start, end, held))
            self.open[key] = [each for each in merged if self.zone.closes(each[1]) > before]
            for _, end, held in merged:
                if self.zone.closes(end) <= before:
                    self.late += len(held)
                    self.lateness += [(0, before - self.zone.closes(end))] * len(held)
        closed: Counter = Counter()
        for key, sessions in self.open.items():
            for start, end, held in sessions:
                if self.zone.closes(end) <= after:
                    closed.update((row.key, row.value, row.time, start, end) for row in held)
            self.open[key] = [each for each in sessions if self.zone.closes(each[1]) > after]
        return closed

    @property
    def waiting(self) -> int:
        return sum(len(rows) for sessions in self.open.values() for _, _, rows in sessions)


@pytest.mark.parametrize("hasher", [stable_hash, colliding_hash])
def test_rows_come_out_with_their_session_when_it_closes(hasher) -> None:
    rng = random.Random(1)
    for _ in range(8):
        run = KernelRun(operator(), rng.choice([1, 2, 5]), hasher=hasher)
        check(run, Model(GAP, Zone()), rng, span=rng.choice([(-100, 1500), (0, 300)]))


def test_windows_of_a_zone_are_wall_clocks() -> None:
    start = milliseconds("2024-10-27T00:00")
    run = KernelRun(operator(zone="Europe/Berlin", gap="40 min"), 2)
    check(
        run,
        Model(40 * 60_000, Zone("Europe/Berlin")),
        random.Random(2),
        span=(start, start + 6 * 3_600_000),
        zoned=True,
    )


def test_rows_without_keys_are_one_sequence_of_sessions() -> None:
    run = KernelRun(operator(keys=()), 3)
    run.batch([[("a", 1, moment(0)), ("b", 2, moment(30))]], 10)
    assert run.results[0].waiting_rows + run.results[1].waiting_rows + run.results[2].waiting_rows == 2
    rows = run.batch([[("a", 1, moment(0))]], 1000)  # equal to a row that waits, and late except for its session
    assert Counter((*row[:2], *map(millis, row[2:6])) for row in rows) == {
        ("a", 1, 0, 0, 80, 79): 2,
        ("b", 2, 30, 0, 80, 79): 1,
    }
    assert run.segments == 0


def check(run: KernelRun, model: Model, rng: random.Random, *, span: tuple[int, int], zoned: bool = False) -> None:
    for rows, after in history(rng, batches=8, size=rng.choice([3, 25]), span=span):
        expected = model.batch(rows, run.before, max(after, run.before))
        output = run.batch([[(row.key, row.value, moment(row.time, zoned=zoned)) for row in rows]], after)
        assert Counter((*row[:2], *map(millis, row[2:5])) for row in output) == expected
        assert run.late == model.late
        assert run.lateness == in_buckets(model.lateness, 1)
        assert sum(result.waiting_rows for result in run.results) == model.waiting
        if rng.random() < 0.3:
            run.rescale(rng.choice([1, 2, 5]))
    assert run.segments == 0
