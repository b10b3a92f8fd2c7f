"""What a job has that is killed again and again: input, results, and what can be counted of it from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hintplan.plans.model.plan import Plan

Row = tuple[Any, ...]


class Server(Protocol):
    """What a job reads from or writes to, with data that stay when it is killed."""

    def start(self) -> None: ...

    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """``feed`` adds input; ``wrong`` says how the results differ from those of all input, or nothing.

    Each of ``events`` is a number that grows, and how much of it comes at most of three times ``feed``. ``python`` is
    that of workers, None for one that has no more than all need. After the kills, ``rest`` goes on in place of
    ``plan``: it reads what is left in larger micro-batches.
    """

    plan: Plan
    rest: Plan
    feed: Callable[[], None]
    wrong: Callable[[], str]
    events: Mapping[str, tuple[Callable[[], int], int]]
    servers: Mapping[str, Server] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    extras: Sequence[str] = ()
    python: Path | None = None


def versions(directory: Path, where: str) -> int:
    """How many numbers have been used as names, up to the newest: Spark removes the oldest files."""
    found = (
        [int(path.name.partition(".")[0]) + 1 for path in place.iterdir() if path.name.partition(".")[0].isdigit()]
        for place in directory.glob(f"checkpoint/{where}")
    )
    return sum(max(numbers, default=0) for numbers in found)


def have_begun(directory: Path) -> bool:
    """True if each query of a job with its checkpoint below ``directory`` has committed some batches."""
    queries = [place.parent.name for place in directory.glob("checkpoint/*/offsets")]
    return bool(queries) and all(versions(directory, f"{query}/commits") >= 3 for query in queries)


def events_of(directory: Path, rows: Callable[[], int]) -> Mapping[str, tuple[Callable[[], int], int]]:
    """What is counted of a job with its checkpoint below ``directory`` that has written so many ``rows``."""
    return {
        "commits": (lambda: versions(directory, "*/commits"), 3),
        "begun batches": (lambda: versions(directory, "*/offsets"), 3),
        "state files": (lambda: versions(directory, "*/state/*/*/*"), 4),
        "rows": (rows, 20),
    }


def difference(wanted: Mapping[str, Sequence[Row]], found: Mapping[str, Sequence[Row]]) -> str:
    """What each table has lost and added; nothing if all are right."""
    changes = {name: (Counter(wanted[name]), Counter(found[name])) for name in wanted}
    return ", ".join(
        f"{name} has lost {dict(right - there)} and added {dict(there - right)}"
        for name, (right, there) in changes.items()
        if right != there
    )
