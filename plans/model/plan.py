"""The plan document as frozen dataclasses: what a plan says, without how it is written or run.

Facts (operators, edges, keys, expressions, schemas, functions) are what the query means; settings (state TTLs, how
lookups and calls wait, retry and cache, phases of aggregates, cached results, config, connector options) are free to
edit. Facts and settings are told apart in :mod:`plans.format.digest`. Columns are addressed by name, never by position.
Expressions are Spark SQL text over the columns of the operator's input; they are checked against an allow list before
every run. Here are the operators and the plan; what the latter declares is in :mod:`plans.declarations.tables`, and
what is free to edit in an operator in :mod:`plans.settings.groups`. This module knows nothing of JSON, SQL or Spark.

>>> Scan(id="scan_orders", table="orders", columns=("o_id",)).inputs
()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from plans.declarations.tables import Function, Table
from plans.settings.groups import (
    AsyncSettings,
    CachedSettings,
    CacheSettings,
    CallRetry,
    CallSettings,
    PhaseSettings,
    RetrySettings,
    StateEntry,
)

__all__ = [
    "Aggregate",
    "AggregateCall",
    "Argument",
    "Calc",
    "ChangelogNormalize",
    "Correlate",
    "Expand",
    "Join",
    "JoinColumn",
    "JoinKey",
    "JoinType",
    "LookupJoin",
    "LookupKey",
    "Mode",
    "Operator",
    "Plan",
    "RowKind",
    "Scan",
    "SelectItem",
    "Sink",
    "SinkMaterialize",
    "Sort",
    "SortKey",
    "Stateful",
    "Union",
]

FORMAT = "1.0"

RowKind = Literal["+I", "-U", "+U", "-D"]
JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
Mode = Literal["streaming", "batch"]
Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Reads ``columns`` (physical ones, by name) of ``table``, with the row kinds that its source emits."""

    id: str
    table: str
    columns: tuple[str, ...]
    cached: CachedSettings | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectItem:
    """An output column of a calc: passed through by name, or computed as ``expression`` of ``type``."""

    name: str
    expression: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc:
    """Keeps the input rows for which ``filter`` is true, then projects them to ``select``. Stateless."""

    id: str
    inputs: tuple[str, ...]
    select: tuple[SelectItem, ...]
    filter: str | None = None
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinKey:
    """One equality ``left.left = right.right``; both columns have the same type, and NULL never matches."""

    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinColumn:
    """An output column of a join: ``column`` of the input on ``side``, under ``name``."""

    name: str
    type: str
    side: Side
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A regular stream join. ``condition`` is what the equalities leave over, over ``l.column`` and ``r.column``."""

    id: str
    inputs: tuple[str, ...]
    join_type: JoinType
    keys: tuple[JoinKey, ...]
    condition: str | None
    state: tuple[StateEntry, ...]
    output: tuple[JoinColumn, ...]
    changelog: tuple[RowKind, ...]
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKey:
    """One equality by which a lookup finds rows: ``column`` of the dimension equals an input column or a constant.

    Exactly one of ``left`` and ``constant`` is set; ``constant`` is a literal in Spark SQL, such as ``'EUR'``.
    """

    column: str
    left: str | None = None
    constant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin:
    """Looks every input row up in ``table`` by ``keys`` at the moment it is processed; row kinds pass through.

    ``columns`` are fetched from the table. ``pre_filter`` (over the input) keeps rows of a left join from being looked
    up; ``filter`` (over ``columns``) and ``condition`` (over ``l.column`` and ``r.column``) drop what was found.
    """

    id: str
    inputs: tuple[str, ...]
    table: str
    join_type: Literal["inner", "left"]
    keys: tuple[LookupKey, ...]
    columns: tuple[str, ...]
    pre_filter: str | None
    filter: str | None
    condition: str | None
    output: tuple[JoinColumn, ...]
    async_: AsyncSettings
    retry: RetrySettings | None
    cache: CacheSettings
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What a function is called with: an input column, or a literal in Spark SQL, such as ``'$'``; exactly one is set.

    A column has the declared type of the argument; a literal is cast to it.
    """

    column: str | None = None
    constant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlate:
    """Calls ``function`` for every input row and joins the row with what the call returns; row kinds pass through.

    A ``left`` correlate keeps a row whose call returned nothing, padded with NULL; a scalar function is always called
    by an ``inner`` one, and returns one row. ``async_`` and ``retry`` are None for a synchronous function.
    """

    id: str
    inputs: tuple[str, ...]
    function: str
    join_type: Literal["inner", "left"]
    arguments: tuple[Argument, ...]
    output: tuple[JoinColumn, ...]
    async_: CallSettings | None
    retry: CallRetry | None
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """``function(argument)`` over the rows whose ``filter`` column is true; no argument means ``COUNT(*)``.

    ``function`` is COUNT, SUM, AVG, MIN, MAX, or one whose result depends on the order in which rows come: FIRST_VALUE,
    LAST_VALUE and LISTAGG, which joins texts with ``separator``. ``argument`` and ``filter`` name input columns.
    """

    name: str
    function: str
    argument: str | None = None
    distinct: bool = False
    filter: str | None = None
    separator: str | None = None
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A group aggregate. Output columns: ``keys`` in order, then the calls. No keys: one global group.

    ``phases`` is None if nobody asked for a strategy; then it is ``AUTO``.
    """

    id: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    state: tuple[StateEntry, ...]
    changelog: tuple[RowKind, ...]
    phases: PhaseSettings | None = None
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """Every input row once for each of ``sets``, with NULL in the ``keys`` that are not in the set; row kinds pass.

    ``group_id`` is a further column, BIGINT NOT NULL, that tells the sets apart: in binary, a digit for each of
    ``keys``, which is 1 where the key is not in the set, as Flink's Expand has it. Stateless.
    """

    id: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    group_id: str
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalize:
    """Turns rows that replace each other by ``key``, in the order in which they arrived, into a whole changelog.

    Reads a scan of upserts, or of a changelog in which changes may come twice; ``-U`` rows of it are dropped.
    """

    id: str
    inputs: tuple[str, ...]
    key: tuple[str, ...]
    state: tuple[StateEntry, ...]
    changelog: tuple[RowKind, ...]
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMaterialize:
    """Keeps all rows by the ``key`` of the sinks that read it, and passes on the latest that is there for each key.

    When the latest is taken back, the one before it comes again.
    """

    id: str
    inputs: tuple[str, ...]
    key: tuple[str, ...]
    state: tuple[StateEntry, ...]
    changelog: tuple[RowKind, ...]
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """UNION ALL of inputs that agree in column names and types."""

    id: str
    inputs: tuple[str, ...]
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One column to sort by; ``nulls`` says where NULLs go, whatever the direction."""

    column: str
    direction: Literal["asc", "desc"] = "asc"
    nulls: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """Sorts by ``order``, skips ``offset`` rows and passes on up to ``limit`` of the rest. Batch only.

    No ``order`` keeps any rows; no ``limit`` keeps all. Columns are those of the input.
    """

    id: str
    inputs: tuple[str, ...]
    order: tuple[SortKey, ...]
    offset: int = 0
    limit: int | None = None
    cached: CachedSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Writes its input, whose columns are those of ``table`` in order, to ``table``."""

    id: str
    inputs: tuple[str, ...]
    table: str


Operator = (
    Scan
    | Calc
    | Join
    | LookupJoin
    | Correlate
    | Expand
    | Aggregate
    | ChangelogNormalize
    | Union
    | Sort
    | SinkMaterialize
    | Sink
)
Stateful = Join | Aggregate | ChangelogNormalize | SinkMaterialize
"""The operators with state entries, which also state their changelog."""

Settable = LookupJoin | Correlate | Aggregate
"""The operators with groups of settings of their own (:mod:`plans.model.operator_settings`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compiled job. ``operators`` stand in dependency order: inputs before their consumers.

    A ``batch`` plan keeps no state, and all its edges are insert-only.

    ``source`` is the base name of the script it was compiled from; ``reasons`` are notes by the path of a setting.
    Neither is a fact.
    ``compiled`` has the digests of settings without origin as the compiler wrote them, by path.
    """

    name: str
    source: str | None = None
    mode: Mode = "streaming"
    config: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    operators: tuple[Operator, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    compiled: Mapping[str, str] = field(default_factory=dict)
    format: str = FORMAT

    def operator(self, operator_id: str) -> Operator:
        """The operator called ``operator_id``; KeyError if there is none."""
        for candidate in self.operators:
            if candidate.id == operator_id:
                return candidate
        raise KeyError(operator_id)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from plans.show.notebook import plan_html

        return plan_html(self)
