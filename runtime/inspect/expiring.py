"""Counts the rows of a checkpoint that shorter TTLs of a plan hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hintplan.plans.checkpoint.report import Expiring
from hintplan.plans.compare.change import Change
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import state_of, with_states
from hintplan.plans.settings.effects import SHORTER_TTL
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
        with_states(
            operator,
            (replace(e, ttl=before.get(f"{operator.id}.{e.name}", e.ttl)) for e in state_of(operator)),
        )
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
                        rows=other.rows + rows, of=other.of + entry.edited.rows, bytes=other.bytes + size
                    )
    return counted
