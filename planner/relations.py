"""The logical plan: relational operators over :class:`hintplan.planner.expressions.typed.Field`, without ids.

Each node has ``fields`` (its output), ``base`` (its name in the query block, from which ids are made) and ``block``
(the name of its query block). Nodes are immutable; passes build new ones.

>>> LogicalScan(table="t", declared="t", fields=(), offset=0, base=("t",), block="result").table
't'
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from typing import assert_never

from hintplan.planner.expressions.bounds import bounds_of, limiting_column
from hintplan.planner.expressions.typed import Expr, Field, FieldRef, Literal, referenced_fields
from hintplan.planner.hints.lookup import LookupHint
from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.declarations.windows import Window
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Frame, JoinType
from hintplan.plans.operators.temporal_join import Versions
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """A TTL from a hint. ``offset`` is the position of the key in the hint."""

    ttl: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInput:
    """An input of a stateful operator. Hints refer to it by ``name``, which is None for an intermediate result."""

    name: str | None = None
    hint: Hinted | None = None


UnnamedInput = StateInput()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An output field and the expression that computes it."""

    field: Field
    expr: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalScan:
    """A scan of a table. ``table`` is its name in the plan, ``declared`` its name in the catalog.

    - The names differ if an OPTIONS hint changes the table's options.
    - ``options`` is the OPTIONS hint after the table's name. Only a lookup uses its cache options.
    - ``changelog``: the source emits updates and deletes, too.
    - ``normalized`` are the columns of the upsert key, if the source emits upserts that still need normalisation.
    - ``readings`` are the views and CTEs through which the query reads the table, outermost first, with their offsets.
    - ``filter`` is the predicate pushed down to the source. The calc above evaluates it, too.
    """

    table: str
    declared: str
    fields: tuple[Field, ...]
    filter: Expr | None = None
    options: LookupHint | None = None
    changelog: bool = False
    normalized: tuple[str, ...] = ()
    readings: tuple[tuple[str, int], ...] = ()
    offset: int
    base: tuple[str, ...]
    block: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalValues:
    """Literal rows of the query. Their values read no column."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[Expr, ...], ...]
    base: tuple[str, ...]
    block: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalCalc:
    """The rows of ``input`` for which ``filter`` is true, projected to ``items``."""

    input: Relation
    filter: Expr | None
    items: tuple[Item, ...]
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The fields of a relation that hold the start and the end of the ``window`` of each row."""

    window: Window
    start: Field
    end: Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds of a join on its times: ``left`` minus ``right`` is from ``lower`` to ``upper`` ms.

    The times are rowtimes, or both are the processing time.
    """

    left: Field
    right: Field
    lower: int
    upper: int
    processing_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """The rowtimes of a temporal join, in which a left row meets the version of a right row at its time.

    ``right_time`` is None until :mod:`hintplan.planner.passes.plan_temporal_joins` has found it. ``place`` is the
    offset of FOR SYSTEM_TIME AS OF, and ``right_place`` the offset of the right side.
    """

    left_time: Field
    right_time: Field | None = None
    versions: Versions = "all"
    place: int = attribute(compare=False)
    right_place: int = attribute(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalJoin:
    """A join. Equalities among the conjuncts in ``on`` become ``keys``, and the rest becomes ``condition``.

    ``keyless`` allows a join without an equality, whatever its inputs are. ``windows`` are the windows of the left and
    right side if only rows of the same window meet; then they are not among ``keys``. ``interval`` are the bounds of
    an interval join, which are not in ``on``. ``is_bounded`` is true if the bounds in ``on`` will become its interval.
    ``as_of`` makes a temporal join.
    """

    left: Relation
    right: Relation
    join_type: JoinType
    on: tuple[Expr, ...]
    keys: tuple[tuple[Field, Field], ...] = ()
    condition: Expr | None = None
    items: tuple[Item, ...]
    states: tuple[StateInput, StateInput]
    keyless: bool = False
    windows: tuple[Attached, Attached] | None = None
    interval: Interval | None = None
    is_bounded: bool = False
    as_of: AsOf | None = None
    offset: int
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalLookupKey:
    """An equality of ``column`` of the table with a field of the input, or with a constant."""

    column: Field
    value: Field | Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalLookupJoin:
    """The rows of ``input`` joined with lookups in ``table``. ``fetched`` are fields of the table's physical columns.

    ``on`` has conjuncts over the input and ``fetched``, until they become ``keys`` and conditions. ``settings`` are
    resolved. ``hinted`` has the offsets of the hint options in effect, with the settings that they set.
    """

    input: Relation
    table: str
    name: str
    fetched: tuple[Field, ...]
    join_type: typing.Literal["inner", "left"]
    on: tuple[Expr, ...]
    keys: tuple[LogicalLookupKey, ...] = ()
    pre_filter: Expr | None = None
    filter: Expr | None = None
    condition: Expr | None = None
    items: tuple[Item, ...]
    settings: Mapping[str, Settings]
    hinted: tuple[tuple[int, str], ...]
    offset: int
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalCorrelate:
    """The rows of ``input`` joined with the rows that ``function`` returns for each.

    ``returned`` are fields of the function's columns. ``arguments`` are fields or literals after
    :mod:`hintplan.planner.passes.split_calls`.
    """

    input: Relation
    function: str
    kind: FunctionKind
    join_type: typing.Literal["inner", "left"]
    arguments: tuple[Expr, ...]
    returned: tuple[Field, ...]
    items: tuple[Item, ...]
    offset: int
    base: tuple[str, ...]
    block: str

    @property
    def scalar(self) -> bool:
        """Return True if a call returns exactly one row."""
        return self.kind in ("scalar", "async-scalar")

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalUnnest:
    """The rows of ``input`` joined with the elements of ``collection``, an ARRAY or a MAP.

    ``returned`` are fields of its :func:`~hintplan.plans.operators.element_columns`; the last is the element's
    position. ``collection`` is a field after :mod:`hintplan.planner.passes.split_calls`.
    """

    input: Relation
    collection: Expr
    join_type: typing.Literal["inner", "left"]
    returned: tuple[Field, ...]
    items: tuple[Item, ...]
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalExpand:
    """The rows of ``input``, once for each of ``sets``. A set contains positions in ``keys``.

    Each key is a new field with a value from a field of the input, which is not among ``passed``. ``group_id`` holds
    the id of the set, see :mod:`hintplan.planner.translation.grouping_sets`.
    """

    input: Relation
    keys: tuple[Item, ...]
    sets: tuple[frozenset[int], ...]
    passed: tuple[Field, ...]
    group_id: Field
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*(i.field for i in self.keys), *self.passed, self.group_id)

    @property
    def common(self) -> tuple[Item, ...]:
        """Return the keys that belong to all sets, which therefore never become NULL."""
        return tuple(item for place, item in enumerate(self.keys) if all(place in positions for positions in self.sets))


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateItem:
    """One aggregate call. ``arguments`` and ``filter`` are fields of the input. COUNT(*) has no arguments."""

    field: Field
    function: str
    arguments: tuple[Field, ...]
    distinct: bool
    filter: Field | None
    separator: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalAggregate:
    """An aggregate. Its ``keys`` are fields of the input and of the output."""

    input: Relation
    keys: tuple[Field, ...]
    calls: tuple[AggregateItem, ...]
    state: StateInput
    offset: int
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.keys, *(c.field for c in self.calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """The results of a group window of Flink's older syntax: also ``early``, before it closes, and ``late``, after."""

    early: bool
    late: bool

    @property
    def updates(self) -> bool:
        """Return True if results change."""
        return self.early or self.late


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalWindowAggregate:
    """An aggregate of the rows of each window, whose results come when the watermark passes the window.

    The windows are over the rowtime ``time``, or the fields ``attached`` of the input hold them. The output has the
    columns of the window that some reader needs. Only a group window has ``fire``.
    """

    input: Relation
    keys: tuple[Field, ...]
    calls: tuple[AggregateItem, ...]
    window: Window
    time: Field | None
    attached: Attached | None
    start: Field | None
    end: Field | None
    window_time: Field | None
    fire: Fire | None
    state: StateInput
    base: tuple[str, ...]
    block: str

    @property
    def of_window(self) -> tuple[Field, ...]:
        """Return the output fields that hold the window."""
        return tuple(f for f in (self.start, self.end, self.window_time) if f is not None)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.keys, *(c.field for c in self.calls), *self.of_window)

    @property
    def reads(self) -> tuple[Field, ...]:
        """Return the fields of the input that the aggregate reads."""
        of_calls = (f for c in self.calls for f in (*c.arguments, c.filter) if f is not None)
        of_window = (self.time,) if self.attached is None else (self.attached.start, self.attached.end)
        return (*self.keys, *of_calls, *(f for f in of_window if f is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalUnion:
    """UNION ALL: the i-th field of every input becomes the i-th of ``fields``."""

    inputs: tuple[Relation, ...]
    fields: tuple[Field, ...]
    base: tuple[str, ...]
    block: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SortItem:
    """A field to sort by. ``nulls_first`` sets the position of NULLs, whatever the direction."""

    field: Field
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalPassthrough(ABC):
    """A relation that passes rows of ``input`` on unchanged, all or some of them.

    Analyses and passes use this interface. ``title`` is the name of the rows in messages.
    """

    title: typing.ClassVar[str]

    input: Relation
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    @abstractmethod
    def reads(self) -> tuple[Field, ...]:
        """Return the fields that the relation itself reads."""

    @property
    def unique_keys(self) -> frozenset[frozenset[int]]:
        """Return the unique keys that the relation adds, as sets of field ids."""
        return frozenset()

    @property
    def takes_back(self) -> bool:
        """Return True if the relation may retract a row even if its input is append-only."""
        return False

    def offered(self, conditions: tuple[Expr, ...]) -> tuple[Relation, tuple[Expr, ...]] | None:
        """Absorb the row-filtering ``conditions``. Return the new relation and the rest, or None if none apply."""
        return None

    def without_unread(self, needed: set[int]) -> typing.Self:
        """Return the relation for readers that only need the fields with the ids ``needed``."""
        return self

    @abstractmethod
    def lets_through(self, ids: set[int]) -> bool:
        """Return True if a filter on the fields ``ids`` gives the same result below the relation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalSort(LogicalPassthrough):
    """The rows of ``input`` in ``order``, without the first ``offset``, and at most ``limit`` of them. None: no limit.

    ``place`` is the offset of its first clause. In a stream, ``changing`` is the error to raise if its rows can change.
    """

    title: typing.ClassVar[str] = "a sorted query"

    order: tuple[SortItem, ...]
    offset: int
    limit: int | None
    place: int | None
    changing: SqlError | None = attribute(default=None, compare=False)

    @property
    def is_at_watermark(self) -> bool:
        """Return True if it sorts the rows of a stream by their rowtime, as the watermark passes them."""
        return self.changing is not None

    @property
    def reads(self) -> tuple[Field, ...]:
        return tuple(key.field for key in self.order)

    @property
    def unique_keys(self) -> frozenset[frozenset[int]]:
        return frozenset({frozenset[int]()} if self.limit in (0, 1) else ())

    def lets_through(self, ids: set[int]) -> bool:
        # LIMIT counts rows before the filter.
        return bool(ids) and self.limit is None and not self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalCache(LogicalPassthrough):
    """A cached result of ``input``, which all readers share. Therefore no relation above it changes anything below.

    ``layers`` has the settings of the layers ``hint`` and ``statement``, and ``offsets`` their positions. A shared view
    keeps only the ``columns`` that some reader needs; ``read_columns`` collects the columns that the readers here need.
    """

    title: typing.ClassVar[str] = "a cached result"

    layers: Layers
    offsets: Mapping[tuple[str, str], int]
    columns: frozenset[str] | None = None
    read_columns: set[str] | None = attribute(default=None, compare=False, repr=False)

    @property
    def reads(self) -> tuple[Field, ...]:
        # All readers share the result, so its fields do not depend on them.
        return tuple(f for f in self.fields if self.columns is None or f.name in self.columns)

    def without_unread(self, needed: set[int]) -> typing.Self:
        """Return the relation unchanged, but record its needed columns."""
        if self.read_columns is not None:
            self.read_columns.update(f.name for f in self.fields if f.id in needed)
        return self

    def lets_through(self, ids: set[int]) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalRowNumber(LogicalPassthrough):
    """The rows of ``input`` with their ``number`` by ``order`` in each ``partition``, from ``first`` to ``last``.

    - ``end`` is a column of ``partition`` with the last number, if ``last`` is unknown.
    - ``partition`` is empty for a single partition.
    - ``order`` is empty for the order of arrival, which also decides between equal rows. ``latest`` reverses it.
    - ``by_time``: the rows are only added and the order is by time, so the first row is final.
    - ``by_rowtime``: the order is by the rowtime, ascending, so the first row can be emitted at the watermark.
    - ``unlimited`` is the error to raise if no condition above limits the number.
    - ``unordered`` is the error to raise if the rows have no order of arrival that could be reversed.
    - ``view`` is the view or CTE of the query, from which the state gets its name. Equal queries of two views share it.
    - ``attached`` is the window of the rows if the number counts in each window. ``place`` is its offset.
    """

    title: typing.ClassVar[str] = "a query with ROW_NUMBER()"

    partition: tuple[Field, ...]
    order: tuple[SortItem, ...]
    latest: bool
    by_time: bool
    number: Field
    by_rowtime: bool = False
    is_shown: bool = True
    first: int = 1
    last: int | None = None
    end: Field | None = None
    unlimited: SqlError | None = None
    unordered: SqlError | None = None
    view: str | None = attribute(default=None, compare=False)
    attached: Attached | None = None
    place: int = attribute(default=0, compare=False)

    @property
    def is_first_only(self) -> bool:
        """Return True if it keeps the first or last row by time."""
        return self.by_time and self.first == self.last == 1

    @property
    def is_at_watermark(self) -> bool:
        """Return True if it emits the first row by rowtime when the watermark passes it."""
        return self.is_first_only and self.by_rowtime and self.attached is None

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.number) if self.is_shown else self.input.fields

    @property
    def reads(self) -> tuple[Field, ...]:
        return (*self.partition, *(key.field for key in self.order))

    @property
    def unique_keys(self) -> frozenset[frozenset[int]]:
        key = frozenset(f.id for f in self.partition)
        if self.first == self.last:
            return frozenset({key})
        return frozenset({key | {self.number.id}} if self.is_shown else ())

    @property
    def takes_back(self) -> bool:
        return self.attached is None and not self.is_at_watermark and (self.latest or bool(self.order))

    def offered(self, conditions: tuple[Expr, ...]) -> tuple[Relation, tuple[Expr, ...]] | None:
        if self.end is not None:
            return None
        first, last, remaining = bounds_of(self.number, conditions)
        if last is None and self.last is None:
            end, remaining = limiting_column(self.number, self.partition, remaining)
            return None if end is None else (replace(self, first=max(first, self.first), end=end), remaining)
        if len(remaining) == len(conditions):
            return None
        lasts = [end for end in (last, self.last) if end is not None]
        kept = replace(self, first=max(first, self.first), last=min(lasts))
        if kept.first != kept.last:
            return kept, remaining
        # The number is constant, so no operator has to compute it.
        kept = replace(kept, is_shown=False)
        number = Item(field=self.number, expr=Literal(text=str(kept.last), type=self.number.type))
        items = (*identity(kept.fields), number)
        return LogicalCalc(input=kept, filter=None, items=items, base=self.base, block=self.block), remaining

    def without_unread(self, needed: set[int]) -> typing.Self:
        return replace(self, is_shown=self.is_shown and self.number.id in needed)

    def lets_through(self, ids: set[int]) -> bool:
        return bool(ids) and ids <= {f.id for f in self.partition}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverItem:
    """One window function. ``argument`` and ``default`` are fields of the input."""

    field: Field
    function: str
    argument: Field | None
    count: int | None = None
    default: Field | None = None
    distinct: bool = False


StreamOrder = typing.Literal["rowtime", "arrival", "column"]
"""The order of rows for window functions in a stream: by a rowtime, as they come, or by any other column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalOver(LogicalPassthrough):
    """The rows of ``input`` with the window functions ``calls``, over each ``partition`` in ``order``.

    ``order`` is the rowtime or the column of ``in_stream``, and empty for the order of arrival.
    """

    title: typing.ClassVar[str] = "a query with OVER"

    partition: tuple[Field, ...]
    order: tuple[SortItem, ...]
    frame: Frame | None
    calls: tuple[OverItem, ...]
    in_stream: StreamOrder | None = None

    @property
    def takes_back(self) -> bool:
        return self.in_stream == "column"

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(call.field for call in self.calls))

    @property
    def reads(self) -> tuple[Field, ...]:
        if not self.calls:
            return ()
        arguments = (field for call in self.calls for field in (call.argument, call.default) if field is not None)
        return (*self.partition, *(key.field for key in self.order), *arguments)

    def without_unread(self, needed: set[int]) -> typing.Self:
        return replace(self, calls=tuple(call for call in self.calls if call.field.id in needed))

    def lets_through(self, ids: set[int]) -> bool:
        return bool(ids) and ids <= {f.id for f in self.partition}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalWindow(LogicalPassthrough):
    """The rows of ``input``, each once for each of its windows over the rowtime ``time``, with the window's fields.

    ``keys`` are the fields of PARTITION BY, which only sessions have. A group window, which GROUP BY has, has ``fire``;
    of such a session, ``keys`` are all columns of its groups.
    """

    title: typing.ClassVar[str] = "a window function"

    time: Field
    window: Window
    keys: tuple[Field, ...]
    start: Field
    end: Field
    window_time: Field
    fire: Fire | None
    offset: int

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.start, self.end, self.window_time)

    @property
    def reads(self) -> tuple[Field, ...]:
        return (self.time, *self.keys)

    @property
    def is_session(self) -> bool:
        """Return True if the window of a row depends on other rows."""
        return self.window.type == "session"

    def lets_through(self, ids: set[int]) -> bool:
        # A session depends on all rows of its key.
        return bool(ids) and ids <= {f.id for f in (self.keys if self.is_session else self.input.fields)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalWatermark(LogicalPassthrough):
    """The rows of ``input``, whose watermark is the highest value of ``highest`` so far, less a delay.

    - ``column`` is the rowtime.
    - ``layers`` has the settings of the layers ``table`` and ``hint``.
    - ``hinted`` has the offsets of hint options, with the settings that they set.
    """

    title: typing.ClassVar[str] = "a table with a watermark"

    column: Field
    highest: Expr
    layers: Layers
    hinted: tuple[tuple[int, str], ...]

    @property
    def reads(self) -> tuple[Field, ...]:
        return (self.column, *referenced_fields(self.highest))

    def lets_through(self, ids: set[int]) -> bool:
        # Rows that a filter drops move the watermark, too.
        return False


Relation = (
    LogicalScan
    | LogicalValues
    | LogicalCalc
    | LogicalJoin
    | LogicalLookupJoin
    | LogicalCorrelate
    | LogicalUnnest
    | LogicalExpand
    | LogicalAggregate
    | LogicalWindowAggregate
    | LogicalUnion
    | LogicalSort
    | LogicalCache
    | LogicalRowNumber
    | LogicalOver
    | LogicalWindow
    | LogicalWatermark
)


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """Return the inputs of ``relation``, from left to right."""
    match relation:
        case LogicalScan() | LogicalValues():
            return ()
        case (
            LogicalCalc()
            | LogicalLookupJoin()
            | LogicalCorrelate()
            | LogicalUnnest()
            | LogicalExpand()
            | LogicalAggregate()
            | LogicalWindowAggregate()
            | LogicalPassthrough()
        ):
            return (relation.input,)
        case LogicalJoin():
            return relation.left, relation.right
        case LogicalUnion():
            return relation.inputs
        case _:
            assert_never(relation)


def map_inputs(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """Return ``relation`` with ``change`` applied to each of its inputs."""
    match relation:
        case LogicalScan() | LogicalValues():
            return relation
        case (
            LogicalCalc()
            | LogicalLookupJoin()
            | LogicalCorrelate()
            | LogicalUnnest()
            | LogicalExpand()
            | LogicalAggregate()
            | LogicalWindowAggregate()
            | LogicalPassthrough()
        ):
            return replace(relation, input=change(relation.input))
        case LogicalJoin():
            return replace(relation, left=change(relation.left), right=change(relation.right))
        case LogicalUnion():
            return replace(relation, inputs=tuple(change(input_) for input_ in relation.inputs))
        case _:
            assert_never(relation)


def identity(fields: tuple[Field, ...]) -> tuple[Item, ...]:
    """Return items that pass ``fields`` through."""
    return tuple(Item(field=f, expr=FieldRef(field=f)) for f in fields)
