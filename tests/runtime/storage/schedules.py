"""What schedules of the simulated protocol are made of: how one is drawn, and who acts in it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hintplan.runtime.storage import partition as protocol
from hintplan.runtime.storage.partition import Remembered
from tests.runtime.storage.stepped_files import Task


class Overtaken(Exception):
    """Whoever reads has to begin again, with the newest batch."""


class Violation(AssertionError):
    """The protocol has not kept what it promises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a schedule is like. ``differs`` says that another run of a batch sees other rows, as with lookups."""

    partitions: int
    batches: int
    kept: int
    swept: int
    inline: int
    opened: int
    differs: bool
    links: bool
    faults: float
    driver: float
    speculation: float
    readers: float
    quiet: float
    compacted: float
    idle: str
    workers: int
    shared: bool
    survives: float

    @staticmethod
    def of(rng: random.Random) -> Settings:
        return Settings(
            partitions=rng.choice((1, 1, 2, 3)),
            batches=rng.randint(3, 9),
            kept=rng.choice((0, 0, 1, 1, 2, 3, 10)),
            swept=rng.choice((1, 1, 1, 2, 3, 10)),
            inline=rng.choice((0, 40, 40, 1 << 20)),
            opened=rng.choice((0, 2, 256)),
            differs=rng.random() < 0.5,
            links=rng.random() < 0.8,
            faults=rng.choice((0.0, 0.005, 0.03)),
            driver=rng.choice((0.0, 0.01, 0.03)),
            speculation=rng.choice((0.0, 0.02, 0.1)),
            readers=rng.choice((0.0, 0.01)),
            quiet=rng.choice((0.0, 0.3, 0.7)),
            compacted=rng.choice((0.0, 0.5, 1.0)),
            idle=rng.choice(("never", "never", "at times", "every other")),
            workers=rng.randint(1, 4),
            shared=rng.random() < 0.2,
            survives=rng.choice((0.0, 0.5, 1.0)),
        )


@dataclass(slots=True, eq=False)
class Worker:
    """A Python worker: what it remembers, and the attempts that it is at."""

    remembered: Remembered
    attempts: int = 0
    alive: bool = True


@dataclass(slots=True, eq=False, kw_only=True)
class Attempt:
    """A task of a batch in a run, on a worker."""

    run: int
    batch: int
    partition: int
    worker: Worker
    task: Task
    pace: float
    spoilt: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class Reader:
    """Reads the state of all partitions after the batch ``at``, as ``hintplan state`` does."""

    at: int
    task: Task
    pace: float
    overtaken: bool = False


@dataclass(slots=True, eq=False)
class Compaction:
    """Rewrites state after the last committed batch, when no run is active, as ``hintplan state --compact`` does."""

    task: Task
    pace: float = 1.0


@dataclass(slots=True)
class Checkpoint:
    """Spark's logs: for each batch, whether the operator runs in it; for each committed one, the run."""

    offsets: list[bool] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)


@contextmanager
def patched(settings: Settings) -> Iterator[None]:
    """The protocol with the numbers of a schedule, so that what takes long in a job happens soon."""
    numbers = {"KEPT_BATCHES": settings.kept, "SWEEP_EVERY": settings.swept, "INLINE_BYTES": settings.inline}
    before = {name: getattr(protocol, name) for name in numbers}
    try:
        for name, number in numbers.items():
            setattr(protocol, name, number)
        yield
    finally:
        for name, number in before.items():
            setattr(protocol, name, number)
