"""Rules on state TTLs: states that never shrink, and TTLs that do not fit each other.

>>> list(never_expires(Plan(name="p")))
[]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plans.analysis.changelog import output_kinds
from plans.declarations.durations import format_duration, parse_duration
from plans.declarations.row_kinds import INSERT_ONLY
from plans.lint.rule import Finding
from plans.model.plan import Plan
from plans.operators import Aggregate, ChangelogNormalize, Join, Operator, state_of

__all__ = ["lopsided_outer_join", "never_expires", "shorter_than_upstream"]

_FOREVER = float("inf")
_APART = 1000
_OUTER_LEFT = ("left", "full", "semi", "anti")
_OUTER_RIGHT = ("right", "full")


def never_expires(plan: Plan) -> Iterator[Finding]:
    """A state with TTL 0, but for that of a global aggregate, which is one row."""
    for operator in plan.operators:
        if isinstance(operator, Aggregate) and not operator.keys and _one_row(operator):
            continue
        for entry in state_of(operator):
            if _lasts(entry.ttl) == _FOREVER:
                what = "groups" if isinstance(operator, Aggregate) else f"rows of '{entry.input}'"
                new = "key" if isinstance(operator, Aggregate | ChangelogNormalize) else "row"
                yield Finding(
                    path=f"operators.{operator.id}.state.{entry.name}.ttl",
                    message=f"the state never expires: it grows with every new {new}, "
                    f"because its {what} are kept forever",
                )


def _one_row(aggregate: Aggregate) -> bool:
    return all(call.function in ("COUNT", "SUM", "AVG") and not call.distinct for call in aggregate.aggregates)


def shorter_than_upstream(plan: Plan) -> Iterator[Finding]:
    """A state that forgets a row while an operator above it can still change that row."""
    kinds = output_kinds(plan)
    longest: dict[str, tuple[float, str]] = {}
    for operator in plan.operators:
        above = [longest.get(name, (0.0, "")) for name in operator.inputs]
        for entry in state_of(operator):
            upstream, where = above[entry.index] if entry.index < len(above) else (0.0, "")
            if isinstance(operator, Join) and kinds.get(operator.inputs[entry.index]) == INSERT_ONLY:
                continue  # what comes late finds fewer partners, and takes nothing back
            if _lasts(entry.ttl) < upstream:
                changes = "is forever" if upstream == _FOREVER else f"lasts {format_duration(int(upstream))}"
                yield Finding(
                    path=f"operators.{operator.id}.state.{entry.name}.ttl",
                    message=f"the TTL, {entry.ttl}, is shorter than that of '{where}' upstream, which {changes}: what "
                    f"'{where}' still changes after {entry.ttl} finds no state here",
                )
        mine = _changes_for(operator, kinds)
        longest[operator.id] = (mine, operator.id) if state_of(operator) else max(above, default=(0.0, ""))


def _changes_for(operator: Operator, kinds: Mapping[str, tuple[str, ...]]) -> float:
    """For how long an operator with state can still change, or add to, what it has put out."""
    if isinstance(operator, Aggregate | ChangelogNormalize):
        return _lasts(operator.state[0].ttl) if operator.state else 0.0
    if not isinstance(operator, Join) or len(operator.state) < 2:
        return 0.0
    left, right = (_lasts(entry.ttl) for entry in operator.state[:2])
    updated = [kinds.get(name, INSERT_ONLY) != INSERT_ONLY for name in operator.inputs]
    bounds = [min(left, right)]
    # A row that waits for its partner, or is taken back with it, is in the state of its own side.
    if operator.join_type in _OUTER_LEFT or updated[1]:
        bounds.append(left)
    if operator.join_type in _OUTER_RIGHT or updated[0]:
        bounds.append(right)
    return max(bounds)


def lopsided_outer_join(plan: Plan) -> Iterator[Finding]:
    """An outer join one side of which is kept a thousand times as long as the other."""
    for operator in plan.operators:
        if not isinstance(operator, Join) or operator.join_type not in ("left", "right", "full"):
            continue
        if len(operator.state) < 2:
            continue
        left, right = (_lasts(entry.ttl) for entry in operator.state[:2])
        short, long = (operator.state[:2]) if left <= right else (operator.state[1], operator.state[0])
        if left != right and max(left, right) >= _APART * max(min(left, right), 1.0):
            forever = "forever" if _lasts(long.ttl) == _FOREVER else long.ttl
            yield Finding(
                path=f"operators.{operator.id}.state.{short.name}.ttl",
                message=f"a {operator.join_type} outer join keeps '{short.input}' for {short.ttl} and '{long.input}' "
                f"{'' if forever == 'forever' else 'for '}{forever}, a thousand times as long or more",
            )


def _lasts(ttl: str) -> float:
    """The milliseconds of a TTL; 0 ms is forever."""
    return parse_duration(ttl) or _FOREVER
