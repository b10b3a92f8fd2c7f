"""What operators with state have in common: their entries, that they say which row kinds they emit, and what they keep.

Lasting is counted in milliseconds; what never expires lasts ``FOREVER``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hintplan.plans.declarations.fields import Ref
from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.plans.settings.state import StateEntry

States = Annotated[tuple[StateEntry, ...], Ref("state")]
KeysUpserted = Callable[[tuple[str, ...]], bool]
"""Whether all that reads an operator replaces rows by exactly these columns of it."""

FOREVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateKind:
    """What operators of a kind keep. Nothing has a default: whoever adds a kind with state decides all of it."""

    names: tuple[str, ...]
    """The names of its state entries by index."""
    changelog: Callable[[Any, RowKinds, KeysUpserted], RowKinds]
    """What an operator must say that it emits, in a stream."""
    facts: Callable[[Any, dict[str, Any]], dict[str, Any]]
    """Of an operator's facts, those that decide what its states hold."""
    holds: Literal["rows", "groups"]
    """What stays in a state: rows of its input, or what they add up to."""
    grows_by: Literal["row", "key"]
    """What makes a state larger: every row, or the first one of a key."""
    bounded: Callable[[Any], bool]
    """Whether the states of an operator stay small, whatever comes."""
    changes_for: Callable[[Any, Sequence[float], Sequence[RowKinds]], float]
    """For how long an operator can still change, or add to, what it has put out, if its states last so long each and
    its inputs have these row kinds."""
    added_rows_find: Literal["matches", "what they change"]
    """What a row that is only added finds in the state of its own input: what it goes with, or what it changes. Where
    the former has expired, it goes with less, and nothing is taken back."""
    waits_as: Callable[[Any], str | None]
    """What a message calls an operator that puts out rows of one state without a match until one comes to the other;
    None if it does not."""


def stated(operator: Any, inputs: RowKinds, plan: object) -> RowKinds:
    """The row kinds that the plan says the operator emits."""
    kinds: RowKinds = operator.changelog
    return kinds


def all_facts(operator: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Everything that the operator says decides what its states hold."""
    return facts


def unbounded(operator: Any) -> bool:
    """The states grow with what comes."""
    return False


def waits_for_none(operator: Any) -> None:
    """No row is put out for want of a match."""


def its_own_ttl(operator: Any, lasts: Sequence[float], inputs: Sequence[RowKinds]) -> float:
    """What has been put out can change as long as the only state lasts."""
    return lasts[0]
