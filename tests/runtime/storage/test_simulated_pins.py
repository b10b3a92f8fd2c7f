"""Schedules in which a lookup answers otherwise at each call leave the state that the sinks were given.

A rule that is left out is missed: what is not pinned, or not gone by, makes state and sinks disagree.
"""

from __future__ import annotations

from typing import Any

import pytest

from hintplan.runtime.storage.names import batch_of
from hintplan.runtime.storage.pins import BatchPins, Pin
from tests.runtime.storage import simulate_pins
from tests.runtime.storage.schedules import Violation
from tests.runtime.storage.simulate_pins import AskingSchedule
from tests.sample import sampled

pytestmark = pytest.mark.part(of=2)

_TRIED = 400


@pytest.mark.parametrize("begin", range(0, 60, 20))
def test_the_state_is_what_the_sinks_were_given(begin: int) -> None:
    for seed in range(begin, begin + 20):
        AskingSchedule(seed).run()


@pytest.mark.integration
@pytest.mark.parametrize("begin", sampled(range(1_000, 2_200, 200), keep=1))
def test_thousands_of_schedules(begin: int) -> None:
    for seed in range(begin, begin + 200):
        AskingSchedule(seed).run()


def _is_found() -> bool:
    for seed in range(_TRIED):
        try:
            AskingSchedule(seed).run()
        except Violation:
            return True
    return False


def test_answers_that_are_not_pinned_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchPins, "find", lambda self, token: None)
    monkeypatch.setattr(BatchPins, "heeded", lambda self: {})
    monkeypatch.setattr(BatchPins, "publish", lambda self, token, pin: pin)
    assert _is_found()


def test_a_task_that_was_not_first_and_goes_by_its_own_answers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = BatchPins.publish

    def own(self: BatchPins, token: str, pin: Pin) -> Pin:
        publish(self, token, pin)
        return pin

    monkeypatch.setattr(BatchPins, "publish", own)
    assert _is_found()


def test_pins_of_other_tasks_that_are_not_looked_at_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchPins, "heeded", lambda self: {})
    assert _is_found()


def test_answers_of_two_kinds_of_which_one_is_taken_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hintplan.runtime.requests.pins._answer", lambda pin, at, begin: [])
    assert _is_found()


def test_pins_of_dead_processes_that_a_run_has_not_heeded_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(names: Any, batch: int, read: Any) -> tuple[str, ...]:
        return tuple(name for name in names if batch_of(name) == batch and not name.startswith("."))

    monkeypatch.setattr(simulate_pins, "heeded_pins", all_of_them)
    assert _is_found()


def test_pins_that_go_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep(self: Any) -> None:
        for name in self._files.names(self.place.folder):
            if not name.startswith("."):
                self._files.remove(f"{self.place.folder}/{name}")

    monkeypatch.setattr(BatchPins, "_sweep", sweep)
    assert _is_found()


def test_pins_that_stay_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchPins, "_sweep", lambda self: None)
    assert _is_found()
