"""Which state a STATE_TTL key sets: keys are matched with the inputs of their own block; every key is accounted for.

Every key of every hint ends in one of three ways, kept in the :class:`Ledger`: applied to a state, overridden by
another key, or refused (without effect, with a warning, or with an error that stops the compilation). Scope rules:
FLIP-373; which of several equal keys wins is what Flink 2.3 does, with a warning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from planner.hints import STATE_TTL, Hint, HintEntry
from planner.relations import Hinted
from planner.scope import Input
from planner.source import Report
from plans.names import nearest

__all__ = ["BlockHints", "Ledger", "Outcome", "resolve_block"]


Status = Literal["applied", "overridden", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one key; ``detail`` names the states, the key that won, or the reason."""

    key: str
    offset: int
    status: Status
    detail: str


@dataclass(slots=True)
class Ledger:
    """The account of all keys of all STATE_TTL hints of a script."""

    hints: dict[int, tuple[Hint, ...]]
    states: dict[int, list[str]] = field(default_factory=dict)
    losers: dict[int, tuple[Status, str]] = field(default_factory=dict)

    def entries(self) -> tuple[HintEntry, ...]:
        """Every key written in a STATE_TTL hint, in text order."""
        found = (e for hints in self.hints.values() for h in hints for e in h.entries)
        return tuple(sorted(found, key=lambda e: e.offset))

    def applied(self, offset: int, state: str) -> None:
        """The key at ``offset`` set ``state``, such as ``join_o_c.leftState``."""
        states = self.states.setdefault(offset, [])
        if state not in states:
            states.append(state)

    def outcomes(self) -> tuple[Outcome, ...]:
        """One outcome for each key; a key that nobody used belongs to a view that no INSERT reads."""
        found: list[Outcome] = []
        for entry in self.entries():
            status: Status = "applied"
            if entry.offset in self.states:
                detail = ", ".join(self.states[entry.offset])
            else:
                status, detail = self.losers.get(entry.offset, ("refused", "its view or CTE is not used by any INSERT"))
            found.append(Outcome(key=entry.key, offset=entry.offset, status=status, detail=detail))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHints:
    """The TTLs of a block's inputs by the input's name."""

    by_input: dict[str, Hinted]

    def of(self, name: str | None) -> Hinted | None:
        return None if name is None else self.by_input.get(name)


def resolve_block(
    ledger: Ledger,
    report: Report,
    select: int,
    inputs: tuple[Input, ...],
    *,
    stateful: bool,
    advice: str,
    elsewhere: dict[str, str],
) -> BlockHints:
    """Match the hints after the SELECT at ``select`` with the block's ``inputs``.

    A key that names no input is an error if the block is ``stateful``; else the hint has no effect, and ``advice``
    says what to do. ``elsewhere`` says of names that are not inputs of this block where they are.
    """
    winners = _winners(ledger, report, select)
    if not winners:
        return BlockHints(by_input={})
    if not stateful:
        for entry in winners:
            ledger.losers.setdefault(entry.offset, ("refused", "the block has no join and no aggregation"))
        report.warn_of_hint(
            f"{STATE_TTL} has no effect: this query block has no join and no aggregation", winners[0].offset, advice
        )
        return BlockHints(by_input={})
    found: dict[str, Hinted] = {}
    for entry in winners:
        name = _match(entry.key, inputs)
        if name is None:
            raise _unknown(report, entry, inputs, elsewhere)
        found[name] = Hinted(ttl=entry.ttl, offset=entry.offset)
    return BlockHints(by_input=found)


def _winners(ledger: Ledger, report: Report, select: int) -> list[HintEntry]:
    """Flink's order: within one hint the last of equal keys wins, among several hints the first."""
    chosen: dict[str, HintEntry] = {}
    for hint in ledger.hints.get(select, ()):
        within: dict[str, HintEntry] = {}
        for entry in hint.entries:
            if entry.key in within:
                _overridden(ledger, report, within[entry.key], entry)
            within[entry.key] = entry
        for key, entry in within.items():
            if key in chosen:
                _overridden(ledger, report, entry, chosen[key])
            else:
                chosen[key] = entry
    return list(chosen.values())


def _overridden(ledger: Ledger, report: Report, loser: HintEntry, winner: HintEntry) -> None:
    place = report.source.where(winner.offset)
    ledger.losers[loser.offset] = ("overridden", f"'{winner.key}'='{winner.ttl}' at {place}")
    if loser.ttl != winner.ttl:
        report.warn_of_hint(
            f"{STATE_TTL} key '{loser.key}' is given twice: {loser.ttl} here is overridden by {winner.ttl} at {place}",
            loser.offset,
            "remove one of them",
        )


def _match(key: str, inputs: tuple[Input, ...]) -> str | None:
    for candidate in inputs:
        if key == candidate.name:
            return candidate.name
    parts = tuple(key.split("."))
    for candidate in inputs:
        if candidate.path and len(parts) <= len(candidate.path) and candidate.path[-len(parts) :] == parts:
            return candidate.name
    return None


def _unknown(report: Report, entry: HintEntry, inputs: tuple[Input, ...], elsewhere: dict[str, str]) -> Exception:
    names = [i.name for i in inputs if i.name]
    aliased = [i for i in inputs if i.name and i.kind.endswith(f" {entry.key}")]
    if aliased:
        advice = f"the alias hides the name: write '{aliased[0].name}'"
    elif entry.key in elsewhere:
        advice = elsewhere[entry.key]
    elif close := nearest(entry.key, names):
        advice = f"did you mean '{close}'?"
    elif names:
        advice = f"write one of {', '.join(map(repr, names))}"
    else:
        advice = "give the sub-query an alias and use that"
    here = ", ".join(f"'{n}'" for n in names) or "none that has a name"
    return report.source.error(
        f"{STATE_TTL} key '{entry.key}' is not an input of this query block; its inputs are {here}",
        entry.offset,
        advice,
    )
