"""Aggregates whose result depends on the order of rows: FIRST_VALUE, LAST_VALUE and LISTAGG, against own lists."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.aggregates import Run, aggregate, call, inserts
from tests.runtime.changelog import Event, colliding_hash, fold, stable_hash


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
    """Lists of values per group, as Flink's FirstValueWithRetract and its like keep them; DISTINCT counts beside it."""

    def __init__(self) -> None:
        self.rows: Counter = Counter()
        self.values: dict[str, list[str]] = {}
        self.copies: Counter = Counter()

    def process(self, event: Event) -> None:
        kind, (key, value) = event
        sign = 1 if kind in ("+I", "+U") else -1
        self.rows[key] += sign
        values = self.values.setdefault(key, [])
        if value is not None:
            self.copies[key, value] += sign
            if sign > 0:
                values.append(value)
            else:
                values.remove(value)
        if not self.rows[key]:
            del self.rows[key]

    def once(self, key: str, history: list[Event]) -> list[str]:
        """The values of a group in the order in which they last came to be there."""
        copies: Counter = Counter()
        found: list[str] = []
        for kind, (group, value) in history:
            if group != key or value is None:
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
            ends = [*((v[0], v[-1], "+".join(v)) if v else (None,) * 3 for v in (values, once))]
            found[(key, *ends[0], *ends[1])] += 1
        return found


ORDERED = pa.schema([("k", pa.string()), ("v", pa.string())])
IN_ORDER = tuple(
    call(function, "v", "STRING", **({"distinct": True} if distinct else {}), **options)
    for distinct in (False, True)
    for function, options in (("FIRST_VALUE", {}), ("LAST_VALUE", {}), ("LISTAGG", {"separator": "+"}))
)


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
    operator = aggregate(*IN_ORDER, types=(pa.string(),) * 6, columns=ORDERED)
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
    operator = aggregate(*IN_ORDER[3:], types=(pa.string(),) * 3, columns=ORDERED, changelog=False)
    run = Run(operator)
    assert run.batch(inserts(("a", "x"), ("a", "y"), ("a", "x"))) == [("+I", ("a", "x", "y", "x+y"))]
    assert run.batch(inserts(("a", "y"), ("a", "z"), ("a", "x")))[-1] == ("+U", ("a", "x", "z", "x+y+z"))
