"""The first or last row of each key, against a record-by-record model of Flink's Deduplicate and hand-made cases."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime.operators.deduplicate import DeduplicateOperator
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.changelog import Event, colliding_hash, delta, events_of, net, stable_hash
from tests.runtime.flink_model import DeduplicateModel

COLUMNS = pa.schema([("k", pa.string()), ("j", pa.int64()), ("at", pa.timestamp("us")), ("v", pa.int64())])
WHOLE = ("+I", "-U", "+U")


def operator(keep: str, time: str | None, ttl: int = 0, kinds: tuple = WHOLE, key: tuple = ("k",)):
    kinds = ("+I",) if (keep, time) == ("first", None) else kinds
    return DeduplicateOperator(columns=COLUMNS, key=key, time=time, keep=keep, ttl=ttl, kinds=kinds)


class Run:
    """An operator with its state, which is all that goes from one batch to the next."""

    def __init__(self, operator: DeduplicateOperator, hasher=stable_hash) -> None:
        self.operator, self.hasher = operator, hasher
        self.store, self.manifest = MemoryStore(), None
        self.result = None

    def batch(self, rows: list[tuple], now: int = 0) -> list[Event]:
        given_ = delta(self.operator.inputs[0], [("+I", row) for row in rows], self.hasher)
        self.result = self.operator.process([given_], self.manifest, self.store, now)
        self.manifest = self.result.manifest
        assert self.result.output.schema.equals(self.operator.output)
        return [(kind, (*row[:2], micros(row[2]), row[3])) for kind, row in events_of(self.result.output)]


def micros(time) -> int | None:
    return None if time is None else time.minute * 60_000_000 + time.second * 1_000_000 + time.microsecond


def cut(rows: list[tuple], count: int) -> list[list[tuple]]:
    bounds = [index * len(rows) // count for index in range(count + 1)]
    return [rows[begin:end] for begin, end in pairwise(bounds)]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.sampled_from([1, None]),
        st.integers(0, 4) | st.none(),
        st.integers(0, 2),
    ),
    max_size=40,
)
EACH = [("first", None), ("last", None), ("first", "at"), ("last", "at")]


@pytest.mark.parametrize("key", [("k",), ("j", "k")])
@pytest.mark.parametrize(("keep", "time"), EACH)
@pytest.mark.parametrize(("count", "hasher"), [(1, stable_hash), (3, colliding_hash), (17, stable_hash)])
@given(rows=ROWS)
@settings(max_examples=20, deadline=None)
def test_one_row_of_each_key_is_left_however_the_rows_are_cut(rows, count, hasher, keep, time, key) -> None:
    places = tuple(COLUMNS.names.index(name) for name in key)
    run = Run(operator(keep, time, key=key), hasher)
    model = DeduplicateModel(key=places, keep=keep, time=None if time is None else 2)
    kept: Counter = Counter()
    for piece in cut(rows, count):
        expected = [each for row in piece for each in model.process(row, 0)]
        found = run.batch(piece)
        assert net(found) == net(expected)
        for kind, row in found:
            kept[row] += 1 if kind in ("+I", "+U") else -1
            assert kept[row] >= 0, f"{kind} of {row}, which is not there"
        for place, (kind, row) in enumerate(found):
            if kind == "-U":
                after, replacing = found[place + 1]
                assert after == "+U"
                assert [replacing[p] for p in places] == [row[p] for p in places]
    assert +kept == Counter(row for row, _ in model.state.values())


@pytest.mark.parametrize(("keep", "time"), EACH)
@given(rows=ROWS, ttl=st.integers(1, 6), steps=st.lists(st.integers(0, 4), min_size=8, max_size=8))
@settings(max_examples=30, deadline=None)
def test_a_key_expires_after_the_last_row_that_was_kept(rows, ttl, steps, keep, time) -> None:
    run = Run(operator(keep, time, ttl))
    model = DeduplicateModel(key=(0,), keep=keep, time=None if time is None else 2, ttl=ttl)
    now = 100
    for piece, step in zip(cut(rows, len(steps)), steps, strict=True):
        now += step
        expected = [each for row in piece for each in model.process(row, now)]
        assert net(run.batch(piece, now)) == net(expected)


def test_the_first_by_arrival_is_emitted_once_and_keeps_keys_only() -> None:
    run = Run(operator("first", None))
    assert run.batch([("a", 1, 5, 1), ("a", 1, 4, 2), ("b", 1, 3, 3)]) == [
        ("+I", ("a", 1, 5, 1)),
        ("+I", ("b", 1, 3, 3)),
    ]
    assert run.batch([("a", 2, 1, 9)]) == []
    (layout,) = run.operator.layouts
    assert layout.payload.names == []
    assert run.result.state_rows == 2


def test_of_one_time_the_last_to_arrive_is_last_and_the_first_first() -> None:
    """Flink: the last row replaces one of the same time, the first does not (recorded in tests/flink)."""
    last = Run(operator("last", "at"))
    assert last.batch([("a", 1, 5, 1), ("a", 1, 5, 2)]) == [("+I", ("a", 1, 5, 2))]
    assert last.batch([("a", 1, 5, 3)]) == [("-U", ("a", 1, 5, 2)), ("+U", ("a", 1, 5, 3))]
    assert last.batch([("a", 1, 4, 4)]) == []
    first = Run(operator("first", "at"))
    assert first.batch([("a", 1, 5, 1), ("a", 1, 5, 2)]) == [("+I", ("a", 1, 5, 1))]
    assert first.batch([("a", 1, 5, 3), ("a", 1, 4, 4)]) == [("-U", ("a", 1, 5, 1)), ("+U", ("a", 1, 4, 4))]


def test_without_update_before_only_the_new_row_is_emitted() -> None:
    run = Run(operator("last", "at", kinds=("+I", "+U")))
    assert run.batch([("a", 1, 5, 1)]) == [("+I", ("a", 1, 5, 1))]
    assert run.batch([("a", 1, 6, 2)]) == [("+U", ("a", 1, 6, 2))]


def test_an_equal_row_is_emitted_again_only_with_a_ttl() -> None:
    row = ("a", 1, 5, 1)
    for ttl, expected in ((0, []), (10, [("-U", row), ("+U", row)])):
        run = Run(operator("last", "at", ttl))
        run.batch([row])
        assert run.batch([row], now=5) == expected


def test_it_counts_the_rows_that_it_passed_over() -> None:
    run = Run(operator("first", "at"))
    run.batch([("a", 1, 5, 1), ("a", 1, 6, 2), ("b", 1, 7, 3)])
    assert run.result.metrics == (1,)
    run.batch([("a", 1, 4, 4), ("b", 1, 8, 5), ("b", 1, 9, 6)])
    assert run.result.metrics == (2,)
    run.batch([])
    assert run.result.metrics == (0,)


def test_a_batch_without_rows_and_a_key_that_expired() -> None:
    run = Run(operator("first", None, ttl=10))
    run.batch([("a", 1, 5, 1)], now=0)
    assert run.batch([], now=9) == []
    assert run.batch([("a", 1, 5, 2)], now=9) == []
    assert run.batch([("a", 1, 5, 3)], now=10) == [("+I", ("a", 1, 5, 3))]


def test_the_layout_of_its_state_is_format_1() -> None:
    """A change here is a change of what is stored: it needs a new format, and a way to read this one."""
    (layout,) = operator("last", "at").layouts
    assert [f"{field.name} {field.type}" for field in layout.schema] == [
        *("__hash int64", "k string", "j int64", "at timestamp[us]", "v int64", "__count int64", "__write int64")
    ]
    (keys,) = operator("first", None).layouts
    assert keys.schema.names == ["__hash", "k", "__count", "__write"]
