"""The first rows of each key in an order, against a model that sorts all rows anew, and hand-made cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cmp_to_key

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.plans.operators import SortKey
from hintplan.runtime.kernels.numbering import Numbering
from hintplan.runtime.operators.first_rows import FirstRowsOperator
from hintplan.runtime.operators.rank import RankOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import Event, colliding_hash, delta, events_of, fold, stable_hash

COLUMNS = pa.schema([("k", pa.string()), ("a", pa.int64()), ("b", pa.float64()), ("c", pa.string())])
WHOLE = ("+I", "-U", "+U", "-D")
MOVES = ("+I", "-D")


def by(*keys: str) -> tuple[SortKey, ...]:
    """Sort keys from texts such as ``a desc last``."""
    parts = (key.split() for key in keys)
    return tuple(SortKey(column=column, direction=direction, nulls=nulls) for column, direction, nulls in parts)


def operator(
    order: tuple[SortKey, ...] = by("a asc first"),
    start: int = 1,
    end: int | str = 2,
    number: str | None = "n",
    changelog: bool = True,
    ttl: int = 0,
    kinds: tuple | None = None,
    latest: bool = False,
) -> RankOperator | FirstRowsOperator:
    kinds = kinds or (MOVES if number is None and start != end else WHOLE)
    numbering = Numbering(order=order, start=start, end=end, number=number, kinds=kinds, latest=latest)
    kind = RankOperator if changelog else FirstRowsOperator
    key = ("k", end) if isinstance(end, str) else ("k",)
    return kind(columns=COLUMNS, key=key, numbering=numbering, ttl=ttl)


@dataclass
class Model:
    """All rows that are there, in the order of arrival; numbered by sorting them."""

    operator: RankOperator | FirstRowsOperator
    rows: list = field(default_factory=list)

    def process(self, event: Event) -> None:
        kind, row = event
        if kind in ("+I", "+U"):
            self.rows.append(row)
        elif row in self.rows:
            self.rows.remove(row)  # the first that is equal

    def shown(self) -> Counter:
        found: Counter = Counter()
        end = self.operator.numbering.end
        for key in {self.key(row) for row in self.rows}:
            rows = [row for row in self.rows if self.key(row) == key]
            ordered = sorted(rows[::-1] if self.operator.numbering.latest else rows, key=cmp_to_key(self.compare))
            last = end if isinstance(end, int) else key[1] or 0
            for number, row in enumerate(ordered, 1):
                if self.operator.numbering.start <= number <= last:
                    found[row if self.operator.numbering.number is None else (*row, number)] += 1
        return found

    def key(self, row: tuple) -> tuple:
        return row[: len(self.operator.key)]

    def compare(self, left: tuple, right: tuple) -> int:
        for key in self.operator.numbering.order:
            a, b = (each[COLUMNS.names.index(key.column)] for each in (left, right))
            if a is None or b is None:
                sign = (a is not None) - (b is not None)
                found = sign if key.nulls == "first" else -sign
            else:
                a, b = (each.encode() if isinstance(each, str) else each for each in (a, b))
                found = (a > b) - (a < b)
                found = -found if key.direction == "desc" else found
            if found:
                return found
        return 0


class Run:
    """An operator with its state, which is all that goes from one batch to the next."""

    def __init__(self, operator: RankOperator | FirstRowsOperator, hasher=stable_hash) -> None:
        self.operator, self.hasher = operator, hasher
        self.store, self.manifest, self.result = MemoryStore(), None, None

    def batch(self, events: list[Event], now: int = 0) -> list[Event]:
        given_ = delta(self.operator.inputs[0], events, self.hasher)
        self.result = self.operator.process([given_], self.manifest, self.store, now)
        self.manifest = self.result.manifest
        assert self.result.output.schema.equals(self.operator.output)
        return events_of(self.result.output)


ROW = st.tuples(
    st.sampled_from(["x", "y", None]),
    st.integers(-2, 2) | st.none(),
    st.sampled_from([-1.5, 0.0, 2.5, None]),
    st.sampled_from(["", "a", "é", "z", None]),
)
CHANGES = st.lists(st.tuples(st.sampled_from(["+I", "+I", "-D"]), ROW), max_size=40)
ORDERS = [
    by("a asc first"),
    by("a desc last"),
    by("b desc first", "c asc last"),
    by("c desc last", "a asc first"),
    by(),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("start", "end", "number"),
    [(1, 1, None), (1, 3, "n"), (2, 3, None), (2, 2, "n"), (1, 99, "n"), (1, "a", "n"), (1, "a", None), (2, "a", "n")],
)
@given(
    events=CHANGES,
    changelog=st.booleans(),
    cuts=st.integers(1, 9),
    hasher=st.sampled_from([stable_hash, colliding_hash]),
    latest=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_what_is_there_is_what_sorting_all_rows_gives(
    events, changelog, cuts, hasher, latest, order, start, end, number
) -> None:
    if not changelog:
        events = [("+I", row) for _, row in events]
    bound = operator(order, start, end, number, changelog, latest=latest)
    run, model, there = Run(bound, hasher), Model(bound), Counter()
    for index in range(cuts):
        piece = events[index * len(events) // cuts : (index + 1) * len(events) // cuts]
        for event in piece:
            model.process(event)
        for kind, row in run.batch(piece):
            there = fold([(kind, row)], there)
            assert min(there.values(), default=0) >= 0, f"{kind} of {row}, which is not there"
        assert there == model.shown()
        if not changelog:
            keys = {model.key(row) for row in model.rows}
            assert run.result.state_rows <= sum(end if isinstance(end, int) else max(0, key[1] or 0) for key in keys)


def row(a: int | None, c: str = "", k: str = "x") -> tuple:
    return (k, a, None, c)


def test_a_row_that_comes_before_others_moves_them() -> None:
    run = Run(operator(changelog=False))
    assert run.batch([("+I", row(5)), ("+I", row(3))]) == [("+I", (*row(3), 1)), ("+I", (*row(5), 2))]
    assert run.batch([("+I", row(4))]) == [("-U", (*row(5), 2)), ("+U", (*row(4), 2))]
    assert run.batch([("+I", row(9))]) == []
    assert run.result.state_rows == 2


def test_without_numbers_rows_leave_and_then_others_come() -> None:
    run = Run(operator(number=None, changelog=False))
    run.batch([("+I", row(5)), ("+I", row(3))])
    assert run.batch([("+I", row(4))]) == [("-D", row(5)), ("+I", row(4))]
    assert run.batch([("+I", row(1)), ("+I", row(2))]) == [
        *(("-D", row(3)), ("-D", row(4))),
        *(("+I", row(1)), ("+I", row(2))),
    ]


def test_of_equal_sort_keys_the_first_to_arrive_stays() -> None:
    run = Run(operator(end=1, changelog=False))
    assert run.batch([("+I", row(5, "late")), ("+I", row(5, "later"))]) == [("+I", (*row(5, "late"), 1))]
    assert run.batch([("+I", row(5, "last"))]) == []


def test_a_row_that_was_not_wanted_comes_up_when_others_are_taken_back() -> None:
    run = Run(operator(end=1))
    run.batch([("+I", row(1)), ("+I", row(2)), ("+I", row(3))])
    assert run.result.state_rows == 3
    assert run.batch([("-D", row(1))]) == [("-U", (*row(1), 1)), ("+U", (*row(2), 1))]
    assert run.batch([("-U", row(2)), ("+U", row(4)), ("-D", row(3))]) == [("-U", (*row(2), 1)), ("+U", (*row(4), 1))]
    assert run.batch([("-D", row(4)), ("-D", row(7))]) == [("-D", (*row(4), 1))]


def test_of_one_number_a_row_replaces_another() -> None:
    run = Run(operator(start=2, end=2, number=None, changelog=False))
    assert run.batch([("+I", row(5)), ("+I", row(3))]) == [("+I", row(5))]
    assert run.batch([("+I", row(4))]) == [("-U", row(5)), ("+U", row(4))]


def test_without_a_key_all_rows_are_of_one() -> None:
    run = Run(replace(operator(end=2, number=None, changelog=True), key=()))
    assert run.batch([("+I", row(5, k="x")), ("+I", row(3, k="y")), ("+I", row(4, k=None))]) == [
        *(("+I", row(3, k="y")), ("+I", row(4, k=None)))
    ]
    assert run.batch([("-D", row(3, k="y"))]) == [("-D", row(3, k="y")), ("+I", row(5, k="x"))]


def test_the_first_by_arrival_stay() -> None:
    run = Run(operator((), end=2, number=None, changelog=False, kinds=("+I",)))
    assert run.batch([("+I", row(5))]) == [("+I", row(5))]
    assert run.batch([("+I", row(1)), ("+I", row(0))]) == [("+I", row(1))]
    assert run.batch([("+I", row(0))]) == []


def test_each_row_that_comes_takes_the_place_of_the_oldest() -> None:
    run = Run(operator((), end=2, changelog=False, latest=True))
    assert run.batch([("+I", row(5)), ("+I", row(1))]) == [("+I", (*row(1), 1)), ("+I", (*row(5), 2))]
    assert run.batch([("+I", row(1)), ("+I", row(7))]) == [
        *(("-U", (*row(1), 1)), ("+U", (*row(7), 1))),
        *(("-U", (*row(5), 2)), ("+U", (*row(1), 2))),
    ]
    assert run.result.state_rows == 2
    assert run.result.metrics == (0,)


def test_of_equal_sort_keys_the_last_to_arrive_comes_first() -> None:
    run = Run(operator(end=1, changelog=False, latest=True))
    assert run.batch([("+I", row(5, "late")), ("+I", row(5, "later"))]) == [("+I", (*row(5, "later"), 1))]
    assert run.batch([("+I", row(6)), ("+I", row(5, "last"))]) == [
        *(("-U", (*row(5, "later"), 1)), ("+U", (*row(5, "last"), 1)))
    ]


def test_without_update_before_only_the_new_row_is_emitted() -> None:
    run = Run(operator(end=1, kinds=("+I", "+U", "-D")))
    run.batch([("+I", row(2))])
    assert run.batch([("+I", row(1))]) == [("+U", (*row(1), 1))]


def test_rows_beyond_the_last_number_are_not_kept_and_their_slots_are_taken_again() -> None:
    run = Run(operator(end=2, changelog=False))
    for a in range(20, 0, -1):
        run.batch([("+I", row(a))] * 3)
        assert run.result.state_rows == 2
        assert run.result.metrics == (1,)
    slots = [value for table in run.store.segments.values() for value in table["__slot"].to_pylist()]
    assert set(slots) == {0, 1}


def test_what_is_left_out_before_the_shuffle_does_not_matter() -> None:
    bound = operator(by("a desc last"), end=2, changelog=False)
    (spec,) = bound.inputs
    assert spec.presum is not None
    events = [("+I", row(a % 7, str(a), k="xyz"[a % 3])) for a in range(60)]
    rows = delta(spec, events)
    thinned = spec.presum.sum_up(rows)
    assert thinned.schema == spec.presum.schema == rows.schema
    assert thinned.num_rows == 6
    assert Run(bound).batch(events) == events_of(bound.process([thinned], None, MemoryStore(), 0).output)
    assert spec.presum.sum_up(rows.slice(0, 3)) is None


def test_a_row_expires_by_its_own_last_write() -> None:
    run = Run(operator(end=1, ttl=10, changelog=False))
    run.batch([("+I", row(1))], now=0)
    assert run.batch([("+I", row(2))], now=9) == []
    assert run.batch([("+I", row(3))], now=10) == [("+I", (*row(3), 1))]


def test_a_batch_without_rows_changes_nothing() -> None:
    run = Run(operator())
    run.batch([("+I", row(1))])
    assert run.batch([]) == []
    assert run.result.state_rows == 1


@pytest.mark.parametrize("changelog", [False, True])
def test_each_key_says_how_many_of_its_rows_are_wanted(changelog: bool) -> None:
    run = Run(operator(by("c asc first"), end="a", changelog=changelog))
    events = [("+I", row(a, c)) for c in "cba" for a in (2, 1, 0, None, -1)]
    assert fold(run.batch(events)) == Counter({(*row(2, "a"), 1): 1, (*row(2, "b"), 2): 1, (*row(1, "a"), 1): 1})
    assert run.batch([("+I", row(1, "")), ("+I", row(-1, ""))]) == [("-U", (*row(1, "a"), 1)), ("+U", (*row(1, ""), 1))]
    assert run.result.state_rows == (17 if changelog else 3)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_rows_of_a_key_that_wants_none_are_left_out_before_the_shuffle(kind: str) -> None:
    columns = COLUMNS.set(1, pa.field("a", kind))
    bound = replace(operator(by("c asc first"), end="a", changelog=False), columns=columns)
    (spec,) = bound.inputs
    assert spec.presum is not None
    thinned = spec.presum.sum_up(delta(spec, [("+I", row(a, c)) for c in "cba" for a in (2, 1, 0, None)]))
    assert sorted((a, c) for _, a, _, c in thinned.select(COLUMNS.names).to_pandas().itertuples(index=False)) == [
        *((1, "a"), (2, "a"), (2, "b"))
    ]


def test_the_layout_of_its_state_is_format_1() -> None:
    """A change here is a change of what is stored: it needs a new format, and a way to read this one."""
    (layout,) = operator().layouts
    assert [f"{field.name} {field.type}" for field in layout.schema] == [
        *("__hash int64", "k string", "a int64", "b double", "c string", "__places list<item: int64>", "__count int64"),
        "__write int64",
    ]
    assert layout.key == ("k",)
    (first,) = operator(changelog=False).layouts
    assert [f"{field.name} {field.type}" for field in first.schema] == [
        *("__hash int64", "k string", "__slot int64", "a int64", "b double", "c string", "__place int64"),
        *("__count int64", "__write int64"),
    ]
