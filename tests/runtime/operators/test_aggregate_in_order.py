"""Aggregates whose result depends on the order of rows: FIRST_VALUE, LISTAGG, ARRAY_AGG and their like."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.aggregates import Run, aggregate, call, inserts
from tests.runtime.changelog import Event, colliding_hash, fold, hashable, stable_hash


def test_first_and_last_values_and_lists_go_by_the_order_of_rows_and_pass_over_null() -> None:
    columns = pa.schema([("k", pa.string()), ("v", pa.string())])
    calls = (
        call("FIRST_VALUE", "v", "STRING"),
        call("LAST_VALUE", "v", "STRING"),
        call("LISTAGG", "v", "STRING", separator=", "),
    )
    operator = aggregate(*calls, types=(pa.string(),) * 3, columns=columns, changelog=False, kinds=("+I", "-U", "+U"))
    run = Run(operator)
    assert run.batch([("+I", ("a", None)), ("+I", ("b", "x"))]) == [
        ("+I", ("a", None, None, None)),
        ("+I", ("b", "x", "x", "x")),
    ]
    assert run.batch([("+I", ("a", "p")), ("+I", ("b", None)), ("+I", ("a", "q"))]) == [
        ("-U", ("a", None, None, None)),
        ("+U", ("a", "p", "q", "p, q")),
    ]
    assert run.batch([("+I", ("b", "")), ("+I", ("b", "y")), ("+I", ("a", "r"))]) == [
        ("-U", ("b", "x", "x", "x")),
        ("+U", ("b", "x", "y", "x, , y")),
        ("-U", ("a", "p", "q", "p, q")),
        ("+U", ("a", "p", "r", "p, q, r")),
    ]


class Ordered:
    """Lists of values per group, as Flink's FirstValueWithRetract and its like keep them; DISTINCT counts beside it.

    NULLs are values, too, which all but ARRAY_AGG leave out when they look.
    """

    def __init__(self) -> None:
        self.rows: Counter = Counter()
        self.values: dict[str, list[str | None]] = {}

    def process(self, event: Event) -> None:
        kind, (key, value) = event
        sign = 1 if kind in ("+I", "+U") else -1
        self.rows[key] += sign
        values = self.values.setdefault(key, [])
        if sign > 0:
            values.append(value)
        else:
            values.remove(value)
        if not self.rows[key]:
            del self.rows[key]

    def once(self, key: str, history: list[Event]) -> list[str | None]:
        """The values of a group in the order in which they last came to be there."""
        copies: Counter = Counter()
        found: list[str | None] = []
        for kind, (group, value) in history:
            if group != key:
                continue
            copies[value] += 1 if kind in ("+I", "+U") else -1
            if not copies[value]:
                found.remove(value)
            elif kind in ("+I", "+U") and copies[value] == 1:
                found.append(value)
        return found

    def results(self, history: list[Event]) -> Counter:
        found: Counter = Counter()
        for key in self.rows:
            values, once = self.values[key], self.once(key, history)
            found[(key, *self.shown(values), *self.shown(once))] += 1
        return found

    @staticmethod
    def shown(values: list[str | None]) -> tuple:
        known = [value for value in values if value is not None]
        of_known = (known[0], known[-1], "+".join(known)) if known else (None,) * 3
        return (*of_known, tuple(values) or None)


ORDERED = pa.schema([("k", pa.string()), ("v", pa.string())])
IN_ORDER = tuple(
    call(function, "v", kind, **({"distinct": True} if distinct else {}), **options)
    for distinct in (False, True)
    for function, kind, options in (
        ("FIRST_VALUE", "STRING", {}),
        ("LAST_VALUE", "STRING", {}),
        ("LISTAGG", "STRING", {"separator": "+"}),
        ("ARRAY_AGG", "ARRAY<STRING>", {}),
    )
)
TYPES = (*(pa.string(),) * 3, pa.list_(pa.string()))


@st.composite
def ordered_histories(draw: st.DrawFn) -> list[Event]:
    """Events in which nothing is taken back that is not there."""
    rows: list[tuple] = []
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 40))):
        if rows and draw(st.booleans()):
            row = rows.pop(draw(st.integers(0, len(rows) - 1)))
            events.append(("-D", row))
        else:
            row = (draw(st.sampled_from(["a", "b", None])), draw(st.sampled_from(["x", "y", "z", "", None])))
            rows.append(row)
            events.append(("+I", row))
    return events


@settings(max_examples=120, deadline=None)
@given(history=ordered_histories(), cuts=st.lists(st.integers(0, 40), max_size=6), collide=st.booleans())
def test_values_in_order_survive_retractions_however_the_input_is_cut(
    history: list[Event], cuts: list[int], collide: bool
) -> None:
    operator = aggregate(*IN_ORDER, types=TYPES * 2, columns=ORDERED)
    run = Run(operator, colliding_hash if collide else stable_hash)
    model, result = Ordered(), Counter()
    done = 0
    for end in [*sorted(cuts), len(history)]:
        events = history[done:end]
        for event in events:
            model.process(event)
        result = fold(run.batch(events), result)
        done = max(done, end)
        assert result == model.results(history[:done])


def test_a_retraction_of_a_value_that_did_not_come_changes_no_order() -> None:
    operator = aggregate(*IN_ORDER[:3], types=(pa.string(),) * 3, columns=ORDERED)
    run = Run(operator)
    run.batch([("+I", ("a", "x")), ("+I", ("a", "y"))])
    assert run.batch([("-D", ("a", "q")), ("+I", ("a", "z"))]) == [
        ("-U", ("a", "x", "y", "x+y")),
        ("+U", ("a", "x", "z", "x+y+z")),
    ]


def test_a_group_that_expired_starts_a_new_order() -> None:
    operator = aggregate(*IN_ORDER[:3], types=(pa.string(),) * 3, columns=ORDERED, ttl=100)
    run = Run(operator)
    run.batch([("+I", ("a", "x"))], now=0)
    run.batch([("+I", ("a", "y"))], now=60)
    # 'x' has expired by itself: the list is read anew without it, and a retraction of it finds nothing.
    assert run.batch([("-U", ("a", "y")), ("+U", ("a", "z"))], now=120)[-1] == ("+U", ("a", "x", "z", "z"))
    assert run.batch([("-U", ("a", "x")), ("+U", ("a", "w"))], now=130)[-1] == ("+U", ("a", "x", "w", "z+w"))
    assert run.batch([("+I", ("a", "n"))], now=1000) == [("+I", ("a", "n", "n", "n"))]


def test_distinct_values_in_order_of_inserts() -> None:
    operator = aggregate(*IN_ORDER[4:], types=TYPES, columns=ORDERED, changelog=False)
    run = Run(operator)
    first = run.batch(inserts(("a", "x"), ("a", "y"), ("a", "x")))
    assert first == [("+I", ("a", "x", "y", "x+y", ("x", "y")))]
    second = run.batch(inserts(("a", "y"), ("a", None), ("a", "z"), ("a", "x"), ("a", None)))
    assert second[-1] == ("+U", ("a", "x", "z", "x+y+z", ("x", "y", None, "z")))


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": None, "b": None}, None]),
        (pa.list_(pa.string()), [["x", None], [], None]),
        (pa.map_(pa.string(), pa.float64()), [[("x", 0.5), ("y", None)], [], None]),
        (pa.decimal128(38, 6), [Decimal("1.5"), None, Decimal("-2.25")]),
        (pa.bool_(), [True, None, False]),
    ],
)
def test_an_array_has_values_of_any_type(changelog: bool, kind: pa.DataType, values: list) -> None:
    columns = pa.schema([("k", pa.string()), ("v", kind)])
    operator = aggregate(
        call("ARRAY_AGG", "v", "ARRAY<STRING>"), types=(pa.list_(kind),), columns=columns, changelog=changelog
    )
    run = Run(operator)
    one, two, three = values
    first, second, third = (hashable(value, kind) for value in values)
    run.batch(inserts(("a", one), ("a", two)))
    run.batch(inserts(("b", one)))
    assert run.batch(inserts(("a", three), ("a", one)))[-1] == ("+U", ("a", (first, second, third, first)))
    if changelog:
        assert run.batch([("-D", ("a", one))])[-1] == ("+U", ("a", (second, third, first)))
        assert run.batch([("-D", ("a", three)), ("-D", ("a", two))])[-1] == ("+U", ("a", (first,)))
        assert run.batch([("-D", ("a", one))]) == [("-D", ("a", (first,)))]
