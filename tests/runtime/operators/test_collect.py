"""COLLECT keeps how often a group has each value, of rows that are added and taken back in any order."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.aggregates import COLUMNS, Run, aggregate, call, inserts
from tests.runtime.changelog import Event, colliding_hash, fold, stable_hash

COUNTED = pa.map_(pa.int64(), pa.int32())
CALLS = (call("COLLECT", "v", "MULTISET<BIGINT>"), call("COLLECT", "v", "MULTISET<BIGINT>", distinct=True))


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Events in which nothing is taken back that is not there."""
    rows: list[tuple] = []
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 40))):
        if rows and draw(st.booleans()):
            events.append((draw(st.sampled_from(["-U", "-D"])), rows.pop(draw(st.integers(0, len(rows) - 1)))))
        else:
            rows.append((draw(st.sampled_from(["a", "b", None])), draw(st.sampled_from([None, 1, 2, 3]))))
            events.append((draw(st.sampled_from(["+I", "+U"])), rows[-1]))
    return events


def expected(events: list[Event]) -> Counter:
    """The groups that are left, each with its values and how often it has them."""
    left = fold(events)
    found: Counter = Counter()
    for key in {key for key, _ in left}:
        values = {value: count for (k, value), count in left.items() if k == key and value is not None}
        found[key, frozenset(values.items()), frozenset((value, 1) for value in values)] += 1
    return found


@settings(deadline=None)
@given(histories(), st.integers(1, 7), st.sampled_from([stable_hash, colliding_hash]))
def test_any_slicing_leaves_the_values_of_the_rows_that_are_left(events: list[Event], size: int, hasher) -> None:
    run = Run(aggregate(*CALLS, types=(COUNTED, COUNTED)), hasher)
    shown = [e for begin in range(0, len(events), size) for e in run.batch(events[begin : begin + size])]
    assert fold(shown) == expected(events)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["x", "y", ""]),
        (pa.float64(), [0.5, float("inf"), -1.0]),
        (pa.list_(pa.int64()), [(1, None), (1,), ()]),
        (pa.binary(), [b"a", b"", b"b"]),
    ],
)
def test_a_multiset_has_values_of_any_type(kind: pa.DataType, values: list) -> None:
    columns = pa.schema([("k", pa.string()), ("v", kind)])
    operator = aggregate(CALLS[0], types=(pa.map_(kind, pa.int32()),), columns=columns)
    run = Run(operator)
    one, two, three = values
    run.batch(inserts(("a", one), ("a", two), ("a", one), ("b", three)))
    events = run.batch([("-D", ("a", one)), ("+I", ("a", three))])
    assert [dict(row[1]) for _, row in events] == [{one: 2, two: 1}, {one: 1, two: 1, three: 1}]


def test_a_value_that_is_taken_back_first_is_there_fewer_than_no_times_as_in_flink() -> None:
    run = Run(aggregate(CALLS[0], types=(COUNTED,)))
    run.batch(inserts(("a", 1)))
    assert run.batch([("+I", ("a", 1)), ("-D", ("a", 2))])[-1] == ("+U", ("a", frozenset({(1, 2), (2, -1)})))
    assert run.batch(inserts(("a", 2)))[-1] == ("+U", ("a", frozenset({(1, 2)})))


def test_an_expired_group_begins_with_no_values() -> None:
    run = Run(aggregate(CALLS[0], types=(COUNTED,), ttl=10))
    run.batch(inserts(("a", 1)), now=0)
    assert run.batch(inserts(("a", 2)), now=100) == [("+I", ("a", frozenset({(2, 1)})))]


def test_the_state_is_the_row_of_the_group() -> None:
    operator = aggregate(CALLS[0], types=(COUNTED,), columns=COLUMNS)
    assert [layout.name for layout in operator.layouts] == ["groups"]
    assert operator.layouts[0].payload.types == [COUNTED]
