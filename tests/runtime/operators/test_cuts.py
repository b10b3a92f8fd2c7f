"""Aggregates and joins put out the same, row by row or cut into micro-batches in any way, also of broken changelogs.

The models go row by row. A group that has lost its last row is forgotten, with all that is remembered of it. What is
taken back and is not there changes nothing that is kept value by value, or as rows of a join.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime.engine.process import joined
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.aggregates import Run, aggregate, call
from tests.runtime.changelog import Event, delta, events_of
from tests.runtime.operators.test_join_operator import KINDS, join

OPS = ("+I", "-U", "+U", "-D")
EXACT = Context(prec=99)
NINES = Decimal("9" * 38)
COLUMNS = pa.schema(
    [("k", pa.string()), ("v", pa.int64()), ("d", pa.float64()), ("m", pa.decimal128(38, 0)), ("f", pa.bool_())]
)
SUMS = (
    (call("COUNT"), pa.int64()),
    (call("SUM", "v"), pa.int64()),
    (call("COUNT", "v"), pa.int64()),
    (call("SUM", "d", "DOUBLE"), pa.float64()),
    (call("SUM", "m", "DECIMAL(38, 0)"), pa.decimal128(38, 0)),
)
VALUES = (
    (call("COUNT", "v", distinct=True), pa.int64()),
    (call("COUNT", "v", distinct=True, filter="f"), pa.int64()),
    (call("SUM", "v", distinct=True), pa.int64()),
    (call("MIN", "v"), pa.int64()),
    (call("MAX", "v"), pa.int64()),
    (call("FIRST_VALUE", "v"), pa.int64()),
    (call("LAST_VALUE", "v"), pa.int64()),
    (call("ARRAY_AGG", "v", "ARRAY<BIGINT>"), pa.list_(pa.int64())),
)


class Group:
    """The rows of a group, one after the other."""

    def __init__(self) -> None:
        self.rows = self.total = self.numbers = self.doubles = 0
        self.finite = 0.0
        self.odd: Counter[str] = Counter()
        self.decimal: Decimal | None = Decimal(0)
        self.decimals = 0
        self.values: list[int | None] = []
        self.filtered: list[int] = []

    def take(self, sign: int, v: int | None, d: float | None, m: Decimal | None, f: bool | None) -> None:
        self.rows += sign
        self.numbers += 0 if v is None else sign
        self.total += 0 if v is None else sign * v
        self.doubles += 0 if d is None else sign
        if d is not None and math.isfinite(d):
            self.finite += sign * d
        elif d is not None:
            self.odd[str(d)] += sign
        self.decimals += 0 if m is None else sign
        if m is not None and self.decimal is not None:
            found = EXACT.add(self.decimal, m.copy_negate() if sign < 0 else m)
            self.decimal = found if found.copy_abs() <= NINES else None
        used = [self.values] if v is None or not f else [self.values, self.filtered]
        for values in used:
            if sign > 0:
                values.append(v)
            elif v in values:
                values.remove(v)

    def double(self) -> float | None:
        if not self.doubles:
            return None
        return self.finite + sum(float(text) for text, count in self.odd.items() if count > 0)

    def sums(self) -> tuple:
        total = self.total if self.numbers else None
        return self.rows, total, self.numbers, self.double(), self.decimal if self.decimals else None

    def remembered(self) -> tuple:
        there = [v for v in self.values if v is not None]
        total = sum(set(there)) if there else None
        ends = (min(there), max(there), there[0], there[-1]) if there else (None,) * 4
        return len({*there}), len({*self.filtered}), total, *ends, tuple(self.values) if self.values else None


def modelled(events: list[Event]) -> dict:
    groups: dict = {}
    for op, (key, *row) in events:
        sign = 1 if op in ("+I", "+U") else -1
        group = groups.setdefault(key, Group()) if sign > 0 else groups.get(key)
        if group is not None:
            group.take(sign, *row)
            if not group.rows:
                del groups[key]
    return groups


def cuts(events: list, chosen: list[int]) -> Iterator[list[list]]:
    """Some ways to cut ``events`` into batches: not at all, behind each, and behind the ``chosen`` ones."""
    for places in ((), range(1, len(events)), sorted({place for place in chosen if 0 < place < len(events)})):
        yield [events[a:b] for a, b in zip((0, *places), (*places, len(events)), strict=True)]


def comparable(rows: Counter) -> Counter:
    return Counter({tuple(map(repr, row)): count for row, count in rows.items() if count})


def netted(rows: Counter, events: list[Event]) -> None:
    for op, row in events:
        rows[tuple(tuple(v) if isinstance(v, list) else v for v in row)] += 1 if op in ("+I", "+U") else -1


rows = st.tuples(
    st.sampled_from(["a", None]),
    st.one_of(st.none(), st.integers(1, 3)),
    st.sampled_from([None, 0.1, 0.2, 5.0, 1.7e308, math.inf, -math.inf, math.nan]),
    st.sampled_from([None, Decimal(1), NINES]),
    st.sampled_from([True, None]),
)
histories = st.lists(st.tuples(st.sampled_from(OPS), rows), min_size=1, max_size=8)
places = st.lists(st.integers(1, 7), max_size=3)


def operator(calls: tuple, keys: tuple = ("k",)):
    return aggregate(*(each for each, _ in calls), types=tuple(t for _, t in calls), columns=COLUMNS, keys=keys)


@pytest.mark.parametrize(("calls", "shown"), [(SUMS, Group.sums), (VALUES, Group.remembered)])
@settings(max_examples=25, deadline=None)
@given(events=histories, chosen=places)
def test_aggregates_do_not_depend_on_the_cut(calls, shown, events: list[Event], chosen: list[int]) -> None:
    wanted = comparable(Counter((key, *shown(group)) for key, group in modelled(events).items()))
    for batches in cuts(events, chosen):
        run, found = Run(operator(calls)), Counter()
        for batch in batches:
            netted(found, run.batch(batch))
        assert comparable(found) == wanted, batches


@settings(max_examples=25, deadline=None)
@given(events=histories, chosen=places)
def test_sums_that_are_made_before_the_shuffle_are_those_of_the_rows(events: list[Event], chosen: list[int]) -> None:
    """DOUBLEs are added in another order then, so the only amounts are some that are exact, or not finite."""
    events = [(op, (*row[:2], 5.0 if row[2] in (0.1, 0.2) else row[2], *row[3:])) for op, row in events]
    wanted = comparable(Counter((key, *group.sums()) for key, group in modelled(events).items()))
    summing = operator(SUMS)
    (spec,) = summing.inputs
    for batches in cuts(events, chosen):
        for pieces in (1, 2):
            store, manifest, found = MemoryStore(), None, Counter()
            for batch in batches:
                cut = [batch[: len(batch) // 2], batch[len(batch) // 2 :]] if pieces == 2 else [batch]
                tables = [table for each in cut if (table := delta(spec, each)) is not None]
                tables = [spec.presum.sum_up(table) or spec.presum.lift(table) for table in tables]
                result = summing.process((joined(tables, spec.presum),), manifest, store, 0)
                manifest = result.manifest
                netted(found, events_of(result.output))
            assert comparable(found) == wanted, batches


def test_a_group_that_is_emptied_and_filled_again_has_nothing_of_what_it_was() -> None:
    big, row = ("a", 1, 1.7e308, NINES, True), ("a", 2, 5.0, Decimal(3), True)
    batch = [("+I", big), ("+I", big), ("-D", big), ("-D", big), ("+I", row)]
    assert Run(operator(SUMS)).batch(batch) == [("+I", ("a", 1, 2, 1, 5.0, Decimal(3)))]
    run = Run(operator(VALUES))
    run.batch([("+I", ("a", 1, None, None, True))])
    # What is taken back was never there, but it was the only row.
    assert run.batch([("-D", ("a", 9, None, None, True)), ("+I", row)])[-1] == (
        ("+U", ("a", 1, 1, 2, 2, 2, 2, 2, (2,)))
    )


SIDES = (
    st.sampled_from([(1, "x"), (1, "y"), (2, "x"), (None, "x")]),
    st.sampled_from([(1, "p"), (1, "q"), (None, "p")]),
)
changes = st.one_of(*(st.tuples(st.just(side), st.tuples(st.sampled_from(OPS), SIDES[side])) for side in (0, 1)))


def kept(events: list[Event]) -> Counter:
    """The rows of one side, of which nothing can go that is not there; of those without a key, anything can."""
    left: Counter = Counter()
    for op, row in events:
        left[row] += 1 if op in ("+I", "+U") else -1 if left[row] or row[0] is None else 0
    return left


def joined_rows(kind: str, left: Counter, right: Counter) -> Counter:
    found: Counter = Counter()
    theirs = Counter(key for key, _ in right.elements() if key is not None)
    for row, count in left.items():
        partners = {other: n for other, n in right.items() if other[0] == row[0] is not None}
        if kind in ("semi", "anti"):
            found[row] += count if bool(partners and sum(partners.values())) == (kind == "semi") else 0
            continue
        for other, n in partners.items():
            found[row + other] += count * n
        if kind in ("left", "full") and not theirs[row[0]]:
            found[(*row, None, None)] += count
    mine = Counter(key for key, _ in left.elements() if key is not None)
    for other, n in right.items():
        if kind in ("right", "full") and not mine[other[0]]:
            found[(None, None, *other)] += n
    return found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(events=st.lists(changes, min_size=1, max_size=8), chosen=places)
def test_joins_do_not_depend_on_the_cut(kind: str, events: list[tuple[int, Event]], chosen: list[int]) -> None:
    sides = [kept([event for of, event in events if of == side]) for side in (0, 1)]
    wanted = comparable(joined_rows(kind, *sides))
    made = join(kind)
    for batches in cuts(events, chosen):
        store, manifest, found = MemoryStore(), None, Counter()
        for batch in batches:
            deltas = [delta(made.inputs[side], [event for of, event in batch if of == side]) for side in (0, 1)]
            result = made.process(deltas, manifest, store, 0)
            manifest = result.manifest
            netted(found, events_of(result.output))
        assert comparable(found) == wanted, batches
