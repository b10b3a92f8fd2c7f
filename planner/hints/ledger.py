"""The account of hints: what became of every key of every hint of a script.

Each ends in one of three ways: applied to a state or setting, overridden by another key, or refused (without effect,
with a warning, or with an error that stops the compilation). Nothing disappears silently.
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
    """What became of one key; ``detail`` names what it set, the key that won, or the reason."""

    hint: str
    key: str
    offset: int
    status: Status
    detail: str


@dataclass(slots=True)
class Ledger:
    """The account of all keys of all hints of a script; ``at_tables`` are the OPTIONS hints that stand at a table.

    ``statements`` are the places of what CACHE TABLE and UNCACHE TABLE set, by operator and path; ``view_sites`` are
    the names of the views that were read, and where.
    """

    hints: Hints
    targets: dict[int, list[str]] = field(default_factory=dict)
    losers: dict[int, tuple[Status, str]] = field(default_factory=dict)
    at_tables: set[int] = field(default_factory=set)
    statements: dict[tuple[str, str], int] = field(default_factory=dict)
    view_sites: set[tuple[str, int]] = field(default_factory=set)

    def entries(self) -> tuple[tuple[str, HintEntry | HintOption], ...]:
        """Every key with the name of its hint, in text order."""
        found: list[tuple[str, HintEntry | HintOption]] = []
        for hints in self.hints.after_select.values():
            for hint in hints:
                found += [(hint.name, entry) for entry in hint.entries]
                found += [(hint.name, option) for option in hint.lookup.options] if hint.lookup else []
                found += [(hint.name, option) for option in hint.cached.options] if hint.cached else []
        found += [(hint.name, option) for hint in self.hints.after_name.values() for option in hint.options]
        return tuple(sorted(found, key=lambda pair: pair[1].offset))

    def lookups(self, select: int) -> tuple[LookupHint, ...]:
        """The LOOKUP hints after the SELECT at ``select``."""
        return tuple(h.lookup for h in self.hints.after_select.get(select, ()) if h.lookup is not None)

    def applied(self, offset: int, target: str) -> None:
        """The key at ``offset`` set ``target``, such as ``join_o_c.leftState`` or ``lookup_r.async.capacity``."""
        targets = self.targets.setdefault(offset, [])
        if target not in targets:
            targets.append(target)

    def refuse(self, hint: LookupHint, status: Status, detail: str) -> None:
        """None of the options of ``hint`` is heeded."""
        for option in hint.options:
            self.losers.setdefault(option.offset, (status, detail))

    def outcomes(self) -> tuple[Outcome, ...]:
        """One outcome for each key; a key that nobody used belongs to a view that no INSERT reads."""
        found: list[Outcome] = []
        for name, entry in self.entries():
            status: Status = "applied"
            if entry.offset in self.targets:
                detail = ", ".join(self.targets[entry.offset])
            else:
                status, detail = self.losers.get(entry.offset, ("refused", "its view or CTE is not used by any INSERT"))
            found.append(Outcome(hint=name, key=entry.key, offset=entry.offset, status=status, detail=detail))
        return tuple(found)
