"""What a kind of operators is to the rest of the package: one value that everything asks which treats all kinds.

Reading and writing, the JSON Schema, checks, row kinds, states, settings, trees, pages and differences go through it.
``columns``, ``row_kinds`` and ``check`` are told what their inputs put out, in the order of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from plans.declarations.row_kinds import RowKind, RowKinds
from plans.declarations.tables import Column, Function, Table
from plans.errors import Diagnostic
from plans.settings.cached import CACHED, ENABLED, STORAGE_LEVEL
from plans.settings.group import Group
from plans.settings.layers import Settings
from plans.settings.setting import shown
from plans.settings.text import labelled, marked
from plans.settings.views import CachedSettings

__all__ = [
    "Columns",
    "Declared",
    "KeysUpserted",
    "OperatorKind",
    "TableUse",
    "WithSettings",
    "no_problem",
    "of_input",
    "unchanged",
]

Columns = tuple[Column, ...]
TableUse = Literal["reads", "looks up", "writes"]
KeysUpserted = Callable[[tuple[str, ...]], bool]
"""Whether all that reads an operator replaces rows by exactly these columns of it."""


class Declared(Protocol):
    """What an operator's kind may ask of the plan."""

    @property
    def mode(self) -> Literal["streaming", "batch"]: ...

    @property
    def tables(self) -> Mapping[str, Table]: ...

    @property
    def functions(self) -> Mapping[str, Function]: ...


class WithSettings:
    """An operator whose output can be kept for later readers: any but a sink."""

    __slots__ = ()

    settings: Mapping[str, Settings]

    @property
    def cached(self) -> CachedSettings | None:
        """Whether its output is kept, and where; None if nobody asked."""
        found = self.settings.get(CACHED.name)
        if found is None:
            return None
        return CachedSettings(enabled=found.values[ENABLED] is True, storage_level=str(found.values[STORAGE_LEVEL]))


def of_input(operator: Any, inputs: Sequence[Columns], plan: Declared) -> Columns:
    """The columns of the only input."""
    return inputs[0]


def unchanged(operator: Any, inputs: RowKinds, plan: Declared) -> RowKinds:
    """The row kinds of the inputs."""
    return inputs


def no_problem(operator: Any, inputs: Sequence[Columns], plan: Declared, path: str) -> Iterator[Diagnostic]:
    """Nothing can be wrong with the columns."""
    yield from ()


def _any_mode(operator: Any, plan: Declared, path: str) -> Iterator[Diagnostic]:
    yield from ()


def _no_expressions(operator: Any) -> Iterator[tuple[str, str | None]]:
    yield from ()


def _any_kinds(operator: Any, plan: Declared) -> Collection[RowKind] | None:
    return None


def _never(operator: Any) -> bool:
    return False


def _as_they_are(operator: Any, facts: dict[str, Any]) -> dict[str, Any]:
    return facts


def _one_by_one(settings: Mapping[str, Settings], group: str) -> Iterator[str]:
    found = settings[group]
    if len(found.specs) == 1:
        yield from (marked(found, name, shown(value)) for name, value in found.values.items())
    else:
        yield from (labelled(found, name) for name in found.values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorKind:
    """``op`` is its name in a plan, ``title`` what a box and a sentence call it.

    ``states`` are the names of its state entries by index, ``groups`` what may be set on it. ``table`` says what it
    does with the table that it names.
    """

    op: str
    cls: type[Any]
    title: str
    description: str
    """What it does, for the JSON Schema."""
    columns: Callable[[Any, Sequence[Columns], Declared], Columns]
    describe: Callable[[Any, Declared], str]
    """What the operator does, in the words of SQL."""
    states: tuple[str, ...] = ()
    groups: tuple[Group, ...] = (CACHED,)
    table: TableUse | None = None
    check: Callable[[Any, Sequence[Columns], Declared, str], Iterator[Diagnostic]] = no_problem
    """What is wrong with its columns and whatever else it names."""
    check_mode: Callable[[Any, Declared, str], Iterator[Diagnostic]] = _any_mode
    """What is wrong with it in a plan of this mode, whatever its columns are."""
    row_kinds: Callable[[Any, RowKinds, Declared], RowKinds] = unchanged
    """What it emits if its inputs together emit these kinds; of one with state, what the plan says."""
    changelog: Callable[[Any, RowKinds, KeysUpserted], RowKinds] | None = None
    """Of one with state: what it must say that it emits, in a stream."""
    takes: Callable[[Any, Declared], Collection[RowKind] | None] = _any_kinds
    """The row kinds that it can take; None if it takes all. Its inputs emit no others."""
    reads_order: Callable[[Any], bool] = _never
    """Whether its result depends on the order of its rows, even if they are only added."""
    expressions: Callable[[Any], Iterator[tuple[str, str | None]]] = _no_expressions
    """Its expressions, each with its path below the operator; None for one that is left out."""
    state_facts: Callable[[Any, dict[str, Any]], dict[str, Any]] = _as_they_are
    """Of its facts, those that decide what its state holds."""
    settings_text: Callable[[Mapping[str, Settings], str], Iterator[str]] = _one_by_one
    """The settings of a group one by one, and what they amount to."""

    @property
    def keeps_state(self) -> bool:
        """Whether it has state entries, and says which row kinds it emits."""
        return bool(self.states)

    def group(self, name: str) -> Group | None:
        """The group of settings of that name; None if operators of this kind have none."""
        return next((group for group in self.groups if group.name == name), None)
