"""What a kind of operators is to the rest of the package: one value that everything asks which treats all kinds.

Reading and writing, the JSON Schema, checks, row kinds, states, settings, trees, pages and differences go through it.
``columns``, ``row_kinds`` and ``check`` are told what their inputs put out, in the order of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hintplan.plans.declarations.row_kinds import RowKind, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.operators.asking.kind import AskingKind
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.state import StateKind
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import shown
from hintplan.plans.settings.text import labelled, marked
from hintplan.plans.settings.views import CachedSettings, viewed

TableUse = Literal["reads", "looks up", "writes"]
CheckPlace = Callable[
    [Any, Sequence["Neighbour"], Sequence["Neighbour"], Declared, str],
    Iterator[Diagnostic],
]
"""Is told what an operator reads, and what reads it."""


class WithSettings:
    """An operator whose output can be kept for later readers: any but a sink."""

    __slots__ = ()

    settings: Mapping[str, Settings]

    @property
    def cached(self) -> CachedSettings | None:
        """Whether its output is kept, and where; None if nobody asked."""
        found = self.settings.get(CACHED.name)
        return None if found is None else viewed(CachedSettings, found.values)


def of_input(operator: Any, inputs: Sequence[Columns], plan: Declared) -> Columns:
    """The columns of the only input."""
    return inputs[0]


def unchanged(operator: Any, inputs: RowKinds, plan: Declared) -> RowKinds:
    """The row kinds of the inputs."""
    return inputs


def any_order(operator: Any) -> bool:
    """The result is the same in whatever order rows come."""
    return False


def in_order(operator: Any) -> bool:
    """The result depends on the order of rows."""
    return True


def _any_mode(operator: Any, plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from ()


def no_expressions(operator: Any) -> Iterator[tuple[str, str | None]]:
    """It has none."""
    yield from ()


def no_functions(operator: Any) -> tuple[str, ...]:
    """It calls none."""
    return ()


def _any_kinds(operator: Any, plan: Declared) -> Collection[RowKind] | None:
    return None


def _no_key(operator: Any, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    return None


def _one_by_one(settings: Mapping[str, Settings], group: str) -> Iterator[str]:
    found = settings[group]
    if len(found.specs) == 1:
        yield from (marked(found, name, shown(value)) for name, value in found.values.items())
    else:
        yield from (labelled(found, name) for name in found.values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorKind:
    """``op`` is its name in a plan, ``title`` what a box and a sentence call it.

    What has a default is right for whatever does not speak of it; what has none, an author must decide.
    ``state`` is what it keeps, ``groups`` what may be set on it. ``table`` says what it does with the table that it
    names.
    """

    op: str
    cls: type[Any]
    title: str
    description: str
    """What it does, for the JSON Schema."""
    columns: Callable[[Any, Sequence[Columns], Declared], Columns]
    check: Callable[[Any, Sequence[Columns], Declared, str], Iterator[Diagnostic]]
    """What is wrong with its columns and whatever else it names."""
    row_kinds: Callable[[Any, RowKinds, Declared], RowKinds]
    """What it emits if its inputs together emit these kinds; of one with state, what the plan says."""
    reads_order: Callable[[Any], bool]
    """Whether its result depends on the order of its rows, even if they are only added."""
    describe: Callable[[Any, Declared], str]
    """What the operator does, in the words of SQL."""
    implied: tuple[str, ...] = ()
    """Its fields that change nothing of what its readers make of its rows, so that state above goes on without them."""
    state: StateKind | None = None
    groups: tuple[Group, ...] = (CACHED,)
    table: TableUse | None = None
    has_rows: bool = False
    """Whether it has rows of its own, which it puts out once, beside those that are read."""
    functions: Callable[[Any], tuple[str, ...]] = no_functions
    """The functions of the plan that it calls."""
    asks: AskingKind | None = None
    """What it asks another system for every row; it has settings whether anyone speaks of them or not."""
    check_mode: Callable[[Any, Declared, str], Iterator[Diagnostic]] = _any_mode
    """What is wrong with it in a plan of this mode, whatever its columns are."""
    takes: Callable[[Any, Declared], Collection[RowKind] | None] = _any_kinds
    """The row kinds that it can take; None if it takes all. Its inputs emit no others."""
    check_place: CheckPlace | None = None
    """What is wrong with what it reads and with what reads it; None if it can stand anywhere."""
    takes_upserts: bool = False
    """Whether it reads rows that replace each other by key, or that come twice, which are no changelog yet."""
    key_above: Callable[[Any, tuple[str, ...]], tuple[str, ...] | None] = _no_key
    """What its output calls these columns of its input if it passes every row on with them; else None."""
    below_shared: bool = False
    """Whether it can run in the query of each sink alone, below what several sinks have in common."""
    one_phase_because: Callable[..., str | None] | None = None
    """Of one that can run in two phases: why it runs in one, whatever is set; None if it can run in two.

    ``insert_only`` says whether its input carries no row kinds, ``in_order`` whether its rows are put in the order in
    which they arrived first. ``functions`` are those of the plan.
    """
    expressions: Callable[[Any], Iterator[tuple[str, str | None]]] = no_expressions
    """Its expressions, each with its path below the operator; None for one that is left out."""
    settings_text: Callable[[Mapping[str, Settings], str], Iterator[str]] = _one_by_one
    """The settings of a group one by one, and what they amount to."""

    @property
    def keeps_state(self) -> bool:
        """Whether it has state entries, and says which row kinds it emits."""
        return self.state is not None

    @property
    def is_source(self) -> bool:
        """Whether rows of a table begin here."""
        return self.table == "reads"

    @property
    def is_sink(self) -> bool:
        """Whether rows end here, in a table."""
        return self.table == "writes"

    def group(self, name: str) -> Group | None:
        """The group of settings of that name; None if operators of this kind have none."""
        return next((group for group in self.groups if group.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An operator that another reads, or that reads it, with its kind."""

    kind: OperatorKind
    operator: Any
