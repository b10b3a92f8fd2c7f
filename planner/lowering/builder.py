"""Collects the operators of a plan, with their ids, the TTLs of their states, and the outcomes of hints.

Operators that are equal, except for their ids, become one. Ids are derived from the names in the query, so unrelated
changes to a script rename no operator.

>>> supply = IdSupply()
>>> supply.take("join", ("o", "Order Lines"), "result"), supply.take("join", ("o", "Order Lines"), "result")
('join_o_order_lines', 'join_o_order_lines_in_result')
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from hintplan.planner.hints.ledger import Ledger
from hintplan.planner.lowering.columns import Lowered
from hintplan.planner.properties.repeated_reads import ReadOccurrence
from hintplan.planner.relations import Relation, StateInput
from hintplan.plans.operators import Operator
from hintplan.plans.settings.state import STATE_TTL, StateEntry, ttl_settings

Lower = Callable[["Builder", Relation, bool], Lowered]
"""A function that adds the operators of a relation. The flag requires the names and order of the relation's fields."""
State = tuple[str, StateInput, Lowered]
"""A state of an operator: its name, its name in a hint, and the operator whose rows it keeps."""


class Builder:
    """Collects the operators of all sinks of a script. ``config`` sets the TTL of each state without a hint.

    - ``batch``: operators keep no state.
    - ``occurrences`` has all occurrences of each lookup and call in the job, by offset.
    - ``places`` has the positions of operators in ``operators``, by id.
    - ``views`` has the shared views, by the ids of their operators.
    """

    def __init__(self, ledger: Ledger, config: Mapping[str, str], lower: Lower, *, batch: bool) -> None:
        self.ledger = ledger
        self.config = config
        self.batch = batch
        self.operators: list[Operator] = []
        self.places: dict[str, int] = {}
        self.occurrences: dict[int, list[ReadOccurrence]] = {}
        self.views: dict[str, str] = {}
        self._lower = lower
        self._ids = IdSupply()
        self._known: dict[str, str] = {}
        self._written: dict[str, int] = {}

    def lower(self, relation: Relation, *, exact: bool = False) -> Lowered:
        """Add the operators of ``relation``. ``exact`` requires the names and order of its fields."""
        return self._lower(self, relation, exact)

    def add(
        self, operator: Operator, kind: str, names: tuple[str, ...], block: str, *, holds: str | None = None
    ) -> str:
        """Add ``operator`` unless an equal one exists, and return its id. A new id comes from ``kind`` and ``names``.

        ``holds`` is the input name in the operator's states. The comparison of operators ignores it.
        """
        key = repr(operator)
        if operator.is_sink or key not in self._known:
            operator_id = self._ids.take(kind, names, block)
            operator = operator.with_id(operator_id)
            if holds is not None:
                operator = operator.with_states(replace(entry, input=holds) for entry in operator.state)
            self.places[operator_id] = len(self.operators)
            self.operators.append(operator)
            self._known[key] = operator_id
        return self._known[key]

    def is_written_at(self, operator: Operator, offset: int) -> bool:
        """Return True if the first operator that equals ``operator`` has this ``offset`` in the text."""
        return self._written.setdefault(repr(operator), offset) == offset

    def states(self, *wanted: State) -> tuple[StateEntry, ...]:
        """Return the states of an operator, with their TTLs."""
        if self.batch:
            return ()
        return tuple(self._state(i, name, state, source) for i, (name, state, source) in enumerate(wanted))

    def _state(self, index: int, name: str, state: StateInput, source: Lowered) -> StateEntry:
        settings = ttl_settings(config=self.config.get(STATE_TTL), hint=state.hint.ttl if state.hint else None)
        return StateEntry(index=index, name=name, input=state.name or source.id, settings=settings)

    def timed_states(self, *wanted: State, first: int = 0) -> tuple[StateEntry, ...]:
        """Return the states of an operator without a TTL, which go by the watermark; indexes begin at ``first``."""
        if self.batch:
            return ()
        return tuple(
            StateEntry(index=i, name=name, input=state.name or source.id)
            for i, (name, state, source) in enumerate(wanted, first)
        )

    def account(self, operator: str, *states: State) -> None:
        """Record that ``operator`` applies the hints for ``states``."""
        for name, state, _ in states:
            if state.hint is not None and not self.batch:
                self.ledger.applied(state.hint.offset, f"{operator}.{name}")

    def record_occurrence(self, offset: int, occurrence: ReadOccurrence) -> None:
        """Record an occurrence of the lookup or call at ``offset``."""
        self.occurrences.setdefault(offset, []).append(occurrence)


def name_above(source: Relation, block: str) -> tuple[str, ...]:
    """Return the base for the name of an operator over ``source``: the single input of its rows, or else the block.

    Thus another joined table changes the names of joins only, and not the names of operators above.
    """
    return source.base if len(source.base) == 1 else (block,)


_MAX_LENGTH = 64


class IdSupply:
    """Creates unique ids: the plain name, then the name with its block, then numbers in the order of the query."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[tuple[str, str], int] = {}

    def take(self, kind: str, names: tuple[str, ...], block: str) -> str:
        plain = "_".join((kind, *map(_clean, names)))
        inside = f"{plain}_in_{_clean(block)}"
        number = self._next.get((plain, inside), 0)
        while (candidate := _shortened((plain, inside)[number] if number < 2 else f"{inside}_{number}")) in self._taken:
            number += 1
        self._next[plain, inside] = number + 1
        self._taken.add(candidate)
        return candidate


def _clean(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower())


def _shortened(name: str) -> str:
    if len(name) <= _MAX_LENGTH:
        return name
    return f"{name[: _MAX_LENGTH - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
