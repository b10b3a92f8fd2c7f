"""Ranks with a TTL: changelogs stay legal when rows expire, against a model of a few lines, and hand-made cases."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest

from hintplan.plans.operators import SortKey
from hintplan.runtime.kernels.numbering import Numbering
from hintplan.runtime.operators.first_rows import FirstRowsOperator
from hintplan.runtime.operators.rank import RankOperator
from hintplan.runtime.state.layout import SUFFIX_MASK, WRITE
from hintplan.runtime.state.memory import MemoryStore
from hintplan.runtime.state.tables import open_tables
from hintplan.runtime.state.under_keys import stored_under
from tests.runtime.changelog import Event, delta, events_of, stable_hash

COLUMNS = pa.schema([("k", pa.string()), ("a", pa.int64()), ("c", pa.string())])
KEYS = ["x", "y"]
HISTORIES = 15


def operator(
    start: int = 1,
    end: int = 3,
    number: str | None = "n",
    *,
    changelog: bool = False,
    ttl: int = 0,
    latest: bool = False,
) -> RankOperator | FirstRowsOperator:
    by = SortKey(column="a", direction="asc", nulls="first")
    kinds = ("+I", "-D") if number is None and start != end else ("+I", "-U", "+U", "-D")
    numbering = Numbering(order=(by,), start=start, end=end, number=number, kinds=kinds, latest=latest)
    kind = RankOperator if changelog else FirstRowsOperator
    return kind(columns=COLUMNS, key=("k",), numbering=numbering, ttl=ttl)


@dataclass
class Model:
    """One event after the other: each stored row has the time of its write, a key what it last emitted.

    ``sink`` is what stands downstream: nothing that expired is taken back, until its number is taken.
    """

    operator: RankOperator | FirstRowsOperator
    rows: dict[str, list[tuple[tuple, int]]] = field(default_factory=dict)
    emitted: dict[str, dict] = field(default_factory=dict)
    sink: dict = field(default_factory=dict)

    def process(self, event: Event, now: int) -> None:
        kind, row = event
        numbering, key = self.operator.numbering, row[0]
        stored = [each for each in self.rows.get(key, []) if self.lives(each[1], now)]
        values = [each for each, _ in stored]
        if kind == "-D" and row not in values:
            return
        if not stored:
            self.emitted[key] = {}
        values.append(row) if kind == "+I" else values.remove(row)
        by_arrival = list(reversed(values)) if numbering.latest else values
        ranked = sorted(by_arrival, key=lambda each: each[1])
        first = ranked[: numbering.end]
        if isinstance(self.operator, FirstRowsOperator):
            if sorted(first) == sorted(each for each, _ in stored):
                return
            values = [each for each in values if each in first]  # no two rows of these tests are equal
        written = dict(stored)
        self.rows[key] = [(each, now if each in first or each == row else written[each]) for each in values]
        shown = dict(enumerate(ranked[numbering.start - 1 : numbering.end], numbering.start))
        if numbering.number is None and numbering.start != numbering.end:
            shown = {each: each for each in shown.values()}
        for number in self.emitted[key].keys() - shown.keys():
            del self.sink[key, number]
        self.sink |= {(key, number): each for number, each in shown.items()}
        self.emitted[key] = shown

    def lives(self, write: int, now: int) -> bool:
        return not self.operator.ttl or write + self.operator.ttl > now

    def forget(self, stored: set[tuple], now: int) -> None:
        """Drop rows whose space the state has reclaimed, which must have expired: no longer TTL revives them."""
        for key, rows in self.rows.items():
            assert all(row in stored or not self.lives(write, now) for row, write in rows)
            self.rows[key] = [each for each in rows if each[0] in stored]


class Run:
    """An operator, its state, and the sink that its changelog makes, which is checked row by row."""

    def __init__(self, bound: RankOperator | FirstRowsOperator) -> None:
        self.operator = bound
        self.store, self.manifest = MemoryStore(), None
        self.sink: dict = {}

    def batch(self, events: list[Event], now: int) -> list[Event]:
        given_ = delta(self.operator.inputs[0], events)
        result = self.operator.process([given_], self.manifest, self.store, now)
        self.manifest = result.manifest
        output = events_of(result.output)
        for kind, row in output:
            self.apply(kind, row)
        return output

    def apply(self, kind: str, row: tuple) -> None:
        numbering = self.operator.numbering
        if numbering.number is not None:
            row, place = row[:-1], (row[0], row[-1])
        else:
            place = (row[0], numbering.start if numbering.start == numbering.end else row)
        if kind in ("-U", "-D"):
            assert self.sink.pop(place, None) == row, f"{kind} of {row} at {place[1]}, which is not there"
        else:
            self.sink[place] = row

    def stored(self, now: int) -> set[tuple]:
        """All rows whose space has not been reclaimed, expired or not."""
        (state,) = open_tables(self.operator.layouts, self.manifest, self.store, ttls=(0,), now=now).values()
        hashes = np.array([stable_hash((key,)) for key in KEYS])
        _, codes = stored_under(state, pa.table({"k": KEYS}), hashes & ~SUFFIX_MASK)
        return set(zip(*(column.to_pylist() for column in state.take(codes, COLUMNS.names).columns), strict=True))


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize(
    ("start", "end", "number"),
    [(1, 1, None), (1, 3, "n"), (1, 3, None), (2, 3, "n"), (2, 3, None), (2, 2, None), (2, 2, "n"), (1, 99, "n")],
)
def test_a_changelog_stays_legal_when_rows_expire(start: int, end: int, number: str | None, changelog: bool) -> None:
    for seed in range(HISTORIES):
        rng = random.Random(seed)
        bound = operator(
            start, end, number, changelog=changelog, ttl=rng.choice((0, 10, 10)), latest=rng.random() < 0.5
        )
        run, model, now, row_by_row = Run(bound), Model(bound), 0, rng.random() < 0.5
        for _ in range(rng.randrange(3, 10)):
            events = events_of_a_moment(rng, model, now, changelog)
            for piece in [[event] for event in events] if row_by_row else [events]:
                for event in piece:
                    model.process(event, now)
                run.batch(piece, now)
                assert run.sink == model.sink, f"seed {seed}, at {now}"
            model.forget(run.stored(now), now)
            now += rng.choice((1, 3, 9, 10, 11, 25))
            if rng.random() < 0.3:
                run.operator = model.operator = replace(model.operator, ttl=rng.choice((0, 4, 10, 30)))


def events_of_a_moment(rng: random.Random, model: Model, now: int, changelog: bool) -> list[Event]:
    """Some rows that come, and in a changelog retractions of rows that were there before, expired or not."""
    before = [row for rows in model.rows.values() for row, _ in rows]
    events: list[Event] = []
    for number in range(rng.randrange(4)):
        if changelog and before and rng.random() < 0.4:
            events.append(("-D", before.pop(rng.randrange(len(before)))))
        else:
            events.append(("+I", (rng.choice(KEYS), rng.randrange(8), f"{now} {number}")))
    return events


def row(a: int, c: str = "") -> tuple:
    return ("x", a, c)


@pytest.mark.parametrize("changelog", [False, True])
def test_rows_with_numbers_expire_together(changelog: bool) -> None:
    """By hand: the rows of t=50 renew the one of t=0, and no row moves up in silence."""
    run = Run(operator(changelog=changelog, ttl=100))
    assert run.batch([("+I", row(10))], now=0) == [("+I", (*row(10), 1))]
    assert run.batch([("+I", row(20)), ("+I", row(30))], now=50) == [("+I", (*row(20), 2)), ("+I", (*row(30), 3))]
    assert run.batch([("+I", row(40))], now=120) == []
    assert run.batch([("+I", row(25))], now=130) == [("-U", (*row(30), 3)), ("+U", (*row(25), 3))]
    assert run.batch([("+I", row(50))], now=230) == [("+I", (*row(50), 1))]
    assert run.sink == {("x", 1): row(50), ("x", 2): row(20), ("x", 3): row(25)}


@pytest.mark.parametrize("number", ["n", None])
def test_a_row_that_is_passed_over_renews_none_if_rows_are_only_added(number: str | None) -> None:
    run = Run(operator(end=2, number=number, ttl=10))
    run.batch([("+I", row(1)), ("+I", row(2))], now=0)
    assert run.batch([("+I", row(3))], now=9) == []
    assert [kind for kind, _ in run.batch([("+I", row(4))], now=10)] == ["+I"]


def test_a_row_behind_the_last_number_expires_alone() -> None:
    run = Run(operator(end=1, changelog=True, ttl=10))
    run.batch([("+I", row(1)), ("+I", row(2))], now=0)
    run.batch([("+I", row(3))], now=9)
    assert run.batch([("-D", row(1))], now=12) == [("-U", (*row(1), 1)), ("+U", (*row(3), 1))]


def test_a_longer_ttl_revives_no_row_that_a_change_found_expired() -> None:
    run = Run(operator(end=2, changelog=True, ttl=100))
    run.batch([("+I", row(1)), ("+I", row(2)), ("+I", row(3))], now=0)
    run.batch([("+I", row(4))], now=95)
    run.operator = replace(run.operator, ttl=101)
    run.batch([("-D", row(1))], now=101)
    assert run.sink == {("x", 1): row(2), ("x", 2): row(4)}
    run.operator = replace(run.operator, ttl=1000)
    run.batch([("-D", row(2))], now=102)
    assert run.sink == {("x", 1): row(4)}


@pytest.mark.parametrize("changelog", [False, True])
def test_rows_that_were_written_one_by_one_expire_together_after_the_next_change(changelog: bool) -> None:
    """State as it was stored when each row had the time of its own write."""
    run = Run(operator(changelog=changelog, ttl=0))
    for now, a in enumerate((10, 20, 30)):
        run.batch([("+I", row(a))], now=now)
    for name, table in run.store.segments.items():
        index = table.column_names.index(WRITE)
        run.store.segments[name] = table.set_column(
            index, WRITE, pa.array([a // 10 - 1 for a in table["a"].to_pylist()])
        )
    run.operator = replace(run.operator, ttl=100)
    run.batch([("+I", row(15))], now=50)
    assert run.batch([("+I", row(12))], now=140) == [
        *(("-U", (*row(15), 2)), ("+U", (*row(12), 2))),
        *(("-U", (*row(20), 3)), ("+U", (*row(15), 3))),
    ]
