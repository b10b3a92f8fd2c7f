"""The interface between a stateful operator and the engine that runs it on Spark.

An operator is a pure function over Arrow tables, called once per partition and micro-batch:

    (input deltas, stored state, now) -> (output delta, state to store)

It never accesses Spark, a clock or a file: the engine passes in ``now``, and a :class:`SegmentStore` reads and writes
segments of state. The engine hashes, routes and packs the rows, calls ``process``, and persists the result. An operator
that goes by event time also receives its :class:`Watermarks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hintplan.plans.evidence.ages import Counts
    from hintplan.plans.evidence.uses import Uses

KIND = "__kind"
"""The int8 column with the row kind on changelog edges; insert-only edges do not have it."""

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3
"""The row kinds +I, -U, +U, -D, with the numbers of Flink's RowKind."""


NEVER = -(1 << 63)
"""The watermark, in ms, of an operator without a watermark yet: below all times."""
FOREVER = (1 << 63) - 1
"""The watermark, in ms, after the end of all input: above all times."""


def hash_column(index: int) -> str:
    """Return the name of the int64 column with the ``index``-th hash of an :class:`InputSpec`."""
    return f"__hash{index}"


class Presum(Protocol):
    """A local aggregation of the rows of an input before the shuffle; picklable.

    A delta may then have the columns of ``schema``, of which ``__hash0`` is the last, instead of the columns of the
    :class:`InputSpec`.
    """

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def by_hash(self) -> bool:
        """True if ``sum_up`` needs ``__hash0``. If not, it takes rows without it, and returns rows without it."""
        ...

    def sum_up(self, rows: pa.Table) -> pa.Table | None:
        """Aggregate ``rows`` of a delta; None if it is better to leave these and all later rows unchanged."""
        ...

    def lift(self, rows: pa.Table) -> pa.Table:
        """Convert ``rows`` of a delta to the columns of ``schema``, so that they can be mixed with aggregated rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """The requirements of an operator for one input.

    ``columns`` are the data columns. ``hashes`` has the column sets to hash with Spark's ``xxhash64`` (seed 42; no
    columns hash to 42). The first hash routes the row to its partition. ``changelog`` is true if ``__kind`` is present.
    A delta has the data columns, then ``__kind`` if ``changelog``, then ``__hash0``, ``__hash1`` and so on; or, with
    ``presum``, the columns of its schema.
    """

    columns: pa.Schema
    hashes: tuple[tuple[str, ...], ...]
    changelog: bool
    presum: Presum | None = None


class SegmentStore(Protocol):
    """Immutable segments of state by id, of one operator in one partition. A segment is read back as it was written."""

    def read(self, segment: str) -> pa.Table: ...

    def write(self, segment: str, table: pa.Table) -> int:
        """Store ``table`` under a new id and return its size in bytes."""
        ...

    def write_pieces(self, segment: str, pieces: Iterable[pa.Table]) -> int:
        """Store a table in pieces, as :meth:`write`, so that it is never in memory as a whole."""
        ...

    def settle(self) -> None:
        """Give memory of segment reads back to the system; tables that were read stay valid."""
        ...

    def delete(self, segment: str) -> None: ...


class Inheritance(SegmentStore, Protocol):
    """The store of a partition that starts with state of other partitions, which had its hashes before.

    ``manifests`` are the manifests of those partitions. Only rows with hashes from the first of ``bounds`` to before
    the second are inherited. ``is_first_heir`` is True for each manifest of which no other partition is the first heir.
    """

    @property
    def manifests(self) -> Sequence[bytes]: ...

    @property
    def is_first_heir(self) -> Sequence[bool]: ...

    @property
    def bounds(self) -> tuple[int, int]: ...

    def inherit(self, segment: str, part: int, old: str) -> pa.Table:
        """Take over the rows of segment ``old`` of manifest ``part`` within the bounds, as ``segment``.

        The result is ordered by hash.
        """
        ...

    def read_old(self, part: int, old: str) -> pa.Table:
        """Return all rows of segment ``old`` of manifest ``part``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one call of an operator.

    ``output`` has the operator's output columns, and ``__kind`` if the operator emits a changelog; the order of rows is
    significant. ``manifest`` is stored and passed to the next call; None if there is no state. ``oldest_write`` (ms) is
    the oldest write of a stored row, including replaced and expired rows that are not dropped yet; None if there are no
    rows. ``metrics`` are the operator's own, in the order of the names in its builder. ``late_rows`` is the number of
    rows of the batch that the watermark had passed, and ``waiting_rows`` the number of rows of state in open windows:
    groups of a key and a slice, sessions, or rows of the input. An operator without event time leaves both 0.
    ``uses`` has the ages at which the batch has used the rows of each state table, in the order of the tables; it is
    empty for tables that do not live by age. ``late_places`` has the places of late rows in each
    delta, and ``lateness`` their :mod:`~hintplan.runtime.kernels.lateness`; both are empty if there are none. ``late``
    are late rows to emit after the output, if an operator emits them. ``due`` is the earliest time (ms) at which the
    operator has something to do without new rows, or None. A batch runs then, in which it is called.
    """

    output: pa.Table
    manifest: bytes | None
    rows_in: int
    state_rows: int
    state_bytes: int
    oldest_write: int | None
    metrics: tuple[int, ...] = ()
    late_rows: int = 0
    waiting_rows: int = 0
    uses: tuple[Uses, ...] = field(default=(), compare=False)
    late_places: tuple[npt.NDArray[np.int64], ...] = field(default=(), compare=False)
    lateness: tuple[Counts, ...] = field(default=(), compare=False)
    late: pa.Table | None = None
    due: int | None = None


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The watermark of an operator, in ms, before and after a micro-batch.

    Rows of the batch are late by ``before``. ``after`` closes windows in this batch, and is never below ``before``. An
    operator that goes by processing time has the time of the batch, less 1 ms, as ``after``.
    """

    before: int
    after: int

    def processing_time(self, now: int) -> int:
        """Return the processing time of the rows of a batch at ``now``, later than the batches before it.

        A clock may have been set back.

        >>> Watermarks(before=999, after=1_999).processing_time(2_000)
        2000
        >>> Watermarks(before=9_999, after=9_999).processing_time(2_000)
        10000
        """
        return now if self.before == FOREVER else max(now, self.before + 1)


class StatefulOperator(Protocol):
    """A stateful operator, picklable, bound to the schemas and settings of one plan operator."""

    @property
    def inputs(self) -> tuple[InputSpec, ...]: ...

    @property
    def output(self) -> pa.Schema: ...

    def process(
        self, deltas: Sequence[pa.Table | None], manifest: bytes | None, store: SegmentStore, now: int
    ) -> Result:
        """Process one micro-batch at ``now`` (ms).

        ``deltas`` has one table per input, or None for an input without rows.
        """
        ...

    def inherit(self, store: Inheritance) -> bytes | None:
        """Return the initial manifest of a partition that takes over state of other partitions."""
        ...


class TimeOperator(Protocol):
    """A stateful operator that goes by the watermark, picklable, bound to one plan operator.

    Unlike other operators, it is called in each batch that moves the watermark, also without rows.
    """

    @property
    def inputs(self) -> tuple[InputSpec, ...]: ...

    @property
    def output(self) -> pa.Schema: ...

    def process(
        self,
        deltas: Sequence[pa.Table | None],
        manifest: bytes | None,
        store: SegmentStore,
        now: int,
        watermarks: Watermarks,
    ) -> Result:
        """Process one micro-batch at ``now`` (ms), which moves the watermark from ``before`` to ``after``.

        The output is all that ``after`` closes, with no row that ``before`` had passed.
        """
        ...

    def inherit(self, store: Inheritance) -> bytes | None:
        """Return the initial manifest of a partition that takes over state of other partitions."""
        ...
