"""The contents of a checkpoint as data: queries, their operators, and the state entries of each operator.

>>> Amount(rows=1, bytes=10, expired=2) + Amount(rows=2, bytes=5, expired=0)
Amount(rows=3, keys=None, bytes=15, oldest=None, newest=None, expired=2, soon=None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from hintplan.plans.evidence.ages import NONE, Counts
from hintplan.plans.evidence.period import Period
from hintplan.plans.lazy import load
from hintplan.plans.text.printed import Printed

Status = Literal["read", "orphan", "other-meaning", "other-layout"]
"""``read`` is the state of an operator of the plan. The other values:

- ``orphan``: the plan has no such operator.
- ``other-meaning``: the operator's state has a different meaning in the plan, so a run would start it empty.
- ``other-layout``: another version of hintplan has stored the state, and only the manifests are read.

Orphans and states with another meaning are judged by the plan that last ran on the checkpoint, or by their manifests if
it has no such operator. A state that the plan may keep by consent is judged by the plan.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The amount of stored state. ``rows`` are visible under the TTL in force.

    ``expired`` is None if the TTL is unknown; then ``rows`` are all stored rows. ``expired`` rows are stored but
    invisible, ``soon`` of the visible rows expire within an hour. ``oldest`` and ``newest`` are the last writes of rows
    (ms). ``bytes`` is the size of all segments, including replaced versions.
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
    """The rows of a state that another TTL would leave at the same time."""

    ttl: str
    rows: int
    expired: int
    soon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryState:
    """A state entry of the plan, such as ``leftState``; for an operator that is not in the plan, a stored table.

    ``tables`` are its parts by name, if it has several. ``shown`` are rows of each part, the last written first, in the
    stored format: identity, payload, ``__count`` and ``__write``. ``keys`` are the columns of their lookup key.
    ``row_ages`` counts the visible rows by the time since their last write, and ``observed`` has the periods of
    :mod:`hintplan.plans.evidence.period`. ``lateness`` counts the late rows of the entry's input by the time by which
    the watermark had passed them; None if no watermark empties the entry.
    """

    name: str
    amount: Amount
    input: str | None = None
    ttl: str | None = None
    edited: UnderEdit | None = None
    tables: tuple[tuple[str, Amount], ...] = ()
    shown: tuple[tuple[str, pa.Table], ...] = field(default=(), compare=False)
    keys: tuple[str, ...] = ()
    row_ages: Counts = NONE
    observed: tuple[Period, ...] = ()
    lateness: Counts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWatermark:
    """The watermark of an operator, in ms since 1970; None before the first.

    ``held_by`` is the source with the lowest watermark, and ``split`` its split with the lowest. Both are None if all
    sources are idle, and if the plan has other sources.
    """

    after: int | None
    held_by: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState:
    """The state of one operator in one query.

    ``was`` is the id of the operator that stored it, if the id has changed. ``keepable`` is true if a run would start
    it empty, and would keep it by consent. ``watermark`` is None unless it goes by event time.
    """

    id: str
    status: Status
    entries: tuple[EntryState, ...]
    was: str | None = None
    keepable: bool = False
    watermark: OperatorWatermark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryState:
    """A query of the checkpoint after its last committed batch, which began at ``started`` (ms)."""

    id: str
    sinks: tuple[str, ...]
    operators: tuple[OperatorState, ...]
    batch: int | None = None
    started: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckpointState(Printed):
    """The contents of ``checkpoint`` at ``at`` (ms), printed as by ``hintplan state``.

    ``written_by`` is the plan that wrote it.
    """

    plan: str
    written_by: str
    checkpoint: str
    at: int
    partitions: int
    time_zone: str
    queries: tuple[QueryState, ...]

    def text(self) -> str:
        """Return the table that ``hintplan state`` prints."""
        return str(load("hintplan.runtime.inspect.report:state_text")(self))

    @property
    def total(self) -> Amount:
        """The sum of all entries, without keys and times, which cannot be added."""
        amounts = [entry.amount for query in self.queries for operator in query.operators for entry in operator.entries]
        added = sum(amounts, Amount(expired=0, soon=0))
        return Amount(rows=added.rows, bytes=added.bytes, expired=added.expired, soon=added.soon)
