"""Contenders for a lease, in simulated time: they start, pause and crash anywhere, on file systems of any speed.

The code is the one that runs: it waits, reads and writes in threads, of which a schedule lets one go on at a time, the
one whose time has come. What must hold is looked at whenever time passes: at most one lease is in force, as its holder
has it by its own clock. Clocks begin anywhere and run up to 5 % apart.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.checkpoint import lease as lease_module
from hintplan.runtime.checkpoint.lease import RENEWALS, Lease, Waiting, claim, run_out
from hintplan.runtime.checkpoint.lock_owner import LockOwner
from tests.sample import sampled

SECONDS = 60.0
END = 3_000.0


class Crash(BaseException):
    """A process was killed."""


class World:
    """Virtual time, in which threads take turns."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self._turn = threading.Condition()
        self._waiting: list[tuple[float, int]] = []
        self._running: int | None = None
        self._alive = 0
        self.watch: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None

    def go(self, *actors: Callable[[], None]) -> None:
        """Let the actors run until they have ended."""
        threads = [threading.Thread(target=self._run, args=(n, actor), daemon=True) for n, actor in enumerate(actors)]
        self._alive = len(threads)
        for n in range(len(threads)):
            heapq.heappush(self._waiting, (0.0, n))
        for thread in threads:
            thread.start()
        with self._turn:
            self._next()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def pass_time(self, actor: int, seconds: float) -> None:
        """``actor`` does nothing for so long, while others may do something."""
        with self._turn:
            heapq.heappush(self._waiting, (self.now + max(seconds, 0.0), actor))
            self._next()
            while self._running != actor:
                self._turn.wait()

    def _next(self) -> None:
        if self._waiting:
            then, actor = heapq.heappop(self._waiting)
            self.now = max(self.now, then)
            self._running = actor
            self._turn.notify_all()

    def _run(self, number: int, actor: Callable[[], None]) -> None:
        with self._turn:
            while self._running != number:
                self._turn.wait()
        try:
            actor()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised where the test can see it
            self.failure = self.failure or error
        finally:
            with self._turn:
                self._next()


@dataclass
class Disk:
    """What all see: each request takes effect at some moment between its begin and its end."""

    atomic: bool
    files: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Process:
    """One contender, which may crash or stand still before and after whatever it asks."""

    number: int
    world: World
    disk: Disk
    latency: float
    trouble: float
    rate: float
    offset: float
    atomic: bool
    lease: Lease | None = None

    def clock(self) -> float:
        return self.offset + self.world.now * self.rate

    def sleep(self, seconds: float) -> None:
        self.world.pass_time(self.number, seconds / self.rate)
        self.world.watch()
        self._trouble()

    def _trouble(self) -> None:
        chance = self.world.random.random()
        if chance < self.trouble / 4:
            raise Crash
        if chance < self.trouble:
            self.world.pass_time(self.number, self.world.random.choice([1.0, 20.0, 50.0, 70.0, 200.0]))
            self.world.watch()

    def _asked(self, effect: Callable[[], Any]) -> Any:
        self._trouble()
        spread = self.world.random.expovariate
        self.world.pass_time(self.number, spread(1 / self.latency))
        found = effect()
        self.world.pass_time(self.number, spread(1 / self.latency))
        self._trouble()
        if self.world.random.random() < self.trouble / 2:
            raise OSError("the answer was lost")
        return found

    def epochs(self) -> list[int]:
        return self._asked(lambda: list(self.disk.files))

    def read(self, epoch: int) -> bytes | None:
        return self._asked(lambda: self.disk.files.get(epoch))

    def create(self, epoch: int, data: bytes) -> bool:
        if not self.disk.atomic:
            if self._asked(lambda: epoch in self.disk.files):
                return False
            self._asked(lambda: self.disk.files.__setitem__(epoch, data))
            return True
        return self._asked(lambda: self.disk.files.setdefault(epoch, data) is data)

    def write(self, epoch: int, data: bytes) -> None:
        self._asked(lambda: self.disk.files.__setitem__(epoch, data))

    def remove(self, epoch: int) -> None:
        self._asked(lambda: self.disk.files.pop(epoch, None))

    @property
    def holds(self) -> bool:
        """Whether it would work now."""
        return self.lease is not None and self.lease.in_force


@dataclass
class Taken:
    """The epochs that were taken, in order, and how many of them from a holder that had not given its lease back."""

    epochs: list[int] = field(default_factory=list)
    over: int = 0


def life(process: Process, taken: Taken) -> Callable[[], None]:
    """Wait for the lease, hold it for some time, give it back or crash, and so on, to the end of the simulation."""
    world = process.world
    owner = LockOwner(host=f"host-{process.number}", pid=1, since="")
    waiting = Waiting(longest=END, clock=process.clock, sleep=process.sleep)

    def go() -> None:
        while world.now < END:
            try:
                hold()
            except Crash:
                process.lease = None  # what follows is another process
                world.pass_time(process.number, world.random.uniform(1, 200))

    def hold() -> None:
        while world.now < END:
            process.sleep(world.random.uniform(0, 90))
            seconds = world.random.choice([SECONDS, SECONDS / 2])
            try:
                seen = run_out(process, "it", waiting)
                process.lease = claim(process, seen, owner, seconds, waiting)
            except (OSError, RunError):
                continue
            if process.lease is None:
                continue
            taken.epochs.append(process.lease.epoch)
            taken.over += seen is not None and not seen.is_free
            until = world.now + world.random.uniform(10, 400)
            while world.now < until and process.lease.in_force:
                process.sleep(seconds / RENEWALS)
                try:
                    process.lease.renew()
                except OSError:
                    continue
            lease, process.lease = process.lease, None
            try:
                lease.release()
            except OSError:
                continue

    return go


def simulated(seed: int, *, atomic: bool, trouble: float, latency: float) -> Taken:
    """What was taken by two or three contenders."""
    world, disk, taken = World(seed), Disk(atomic), Taken()
    count = world.random.choice([2, 3])
    processes = [
        Process(
            number=n, world=world, disk=disk, latency=latency, trouble=trouble, atomic=atomic,
            rate=world.random.uniform(0.975, 1.025), offset=world.random.uniform(-1e6, 1e6),
        )
        for n in range(count)
    ]  # fmt: skip

    def watch() -> None:
        holders = [process.number for process in processes if process.holds]
        assert len(holders) < 2, f"seed {seed}: {holders} hold the lease at {world.now}"

    world.watch = watch
    world.go(*(life(process, taken) for process in processes))
    return taken


SEEDS = 8


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("trouble", [0.0, 0.005, 0.03])
@pytest.mark.parametrize("latency", [0.01, 0.5, 3.0])
@pytest.mark.parametrize(
    "first",
    [0, *sampled((pytest.param(n * SEEDS, marks=pytest.mark.integration) for n in range(1, 11)), keep=2)],
)
def test_two_never_hold_a_lease_at_a_time(atomic: bool, trouble: float, latency: float, first: int) -> None:
    seeds = range(first, first + SEEDS)
    taken = [simulated(seed, atomic=atomic, trouble=trouble, latency=latency) for seed in seeds]
    if atomic:
        assert all(each.epochs == sorted(set(each.epochs)) for each in taken), "epochs only grow"
    if latency < 1:  # slower, nobody can be sure to have created a file where creation is not atomic
        assert sum(len(each.epochs) for each in taken) > 4 * len(taken), "leases are taken"
    if trouble and latency < 1:
        assert sum(each.over for each in taken) > len(taken), "leases are taken over"


def test_a_broken_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation sees what it is there for: a holder that does not stop before others may take over."""
    monkeypatch.setattr(lease_module, "_USED", 1.5)
    with pytest.raises(AssertionError, match="hold the lease"):
        deque(simulated(seed, atomic=True, trouble=0.03, latency=0.5) for seed in range(40))


def test_a_holder_that_does_not_look_for_newer_epochs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module.Lease, "renew", _renewed_unseen)
    with pytest.raises(AssertionError, match="hold the lease"):
        deque(simulated(seed, atomic=True, trouble=0.03, latency=3.0) for seed in range(400))


def _renewed_unseen(lease: Lease) -> bool:
    began = lease.clock()
    lease.store.write(lease.epoch, lease_module.encoded(lease.record))
    lease.until = began + 45.0
    return True
