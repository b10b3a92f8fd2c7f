"""Simulates pins: schedules in which a lookup answers otherwise at each call, and sinks that take each batch once.

    python -m tests.runtime.storage.simulate_pins --schedules 20000

Rows ask for their values before they are folded into state. What the sinks were given is what the state must be. Runs
divide the rows of a batch among tasks as they like, so that a replay finds its answers in the pins of other tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import pyarrow as pa

from hintplan.plans.errors import RunError
from hintplan.runtime.kernels.found_rows import KeyedRows
from hintplan.runtime.requests.pins import TaskPins
from hintplan.runtime.storage.partition import Remembered
from hintplan.runtime.storage.pins import BatchPins, PinPlace, RememberedPins, heeded_pins, question_of
from hintplan.runtime.storage.place import Place
from tests.runtime.storage.folding import Output, Row
from tests.runtime.storage.schedules import Attempt, Violation
from tests.runtime.storage.simulate import Schedule, simulate
from tests.runtime.storage.stepped_files import SteppedFiles

_FOUND = pa.schema([("value", pa.int64())])
_FOLDER = "pins"


class AskingSchedule(Schedule):
    """One simulated life of a checkpoint with a lookup."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, trace)
        self.settings = replace(self.settings, differs=False, links=True)
        self._files = SteppedFiles(self.disk)
        self.sinks: list[dict[int, dict[int, Output]]] = [{} for _ in range(self.rng.choice((1, 1, 2)))]
        self.first_by: dict[int, int] = {}
        """The run of each batch that was the first to give it to a sink."""
        self.turn = 0
        self.tasks: dict[int, int] = {}
        """Into how many tasks each run divides the rows of a batch, by its number."""
        self.pins: dict[int, PinPlace] = {}
        self.forced: int | None = None
        self.stays = self.rng.random() < 0.5
        self.calls = count(1)
        self.counts |= {"asked": 0, "divided": 0}
        self._memories: dict[int, tuple[Remembered, RememberedPins]] = {}

    # --- the driver ---------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        batch, number = len(self.log.commits), self.place.run
        if number not in self.pins:
            replayed = batch if batch < len(self.log.offsets) else -1
            there = self.disk.folders.get(_FOLDER, {})
            heeded = heeded_pins(there, replayed, there.__getitem__)
            any_number = 2 if self.stays else self.rng.randint(1, 3)
            self.tasks[number] = self.forced or any_number
            self.pins[number] = PinPlace(
                root="mem",
                folder=_FOLDER,
                operator="ask",
                run=number,
                replayed=replayed,
                heeded=heeded,
                division=str(self.tasks[number]),
            )
            self.forced = None
        self.turn = 0
        super()._plan()

    def _commit(self) -> None:
        if self.turn == len(self.sinks):
            if any(sink[self.batch] != self.sinks[0][self.batch] for sink in self.sinks):
                raise Violation(f"sinks were given {[sink[self.batch] for sink in self.sinks]} in batch {self.batch}")
            super()._commit()
            return
        self._say(f"sink {self.turn} is given batch {self.batch}")
        self.sinks[self.turn].setdefault(self.batch, dict(self.finished))
        self.first_by.setdefault(self.batch, self.place.run)
        self.turn += 1
        if self.finished and self.rng.random() < 0.3:  # what a task put out is lost, and made again for the next sink
            lost = self.rng.choice(list(self.finished))
            del self.finished[lost]
            self._attempt(lost)

    def after(self, partition: int, model: dict[int, int]) -> dict[int, int]:
        state = dict(model)
        for key, before, value in self.sinks[0][self.batch][partition]:
            if state.get(key) != before:
                raise Violation(f"a sink was given {before} to take back, and has {state.get(key)}")
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
        return state

    def _compare_output(self, attempt: Attempt) -> None:
        before = self.models[attempt.batch][attempt.partition]
        rows = self.rows(attempt.run, attempt.batch, attempt.partition)
        wanted = [(key, before.get(key), value is None) for key, value in rows]
        if [(key, old, value is None) for key, old, value in attempt.task.result] != wanted:
            raise Violation(f"{self._named(attempt)} put out {attempt.task.result}, which is not for {wanted}")

    def _has_ended(self, attempt: Attempt) -> None:
        error = attempt.task.error
        current = self.is_on and attempt.run == self.this_run and attempt.batch == self.batch
        # A dead run may still name pins that were removed, as it was told, before it wrote its own.
        hints = ("divided among tasks", "is missing, on which an earlier run of")
        if isinstance(error, RunError) and any(hint in str(error) for hint in hints) and current:
            self._follow_hint()
            return
        super()._has_ended(attempt)

    def _follow_hint(self) -> None:
        """The next run divides rows as the one did that a sink has rows of; if none has any, the pins are removed."""
        self.counts["divided"] += 1
        if len(set(self.tasks.values())) == 1:
            raise Violation("rows were divided as ever, and a run was refused")
        if self.batch in self.first_by:
            self.forced = self.tasks[self.first_by[self.batch]]
        else:
            for name in list(self.disk.folders.get(_FOLDER, ())):
                if name.startswith(f"{self.batch}."):
                    self.disk.drop(f"{_FOLDER}/{name}")
        self._driver_dies()

    # --- the lookup ---------------------------------------------------------------------------------------------------

    def _work(self, place: Place, partition: int, batch: int, rows: Sequence[Row], remembered: Remembered) -> Output:
        answered = tuple(self._answered(place, partition, batch, rows, remembered)) if rows else ()
        return super()._work(place, partition, batch, answered, remembered)

    def _answered(
        self, place: Place, partition: int, batch: int, rows: Sequence[Row], remembered: Remembered
    ) -> list[Row]:
        """``rows`` with what the lookup says for their values; each task asks for all that its rows need."""
        others = {partition: rows}
        if tuple(rows) == self.rows(0, batch, partition):
            others = {each: self.rows(0, batch, each) for each in range(self.settings.partitions)}
        tasks, everything = self.tasks[place.run], [(p, row) for p in sorted(others) for row in others[p]]
        answered: list[Row] = []
        for task in range(tasks):
            mine = everything[task::tasks]
            if not any(p == partition for p, _ in mine):
                continue
            keys = sorted({key % 3 for _, (key, value) in mine if value is not None})
            values = self.ask(place.run, batch, task, repr(mine).encode(), keys, remembered)
            found = dict(zip(keys, values, strict=True))
            answered += [(key, None if value is None else found[key % 3]) for p, (key, value) in mine if p == partition]
        order = {key: number for number, (key, _) in enumerate(rows)}
        return sorted(answered, key=lambda row: order[row[0]])

    def ask(
        self, run: int, batch: int, task: int, rows: bytes, keys: Sequence[int], remembered: Remembered
    ) -> list[int]:
        """The value for each of ``keys``, another one each time that the lookup is asked."""
        if not keys:
            return []
        _, memory = self._memories.setdefault(id(remembered), (remembered, RememberedPins()))
        pins = TaskPins(BatchPins(self._files, self.pins[run], batch, memory), task)
        questions = [question_of((key,)) for key in keys]
        known = pins.known(rows, questions, _FOUND)
        if not known.whole:
            self.counts["asked"] += 1
            new = int(np.count_nonzero(known.left))
            values = pa.table([[next(self.calls) for _ in range(new)]], schema=_FOUND)
            fresh = KeyedRows(table=values, start=np.arange(new), count=np.ones(new, np.int64))
            known = pins.completed(known, fresh)
        return [int(known.answers.table["value"][int(start)].as_py()) for start in known.answers.start]

    def _wind_up(self) -> None:
        super()._wind_up()
        last = len(self.log.commits) + self.settings.kept + self.settings.swept + 3
        oldest = last - self.settings.kept - self.settings.swept
        old = [name for name in self.disk.folders.get(_FOLDER, ()) if int(name.lstrip(".").partition(".")[0]) < oldest]
        if old:
            raise Violation(f"nobody needs the pins {sorted(old)} any more, all before batch {oldest}")


if __name__ == "__main__":
    sys.exit(simulate(AskingSchedule))
