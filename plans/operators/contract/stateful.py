"""The abstract class of operators with state, which have state entries and state their changelog.

Lifetimes are in milliseconds; a state that never expires lasts ``FOREVER``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from hintplan.plans.declarations.fields import Ref
from hintplan.plans.declarations.row_kinds import RowKinds
from hintplan.plans.operators.contract.declared import Declared
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.state import StateEntry

States = Annotated[tuple[StateEntry, ...], Ref("state")]
TimedStates = Annotated[tuple[StateEntry, ...], Ref("timed-state")]
"""The states of an operator that goes by the watermark, which have no TTL."""
MixedStates = Annotated[tuple[StateEntry, ...], Ref("mixed-state")]
"""The states of an operator of which some have a TTL, and others go by the watermark."""
KeysUpserted = Callable[[tuple[str, ...]], bool]
"""Returns True if all readers of an operator upsert by exactly these columns of its output."""

FOREVER = float("inf")


def is_stateful(operator: Operator) -> bool:
    """Return True if ``operator`` keeps state in a stream."""
    return isinstance(operator, Stateful) and bool(operator.state_names)


class Stateful(Operator):
    """An operator with state; its row kinds are the changelog that the plan states."""

    __slots__ = ()

    passes_watermark = False

    state_names: ClassVar[tuple[str, ...]]
    """The names of its state entries by index."""
    state_holds: ClassVar[Literal["rows", "groups"]]
    """The content of a state: rows of its input, or accumulators of groups."""
    state_grows_by: ClassVar[Literal["row", "key"]]
    """The rows that make a state larger: every row, or the first row of a key."""
    added_rows_find: ClassVar[Literal["matches", "what they change"]] = "what they change"
    """The role of rows in state for a new row: its matches, or the row or group that it changes.

    A new row whose matches have expired joins with fewer rows, and nothing is retracted.
    """

    @property
    @abstractmethod
    def state(self) -> tuple[StateEntry, ...]:
        """The state entries, with their TTL; empty in a batch plan."""

    @property
    @abstractmethod
    def changelog(self) -> RowKinds:
        """The row kinds that it emits."""

    @abstractmethod
    def derived_changelog(self, inputs: RowKinds, upserted: KeysUpserted) -> RowKinds:
        """Return the row kinds that it must state as its changelog in a streaming plan."""

    @property
    def changing_inputs(self) -> tuple[str, ...]:
        """The inputs whose row kinds determine its own."""
        return self.inputs

    @property
    def state_is_bounded(self) -> bool:
        """True if its states stay small for any input."""
        return False

    @property
    def waits_as(self) -> str | None:
        """The name in messages of an operator that emits unmatched rows until a match arrives; None for others."""
        return None

    def has_ttl(self, state: str) -> bool:
        """Return True if the state of this name keeps rows for its TTL; False if it goes by the watermark."""
        return not self.goes_by_time

    def state_facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the facts that determine its states, out of all its facts."""
        return facts

    def changes_for(self, ttls: Sequence[float], inputs: Sequence[RowKinds]) -> float:
        """Return how long it can still change its output or add to it.

        The arguments are the lifetime of each of its states, and the row kinds of each input. By default, the output
        changes while its only state lasts.
        """
        return ttls[0]

    def row_kinds(self, inputs: RowKinds, plan: Declared) -> RowKinds:
        """Return the row kinds that the plan states."""
        return self.changelog

    def with_states(self, entries: Iterable[StateEntry]) -> Self:
        """Return the operator with these state entries."""
        return self._replaced(state=tuple(entries))

    def with_changelog(self, kinds: RowKinds) -> Self:
        """Return the operator with ``kinds`` as its changelog."""
        return self._replaced(changelog=kinds)
