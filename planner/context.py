"""The shared data of a compilation: text, tables, views, hints, warnings, and a supply of fields.

Each compilation has one object of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from hintplan.planner.expressions.typed import Expr, Field, FieldRef
from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.relations import Relation
from hintplan.planner.statements.model import CreateTable, CreateView
from hintplan.planner.syntax.blanked import Blanked
from hintplan.planner.syntax.source import Diagnostics, Source
from hintplan.plans.declarations.built_in import FUNCTIONS_BUILT_IN, built_in
from hintplan.plans.declarations.tables import Function, Table, written_columns
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.settings.setting import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """A computed column, whose ``expr`` reads the other columns.

    ``functions`` are the declarations of its user-defined functions at the time of its own declaration.
    """

    name: str
    expr: Expr
    functions: Mapping[str, FunctionEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A declared table: its plan form, the fields of the columns that a scan reads, and its computed columns.

    ``declaration`` is the statement for LIKE and ALTER, or None for a table that no statement declared. ``missing`` is
    the error about missing options, raised where the table is read or written; LIKE may still add them. An ``unsure``
    table has wrong options, so the properties of its connector are unknown.
    """

    table: Table
    offset: int
    temporary: bool
    option_offsets: Mapping[str, int]
    fields: tuple[Field, ...]
    computed: tuple[ComputedColumn, ...]
    declaration: CreateTable | None = None
    missing: SqlError | None = None
    unsure: bool = False

    @property
    def written(self) -> tuple[Field, ...]:
        """Return the fields of the columns that a sink writes."""
        names = {column.name for column in written_columns(self.table)}
        return tuple(own_field for own_field in self.fields if own_field.name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicTable:
    """The ``declared`` table ``name`` with the options of an OPTIONS hint.

    ``places`` has the keys of the hint and their offsets.
    """

    name: str
    declared: TableEntry
    entry: TableEntry
    places: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTable:
    """The settings of the last CACHE TABLE or UNCACHE TABLE for a table or view, and their offsets."""

    settings: Mapping[str, Value]
    places: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEntry:
    """A declared function: its plan form, and the types of its arguments and columns."""

    function: Function
    offset: int
    temporary: bool
    arguments: tuple[DataType, ...]
    columns: tuple[DataType, ...]

    @property
    def is_scalar(self) -> bool:
        """Return True if a call returns one value per row."""
        return self.function.kind in ("scalar", "async-scalar")

    @property
    def is_aggregate(self) -> bool:
        """Return True if a call returns one value per group."""
        return self.function.kind == "aggregate"


_BUILT_IN: Mapping[str, FunctionEntry] = {
    function.class_name: FunctionEntry(
        function=function,
        offset=0,
        temporary=True,
        arguments=tuple(map(parse_type, function.arguments)),
        columns=tuple(parse_type(column.type) for column in function.output),
    )
    for function in FUNCTIONS_BUILT_IN.values()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAccess:
    """The allowed ``modules`` for classes of functions, and additional ``directories`` to search."""

    modules: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()


@dataclass(slots=True)
class Catalog:
    """Tables and views by name, in the order of declaration. They share a namespace; some are read as cached results.

    Functions have a namespace of their own, with names in lower case. ``bases`` are tables that LIKE copied or a hint
    completed. ``given`` are tables that no statement has declared yet. ``failed`` are the names of tables, views and
    functions with errors in their declarations.
    """

    tables: dict[str, TableEntry] = field(default_factory=dict)
    views: dict[str, CreateView] = field(default_factory=dict)
    cached: dict[str, CachedTable] = field(default_factory=dict)
    functions: dict[str, FunctionEntry] = field(default_factory=dict)
    bases: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def names(self) -> tuple[str, ...]:
        return (*self.tables, *self.views)

    def function(self, name: str) -> FunctionEntry:
        """Return the declared function ``name``, or the built-in function that plans call like a declared one."""
        declared = built_in(name)
        return self.functions[name] if declared is None else _BUILT_IN[declared.class_name]

    def copy(self) -> Catalog:
        """Return a snapshot that later declarations do not change."""
        return Catalog(
            tables=dict(self.tables),
            views=dict(self.views),
            cached=dict(self.cached),
            functions=dict(self.functions),
            bases=set(self.bases),
            given=set(self.given),
            failed=set(self.failed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cte:
    """A common table expression and the environment of its query."""

    query: exp.Query
    columns: tuple[str, ...]
    environment: QueryEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEnvironment:
    """The context that a query block inherits: the visible CTEs and the block's name.

    ``set_operation`` is the set operation around the block, and empty for UNION ALL or none. ``readings`` are the views
    and CTEs around the block, outermost first, with the offset at which each is read.
    """

    block: str
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    set_operation: str = ""
    readings: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The ``relation`` of a view, compiled at its declaration. It includes the relations of the views ``within``.

    It is ``unsure`` if a table that it reads is unsure.
    """

    view: CreateView
    relation: Relation
    within: frozenset[str]
    unsure: bool = False


@dataclass(slots=True)
class Context:
    """The state of one compilation.

    - ``text`` is the source with comments and hints blanked out.
    - ``config`` is the job's configuration in the plan. ``compiler`` has the settings that only affect which operators
      the plan has. ``batch`` is the mode.
    - ``used_ctes`` has the offsets of the CTEs that were read.
    - ``blocks`` is the number of query blocks that were parsed. ``blocks_read`` are the blocks that were compiled.
    - ``place`` is the offset of the current statement, ``view`` the view or CTE that is being compiled.
    - ``shared_views`` are views that several places read and that are computed once. The value has the columns that
      these places read, or None for all. ``view_reads`` collects the columns read so far.
    - ``dynamic`` has the job's tables with options of hints, by their names in the plan.
    - ``tried`` has the views as compiled at their declaration.
    - ``taken`` has the views inside the declaration that is being compiled, or is None outside a view declaration.
    """

    source: Source
    text: Blanked
    report: Diagnostics
    ledger: Ledger
    config: Mapping[str, str]
    compiler: Mapping[str, str] = field(default_factory=dict)
    batch: bool = False
    classes: ClassAccess = field(default_factory=ClassAccess)
    catalog: Catalog = field(default_factory=Catalog)
    used_ctes: set[int] = field(default_factory=set)
    view: str | None = None
    shared_views: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    view_reads: dict[str, set[str]] = field(default_factory=dict)
    dynamic: dict[str, DynamicTable] = field(default_factory=dict)
    place: int = 0
    blocks: int = 0
    blocks_read: set[int] = field(default_factory=set)
    tried: dict[str, Tried] = field(default_factory=dict)
    taken: set[str] | None = None
    _fields: int = 0

    @contextmanager
    def on_trial(self) -> Iterator[None]:
        """Compile in the ``with`` block for validation only. Discard its findings and its use of hints."""
        report, ledger, dynamic = self.report, self.ledger, self.dynamic
        self.dynamic = dict(dynamic)
        self.report, self.ledger = Diagnostics(source=self.source), Ledger(ledger.hints, at_tables=ledger.at_tables)
        try:
            yield
        finally:
            self.report, self.ledger, self.dynamic = report, ledger, dynamic

    def take_tried(self, view: CreateView) -> Relation | None:
        """Return the relation of ``view`` from its declaration, or None if it cannot be reused here.

        Only the declaration of another view reuses it, because that result is discarded. The fields of a relation are
        unique, so one declaration can include it only once.
        """
        tried = self.tried.get(view.name)
        if self.taken is None or tried is None or tried.view is not view or self.taken & tried.within:
            return None
        self.taken |= tried.within
        self.source.problems.unsure |= tried.unsure
        return tried.relation

    def table(self, name: str) -> TableEntry:
        """Return the table that a relation refers to as ``name``."""
        dynamic = self.dynamic.get(name)
        return self.catalog.tables[name] if dynamic is None else dynamic.entry

    def plan_tables(self) -> dict[str, Table]:
        """Return all tables in their plan form, by the names that relations use."""
        return {name: self.table(name).table for name in (*self.catalog.tables, *self.dynamic)}

    @contextmanager
    def within_view(self, name: str) -> Iterator[None]:
        """Compile the query of the view or CTE ``name`` in the ``with`` block."""
        around, self.view = self.view, name
        try:
            yield
        finally:
            self.view = around

    def count_operator(self) -> None:
        """Count an operator against the budget.

        Nested views and CTEs that are read twice multiply the operators of a query.
        """
        self.source.spend("operators", 1, self.place)

    def field(self, name: str, data_type: DataType) -> Field:
        """Return a new, unique field."""
        self._fields += 1
        self.source.spend("columns", 1, self.place)
        return Field(id=self._fields, name=name, type=data_type.as_nullable())

    def field_for(self, expression: Expr, name: str) -> Field:
        """Return the field of ``expression`` as ``name``: its own if it is a column of that name, else a new one."""
        if isinstance(expression, FieldRef) and expression.field.name == name:
            return expression.field
        return self.field(name, expression.type)
