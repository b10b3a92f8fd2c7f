"""When a run is started again: what Flink 2.3 documents of its exponential delay, counted by hand."""

from __future__ import annotations

import random

from runtime.supervision.restarts import NEVER, Restarts, Strategy


def delays(strategy: Strategy, *at: float) -> list[float | None]:
    restarts = Restarts(strategy, chance=lambda: 0.5)  # neither longer nor shorter
    return [restarts.delay(now) for now in at]


def test_by_default_there_is_no_restart() -> None:
    assert delays(NEVER, 0.0) == [None]


def test_a_pause_grows_to_the_longest() -> None:
    grows = Strategy(attempts=None, first=1.0, factor=2.0, longest=10.0)
    assert delays(grows, *range(0, 60, 10)) == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_there_are_so_many_attempts_in_a_row() -> None:
    assert delays(Strategy(attempts=2, factor=1.0), 0.0, 5.0, 10.0, 15.0) == [1.0, 1.0, None, None]


def test_a_run_that_went_well_for_some_time_begins_anew() -> None:
    strategy = Strategy(attempts=2, factor=2.0, reset=100.0)
    # The second failure comes 100 s after the run went on, which was 1 s after the first.
    assert delays(strategy, 0.0, 101.0, 202.0, 303.0) == [1.0, 1.0, 1.0, 1.0]
    assert delays(strategy, 0.0, 100.9, 202.8) == [1.0, 2.0, None]


def test_pauses_of_many_jobs_differ_by_chance_and_stay_within_bounds() -> None:
    strategy = Strategy(attempts=None, first=1.0, factor=1.5, jitter=0.1, longest=60.0)
    chance = random.Random(7).random
    found = [[r.delay(now) for now in range(15)] for r in (Restarts(strategy, chance) for _ in range(50))]
    for number in range(15):
        middle = min(1.5**number, 60.0)
        pauses = [each[number] for each in found]
        assert all(max(1.0, 0.9 * middle) <= pause <= min(60.0, 1.1 * middle) for pause in pauses if pause is not None)
        assert len(set(pauses)) > 20
