"""The operators of a plan as they are collected: their ids, the TTLs of their states, and what became of hints.

Operators that are equal in everything but their id become one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.ids import IdSupply
from hintplan.planner.lowering.columns import Lowered
from hintplan.planner.properties.repeated_reads import Asked
from hintplan.planner.relations import Relation, StateInput
from hintplan.plans.operators import Operator, kind_of, state_of, with_states
from hintplan.plans.settings.state import DEFAULT_STATE_TTL, STATE_TTL, StateEntry

Lower = Callable[["Builder", Relation, bool], Lowered]
"""Adds the operators of a relation; the flag asks for columns named and ordered as its fields are."""
State = tuple[str, StateInput, Lowered]
"""A state of an operator: its name, how a hint would address it, and the operator whose rows it keeps."""


class Builder:
    """Collects the operators of all sinks of a script; ``config`` gives the TTL where no hint does.

    A ``batch`` job keeps no state. ``asked`` has each lookup and call as often as the job comes to it, by its place.
    ``places`` are the operators' places in ``operators``, by id; ``views`` the views that are computed once for all
    their readers, by the ids of their operators.
    """

    def __init__(self, ledger: Ledger, config: Mapping[str, str], lower: Lower, *, batch: bool) -> None:
        self.ledger = ledger
        self.config = config
        self.batch = batch
        self.operators: list[Operator] = []
        self.places: dict[str, int] = {}
        self.asked: dict[int, list[Asked]] = {}
        self.views: dict[str, str] = {}
        self._lower = lower
        self._ids = IdSupply()
        self._known: dict[str, str] = {}
        self._written: dict[str, int] = {}

    def lower(self, relation: Relation, *, exact: bool = False) -> Lowered:
        """Add the operators of ``relation``; ``exact`` asks for columns named and ordered as its fields are."""
        return self._lower(self, relation, exact)

    def add(
        self, operator: Operator, kind: str, names: tuple[str, ...], block: str, *, holds: str | None = None
    ) -> str:
        """The id of ``operator``, made from its ``kind`` and ``names``, unless there is an equal one already.

        ``holds`` is what its states call what they keep, in place of their inputs; operators are equal without it.
        """
        key = repr(operator)
        if kind_of(operator).is_sink or key not in self._known:
            found = self._ids.take(kind, names, block)
            operator = replace(operator, id=found)
            if holds is not None:
                operator = with_states(operator, (replace(entry, input=holds) for entry in state_of(operator)))
            self.places[found] = len(self.operators)
            self.operators.append(operator)
            self._known[key] = found
        return self._known[key]

    def is_written_at(self, operator: Operator, offset: int) -> bool:
        """Whether ``offset`` is where the first operator was written that is equal to ``operator``."""
        return self._written.setdefault(repr(operator), offset) == offset

    def states(self, *wanted: State) -> tuple[StateEntry, ...]:
        """The states of an operator, with their TTLs."""
        if self.batch:
            return ()
        return tuple(self._state(i, name, state, source) for i, (name, state, source) in enumerate(wanted))

    def _state(self, index: int, name: str, state: StateInput, source: Lowered) -> StateEntry:
        config = self.config.get(STATE_TTL)
        origin = {"default": DEFAULT_STATE_TTL} if config is None else {"config": config}
        ttl = DEFAULT_STATE_TTL if config is None else config
        if state.hint is not None:
            ttl = origin["hint"] = state.hint.ttl
        return StateEntry(index=index, name=name, input=state.name or source.id, ttl=ttl, origin=origin)

    def account(self, operator: str, *states: State) -> None:
        """Note that the hints for ``states`` were heeded by ``operator``."""
        for name, state, _ in states:
            if state.hint is not None and not self.batch:
                self.ledger.applied(state.hint.offset, f"{operator}.{name}")

    def ask(self, offset: int, asked: Asked) -> None:
        """Note that the job comes to the lookup or call at ``offset``."""
        self.asked.setdefault(offset, []).append(asked)


def name_above(source: Relation, block: str) -> tuple[str, ...]:
    """What an operator that reads ``source`` is named after: the one input that it comes from, or else the block.

    So a table that is joined as well renames joins at most, whose own rows it changes.
    """
    return source.base if len(source.base) == 1 else (block,)
