"""Schedules of attempts, crashes, zombies, replays and compactions keep the watermark of the committed batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hintplan.runtime.engine.watermarks import EventTime, MarkSource, moved_watermark
from hintplan.runtime.operator import NEVER
from hintplan.runtime.storage.committed import manifests_in_force
from hintplan.runtime.storage.manifest import StoredWatermark, encode_manifest
from hintplan.runtime.storage.names import MANIFEST, file_name
from hintplan.runtime.storage.partition import PartitionStore, Remembered, open_partition
from hintplan.runtime.storage.place import Place, folder_of
from hintplan.runtime.storage.read import read_manifest_file
from tests.runtime.storage.folding import Row, expected, process
from tests.runtime.storage.schedules import Attempt, Violation
from tests.runtime.storage.simulate import Schedule
from tests.sample import sampled

EVENT_TIME = EventTime(number=1, sources=(MarkSource(number=0, delay=5),))


class TimedSchedule(Schedule):
    """A schedule of an operator that goes by the watermark of one source with two splits."""

    def __init__(self, seed: int, trace: Callable[[str], object] | None = None) -> None:
        super().__init__(seed, trace)
        self.highest: list[dict[str, int]] = [{}]
        """The highest mark of each split after each committed batch, and at first none."""
        self.numbers: dict[int, int] = {}
        """The number of each run."""

    def _plan(self) -> None:
        self.numbers[self.this_run] = self.place.run
        super()._plan()

    def marks(self, run: int, batch: int) -> dict[str, int]:
        """What all partitions are told in a batch; another run of it may see other rows."""
        rng = random.Random(f"marks {self.seed} {batch} {run if self.settings.differs else 0}")
        return {split: batch * 10 + rng.randint(-30, 30) for split in "ab" if rng.random() < 0.6}

    def watermark(self, highest: dict[str, int]) -> int:
        return min(highest.values()) - 5 if highest else NEVER

    def _work(self, place: Place, partition: int, batch: int, rows: Sequence[Row], remembered: Remembered) -> Any:
        store = open_partition(self._files, place, partition, batch, remembered, self._token)
        marks = {(0, split): mark for split, mark in self.marks(place.run, batch).items()}
        moved = moved_watermark(store.watermark, marks, EVENT_TIME, now=batch)
        output, tables, state_rows, state_bytes = process(rows, store.tables, store)
        self._publish(store, rows, (tables, state_rows, state_bytes), moved.stored)
        return output, moved.watermarks.before, moved.watermarks.after

    def _publish(
        self, store: PartitionStore, rows: Sequence[Row], state: tuple[Any, ...], moved: StoredWatermark
    ) -> None:
        store.publish(*state, watermark=moved)

    def _compare_output(self, attempt: Attempt) -> None:
        output, before, after = attempt.task.result
        _, wanted = expected(
            self.models[attempt.batch][attempt.partition], self.rows(attempt.run, attempt.batch, attempt.partition)
        )
        if output != wanted:
            raise Violation(f"{self._named(attempt)} put out {output}, not {wanted}")
        reached = [self.reached(batch) for batch in range(attempt.batch + 1)]
        then = self._after(self.highest[attempt.batch], self.numbers[attempt.run], attempt.batch)
        if (before, after) != (reached[-1], max(reached[-1], self.watermark(then))):
            raise Violation(f"{self._named(attempt)} moved the watermark from {before} to {after}")

    def reached(self, batch: int) -> int:
        """The watermark before ``batch``, which has never gone back."""
        return max(map(self.watermark, self.highest[: batch + 1]))

    def _after(self, highest: dict[str, int], run: int, batch: int) -> dict[str, int]:
        after = dict(highest)
        for split, mark in self.marks(run, batch).items():
            after[split] = max(mark, after.get(split, mark))
        return after

    def _commit(self) -> None:
        before = self.highest[self.batch]
        moved = self._after(before, self.place.run, self.batch) if self.log.offsets[self.batch] else before
        del self.highest[self.batch + 1 :]
        self.highest.append(moved)
        super()._commit()

    def _check(self, when: str) -> None:
        super()._check(when)
        last = len(self.log.commits) - 1
        for partition in range(self.settings.partitions):
            stored = open_partition(self._files, self.place, partition, last + 1).watermark
            found = NEVER if stored is None else stored.after
            if found != self.reached(last + 1):
                raise Violation(f"{when}: the watermark after batch {last} is {found}, not {self.reached(last + 1)}")


@pytest.mark.parametrize("begin", range(0, 60, 30))
def test_the_watermark_is_what_the_committed_batches_make(begin: int) -> None:
    for seed in range(begin, begin + 30):
        TimedSchedule(seed).run()


@pytest.mark.integration
@pytest.mark.parametrize("begin", sampled(range(1_000, 2_800, 300), keep=1))
def test_thousands_of_schedules(begin: int) -> None:
    for seed in range(begin, begin + 300):
        TimedSchedule(seed).run()


class _OnlyWithRows(TimedSchedule):
    """A partition without rows in a batch does not write down that the watermark has moved."""

    def _publish(
        self, store: PartitionStore, rows: Sequence[Row], state: tuple[Any, ...], moved: StoredWatermark
    ) -> None:
        store.publish(*state, watermark=moved if rows else None)


class _LostByCompaction(TimedSchedule):
    """A compaction writes manifests without the watermark."""

    def _rewrite(self, place: Place, last: int) -> None:
        found = manifests_in_force(self._files, place.scales, last)
        for partition, path in enumerate(found.paths if found is not None else ()):
            manifest = replace(read_manifest_file(self._files, path), watermark=None, run=place.run)
            name = file_name(manifest.batch, place.run, MANIFEST)
            self._files.publish(f"{folder_of(0, partition)}/{name}", encode_manifest(manifest, []))


@pytest.mark.parametrize("kind", [_OnlyWithRows, _LostByCompaction])
def test_what_would_lose_the_watermark_is_missed(kind: type[TimedSchedule]) -> None:
    with pytest.raises(Violation):
        _run_all(kind)


def _run_all(kind: type[TimedSchedule]) -> None:
    for seed in range(200):
        kind(seed).run()
