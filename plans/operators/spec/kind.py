"""The specification of a kind of operators: one value that all code which handles every kind uses.

Reading and writing, the JSON Schema, checks, row kinds, states, settings, trees, pages and differences are driven by
it. ``columns``, ``row_kinds`` and ``check`` receive the outputs of the operator's inputs, in the order of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hintplan.plans.declarations.row_kinds import RowKind, RowKinds
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.asking.kind import AskingKind
from hintplan.plans.operators.spec.declared import Columns, Declared
from hintplan.plans.operators.spec.state import StateKind
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.settings.group import Group
from hintplan.plans.settings.layers import Settings
from hintplan.plans.settings.setting import value_text
from hintplan.plans.settings.text import setting_text, with_layers_text
from hintplan.plans.settings.views import CachedSettings, settings_view

TableUse = Literal["reads", "looks up", "writes"]
CheckPlace = Callable[
    [Any, Sequence["Neighbour"], Sequence["Neighbour"], Declared, str],
    Iterator[Diagnostic],
]
"""Receives the inputs of an operator, then its readers."""


class WithSettings:
    """An operator whose output can be cached for later readers: any operator except a sink."""

    __slots__ = ()

    settings: Mapping[str, Settings]

    @property
    def cached(self) -> CachedSettings | None:
        """The settings that decide whether and where its output is cached; None if no layer sets any."""
        in_group = self.settings.get(CACHED.name)
        return None if in_group is None else settings_view(CachedSettings, in_group.values)


def of_input(operator: object, inputs: Sequence[Columns], plan: Declared) -> Columns:
    """Return the columns of the only input."""
    return inputs[0]


def unchanged(operator: object, inputs: RowKinds, plan: Declared) -> RowKinds:
    """Return the row kinds of the inputs."""
    return inputs


def any_order(operator: object) -> bool:
    """Return False: the result does not depend on the order of rows."""
    return False


def in_order(operator: object) -> bool:
    """Return True: the result depends on the order of rows."""
    return True


def _any_mode(operator: object, plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from ()


def no_expressions(operator: object) -> Iterator[tuple[str, str | None]]:
    """Yield nothing: the operator has no expressions."""
    yield from ()


def no_functions(operator: object) -> tuple[str, ...]:
    """Return nothing: the operator calls no functions."""
    return ()


def _any_kinds(operator: object, plan: Declared) -> Collection[RowKind] | None:
    return None


def _no_key(operator: object, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    return None


def _one_by_one(settings: Mapping[str, Settings], group: str) -> Iterator[str]:
    in_group = settings[group]
    if len(in_group.specs) == 1:
        yield from (with_layers_text(in_group, name, value_text(value)) for name, value in in_group.values.items())
    else:
        yield from (setting_text(in_group, name) for name in in_group.values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorKind:
    """The specification of a kind; ``op`` is its name in plans, ``title`` its name in boxes and sentences.

    A default suits every kind that does not set the field; set every field without a default. ``state`` describes the
    state entries, ``groups`` the settings. ``table`` is the way in which the operator uses its table.
    """

    op: str
    cls: type[Any]
    title: str
    description: str
    """The description of the operator in the JSON Schema."""
    columns: Callable[[Any, Sequence[Columns], Declared], Columns]
    check: Callable[[Any, Sequence[Columns], Declared, str], Iterator[Diagnostic]]
    """Yields the problems of its columns and of everything else that it refers to."""
    row_kinds: Callable[[Any, RowKinds, Declared], RowKinds]
    """Returns the row kinds of its output, given the row kinds of all inputs; with state, its stated changelog."""
    reads_order: Callable[[Any], bool]
    """Returns True if its result depends on the order of its rows, even if they are insert-only."""
    describe: Callable[[Any, Declared], str]
    """Describes the operator in words of SQL."""
    implied: tuple[str, ...] = ()
    """Its fields that do not affect the results of its readers, and so are not part of the lineage of state above."""
    state: StateKind | None = None
    groups: tuple[Group, ...] = (CACHED,)
    table: TableUse | None = None
    has_rows: bool = False
    """True if the plan contains rows of the operator, which it emits once."""
    functions: Callable[[Any], tuple[str, ...]] = no_functions
    """Returns the functions of the plan that it calls."""
    asks: AskingKind | None = None
    """Its requests to another system for every row; such an operator always has its groups of settings."""
    check_mode: Callable[[Any, Declared, str], Iterator[Diagnostic]] = _any_mode
    """Yields its problems in a plan of this mode, independent of its columns."""
    takes: Callable[[Any, Declared], Collection[RowKind] | None] = _any_kinds
    """Returns the row kinds that its inputs may emit; None for all."""
    check_place: CheckPlace | None = None
    """Yields the problems of its inputs and readers; None if it can be anywhere in a plan."""
    takes_upserts: bool = False
    """True if it reads upserts or repeated changes, which are not a complete changelog."""
    key_above: Callable[[Any, tuple[str, ...]], tuple[str, ...] | None] = _no_key
    """Returns the output names of these input columns if it passes on every row with them; else None."""
    below_shared: bool = False
    """True if each sink of a shared query can have its own copy, between the shared operators and the sink."""
    one_phase_because: Callable[..., str | None] | None = None
    """Returns the reason why an operator of a kind with two phases always runs in one; None if it can run in two.

    ``insert_only`` is true if its input carries no row kinds, ``in_order`` if its rows are first sorted by arrival.
    ``functions`` are the functions of the plan.
    """
    expressions: Callable[[Any], Iterator[tuple[str, str | None]]] = no_expressions
    """Yields its expressions, each with its path below the operator; None for an absent expression."""
    settings_text: Callable[[Mapping[str, Settings], str], Iterator[str]] = _one_by_one
    """Yields the settings of a group one by one, then their combined effect."""

    @property
    def keeps_state(self) -> bool:
        """True if its operators have state entries, and state the row kinds that they emit."""
        return self.state is not None

    @property
    def is_source(self) -> bool:
        """True if its operators read a table."""
        return self.table == "reads"

    @property
    def is_sink(self) -> bool:
        """True if its operators write a table."""
        return self.table == "writes"

    def group(self, name: str) -> Group | None:
        """Return the group of settings of that name, or None if operators of this kind have none."""
        return next((group for group in self.groups if group.name == name), None)


@frozen
class Neighbour:
    """An input or a reader of an operator, with its kind."""

    kind: OperatorKind
    operator: Any
