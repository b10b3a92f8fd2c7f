"""Any delays, failures, batches and capacities: the same rows in order, never too many calls, no place left idle."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.functions.simulation import Script, schedule, simulate

# Calls take multiples of 10 ms and timeouts end between them, so nothing falls together within a row.
delays = st.integers(0, 5).map(lambda tens: 10 * tens)
scripts = st.lists(
    st.builds(Script, delays=st.lists(delays, min_size=1, max_size=3).map(tuple), rows=st.integers(0, 3)),
    min_size=1,
    max_size=40,
)
sizes = st.lists(st.integers(1, 12), min_size=1, max_size=4)
EXAMPLES = settings(max_examples=150, deadline=None)


@EXAMPLES
@given(scripts=scripts, sizes=sizes, capacity=st.integers(1, 8), left=st.booleans())
def test_rows_come_in_the_order_of_the_input_and_no_place_is_idle_while_rows_wait(
    scripts: list[Script], sizes: list[int], capacity: int, left: bool
) -> None:
    outcome = simulate(scripts, sizes, left=left, capacity=capacity, retries=2, delay=30)
    expected: list[tuple[int, int | None]] = []
    for row, script in enumerate(scripts):
        expected += [(row, 100 * row + n) for n in range(script.rows)]
        if left and not script.rows:
            expected.append((row, None))
    assert outcome.failure is None
    assert outcome.rows == expected
    durations = [script.duration(2, 30)[0] for script in scripts]
    starts = schedule(durations, capacity)
    assert abs(outcome.elapsed - max(map(sum, zip(starts, durations, strict=True)))) < 0.01
    counters, world = outcome.counters, outcome.world
    assert counters.inFlightMax == world.most_running <= capacity
    assert counters.calls == len(world.calls) == sum(len(script.delays) for script in scripts)
    assert counters.repeats == counters.failures == counters.calls - len(scripts)
    assert counters.rowsOut == len(expected)
    first_calls = list(dict.fromkeys(row for row, _ in world.calls))
    assert first_calls == list(range(len(scripts))), "calls start in the order of the rows"


@EXAMPLES
@given(scripts=scripts, sizes=sizes, capacity=st.integers(1, 8), retries=st.integers(0, 2), tens=st.integers(1, 12))
def test_the_first_row_that_fails_or_takes_too_long_ends_everything_at_that_moment(
    scripts: list[Script], sizes: list[int], capacity: int, retries: int, tens: int
) -> None:
    limit = 10 * tens + 5
    outcome = simulate(scripts, sizes, capacity=capacity, retries=retries, delay=20, timeout=limit)
    found = [script.duration(retries, 20) for script in scripts]
    starts = schedule([duration for duration, _ in found], capacity)
    failures = {}
    for row, (start, (duration, answered)) in enumerate(zip(starts, found, strict=True)):
        if duration > limit:
            failures[row] = (start + limit, f"f({row}) timed out after {limit} ms, {limit} ms are allowed")
        elif not answered:
            times = "" if not retries else f" {retries + 1} times"
            failures[row] = (start + duration, f"f({row}) failed{times}: ConnectionError: away for {row}")
    if not failures:
        assert outcome.failure is None
        assert len(outcome.rows) == sum(script.rows for script in scripts)
        return
    first = min(at for at, _ in failures.values())
    assert abs(outcome.elapsed - first) < 0.01
    assert outcome.failure is not None
    assert any(text in outcome.failure for at, text in failures.values() if at == first)
    assert "operator correlate_f: " in outcome.failure
    assert outcome.world.running == 0
    assert all(at - 1_000_000 <= first + 0.01 for _, at in outcome.world.calls), "calls went on after the failure"


def test_the_next_batches_are_pulled_while_a_call_of_an_earlier_one_is_in_flight() -> None:
    slow, quick = Script(delays=(1000,)), Script(delays=(10,))
    outcome = simulate([slow, *[quick] * 99], [1], capacity=2)
    assert [row for row, _ in outcome.rows] == list(range(100))
    assert abs(outcome.elapsed - 1000) < 0.01, "99 rows of 10 ms fit beside the slow one"


def test_an_empty_result_is_an_answer_and_is_not_asked_for_again() -> None:
    outcome = simulate([Script(delays=(10,), rows=0)], [1], left=True, retries=3, delay=10)
    assert outcome.rows == [(0, None)]
    assert (outcome.counters.calls, outcome.counters.failures) == (1, 0)


def test_without_retries_the_first_exception_fails() -> None:
    outcome = simulate([Script(delays=(10, 10))], [1], capacity=1)
    assert outcome.failure is not None
    assert "f(0) failed: ConnectionError: away for 0" in outcome.failure
    assert outcome.counters.calls == 1
