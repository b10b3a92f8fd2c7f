"""Counts the rows of a checkpoint that shorter TTLs of a plan hide, and the rows of states that are kept by consent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from hintplan.plans.checkpoint.report import Expiring
from hintplan.plans.compare.change import Change
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.effects import SHORTER_TTL
from hintplan.plans.settings.state import with_ttl
from hintplan.runtime.inspect.read import read_state


def count_expiring(
    plan: Plan, checkpoint: str, changes: Sequence[Change], *, at: int | None = None
) -> Mapping[str, Expiring]:
    """Count the rows that each of ``changes`` hides at ``at`` (ms) by shortening a TTL in ``plan``.

    The result maps the path of the TTL to the count. Only the affected states are read. RunError if they cannot be
    read.
    """
    shorter = {change.path: change for change in changes if change.effect is SHORTER_TTL}
    if not shorter:
        return {}
    before = {path.removesuffix(".ttl"): change.before or "" for path, change in shorter.items()}
    operators = tuple(
        operator.with_states(with_ttl(e, before.get(f"{operator.id}.{e.name}", e.ttl or "")) for e in operator.state)
        for operator in plan.operators
    )
    state = read_state(plan, checkpoint, at=at, edited=replace(plan, operators=operators), entries=tuple(before))
    counted: dict[str, Expiring] = {}
    for query in state.queries:
        for operator in query.operators:
            for entry in operator.entries:
                if entry.edited is not None:
                    path = f"{operator.id}.{entry.name}.ttl"
                    other = counted.get(path, Expiring(rows=0, of=0))
                    rows = entry.edited.rows - entry.amount.rows
                    stored = entry.amount.rows + (entry.amount.expired or 0)
                    size = entry.amount.bytes * rows // stored if stored else 0
                    counted[path] = Expiring(
                        rows=other.rows + rows,
                        of=other.of + entry.edited.rows,
                        bytes=other.bytes + size,
                        first=_joined(min, other.first, _expiry(entry.amount.oldest, entry.ttl)),
                        last=_joined(max, other.last, _expiry(entry.amount.newest, entry.ttl)),
                    )
    return counted


def _expiry(write: int | None, ttl: str | None) -> int | None:
    return None if write is None else write + parse_duration(ttl or "0 ms")


def _joined(how: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return how(one, other) if one is not None and other is not None else other if one is None else one


def count_kept(plan: Plan, checkpoint: str, operators: Collection[str], *, at: int | None = None) -> int:
    """Count the rows in the states of ``operators`` that ``plan`` would see at ``at`` (ms) if it kept them.

    RunError if they cannot be read.
    """
    state = read_state(plan, checkpoint, at=at, entries=tuple(operators))
    return sum(
        entry.amount.rows for query in state.queries for operator in query.operators for entry in operator.entries
    )
