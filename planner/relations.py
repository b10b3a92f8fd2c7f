"""The logical plan: relational operators over :class:`hintplan.planner.expressions.typed.Field`, before they get ids
and column names.

Every node has ``fields`` (its output), ``base`` (the name under which the query block knows it, from which ids are
made) and ``block`` (the name of the block it was written in). Nodes are immutable; passes build new ones.

>>> Scan(table="t", declared="t", fields=(), offset=0, base=("t",), block="result").table
't'
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from typing import assert_never

from hintplan.planner.expressions.bounds import bounds_of, last_column
from hintplan.planner.expressions.typed import Expr, Field, Literal, Ref
from hintplan.planner.hints.lookup import LookupHint
from hintplan.plans.declarations.tables import FunctionKind
from hintplan.plans.errors import SqlError
from hintplan.plans.operators import Frame, JoinType
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """A TTL that a hint asks for; ``offset`` is the place of the key in the hint."""

    ttl: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInput:
    """How a hint would address an input of a stateful operator: ``name`` is None for an intermediate result."""

    name: str | None = None
    hint: Hinted | None = None


UnnamedInput = StateInput()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An output field and what it is computed from."""

    field: Field
    expr: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """``table`` is what the plan calls the table that is ``declared`` so, for which a hint may have other options.

    ``options`` is the OPTIONS hint after the table's name, of whose cache only a lookup takes note.

    ``changelog`` says that the source emits updates and deletes, too. ``normalized`` are the columns by which its
    rows replace each other, if that is not yet a whole changelog. ``readings`` are the views and CTEs through which
    the table is read, from the outside in, and where each of them is. ``filter`` is what its source is asked for; the
    calc above has it, too.
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
class Values:
    """Rows that are written in the query; their values read no column."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[Expr, ...], ...]
    base: tuple[str, ...]
    block: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc:
    """Rows of ``input`` for which ``filter`` is true, projected to ``items``."""

    input: Relation
    filter: Expr | None
    items: tuple[Item, ...]
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """``on`` holds conjuncts until the equalities among them become ``keys``; the rest then is ``condition``.

    ``keyless`` says that the join may do without an equality, whatever its inputs are.
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
    offset: int
    base: tuple[str, ...]
    block: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKey:
    """``column`` of the table equals a field of the input, or a constant."""

    column: Field
    value: Field | Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin:
    """Rows of ``input`` with what is found in ``table``; ``fetched`` are fields of the table's physical columns.

    ``on`` holds conjuncts over the input and ``fetched`` until they become ``keys`` and conditions. ``settings`` are
    resolved; ``hinted`` are the offsets of the hint options that were heeded, and the settings that they set.
    """

    input: Relation
    table: str
    name: str
    fetched: tuple[Field, ...]
    join_type: typing.Literal["inner", "left"]
    on: tuple[Expr, ...]
    keys: tuple[LookupKey, ...] = ()
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
class Correlate:
    """Rows of ``input`` with what ``function`` returns for each; ``returned`` are fields of its declared columns.

    ``arguments`` are fields or literals once :mod:`hintplan.planner.passes.split_calls` has been here.
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
        """Whether a call returns exactly one row."""
        return self.kind in ("scalar", "async-scalar")

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(i.field for i in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest:
    """Rows of ``input`` with each element of ``collection``, an ARRAY or a MAP.

    ``returned`` are fields of its :func:`~hintplan.plans.operators.element_columns`, of which the last is the element's
    place. ``collection`` is a field once :mod:`hintplan.planner.passes.split_calls` has been here.
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
class Expand:
    """Rows of ``input`` once for each of ``sets``; a set is the places of its ``keys``.

    A key is a field of its own, which takes its value from one of the input's that is not among ``passed``.
    ``group_id`` holds the id of the set, see :mod:`hintplan.planner.translation.grouping_sets`.
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
        """The keys that are in all sets, so that nothing becomes NULL."""
        return tuple(item for place, item in enumerate(self.keys) if all(place in each for each in self.sets))


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateItem:
    """One aggregate call; ``arguments`` and ``filter`` are fields of the input. COUNT(*) has no arguments."""

    field: Field
    function: str
    arguments: tuple[Field, ...]
    distinct: bool
    filter: Field | None
    separator: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """``keys`` are fields of the input and of the output."""

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
class Union:
    """UNION ALL: the i-th field of every input becomes the i-th of ``fields``."""

    inputs: tuple[Relation, ...]
    fields: tuple[Field, ...]
    base: tuple[str, ...]
    block: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SortItem:
    """A field to sort by; ``nulls_first`` says where NULLs go, whatever the direction."""

    field: Field
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing(ABC):
    """Passes rows of ``input`` on as they are, all or some: what analyses and passes ask of every such relation.

    ``title`` is what a message calls the rows that it gives.
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
        """The fields that it needs itself, whoever reads it."""

    @property
    def unique_keys(self) -> frozenset[frozenset[int]]:
        """The keys that rows have for having passed, by ids of fields."""
        return frozenset()

    @property
    def takes_back(self) -> bool:
        """Whether it may take back a row that it has passed on, though its input takes back none."""
        return False

    def offered(self, conditions: tuple[Expr, ...]) -> tuple[Relation, tuple[Expr, ...]] | None:
        """What it becomes by taking those of ``conditions`` that say which rows pass, and the others; None without."""
        return None

    def without_unread(self, needed: set[int]) -> typing.Self:
        """As it is if only fields of the ids ``needed`` are read above it."""
        return self

    @abstractmethod
    def lets_through(self, ids: set[int]) -> bool:
        """Whether it makes no difference if a condition that reads fields of these ``ids`` is checked below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(Passing):
    """The rows of ``input`` in ``order``, without the first ``offset``, and up to ``limit`` of them; None for all.

    ``place`` is where the first of its clauses stands.
    """

    title: typing.ClassVar[str] = "a sorted query"

    order: tuple[SortItem, ...]
    offset: int
    limit: int | None
    place: int | None

    @property
    def reads(self) -> tuple[Field, ...]:
        return tuple(key.field for key in self.order)

    @property
    def unique_keys(self) -> frozenset[frozenset[int]]:
        return frozenset({frozenset[int]()} if self.limit in (0, 1) else ())

    def lets_through(self, ids: set[int]) -> bool:
        # LIMIT counts rows before they are filtered.
        return bool(ids) and self.limit is None and not self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached(Passing):
    """``input`` as a result that is kept: what is above it changes nothing below, so that all readers share it.

    ``asked`` is what the layers ``hint`` and ``statement`` say; ``places`` has the offsets of what said it. Of a view
    that is shared only the ``columns`` that some reader reads are kept, and ``noted`` collects those of this one.
    """

    title: typing.ClassVar[str] = "a cached result"

    asked: Layers
    places: Mapping[tuple[str, str], int]
    columns: frozenset[str] | None = None
    noted: set[str] | None = attribute(default=None, compare=False, repr=False)

    @property
    def reads(self) -> tuple[Field, ...]:
        # Whoever reads it, it is the same.
        return tuple(f for f in self.fields if self.columns is None or f.name in self.columns)

    def without_unread(self, needed: set[int]) -> typing.Self:
        """As it is; that these fields are read is noted."""
        if self.noted is not None:
            self.noted.update(f.name for f in self.fields if f.id in needed)
        return self

    def lets_through(self, ids: set[int]) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNumber(Passing):
    """The rows of ``input`` with their ``number`` by ``order`` in each ``partition``, those from ``first`` to ``last``.

    ``end`` is a column of ``partition`` with the last number, if ``last`` is not known. ``partition`` is empty for all
    rows, ``order`` for that of arrival, which is also that of equals, and which ``latest`` turns around. ``by_time``
    says that rows are only added and that the order is one of time, so that a first row is known without the others.
    ``unlimited`` is what is wrong if no condition above says which is the last number, ``unordered`` if the rows have
    no order of arrival to be turned around. ``view`` is the view or CTE that it was written in, after which its state
    is called; two views of the same query share it.
    """

    title: typing.ClassVar[str] = "a query with ROW_NUMBER()"

    partition: tuple[Field, ...]
    order: tuple[SortItem, ...]
    latest: bool
    by_time: bool
    number: Field
    is_shown: bool = True
    first: int = 1
    last: int | None = None
    end: Field | None = None
    unlimited: SqlError | None = None
    unordered: SqlError | None = None
    view: str | None = attribute(default=None, compare=False)

    @property
    def is_first_only(self) -> bool:
        """Whether it keeps the first or last row by time."""
        return self.by_time and self.first == self.last == 1

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
        return self.latest or bool(self.order)

    def offered(self, conditions: tuple[Expr, ...]) -> tuple[Relation, tuple[Expr, ...]] | None:
        if self.end is not None:
            return None
        first, last, others = bounds_of(self.number, conditions)
        if last is None and self.last is None:
            end, others = last_column(self.number, self.partition, others)
            return None if end is None else (replace(self, first=max(first, self.first), end=end), others)
        if len(others) == len(conditions):
            return None
        lasts = [end for end in (last, self.last) if end is not None]
        kept = replace(self, first=max(first, self.first), last=min(lasts))
        if kept.first != kept.last:
            return kept, others
        # The number is known: nobody has to count it.
        kept = replace(kept, is_shown=False)
        number = Item(field=self.number, expr=Literal(text=str(kept.last), type=self.number.type))
        items = (*identity(kept.fields), number)
        return Calc(input=kept, filter=None, items=items, base=self.base, block=self.block), others

    def without_unread(self, needed: set[int]) -> typing.Self:
        return replace(self, is_shown=self.is_shown and self.number.id in needed)

    def lets_through(self, ids: set[int]) -> bool:
        return bool(ids) and ids <= {f.id for f in self.partition}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverItem:
    """One function of the rows around a row; ``argument`` and ``default`` are fields of the input."""

    field: Field
    function: str
    argument: Field | None
    count: int | None = None
    default: Field | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Over(Passing):
    """The rows of ``input`` with what ``calls`` make of the rows of their ``partition`` around them, by ``order``."""

    title: typing.ClassVar[str] = "a query with OVER"

    partition: tuple[Field, ...]
    order: tuple[SortItem, ...]
    frame: Frame | None
    calls: tuple[OverItem, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(call.field for call in self.calls))

    @property
    def reads(self) -> tuple[Field, ...]:
        if not self.calls:
            return ()
        given = (field for call in self.calls for field in (call.argument, call.default) if field is not None)
        return (*self.partition, *(key.field for key in self.order), *given)

    def without_unread(self, needed: set[int]) -> typing.Self:
        return replace(self, calls=tuple(call for call in self.calls if call.field.id in needed))

    def lets_through(self, ids: set[int]) -> bool:
        return bool(ids) and ids <= {f.id for f in self.partition}


Relation = (
    Scan
    | Values
    | Calc
    | Join
    | LookupJoin
    | Correlate
    | Unnest
    | Expand
    | Aggregate
    | Union
    | Sort
    | Cached
    | RowNumber
    | Over
)


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """What ``relation`` reads, from left to right."""
    match relation:
        case Scan() | Values():
            return ()
        case Calc() | LookupJoin() | Correlate() | Unnest() | Expand() | Aggregate() | Passing():
            return (relation.input,)
        case Join():
            return relation.left, relation.right
        case Union():
            return relation.inputs
        case _:
            assert_never(relation)


def map_inputs(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """``relation`` over what ``change`` makes of each of its inputs."""
    match relation:
        case Scan() | Values():
            return relation
        case Calc() | LookupJoin() | Correlate() | Unnest() | Expand() | Aggregate() | Passing():
            return replace(relation, input=change(relation.input))
        case Join():
            return replace(relation, left=change(relation.left), right=change(relation.right))
        case Union():
            return replace(relation, inputs=tuple(change(each) for each in relation.inputs))
        case _:
            assert_never(relation)


def identity(fields: tuple[Field, ...]) -> tuple[Item, ...]:
    """Items that pass ``fields`` through."""
    return tuple(Item(field=f, expr=Ref(field=f)) for f in fields)
