"""The abstract class of all operators: the facts of an operator that code which handles every operator uses.

Reading and writing, the JSON Schema, checks, row kinds, settings, trees, pages and differences are driven by it. The
class variables are the same for all operators of a class; the fields of a class are the keys of the plan's JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, cast

from hintplan.plans.declarations.row_kinds import RowKind, RowKinds
from hintplan.plans.declarations.tables import Function
from hintplan.plans.declarations.windows import Window, WindowColumns
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import value_text
from hintplan.plans.settings.state import UNTIL_CLOCK, UNTIL_WATERMARK, StateEntry, readable_ttl
from hintplan.plans.settings.text import setting_text, with_layers_text
from hintplan.plans.settings.views import CachedSettings, settings_view

TableUse = Literal["reads", "looks up", "writes"]
NO_FUNCTIONS: Mapping[str, Function] = MappingProxyType({})


class Operator(ABC):
    """An operator of a plan; each of its subclasses is a frozen dataclass with the fields of the plan's JSON.

    A subclass implements the abstract methods and properties, and overrides a default that does not suit it.
    """

    __slots__ = ()

    op: ClassVar[str]
    """The name of the class in plans."""
    title: ClassVar[str]
    """The name of the class in boxes and sentences."""
    description: ClassVar[str]
    """The description of the class in the JSON Schema."""
    groups: ClassVar[tuple[Group, ...]] = (CACHED,)
    """The groups of settings that an operator can have."""
    table_use: ClassVar[TableUse | None] = None
    """The way in which an operator uses its ``table``."""
    has_rows: ClassVar[bool] = False
    """True if the plan contains rows of the operator, which it emits once."""
    implied: ClassVar[tuple[str, ...]] = ()
    """The fields that do not affect the results of readers, and so are not part of the lineage of state above."""
    takes_upserts: ClassVar[bool] = False
    """True if it reads upserts or repeated changes, which are not a complete changelog."""
    normalizes_changes: ClassVar[bool] = False
    """True if it makes a complete changelog of them."""
    below_shared: ClassVar[bool] = False
    """True if each sink of a shared query can have its own copy, between the shared operators and the sink."""
    goes_by_time: ClassVar[bool] = False
    """True if it emits rows when the watermark passes them, and keeps its states until then."""
    drops_late_rows: ClassVar[bool] = True
    """True if an operator that goes by time drops rows that come after the watermark has passed them."""
    passes_watermark: ClassVar[bool] = True
    """True if the watermark of its inputs holds for its output."""
    sends_watermark: ClassVar[bool] = False
    """True if a watermark begins at it."""
    passes_columns: ClassVar[bool] = False
    """True if its output has all columns of its inputs, under their names and unchanged."""
    may_run_in_arrow: ClassVar[bool] = False
    """True if Arrow can run it between a scan and an operator with state, if Arrow can compute its expressions."""
    in_lineage: ClassVar[bool] = True
    """True if states above depend on it; false if it emits the rows of its input unchanged."""

    @property
    @abstractmethod
    def id(self) -> str:
        """The name of the operator, unique in its plan."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """The ids of the operators that it reads."""

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, Settings]:
        """The groups of settings that it has, by name."""

    @property
    def state(self) -> tuple[StateEntry, ...]:
        """The state entries; empty if the operator keeps no state."""
        return ()

    @property
    def table(self) -> str | None:
        """The table that it reads, looks up or writes; None if it uses none."""
        return None

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of the plan that it calls, each once."""
        return ()

    @property
    def windowing(self) -> tuple[str | None, Window] | None:
        """The rowtime of its input and the windows that it makes over it; None if it makes no windows.

        Windows of processing time have no rowtime.
        """
        return None

    @property
    def holds_back(self) -> int:
        """The time in ms by which its rows may be behind the watermark of its inputs."""
        return 0

    @property
    def goes_by_clock(self) -> bool:
        """True if it goes by processing time: its watermark is the time of the micro-batch, and no table sends it."""
        return False

    @property
    def wakes(self) -> bool:
        """True if it may have something to do at times at which no row comes and no watermark moves."""
        return self.goes_by_clock

    @property
    def path(self) -> str:
        """The path of the operator in its plan, for messages."""
        return f"operators.{self.id}"

    @property
    def is_source(self) -> bool:
        """True if it reads a table."""
        return self.table_use == "reads"

    @property
    def is_sink(self) -> bool:
        """True if it writes a table."""
        return self.table_use == "writes"

    @property
    def cached(self) -> CachedSettings | None:
        """The settings that decide whether and where its output is cached; None if no layer sets any."""
        in_group = self.settings.get(CACHED.name)
        return None if in_group is None else settings_view(CachedSettings, in_group.values)

    @property
    @abstractmethod
    def reads_order(self) -> bool:
        """True if its result depends on the order of its rows, even if they are insert-only."""

    @property
    def parks_rows(self) -> bool:
        """True if rows wait in the checkpoint for another request, in addition to the states."""
        return False

    @abstractmethod
    def output_columns(self, inputs: Inputs) -> Columns:
        """Return its output columns; a sink returns the columns that it writes."""

    @abstractmethod
    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        """Yield the problems of its columns and of everything else that it refers to."""

    @abstractmethod
    def describe(self, plan: Declared) -> str:
        """Describe the operator in words of SQL; trees, pictures and differences all show this description."""

    def row_kinds(self, inputs: RowKinds, plan: Declared) -> RowKinds:
        """Return the row kinds of its output, given the row kinds of all inputs together."""
        return inputs

    def check_mode(self, plan: Declared) -> Iterator[Diagnostic]:
        """Yield its problems in a plan of this mode, independent of its columns."""
        yield from ()

    def check_neighbours(self, neighbours: Neighbours) -> Iterator[Diagnostic]:
        """Yield the problems of its inputs and readers; by default it can be anywhere in a plan."""
        yield from ()

    def takes(self, plan: Declared) -> Collection[RowKind] | None:
        """Return the row kinds that its inputs may emit; None for all."""
        return None

    def key_above(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the output names of these input columns if it passes on every row with them; else None."""
        return None

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        """Return the names of a column of the input at ``place`` in its output; empty if it does not pass it on."""
        return (column,) if self.passes_columns else ()

    def own_windows(self) -> Mapping[WindowColumns, Window]:
        """Return the windows that it adds to its rows, by the columns of its output that hold them."""
        return {}

    def rowtimes_read(self) -> Iterator[tuple[int, str, str]]:
        """Yield the columns of its inputs that must be rowtimes.

        Each has the place of the input, its path below the operator, and the name of the column.
        """
        time = None if self.windowing is None else self.windowing[0]
        if time is not None:
            yield 0, "time", time

    def own_rowtimes(self) -> tuple[str, ...] | None:
        """Return the only rowtimes of its output; None if the rowtimes of its inputs stay rowtimes."""
        return None

    def attached_windows(self) -> Iterator[tuple[int, str, WindowColumns, Window]]:
        """Yield the windows that it needs its inputs to have.

        Each has the place of the input, its path below the operator, and the columns of the input that hold it.
        """
        yield from ()

    def one_phase_because(
        self, *, insert_only: bool, in_order: bool = False, functions: Mapping[str, Function] = NO_FUNCTIONS
    ) -> str | None:
        """Return the reason why an operator with a setting for phases always runs in one; None if it can run in two.

        ``insert_only`` is true if its input carries no row kinds, ``in_order`` if its rows are first sorted by arrival.
        ``functions`` are the functions of the plan.
        """
        return None

    def expressions(self) -> Iterator[tuple[str, str | None]]:
        """Yield its expressions, each with its path below the operator; None for an absent expression."""
        yield from ()

    def kept_until(self, state: str) -> str:
        """Return, for people, how long its state of this name, which has no TTL, keeps a row."""
        return UNTIL_CLOCK if self.goes_by_clock else UNTIL_WATERMARK

    def readable_lifetime(self, entry: StateEntry) -> str:
        """Return the lifetime of rows in one of its states, for people: the TTL, or until the watermark passes them."""
        return self.kept_until(entry.name) if entry.ttl is None else readable_ttl(entry.ttl)

    def settings_text(self, group: str) -> Iterator[str]:
        """Yield the settings of a group one by one, then their combined effect."""
        settings = self.settings[group]
        if len(settings.specs) == 1:
            yield from (with_layers_text(settings, name, value_text(value)) for name, value in settings.values.items())
        else:
            yield from (setting_text(settings, name) for name in settings.values)

    def heeds(self, group: Group) -> bool:
        """Return True if the operator reads the settings of ``group``, one of the groups of its class."""
        return True

    @classmethod
    def group(cls, name: str) -> Group | None:
        """Return the group of settings of that name, or None if operators of this class have none."""
        return next((group for group in cls.groups if group.name == name), None)

    def with_id(self, operator_id: str) -> Self:
        """Return the operator under another id."""
        return self._replaced(id=operator_id)

    def with_inputs(self, inputs: tuple[str, ...]) -> Self:
        """Return the operator with other inputs, as many as it has; an operator without inputs stays unchanged."""
        return self._replaced(inputs=inputs) if self.inputs else self

    def with_settings(self, settings: Mapping[str, Settings]) -> Self:
        """Return the operator with these groups of settings, or unchanged if its class has none."""
        return self._replaced(settings=settings) if self.groups else self

    def with_table(self, table: str) -> Self:
        """Return the operator with ``table`` in place of the table that it uses."""
        return self._replaced(table=table)

    def with_states(self, entries: Iterable[StateEntry]) -> Self:
        """Return the operator with these state entries, or unchanged if it is stateless."""
        return self

    def with_changelog(self, kinds: RowKinds) -> Self:
        """Return the operator with ``kinds`` as its changelog, or unchanged if it is stateless."""
        return self

    def _replaced(self, **fields: object) -> Self:
        return cast(Self, replace(cast(Any, self), **fields))


@frozen
class Neighbours:
    """The operators around one operator of a plan: its inputs in their order, and its readers.

    ``below_watermark`` and ``above_watermark`` are the same, with the watermark of a table left out, and the calc of
    its computed columns.
    """

    inputs: tuple[Operator, ...]
    readers: tuple[Operator, ...]
    below_watermark: tuple[Operator, ...]
    above_watermark: tuple[Operator, ...]
    plan: Declared
