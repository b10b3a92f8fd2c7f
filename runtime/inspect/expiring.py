"""Counts the rows of a checkpoint that shorter TTLs of a plan hide, and the rows of states that are kept by consent.

It also returns the observations of the states whose TTL changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hintplan.plans.checkpoint.report import Expiring
from hintplan.plans.compare.change import Change
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.evidence.document import Evidence
from hintplan.plans.model.plan import Plan
from hintplan.plans.settings.effects import SHORTER_TTL
from hintplan.plans.settings.state import with_ttl
from hintplan.runtime.inspect.evidence import evidence_of
from hintplan.runtime.inspect.read import read_state


def count_expiring(
    plan: Plan, checkpoint: str, changes: Sequence[Change], *, at: int | None = None
) -> Mapping[str, Expiring]:
    """Count the rows that each of ``changes`` hides at ``at`` (ms) by shortening a TTL in ``plan``.

    The result maps the path of the TTL to the count. Only the affected states are read. RunError if they cannot be
    read.
    """
    before = _ttls_before(change for change in changes if change.effect is SHORTER_TTL)
    if not before:
        return {}
    state = read_state(plan, checkpoint, at=at, edited=_with_ttls(plan, before), entries=tuple(before))
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


def changed_states(plan: Plan, checkpoint: str, changes: Sequence[Change], *, at: int | None = None) -> Evidence | None:
    """Return the observations of the states whose TTL ``changes`` set, with the TTLs before; None without any.

    RunError if they cannot be read.
    """
    before = _ttls_before(changes)
    if not before:
        return None
    return evidence_of(read_state(_with_ttls(plan, before), checkpoint, at=at, entries=tuple(before)))


def _ttls_before(changes: Iterable[Change]) -> dict[str, str]:
    """Return the TTL before each change of a TTL, by the path of its state."""
    ttls = (change for change in changes if change.subject == "setting" and (change.setting or "").endswith(".ttl"))
    return {
        change.path.removesuffix(".ttl"): change.before
        for change in ttls
        if change.before is not None and ".state." in (change.setting or "")
    }


def _with_ttls(plan: Plan, ttls: Mapping[str, str]) -> Plan:
    """Return the plan with other TTLs of the states at some paths."""
    operators = tuple(
        operator.with_states(with_ttl(e, ttls.get(f"{operator.id}.{e.name}", e.ttl or "")) for e in operator.state)
        for operator in plan.operators
    )
    return replace(plan, operators=operators)


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
