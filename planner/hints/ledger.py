"""The outcome of every key of every hint in a script.

Each key is applied to a state or setting, overridden by another key, or refused. A refused key has no effect; it causes
a warning, or an error that stops the compilation. No key is ignored silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hintplan.planner.hints.grammar import HintEntry, Hints
from hintplan.planner.hints.lookup import LookupHint
from hintplan.planner.hints.options import HintOption

Status = Literal["applied", "overridden", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one key. ``detail`` is the target, the overriding key, or the reason."""

    hint: str
    key: str
    offset: int
    status: Status
    detail: str


@dataclass(slots=True)
class Ledger:
    """The outcomes of all keys of all hints of a script. ``at_tables`` are the OPTIONS hints that follow a table.

    ``statements`` has the offsets of settings from CACHE TABLE and UNCACHE TABLE, by operator and path. ``view_sites``
    has the names of the views that were read, with the offsets.
    """

    hints: Hints
    targets: dict[int, list[str]] = field(default_factory=dict)
    losers: dict[int, tuple[Status, str]] = field(default_factory=dict)
    at_tables: set[int] = field(default_factory=set)
    statements: dict[tuple[str, str], int] = field(default_factory=dict)
    view_sites: set[tuple[str, int]] = field(default_factory=set)

    def entries(self) -> tuple[tuple[str, HintEntry | HintOption], ...]:
        """Return every key with the name of its hint, in the order of the text."""
        entries: list[tuple[str, HintEntry | HintOption]] = []
        for hints in self.hints.after_select.values():
            for hint in hints:
                entries += [(hint.name, entry) for entry in hint.entries]
                entries += [(hint.name, option) for option in hint.lookup.options] if hint.lookup else []
                entries += [(hint.name, option) for option in hint.cached.options] if hint.cached else []
        entries += [(hint.name, option) for hint in self.hints.after_name.values() for option in hint.options]
        return tuple(sorted(entries, key=lambda pair: pair[1].offset))

    def lookups(self, select: int) -> tuple[LookupHint, ...]:
        """Return the LOOKUP hints after the SELECT at ``select``."""
        return tuple(h.lookup for h in self.hints.after_select.get(select, ()) if h.lookup is not None)

    def applied(self, offset: int, target: str) -> None:
        """Record that the key at ``offset`` set ``target``, such as ``join_o_c.leftState``."""
        targets = self.targets.setdefault(offset, [])
        if target not in targets:
            targets.append(target)

    def refuse(self, hint: LookupHint, status: Status, detail: str) -> None:
        """Record that all options of ``hint`` have no effect."""
        for option in hint.options:
            self.losers.setdefault(option.offset, (status, detail))

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return one outcome for each key. A key without a record belongs to a view that no INSERT reads."""
        outcomes: list[Outcome] = []
        for name, entry in self.entries():
            status: Status = "applied"
            if entry.offset in self.targets:
                detail = ", ".join(self.targets[entry.offset])
            else:
                status, detail = self.losers.get(entry.offset, ("refused", "its view or CTE is not used by any INSERT"))
            outcomes.append(Outcome(hint=name, key=entry.key, offset=entry.offset, status=status, detail=detail))
        return tuple(outcomes)
