"""What was found in a checkpoint, as data: queries, their operators, the state entries of each, and what these hold.

>>> Amount(rows=1, bytes=10, expired=2) + Amount(rows=2, bytes=5, expired=0)
Amount(rows=3, keys=None, bytes=15, oldest=None, newest=None, expired=2, soon=None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from hintplan.plans.lazy import load
from hintplan.plans.text.printed import Printed

Status = Literal["read", "orphan", "other-meaning", "other-layout"]
"""``read`` is the state of an operator of the plan. The others are told from the manifests alone: an ``orphan``, for
which the plan has no operator; that of an operator whose state has an ``other-meaning`` in the plan, so that a run
would start it empty; and one that another version of hintplan stored in an ``other-layout``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much is kept. ``rows`` are visible under the TTL that runs, except where ``expired`` is None: there nobody
    knows the TTL, and ``rows`` are all that is stored.

    ``expired`` rows are stored but invisible, ``soon`` of the visible ones expire within an hour, ``oldest`` and
    ``newest`` are their last writes (ms). ``bytes`` are those of all segments, superseded versions included.
    """

    rows: int = 0
    keys: int | None = None
    bytes: int = 0
    oldest: int | None = None
    newest: int | None = None
    expired: int | None = None
    soon: int | None = None

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            rows=self.rows + other.rows,
            keys=_joined(lambda a, b: a + b, self.keys, other.keys),
            bytes=self.bytes + other.bytes,
            oldest=_joined(min, self.oldest, other.oldest),
            newest=_joined(max, self.newest, other.newest),
            expired=_joined(lambda a, b: a + b, self.expired, other.expired),
            soon=_joined(lambda a, b: a + b, self.soon, other.soon),
        )


def _joined(how: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return how(one, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderEdit:
    """What another TTL would leave of a state at the same moment."""

    ttl: str
    rows: int
    expired: int
    soon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryState:
    """A state entry of the plan, such as ``leftState``; of an operator that is not in it, a stored table.

    ``tables`` are its parts by name if it has several. ``shown`` are rows of each part, the last written first, as
    stored: identity, payload, ``__count`` and ``__write``; ``keys`` names the columns they are found by.
    """

    name: str
    amount: Amount
    input: str | None = None
    ttl: str | None = None
    edited: UnderEdit | None = None
    tables: tuple[tuple[str, Amount], ...] = ()
    shown: tuple[tuple[str, pa.Table], ...] = field(default=(), compare=False)
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState:
    """The state of one operator in one query; ``was`` is the id it was stored under, if the operator has another one
    now.
    """

    id: str
    status: Status
    entries: tuple[EntryState, ...]
    was: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryState:
    """A query of the checkpoint as its last committed batch left it, which began at ``started`` (ms)."""

    id: str
    sinks: tuple[str, ...]
    operators: tuple[OperatorState, ...]
    batch: int | None = None
    started: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckpointState(Printed):
    """What ``checkpoint`` holds, judged at ``at`` (ms), printed as ``hintplan state`` does.

    ``written_by`` is the plan that made it.
    """

    plan: str
    written_by: str
    checkpoint: str
    at: int
    partitions: int
    time_zone: str
    queries: tuple[QueryState, ...]

    def text(self) -> str:
        """The table that ``hintplan state`` prints."""
        return str(load("hintplan.runtime.inspect.report:state_text")(self))

    @property
    def total(self) -> Amount:
        """All entries added up; without keys and times, which do not add up."""
        found = [entry.amount for query in self.queries for operator in query.operators for entry in operator.entries]
        added = sum(found, Amount(expired=0, soon=0))
        return Amount(rows=added.rows, bytes=added.bytes, expired=added.expired, soon=added.soon)
