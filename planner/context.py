"""What all parts of a compilation share: the text, the tables and views, the hints, warnings, and a supply of fields.

One object per compilation; nothing here outlives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from hintplan.planner.expressions.typed import Expr, Field, Ref
from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.relations import Relation
from hintplan.planner.statements.model import CreateTable, CreateView
from hintplan.planner.syntax.blanked import Blanked
from hintplan.planner.syntax.source import Report, Source
from hintplan.plans.declarations.built_in import FUNCTIONS_BUILT_IN, built_in
from hintplan.plans.declarations.tables import Function, Table, written_columns
from hintplan.plans.declarations.types import DataType, parse_type
from hintplan.plans.errors import SqlError
from hintplan.plans.settings.setting import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """A computed column: ``expr`` over the others, and the user's ``functions`` that it was declared with."""

    name: str
    expr: Expr
    functions: Mapping[str, FunctionEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A declared table: its plan form, the fields of the columns that it reads, and what its computed ones compute.

    ``declaration`` is what LIKE and ALTER go by; None for a table that no statement declared. ``missing`` is the error
    for whoever reads or writes the table, which lacks options: LIKE may add them. A table that is ``unsure`` has wrong
    options, so that nobody knows what its connector would do.
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
        """The fields of the columns that a sink writes."""
        names = {column.name for column in written_columns(self.table)}
        return tuple(field for field in self.fields if field.name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicTable:
    """The ``declared`` table called ``name`` with the options of a hint; ``places`` are keys and where they stand."""

    name: str
    declared: TableEntry
    entry: TableEntry
    places: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTable:
    """What CACHE TABLE or UNCACHE TABLE said last of a table or view, and where."""

    settings: Mapping[str, Value]
    places: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEntry:
    """A declared function: its plan form, and the types of its arguments and of its columns."""

    function: Function
    offset: int
    temporary: bool
    arguments: tuple[DataType, ...]
    columns: tuple[DataType, ...]

    @property
    def is_scalar(self) -> bool:
        """Whether a call gives one value for each row."""
        return self.function.kind in ("scalar", "async-scalar")

    @property
    def is_aggregate(self) -> bool:
        """Whether a call gives one value for a group of rows."""
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
    """Where classes of functions may come from: ``modules`` that are allowed, looked for in ``directories`` too."""

    modules: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()


@dataclass(slots=True)
class Catalog:
    """Tables and views by name, in the order of declaration, one namespace; some of them are read as cached results.

    Functions have a namespace of their own, and names in lower case. ``bases`` are tables that LIKE took over or
    a hint completed, ``failed`` the names of tables, views and functions whose declarations have errors.
    """

    tables: dict[str, TableEntry] = field(default_factory=dict)
    views: dict[str, CreateView] = field(default_factory=dict)
    cached: dict[str, CachedTable] = field(default_factory=dict)
    functions: dict[str, FunctionEntry] = field(default_factory=dict)
    bases: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def names(self) -> tuple[str, ...]:
        return (*self.tables, *self.views)

    def function(self, name: str) -> FunctionEntry:
        """The declared function ``name``, or the built-in one that a plan calls like one."""
        found = built_in(name)
        return self.functions[name] if found is None else _BUILT_IN[found.class_name]

    def copy(self) -> Catalog:
        """What the catalog holds now, which later declarations do not change."""
        return Catalog(
            tables=dict(self.tables),
            views=dict(self.views),
            cached=dict(self.cached),
            functions=dict(self.functions),
            bases=set(self.bases),
            failed=set(self.failed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cte:
    """A common table expression and the environment its query sees."""

    query: exp.Query
    columns: tuple[str, ...]
    environment: Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a query block inherits: the CTEs in reach, the block's name, and whether a UNION removes its duplicates.

    ``readings`` are the views and CTEs that the block is in, from the outside in, and where each of them is read.
    """

    block: str
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    set_operation: str = ""
    readings: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The ``relation`` of a view that was compiled when it was declared; it holds those of the views ``within``.

    It is ``unsure`` if a table that it reads is.
    """

    view: CreateView
    relation: Relation
    within: frozenset[str]
    unsure: bool = False


@dataclass(slots=True)
class Context:
    """One compilation. ``text`` is the source with comments and hints blanked out; ``used_ctes`` are places of CTEs.

    ``config`` is the configuration of the job, as it stands in the plan; ``compiler`` what else is set, that decides
    which operators there are; ``batch`` its mode.
    ``blocks`` is the number of blocks of queries that were parsed, and ``blocks_read`` are those that were compiled.
    ``place`` is where the statement begins.
    ``shared_views`` are read in several places and compiled once for all of them. ``dynamic`` are the tables of the job
    with options of hints, by what the plan calls them. ``tried`` are views as they were compiled when declared, and
    ``taken`` those that the declaration in work holds already; None unless a view is being declared.
    """

    source: Source
    text: Blanked
    report: Report
    ledger: Ledger
    config: Mapping[str, str]
    compiler: Mapping[str, str] = field(default_factory=dict)
    batch: bool = False
    classes: ClassAccess = field(default_factory=ClassAccess)
    catalog: Catalog = field(default_factory=Catalog)
    used_ctes: set[int] = field(default_factory=set)
    shared_views: frozenset[str] = frozenset()
    dynamic: dict[str, DynamicTable] = field(default_factory=dict)
    place: int = 0
    blocks: int = 0
    blocks_read: set[int] = field(default_factory=set)
    tried: dict[str, Tried] = field(default_factory=dict)
    taken: set[str] | None = None
    _fields: int = 0

    @contextmanager
    def on_trial(self) -> Iterator[None]:
        """Compile something only to see whether it is right: its findings and its hints do not count."""
        report, ledger, dynamic = self.report, self.ledger, self.dynamic
        self.dynamic = dict(dynamic)
        self.report, self.ledger = Report(source=self.source), Ledger(ledger.hints, at_tables=ledger.at_tables)
        try:
            yield
        finally:
            self.report, self.ledger, self.dynamic = report, ledger, dynamic

    def take_tried(self, view: CreateView) -> Relation | None:
        """Return the relation of ``view`` from when it was declared; None if it cannot stand for the view here.

        Only the declaration of another view takes it, which is discarded. As fields are unique within a relation, it
        can stand in one place only.
        """
        found = self.tried.get(view.name)
        if self.taken is None or found is None or found.view is not view or self.taken & found.within:
            return None
        self.taken |= found.within
        self.source.problems.unsure |= found.unsure
        return found.relation

    def table(self, name: str) -> TableEntry:
        """The table that a relation calls ``name``."""
        found = self.dynamic.get(name)
        return self.catalog.tables[name] if found is None else found.entry

    def plan_tables(self) -> dict[str, Table]:
        """All tables in their plan form, by the names that relations have for them."""
        return {name: self.table(name).table for name in (*self.catalog.tables, *self.dynamic)}

    def count_operator(self) -> None:
        """Stop before views and CTEs that read each other twice have multiplied beyond reason."""
        self.source.spend("operators", 1, self.place)

    def field(self, name: str, data_type: DataType) -> Field:
        """A new field, different from all others."""
        self._fields += 1
        self.source.spend("columns", 1, self.place)
        return Field(id=self._fields, name=name, type=data_type.as_nullable())

    def field_for(self, expression: Expr, name: str) -> Field:
        """The field of ``expression`` under ``name``: its own if it is a column of that name, else a new one."""
        if isinstance(expression, Ref) and expression.field.name == name:
            return expression.field
        return self.field(name, expression.type)
