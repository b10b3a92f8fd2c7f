"""Rules on state TTLs: states that never shrink, and TTLs that do not fit each other.

>>> list(never_expires(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKinds
from hintplan.plans.lint.rule import Finding
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, kind_of, state_of
from hintplan.plans.operators.spec.state import FOREVER, StateKind
from hintplan.plans.settings.state import StateEntry

_APART = 1000


def never_expires(plan: Plan) -> Iterator[Finding]:
    """A state with TTL 0, but for one that stays small, as that of a global aggregate, which is one row."""
    for operator, kept, entries in _stateful(plan):
        if kept.bounded(operator):
            continue
        for entry in entries:
            if _lasts(entry.ttl) == FOREVER:
                what = "groups" if kept.holds == "groups" else f"rows of '{entry.input}'"
                yield Finding(
                    path=f"operators.{operator.id}.state.{entry.name}.ttl",
                    message=f"the state never expires: it grows with every new {kept.grows_by}, "
                    f"because its {what} are kept forever",
                )


def _stateful(plan: Plan) -> Iterator[tuple[Operator, StateKind, tuple[StateEntry, ...]]]:
    """The operators with state, each with what its kind keeps, and its entries."""
    for operator in plan.operators:
        kept = kind_of(operator).state
        if kept is not None:
            yield operator, kept, state_of(operator)


def shorter_than_upstream(plan: Plan) -> Iterator[Finding]:
    """A state that forgets a row while an operator above it can still change that row."""
    kinds = output_kinds(plan)
    longest: dict[str, tuple[float, str]] = {}
    for operator in plan.operators:
        above = [longest.get(name, (0.0, "")) for name in operator.inputs]
        kept = kind_of(operator).state
        for entry in state_of(operator):
            upstream, where = above[entry.index] if entry.index < len(above) else (0.0, "")
            joins = kept is not None and kept.added_rows_find == "matches"
            if joins and kinds.get(operator.inputs[entry.index]) == INSERT_ONLY:
                continue  # what comes late finds fewer partners, and takes nothing back
            if _lasts(entry.ttl) < upstream:
                changes = "is forever" if upstream == FOREVER else f"lasts {format_duration(int(upstream))}"
                yield Finding(
                    path=f"operators.{operator.id}.state.{entry.name}.ttl",
                    message=f"the TTL, {entry.ttl}, is shorter than that of '{where}' upstream, which {changes}: what "
                    f"'{where}' still changes after {entry.ttl} finds no state here",
                )
        mine = _changes_for(operator, kinds)
        longest[operator.id] = (mine, operator.id) if state_of(operator) else max(above, default=(0.0, ""))


def _changes_for(operator: Operator, kinds: Mapping[str, RowKinds]) -> float:
    """For how long an operator with state can still change, or add to, what it has put out."""
    kept, entries = kind_of(operator).state, state_of(operator)
    if kept is None or len(entries) < len(kept.names):
        return 0.0
    lasts = [_lasts(entry.ttl) for entry in entries[: len(kept.names)]]
    return kept.changes_for(operator, lasts, [kinds.get(name, INSERT_ONLY) for name in operator.inputs])


def lopsided_outer_join(plan: Plan) -> Iterator[Finding]:
    """An outer join one side of which is kept a thousand times as long as the other."""
    for operator, kept, entries in _stateful(plan):
        called = kept.waits_as(operator)
        if called is None or len(entries) < 2:
            continue
        left, right = (_lasts(entry.ttl) for entry in entries[:2])
        short, long = entries[:2] if left <= right else (entries[1], entries[0])
        if left != right and max(left, right) >= _APART * max(min(left, right), 1.0):
            forever = "forever" if _lasts(long.ttl) == FOREVER else long.ttl
            yield Finding(
                path=f"operators.{operator.id}.state.{short.name}.ttl",
                message=f"a {called} keeps '{short.input}' for {short.ttl} and '{long.input}' "
                f"{'' if forever == 'forever' else 'for '}{forever}, a thousand times as long or more",
            )


def _lasts(ttl: str) -> float:
    """The milliseconds of a TTL; 0 ms is forever."""
    return parse_duration(ttl) or FOREVER
