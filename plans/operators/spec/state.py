"""The parts that all operators with state share: state entries, a stated changelog, and a specification of the state.

Lifetimes are in milliseconds; a state that never expires lasts ``FOREVER``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from hintplan.plans.declarations.fields import Ref
from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.plans.settings.state import StateEntry

States = Annotated[tuple[StateEntry, ...], Ref("state")]
KeysUpserted = Callable[[tuple[str, ...]], bool]
"""Returns True if all readers of an operator upsert by exactly these columns of its output."""

FOREVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateKind:
    """The specification of the states of a kind of operators; no field has a default."""

    names: tuple[str, ...]
    """The names of its state entries by index."""
    changelog: Callable[[Any, RowKinds, KeysUpserted], RowKinds]
    """Returns the row kinds that an operator must state as its changelog in a streaming plan."""
    facts: Callable[[Any, dict[str, Any]], dict[str, Any]]
    """Returns the facts of an operator that determine its states."""
    holds: Literal["rows", "groups"]
    """The content of a state: rows of its input, or accumulators of groups."""
    grows_by: Literal["row", "key"]
    """The rows that make a state larger: every row, or the first row of a key."""
    bounded: Callable[[Any], bool]
    """Returns True if the states of an operator stay small for any input."""
    changes_for: Callable[[Any, Sequence[float], Sequence[RowKinds]], float]
    """Returns how long an operator can still change its output or add to it.

    The arguments are the operator, the lifetime of each of its states, and the row kinds of each input.
    """
    added_rows_find: Literal["matches", "what they change"]
    """The role of rows in state for a new row: its matches, or the row or group that it changes.

    A new row whose matches have expired joins with fewer rows, and nothing is retracted.
    """
    waits_as: Callable[[Any], str | None]
    """Returns the name in messages of an operator that emits unmatched rows of a state until a match arrives.

    Returns None for other operators.
    """


class HasChangelog(Protocol):
    """An operator whose row kinds the plan states."""

    @property
    def changelog(self) -> RowKinds:
        """The row kinds that it emits."""


def stated(operator: HasChangelog, inputs: RowKinds, plan: object) -> RowKinds:
    """Return the row kinds that the plan states as the operator's changelog."""
    return operator.changelog


def all_facts(operator: object, facts: dict[str, Any]) -> dict[str, Any]:
    """Return all facts: every fact of the operator determines its states."""
    return facts


def unbounded(operator: object) -> bool:
    """Return False: the states grow with their input."""
    return False


def waits_for_none(operator: object) -> None:
    """Return None: the operator emits no unmatched rows."""


def its_own_ttl(operator: object, lasts: Sequence[float], inputs: Sequence[RowKinds]) -> float:
    """Return the lifetime of the only state, for which the output can still change."""
    return lasts[0]
