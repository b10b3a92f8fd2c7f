"""Variances and deviations give what Python's statistics say of the values that are there, however rows are cut."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hintplan.runtime.engine.process import joined
from hintplan.runtime.state.memory import MemoryStore
from tests.runtime.aggregates import Run, aggregate, call, inserts
from tests.runtime.changelog import Event, delta, events_of

FUNCTIONS: dict[str, tuple[Callable[[list[float]], float], int]] = {
    "VAR_POP": (statistics.pvariance, 1),
    "VAR_SAMP": (statistics.variance, 2),
    "STDDEV_POP": (statistics.pstdev, 1),
    "STDDEV_SAMP": (statistics.stdev, 2),
}
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.float64())])
CALLS = tuple(call(function, "v", "DOUBLE") for function in FUNCTIONS)
TYPES = (pa.float64(),) * 4
NUMBERS = st.sampled_from([None, 0.0, 0.1, -2.5, 3.0, 1000.0, 1000.25, 1007.0])


def expected(values: list[float]) -> list[float | None]:
    return [reference(values) if len(values) >= least else None for reference, least in FUNCTIONS.values()]


def alike(found: list[float | None], wanted: list[float | None]) -> bool:
    """Up to what is lost where a number goes that is large beside those that are left."""
    slack = [3e-5 if "STDDEV" in name else 1e-9 for name in FUNCTIONS]
    pairs = zip(found, wanted, slack, strict=True)
    return all(a == b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=s) for a, b, s in pairs)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    rows: list[tuple] = []
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 30))):
        if rows and draw(st.booleans()):
            events.append(("-D", rows.pop(draw(st.integers(0, len(rows) - 1)))))
        else:
            rows.append((draw(st.sampled_from(["a", "b", None])), draw(NUMBERS)))
            events.append(("+I", rows[-1]))
    return events


@pytest.mark.parametrize("distinct", [False, True])
@settings(max_examples=100, deadline=None)
@given(history=histories(), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_values_that_go_are_taken_out_however_the_input_is_cut(
    distinct: bool, history: list[Event], cuts: list[int]
) -> None:
    calls = tuple(replace(call, distinct=distinct) for call in CALLS)
    run = Run(aggregate(*calls, types=TYPES, columns=COLUMNS))
    shown: dict[str | None, list[float | None]] = {}
    there: dict[str | None, list[float | None]] = {}
    done = 0
    for end in [*sorted(cuts), len(history)]:
        for kind, (key, value) in history[done:end]:
            group = there.setdefault(key, [])
            group.append(value) if kind == "+I" else group.remove(value)
        for kind, (key, *results) in run.batch(history[done:end]):
            if kind in ("+I", "+U"):
                shown[key] = results
            else:
                shown.pop(key)
        done = max(done, end)
        assert shown.keys() == {key for key, values in there.items() if values}
        for key, results in shown.items():
            values = [v for v in there[key] if v is not None]
            assert alike(results, expected(list(set(values)) if distinct else values))


def test_numbers_that_differ_little_lose_nothing() -> None:
    values = [1e9 + v for v in (4, 7, 13, 16)]
    run = Run(aggregate(*CALLS, types=TYPES, columns=COLUMNS, changelog=False))
    for value in values:
        (*_, (_, (_, *found))) = run.batch(inserts(("a", value)))
    assert found == pytest.approx([22.5, 30, math.sqrt(22.5), math.sqrt(30)], rel=1e-12)


@pytest.mark.parametrize("changelog", [False, True])
def test_equal_values_do_not_differ_at_all(changelog: bool) -> None:
    run = Run(aggregate(*CALLS, types=TYPES, columns=COLUMNS, changelog=changelog, ttl=1))
    run.batch(inserts(*[("a", 0.1)] * 7))
    assert run.batch(inserts(*[("a", 0.1)] * 3))[-1][1] == ("a", 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_can_be_taken_back(odd: float, distinct: bool) -> None:
    calls = tuple(replace(call, distinct=distinct) for call in CALLS)
    run = Run(aggregate(*calls, types=TYPES, columns=COLUMNS))
    run.batch(inserts(("a", 1.0), ("a", 3.0)))
    (*_, (_, (_, *found))) = run.batch(inserts(("a", odd)))
    assert all(math.isnan(v) for v in found)
    assert run.batch([("-D", ("a", odd))])[-1] == ("+U", ("a", 1.0, 2.0, 1.0, math.sqrt(2)))
    assert math.isnan(run.batch(inserts(("b", odd)))[-1][1][1])
    assert run.batch(inserts(("b", None))) == []


@pytest.mark.parametrize(
    ("kind", "values"),
    [(pa.int64(), [2**62, 2**62 + 2**40, -5]), (pa.int8(), [-128, 127, 3]), (pa.float32(), [0.5, 8.25])],
)
def test_numbers_of_other_types_are_doubles(kind: pa.DataType, values: list) -> None:
    columns = pa.schema([("k", pa.string()), ("v", kind)])
    run = Run(aggregate(*CALLS, types=TYPES, columns=columns))
    (_, (_, *found)) = run.batch(inserts(*(("a", v) for v in values)))[-1]
    assert found == pytest.approx(expected([float(v) for v in values]))


def test_parts_of_a_batch_that_are_summed_up_beforehand_give_the_same() -> None:
    operator = aggregate(*CALLS, call("COUNT"), types=(*TYPES, pa.int64()), columns=COLUMNS, changelog=False)
    (spec,) = operator.inputs
    assert spec.presum is not None
    numbers = np.random.default_rng(5).normal(1e6, 3, 60).tolist()
    pieces = [delta(spec, inserts(*(("a", v) for v in numbers[begin : begin + 20]))) for begin in (0, 20, 40)]
    rows = joined([piece if n == 1 else spec.presum.sum_up(piece) for n, piece in enumerate(pieces)], spec.presum)
    ((_, (_, *found)),) = events_of(operator.process((rows,), None, MemoryStore(), 0).output)
    assert found == pytest.approx([*expected(numbers), 60], rel=1e-9)


def test_a_changing_input_is_not_summed_up_beforehand() -> None:
    assert aggregate(*CALLS, types=TYPES, columns=COLUMNS).inputs[0].presum is None
