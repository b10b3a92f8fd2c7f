"""A failing case made smaller: fewer parts of the query, fewer rows, one batch, as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.cases import Case, Outcome
from tests.fuzz.data import FuzzTable, World
from tests.fuzz.trees import smaller

__all__ = ["shrunk"]


def shrunk(case: Case, first: Outcome, check: Callable[[Case], Outcome], *, seconds: float) -> tuple[Case, Outcome]:
    """The smallest case that was found to fail as ``case`` does, within about ``seconds``, and its outcome."""
    best, outcome = case, first
    deadline = time.monotonic() + seconds
    tried: set[str] = set()
    while True:
        for candidate in _candidates(best):
            key = repr((candidate.query, candidate.world))
            if key in tried:
                continue
            tried.add(key)
            if time.monotonic() > deadline:
                return best, outcome
            found = check(candidate)
            if found.status == outcome.status and _kind(found) == _kind(first):
                best, outcome = candidate, found
                break
        else:
            return best, outcome


def _kind(outcome: Outcome) -> str:
    """What must stay the same: of an error its type and its first words."""
    return outcome.detail[:40] if outcome.status == "error" else ""


def _candidates(case: Case) -> Iterator[Case]:
    for query in smaller(case.query):
        yield replace(case, query=query)
    for world in _worlds(case.world):
        yield replace(case, world=world)


def _worlds(world: World) -> Iterator[World]:
    if world.cut:
        yield replace(world, cut=(), restarts=frozenset())
        for index in range(len(world.cut)):
            yield replace(world, cut=world.cut[:index] + world.cut[index + 1 :], restarts=frozenset())
    if world.restarts:
        yield replace(world, restarts=frozenset())
    for index, table in enumerate(world.tables):
        for smaller_table in _tables(table):
            yield replace(world, tables=(*world.tables[:index], smaller_table, *world.tables[index + 1 :]))


def _tables(table: FuzzTable) -> Iterator[FuzzTable]:
    if table.changes != "false" and any(kind != "+I" for kind, _ in table.events):
        yield replace(table, events=tuple(("+I", row) for row in table.rows))
    if table.changes == "false" or all(kind == "+I" for kind, _ in table.events):
        size = len(table.events)
        while size > 0:
            for start in range(0, len(table.events), size):
                yield replace(table, events=table.events[:start] + table.events[start + size :])
            size //= 2
