"""When a run tells of a batch that has not ended, and when it says that one seems to be stuck."""

from __future__ import annotations

import pytest

from hintplan.runtime.run.patience import Patience


def looked_at(patience: Patience, *times: float, ended: int = 7) -> list[float]:
    """The times at which a batch that is at work all the time is looked at."""
    return [now for now in times if patience.due(now, working=True, ended=ended) is not None]


def test_a_batch_is_told_of_after_five_seconds_and_then_at_its_pace() -> None:
    assert looked_at(Patience(pace=10.0), *map(float, range(40))) == [5.0, 15.0, 25.0, 35.0]


def test_quick_batches_are_not_told_of() -> None:
    patience = Patience(pace=10.0)
    assert [patience.due(float(now), working=True, ended=now // 4) for now in range(100)] == [None] * 100


def test_an_idle_stream_is_silent() -> None:
    patience = Patience(pace=10.0)
    assert [patience.due(float(now), working=now % 4 == 0, ended=7) for now in range(100)] == [None] * 100


def stuck_at(patience: Patience, done: dict[int, int | None], until: int = 1000) -> list[int]:
    """The seconds at which a batch is called stuck; ``done`` says since when how many of its tasks have ended."""
    found = []
    for now in range(until):
        running = patience.due(float(now), working=True, ended=7)
        if running is not None:
            tasks = done[max(since for since in done if since <= now)]
            if patience.stuck(running, patience.quiet(float(now), tasks)):
                found.append(now)
    return found


def after(*durations_ms: int) -> Patience:
    patience = Patience(pace=5.0)
    for duration in durations_ms:
        patience.took(duration)
    return patience


@pytest.mark.parametrize(
    ("patience", "done", "stuck"),
    [
        pytest.param(after(*[2_000] * 20), {0: 0}, [65], id="quick before, now more than a minute"),
        pytest.param(after(*[10_000] * 20), {0: 0}, [105], id="ten times the usual 10 s"),
        pytest.param(after(1_000, *[10_000] * 5, *[1_000] * 15), {0: 0}, [65], id="half of them were quick"),
        pytest.param(after(*[2_000] * 20), {0: 0, 50: 1}, [110], id="a task has ended after 50 s, a minute ago at 110"),
        pytest.param(after(*[2_000] * 20), {n: n for n in range(1000)}, [], id="tasks end all the time"),
        pytest.param(after(2_000), {0: 0}, [300], id="nothing is known yet of what is usual"),
        pytest.param(after(*[2_000] * 3), {0: None}, [65], id="Spark Connect tells of no tasks"),
        pytest.param(after(*[200_000] * 3), {0: 0}, [], id="batches are long here"),
    ],
)
def test_a_batch_is_called_stuck_once_when_it_takes_much_longer_and_no_task_ends(
    patience: Patience, done: dict[int, int | None], stuck: list[int]
) -> None:
    assert stuck_at(patience, done) == stuck


def test_the_next_batch_may_be_stuck_too() -> None:
    patience = after(*[2_000] * 20)
    for ended in (7, 8):
        said = []
        for now in range(ended * 100, ended * 100 + 100):
            running = patience.due(float(now), working=True, ended=ended)
            said += [now] if running is not None and patience.stuck(running, patience.quiet(float(now), 0)) else []
        assert said == [ended * 100 + 65]
