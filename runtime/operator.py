"""What a stateful operator is to the engine that runs it on Spark, and what the engine is to the operator.

An operator is a pure function over Arrow tables, called once per partition and micro-batch:

    (input deltas, stored state, now) -> (output delta, state to store)

It never sees Spark, a clock or a file: ``now`` is passed in, and segments of state are read and written through a
:class:`SegmentStore`. The engine hashes, routes and packs the rows, calls ``process``, and persists what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

KIND = "__kind"
"""The int8 column that carries the row kind on changelog edges; insert-only edges have no such column."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
"""Row kinds +I, -U, +U, -D, numbered as Flink's RowKind."""


def hash_column(index: int) -> str:
    """The name of the int64 column that holds the ``index``-th hash of an :class:`InputSpec`."""
    return f"__hash{index}"


class Presum(Protocol):
    """How the rows of an input are summed up before they are shuffled; picklable.

    A delta may then have the columns of ``schema`` instead of those of the :class:`InputSpec`, ``__hash0`` among them.
    """

    @property
    def schema(self) -> pa.Schema: ...

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        """``rows`` of a delta summed up, or None if these are better left as they are, and those to come too."""
        ...

    def lift(self, rows: pa.Table) -> pa.Table:
        """``rows`` of a delta in the columns of ``schema``, to stand among others that were summed up."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """What an operator wants of one input.

    ``columns`` are the data columns. ``hashes`` names the column sets to hash with Spark's ``xxhash64`` (seed 42; no
    columns hash to 42): the first routes the row to its partition. ``changelog`` says whether ``__kind`` is present.
    A delta has the data columns, then ``__kind`` if ``changelog``, then ``__hash0``, ``__hash1`` and so
    on; or, with ``presum``, what that makes of them.
    """

    columns: pa.Schema
    hashes: tuple[tuple[str, ...], ...]
    changelog: bool
    presum: Presum | None = None


class SegmentStore(Protocol):
    """Immutable segments of state by id, of one operator in one partition. What is written is read back as it was."""

    def read(self, segment: str) -> pa.Table: ...

    def write(self, segment: str, table: pa.Table) -> int:
        """Store ``table`` under a new id and return its size in bytes."""
        ...

    def write_pieces(self, segment: str, pieces: Iterable[pa.Table]) -> int:
        """As :meth:`write`, but of a table that need never be in memory as a whole."""
        ...

    def settle(self) -> None:
        """Let the system have back the memory that reading segments took; what was read stays as it is."""
        ...

    def delete(self, segment: str) -> None: ...


class Inheritance(SegmentStore, Protocol):
    """The store of a partition that begins with the state of others, which had its hashes before.

    ``manifests`` are theirs; only what has hashes in ``bounds``, from the first to before the second, is inherited.
    """

    @property
    def manifests(self) -> Sequence[bytes]: ...

    @property
    def bounds(self) -> tuple[int, int]: ...

    def inherit(self, segment: str, part: int, old: str) -> pa.Table:
        """Take over our rows of segment ``old`` of the ``part``-th manifest, in order of hash, as ``segment``."""
        ...

    def read_old(self, part: int, old: str) -> pa.Table:
        """All rows of segment ``old`` of the ``part``-th manifest."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one call of an operator yields.

    ``output`` has the operator's output columns, and ``__kind`` if the operator emits a changelog; row order is
    meaningful. ``manifest`` is to be stored and handed to the next call; ``None`` if no state is left. ``oldest_write``
    (ms) is when the oldest of what is stored was written, rows that are replaced or expired and not dropped yet
    included; None if there are no rows. ``metrics`` are the operator's own, in the order in which its builder names
    them.
    """

    output: pa.Table
    manifest: bytes | None
    rows_in: int
    state_rows: int
    state_bytes: int
    oldest_write: int | None
    metrics: tuple[int, ...] = ()


class StatefulOperator(Protocol):
    """An operator with state, picklable, bound to the schemas and settings of one plan operator."""

    @property
    def inputs(self) -> tuple[InputSpec, ...]: ...

    @property
    def output(self) -> pa.Schema: ...

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        """Process one micro-batch at ``now`` (ms); ``deltas`` has one table per input, ``None`` where nothing came."""
        ...

    def inherit(self, store: Inheritance) -> bytes | None:
        """The manifest with which a partition begins that has its state from others."""
        ...
