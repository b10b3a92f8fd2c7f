"""Simulates the protocol of state: schedules of attempts, crashes, zombies, replays, sweeps and compactions, against a
model.

    python -m tests.runtime.storage.simulate --schedules 20000
    python -m tests.runtime.storage.simulate --seed 1234 --schedules 1 --trace     # one schedule again

A schedule is all decided by its seed. Partitions of the real store run an operator that folds rows into a dictionary; a
driver plans batches, has their partitions attempted, commits them, dies and begins anew, as Spark does. What the state
must be, a dictionary for each partition says, folded from the rows of the committed batches.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from hintplan.plans.errors import RunError
from hintplan.runtime.storage import partition as protocol
from hintplan.runtime.storage.committed import manifests_in_force
from hintplan.runtime.storage.open_segments import OpenSegments
from hintplan.runtime.storage.partition import PartitionStore, Remembered, open_partition
from hintplan.runtime.storage.place import Place, Scale, folder_of
from hintplan.runtime.storage.rewritten import remove_the_rest, rewrite_partition
from tests.runtime.storage.folding import Output, Row, compact, expected, process, read_state
from tests.runtime.storage.schedules import (
    Attempt,
    Checkpoint,
    Compaction,
    Overtaken,
    Reader,
    Settings,
    Violation,
    Worker,
    patched,
)
from tests.runtime.storage.stepped_files import Disk, Order, SteppedFiles, Task

_MOST_RUNS = 8
_ORDERS: Sequence[Order] = ("crash before", "crash after", "fail before", "fail after")


class Schedule:
    """One simulated life of a checkpoint; ``run`` raises Violation if anything is not as it must be."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.settings = Settings.of(self.rng)
        self.disk = Disk()
        self.log = Checkpoint()
        self.models: list[list[dict[int, int]]] = [[{} for _ in range(self.settings.partitions)]]
        self.workers: list[Worker] = []
        self.running: list[Attempt] = []
        self.readers: list[Reader] = []
        self.finished: dict[int, Output] = {}
        self.number = 0
        self.is_on = False
        self.tokens = 0
        self._checked: dict[int, tuple[int, int, int]] = {}
        self.counts = {"runs": 0, "replays": 0, "zombies": 0, "attempts": 0, "steps": 0, "reads": 0, "compactions": 0}
        self._trace = trace
        self._files = SteppedFiles(self.disk, links=self.settings.links)

    # --- the driver ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        with patched(self.settings):
            try:
                self._begin_run()
                while len(self.log.commits) < self.settings.batches:
                    self._event()
                    self.counts["steps"] += 1
                    if self.counts["steps"] > 20_000:
                        raise Violation("no end")
                self._wind_up()
            except Violation as error:
                raise Violation(f"seed {self.seed}: {error}\n{self.settings}\n{self._listing()}") from error
            finally:
                self.disk.frozen = True
                for one in (*self.running, *self.readers):
                    one.task.step("crash before")

    def _begin_run(self) -> None:
        """A run begins after the last committed batch; its number is higher than all before."""
        self.number = self.next_number()
        self.counts["runs"] += 1
        self.is_on = True
        self.place = Place(
            root="mem",
            operator="fold",
            run=self.number,
            scales=(Scale(self.settings.partitions),),
        )
        self._say(f"run {self.this_run} begins as number {self.number} with batch {len(self.log.commits)}")
        for worker in self.workers:
            if worker.attempts == 0 and self.rng.random() > self.settings.survives:
                worker.alive = False
        self.workers = [worker for worker in self.workers if worker.alive]
        self._plan()

    @property
    def this_run(self) -> int:
        return self.counts["runs"]

    def next_number(self) -> int:
        return self.number + self.rng.randint(1, 3)

    def _plan(self) -> None:
        """The next batch: one that an earlier run has planned is what it was."""
        self.batch = len(self.log.commits)
        self.finished = {}
        if self.batch == len(self.log.offsets):
            idle = {"never": False, "at times": self.rng.random() < 0.3, "every other": self.batch % 2 == 0}
            self.log.offsets.append(not idle[self.settings.idle])
        else:
            self.counts["replays"] += 1
        self._say(f"batch {self.batch} is planned")
        if self.log.offsets[self.batch]:
            for partition in range(self.settings.partitions):
                self._attempt(partition)

    def rows(self, run: int, batch: int, partition: int) -> tuple[Row, ...]:
        """What a partition is given in a batch."""
        rng = random.Random(f"{self.seed} {batch} {partition} {run if self.settings.differs else 0}")
        if rng.random() < self.settings.quiet:
            return ()
        keys = rng.sample(range(8), rng.randint(1, 4))
        return tuple((key, None if rng.random() < 0.4 else rng.randrange(1000)) for key in keys)

    def _attempt(self, partition: int) -> None:
        worker = self._worker()
        worker.attempts += 1
        self.counts["attempts"] += 1
        place, batch, rows = self.place, self.batch, self.rows(self.this_run, self.batch, partition)
        task = Task(lambda: self._work(place, partition, batch, rows, worker.remembered))
        pace = self.rng.choice((1.0, 1.0, 1.0, 0.1, 0.01))
        attempt = Attempt(run=self.this_run, batch=batch, partition=partition, worker=worker, task=task, pace=pace)
        self.running.append(attempt)
        task.step()

    def _work(self, place: Place, partition: int, batch: int, rows: Sequence[Row], remembered: Remembered) -> Output:
        store = open_partition(self._files, place, partition, batch, remembered, self._token)
        output, tables, state_rows, state_bytes = process(rows, store.tables, store)
        store.publish(tables, state_rows, state_bytes)
        return output

    def _token(self) -> str:
        self.tokens += 1
        return f"{self.tokens:04x}"

    def _worker(self) -> Worker:
        """One that is free, or a new one."""
        free = [worker for worker in self.workers if worker.attempts == 0 or self.settings.shared]
        if free and (len(self.workers) >= self.settings.workers or self.rng.random() < 0.5):
            return self.rng.choice(free)
        worker = Worker(Remembered(opened=OpenSegments(segments=self.settings.opened)))
        self.workers.append(worker)
        return worker

    # --- what happens -------------------------------------------------------------------------------------------------

    def _event(self) -> None:
        chance = self.rng.random()
        dies = self.settings.driver if self.counts["runs"] < _MOST_RUNS else 0.0
        if len(self.finished) == self.settings.partitions or not self.log.offsets[self.batch]:
            if chance < dies * 5:
                self._driver_dies()
            elif chance < 0.5:
                self._commit()
            else:
                self._step_something()
        elif chance < dies:
            self._driver_dies()
        elif chance < dies + self.settings.readers:
            self._read()
        elif chance < dies + self.settings.readers + self.settings.speculation:
            self._speculate(self.rng.randrange(self.settings.partitions))
        else:
            self._step_something()

    def _speculate(self, partition: int) -> None:
        """One more attempt of a task, also of one that has ended: what it put out may have been lost."""
        task = (self.this_run, self.batch, partition)
        if sum((each.run, each.batch, each.partition) == task for each in self.running) < 2:
            self._attempt(partition)
        else:
            self._step_something()

    def _step_something(self) -> None:
        every = [*self.running, *self.readers]
        if not every:
            return
        (one,) = self.rng.choices(every, [each.pace for each in every])
        order: Order = "go on"
        if isinstance(one, Attempt) and self.rng.random() < self.settings.faults:
            order = self.rng.choice(_ORDERS)
        self._step(one, order)

    def _step(self, one: Attempt | Reader, order: Order = "go on") -> None:
        self._say(f"{self._named(one)}: {one.task.waiting if order == 'go on' else order}")
        if isinstance(one, Attempt) and order != "go on":
            one.spoilt = True
        if not one.task.step(order):
            return
        if isinstance(one, Reader):
            self.readers.remove(one)
            self._has_read(one)
            return
        self.running.remove(one)
        one.worker.attempts -= 1
        if order.startswith("crash") and one.worker in self.workers:
            self._worker_dies(one.worker)
        self._has_ended(one)

    def _worker_dies(self, worker: Worker) -> None:
        self.workers.remove(worker)
        for other in [other for other in self.running if other.worker is worker]:
            self.running.remove(other)
            other.task.step("crash before")
            other.spoilt = True
            self._has_ended(other)

    def _has_ended(self, attempt: Attempt) -> None:
        current = self.is_on and attempt.run == self.this_run and attempt.batch == self.batch
        error = attempt.task.error
        if error is None and current:
            self._compare_output(attempt)
            self.finished[attempt.partition] = attempt.task.result
        elif error is not None and not (attempt.spoilt or isinstance(error, RunError | OSError)):
            raise Violation(f"{self._named(attempt)} failed: {error!r}") from error
        elif error is not None and current:
            if not attempt.spoilt:
                raise Violation(f"{self._named(attempt)} failed, which nothing has disturbed: {error!r}") from error
            if attempt.partition not in self.finished:
                self._attempt(attempt.partition)
        if not current:
            self._check("a zombie has ended")

    def _compare_output(self, attempt: Attempt) -> None:
        before = self.models[attempt.batch][attempt.partition]
        _, wanted = expected(before, self.rows(attempt.run, attempt.batch, attempt.partition))
        if attempt.task.result != wanted:
            raise Violation(f"{self._named(attempt)} put out {attempt.task.result}, not {wanted}")

    def _commit(self) -> None:
        self._say(f"batch {self.batch} is committed")
        if self.log.offsets[self.batch]:
            after = []
            for partition, model in enumerate(self.models[self.batch]):
                after.append(self.after(partition, model))
        else:
            after = list(self.models[self.batch])
        self.log.commits.append(self.this_run)
        self.models.append(after)
        self._check("a batch was committed")
        if self.rng.random() < self.settings.driver * 2 and self.counts["runs"] < _MOST_RUNS:
            if self.rng.random() < 0.3:  # and what was written last of the log is lost, as when a machine loses power
                self.log.commits.pop()
                self.models.pop()
            self._driver_dies()
        else:
            self._plan()

    def after(self, partition: int, model: dict[int, int]) -> dict[int, int]:
        """The state of a partition when the batch is committed."""
        state, _ = expected(model, self.rows(self.this_run, self.batch, partition))
        return state

    def _driver_dies(self) -> None:
        """What its run has begun may continue at any time, and end."""
        self._say(f"run {self.this_run} dies in batch {self.batch}")
        self.is_on = False
        for attempt in self.running:
            if attempt.run == self.this_run:
                self.counts["zombies"] += 1
                attempt.pace = self.rng.choice((1.0, 0.1, 0.01, 0.003))
        self._check("a run has died")
        # A dead run's tasks are a batch ahead and may sweep, so what is written to the last one must not be swept yet.
        while self.settings.kept and self.log.commits and self.rng.random() < self.settings.compacted / 2:
            self._compact()
        self._begin_run()

    # --- compactions --------------------------------------------------------------------------------------------------

    def _compact(self) -> None:
        """What dead runs have begun continues meanwhile; it may die at any step."""
        self.number = self.next_number()
        self.counts["compactions"] += 1
        place = replace(self.place, run=self.number)
        last = len(self.log.commits) - 1
        self._say(f"compaction {self.number} of batch {last} begins")
        for reader in self.readers:
            reader.overtaken = True
        compaction = Compaction(Task(lambda: self._rewrite(place, last)))
        ended = compaction.task.step()
        while not ended:
            others = [*self.running, *self.readers]
            if others and self.rng.random() < 0.5:
                (one,) = self.rng.choices(others, [each.pace for each in others])
                self._step(one)
                continue
            order: Order = self.rng.choice(_ORDERS) if self.rng.random() < self.settings.faults * 2 else "go on"
            self._say(f"compaction: {compaction.task.waiting if order == 'go on' else order}")
            ended = compaction.task.step(order)
            self._check("a compaction has gone on")
            if ended and order != "go on":
                return
        if compaction.task.error is not None:
            raise Violation(f"compaction failed: {compaction.task.error!r}") from compaction.task.error

    def _rewrite(self, place: Place, last: int) -> None:
        found = manifests_in_force(self._files, place.scales, last)
        if found is not None:
            after = [
                rewrite_partition(self._files, place, found, partition, compact, self._token)
                for partition in range(place.partitions)
            ]
            remove_the_rest(self._files, place.scales, found.scale, after)

    # --- readers ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        at = len(self.log.commits) - 1
        place = self.place
        task = Task(lambda: self._read_all(place, at))
        self.readers.append(Reader(at=at, task=task, pace=self.rng.choice((1.0, 0.1, 0.01))))
        task.step()
        self.counts["reads"] += 1

    def _read_all(self, place: Place, at: int) -> list[dict[int, int]]:
        found = manifests_in_force(self._files, place.scales, at)
        if found is None and len(self.log.commits) - 1 != at:
            raise Overtaken
        if found is None:
            return [{} for _ in range(place.partitions)]
        bases = [protocol.read_manifest_file(self._files, path) for path in found.paths]
        stores = (
            PartitionStore(self._files, place, partition, at + 1, base, (), Remembered(), self._token)
            for partition, base in enumerate(bases)
        )
        return [read_state(store.tables, store) for store in stores]

    def _state(self, place: Place, partition: int, at: int) -> dict[int, int]:
        store = open_partition(self._files, place, partition, at + 1)
        return read_state(store.tables, store)

    def _has_read(self, reader: Reader) -> None:
        is_late = self.batch > reader.at + 1 + self.settings.kept or isinstance(reader.task.error, Overtaken)
        if is_late or (reader.overtaken and reader.task.error is not None):
            return  # what it needs may be gone
        if reader.task.error is not None:
            raise Violation(f"reading the state after batch {reader.at} failed: {reader.task.error!r}")
        if reader.task.result != self.models[reader.at + 1]:
            raise Violation(f"the state after batch {reader.at} was read as {reader.task.result}")

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _check(self, when: str) -> None:
        """The state after the last committed batch is that of the model, as one reads it who knows nothing."""
        last = len(self.log.commits) - 1
        for partition, model in enumerate(self.models[last + 1]):
            state = (last, self.this_run, self.disk.changes.get(folder_of(0, partition), 0))
            if self._checked.get(partition) == state:
                continue
            self._checked[partition] = state
            try:
                found = self._state(self.place, partition, last)
            except (RunError, OSError) as error:
                raise Violation(f"{when}: partition {partition} after batch {last}: {error!r}") from error
            if found != model:
                raise Violation(f"{when}: partition {partition} after batch {last} is {found}, not {model}")
            names = self.disk.folders.get(folder_of(0, partition), {})
            manifests = [_batch(name) for name in names if name.endswith(".manifest")]
            marks = [_batch(name) for name in names if name.endswith(".written") and _batch(name) <= last]
            if marks and not any(batch >= max(marks) for batch in manifests):
                raise Violation(f"{when}: partition {partition} looks as if it had lost a manifest")

    def _wind_up(self) -> None:
        """All ends, some batches follow without faults, and nothing is left that nobody needs."""
        while self.running or self.readers:
            one = self.rng.choice([*self.running, *self.readers])
            self._step(one, "crash before" if isinstance(one, Attempt) and self.rng.random() < 0.02 else "go on")
        span = self.settings.kept + self.settings.swept
        worker = Worker(Remembered())
        for batch in range(len(self.log.commits), len(self.log.commits) + span + 4):
            if self.settings.idle != "every other" or batch % 2:
                for partition in range(self.settings.partitions):
                    self._work(self.place, partition, batch, ((0, batch),), worker.remembered)
        for partition in range(self.settings.partitions):
            self._check_bounded(partition, batch - span - 2)

    def _check_bounded(self, partition: int, oldest: int) -> None:
        """Each file older than the batch ``oldest`` is one that a newer manifest names, or the manifest before it."""
        folder = folder_of(0, partition)
        names = list(self.disk.folders[folder])
        manifests = sorted(name for name in names if name.endswith(".manifest"))
        kept = [name for name in manifests if _batch(name) >= oldest]
        before = [name for name in manifests if _batch(name) < oldest]
        kept += [name for name in before if _batch(name) == max(map(_batch, before))]
        wanted = {name.removesuffix("manifest") + "written" for name in manifests} | set(kept)
        for name in kept:
            refs = protocol.read_manifest_file(self._files, f"{folder}/{name}").segments.values()
            wanted |= {ref.file.rpartition("/")[2] for ref in refs}
        left = sorted(name for name in names if _batch(name) < oldest and name not in wanted)
        if left:
            raise Violation(f"in {folder} nobody needs {left} any more, all before batch {oldest}")

    # --- telling ------------------------------------------------------------------------------------------------------

    def _named(self, one: Attempt | Reader) -> str:
        if isinstance(one, Reader):
            return f"reader of {one.at}"
        return f"run {one.run} batch {one.batch} partition {one.partition}"

    def _say(self, text: str) -> None:
        if self._trace is not None:
            self._trace(text)

    def _listing(self) -> str:
        return "\n".join(
            f"{folder}: {' '.join(sorted(names))}"[:4000] for folder, names in sorted(self.disk.folders.items())
        )


def _batch(name: str) -> int:
    return int(name.lstrip(".").partition(".")[0])


def simulate(kind: type[Schedule]) -> int:
    """What the command does with schedules of that kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--most", type=int, default=5, help="failures after which it ends")
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    began, failures = time.monotonic(), 0
    total: dict[str, int] = {}
    for seed in range(options.seed, options.seed + options.schedules):
        schedule = kind(seed, print if options.trace else None)
        try:
            schedule.run()
        except Violation as error:
            failures += 1
            print(error, flush=True)
            if failures >= options.most:
                break
        if (seed + 1 - options.seed) % 1000 == 0:
            print(f"{time.monotonic() - began:6.0f} s  {seed + 1 - options.seed} schedules", flush=True)
        for name, number in schedule.counts.items():
            total[name] = total.get(name, 0) + number
    said = ", ".join(f"{number} {name}" for name, number in total.items())
    print(f"{seed + 1 - options.seed} schedules in {time.monotonic() - began:.0f} s: {said}; {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(simulate(Schedule))
