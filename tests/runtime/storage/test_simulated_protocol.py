"""Schedules of attempts, crashes, zombies, replays and sweeps leave the state that the committed batches make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from hintplan.runtime.storage import partition as protocol
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import Manifest
from hintplan.runtime.storage.names import parse_name
from hintplan.runtime.storage.partition import PartitionStore
from hintplan.runtime.storage.place import Place, Scale
from tests.runtime.storage import simulate
from tests.runtime.storage.schedules import Violation
from tests.runtime.storage.simulate import Schedule
from tests.sample import sampled

_TRIED = 300


@pytest.mark.parametrize("begin", range(0, 100, 50))
def test_the_state_is_what_the_committed_batches_make(begin: int) -> None:
    for seed in range(begin, begin + 50):
        Schedule(seed).run()


@pytest.mark.integration
@pytest.mark.parametrize("begin", sampled(range(1_000, 2_800, 300), keep=1))
def test_thousands_of_schedules(begin: int) -> None:
    for seed in range(begin, begin + 300):
        Schedule(seed).run()


def test_a_schedule_is_decided_by_its_seed() -> None:
    said: list[list[str]] = [[], []]
    for lines in said:
        Schedule(7, lines.append).run()
    assert said[0] == said[1]


# --- A rule of the protocol that is left out is missed. ---------------------------------------------------------------


class _AllAreOne(Schedule):
    """Runs do not tell their files from those of the runs before."""

    def next_number(self) -> int:
        return 1


class _RemembersOtherRuns(Schedule):
    """What a worker remembers counts for the next run."""

    def _begin_run(self) -> None:
        super()._begin_run()
        for worker in self.workers:
            for key, known in worker.remembered.manifests.items():
                if known.manifest is not None:
                    manifest = replace(known.manifest, run=self.number)
                    worker.remembered.manifests[key] = replace(known, manifest=manifest)


class _CompactsWhatIsNotCommitted(Schedule):
    """A compaction takes the batch that has begun for one that has ended."""

    def _rewrite(self, place: Place, last: int) -> None:
        super()._rewrite(place, last + 1)


def _lowest_run(names: Iterable[str], *, before: int, since: int = 0, kind: str = "manifest") -> str | None:
    found = [(name, text) for text in names if (name := parse_name(text)) is not None and name.kind == kind]
    return max(((n.batch, -n.run, text) for n, text in found if since <= n.batch < before), default=(0, 0, None))[2]


def _failing(schedule: type[Schedule]) -> int | None:
    """The first seed with a failure."""
    for seed in range(_TRIED):
        try:
            schedule(seed).run()
        except Violation:
            return seed
    return None


def test_a_first_batch_that_need_not_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionStore, "_is_first_of_run", property(lambda store: store.before is None))
    assert _failing(Schedule) is not None


def test_runs_of_one_number_are_found() -> None:
    assert _failing(_AllAreOne) is not None


def test_memory_of_another_run_is_found() -> None:
    assert _failing(_RemembersOtherRuns) is not None


def test_memory_of_a_manifest_that_another_attempt_has_replaced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One schedule of thousands does, without links: its segments are swept while an attempt reads them."""
    seed = 13832
    Schedule(seed).run()

    def for_ever(known: protocol.Known, place: Place, batch: int) -> bool:
        return known.batch == batch - 1 and (known.manifest is None or known.manifest.run == place.run)

    monkeypatch.setattr(protocol, "_is_in_force", for_ever)
    with pytest.raises(Violation):
        Schedule(seed).run()


def test_a_lower_run_that_counts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "newest", _lowest_run)
    assert _failing(Schedule) is not None


def test_a_compaction_of_what_is_not_committed_is_found() -> None:
    assert _failing(_CompactsWhatIsNotCommitted) is not None


def test_a_compaction_that_removes_what_its_manifest_names_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = simulate.remove_the_rest

    def all_but_manifests(files: Files, scales: Sequence[Scale], scale: int, manifests: Sequence[Manifest]) -> None:
        remove(files, scales, scale, [replace(manifest, segments={}) for manifest in manifests])

    monkeypatch.setattr(simulate, "remove_the_rest", all_but_manifests)
    assert _failing(Schedule) is not None


def test_a_sweep_that_takes_the_manifest_in_force_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = protocol.sweep
    monkeypatch.setattr(protocol, "sweep", lambda files, folder, batch: sweep(files, folder, batch + 1))
    assert _failing(Schedule) is not None


def test_files_that_stay_because_the_batch_to_sweep_in_never_ran_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_number(self: protocol.PartitionStore) -> bool:
        return self._batch % protocol.SWEEP_EVERY == self._partition % protocol.SWEEP_EVERY

    monkeypatch.setattr(protocol.PartitionStore, "_sweeps", property(by_number))
    assert _failing(Schedule) is not None
