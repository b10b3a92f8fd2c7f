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
from hintplan.plans.operators import Operator, Stateful
from hintplan.plans.operators.contract.stateful import FOREVER

_APART = 1000


def never_expires(plan: Plan) -> Iterator[Finding]:
    """Report states with TTL 0, except states of bounded size, such as the single row of a global aggregate."""
    for operator in _stateful(plan):
        if operator.state_is_bounded:
            continue
        for entry in operator.state:
            if entry.ttl is not None and _lasts(entry.ttl) == FOREVER:
                contents = "groups" if operator.state_holds == "groups" else f"rows of '{entry.input}'"
                yield Finding(
                    path=f"operators.{operator.id}.state.{entry.name}.ttl",
                    message=f"the state never expires: it grows with every new {operator.state_grows_by}, "
                    f"because its {contents} are kept forever",
                )


def _stateful(plan: Plan) -> Iterator[Stateful]:
    return (operator for operator in plan.operators if isinstance(operator, Stateful))


def shorter_than_upstream(plan: Plan) -> Iterator[Finding]:
    """Report states that expire a row while an upstream operator can still change that row."""
    kinds = output_kinds(plan)
    longest: dict[str, tuple[float, str]] = {}
    for operator in plan.operators:
        above = [longest.get(name, (0.0, "")) for name in operator.inputs]
        for entry in operator.state:
            upstream, source = above[entry.index] if entry.index < len(above) else (0.0, "")
            joins = isinstance(operator, Stateful) and operator.added_rows_find == "matches"
            if entry.ttl is None:
                continue  # the watermark decides, and drops changes of rows that it has passed
            if joins and kinds.get(operator.inputs[entry.index]) == INSERT_ONLY:
                continue  # an append-only input: a row after expiry misses a match, but retracts nothing
            if _lasts(entry.ttl) < upstream:
                changes = "is forever" if upstream == FOREVER else f"lasts {format_duration(int(upstream))}"
                yield Finding(
                    path=f"operators.{operator.id}.state.{entry.name}.ttl",
                    message=f"the TTL, {entry.ttl}, is shorter than the TTL of '{source}' upstream, which {changes}: "
                    f"rows that '{source}' still changes after {entry.ttl} have no state here",
                )
        duration = _changes_for(operator, kinds)
        longest[operator.id] = (duration, operator.id) if operator.state else max(above, default=(0.0, ""))


def _changes_for(operator: Operator, kinds: Mapping[str, RowKinds]) -> float:
    """Return for how many milliseconds an operator with state can still change, or add to, its earlier output."""
    if not isinstance(operator, Stateful) or len(operator.state) < len(operator.state_names):
        return 0.0
    ttls = [_lasts(entry.ttl or "0 ms") for entry in operator.state[: len(operator.state_names)]]
    return operator.changes_for(ttls, [kinds.get(name, INSERT_ONLY) for name in operator.inputs])


def lopsided_outer_join(plan: Plan) -> Iterator[Finding]:
    """Report outer joins that keep one side at least a thousand times as long as the other."""
    for operator in _stateful(plan):
        join, entries = operator.waits_as, operator.state
        if join is None or len(entries) < 2:
            continue
        left, right = (_lasts(entry.ttl or "0 ms") for entry in entries[:2])
        short, long = entries[:2] if left <= right else (entries[1], entries[0])
        if left != right and max(left, right) >= _APART * max(min(left, right), 1.0):
            forever = "forever" if max(left, right) == FOREVER else long.ttl
            yield Finding(
                path=f"operators.{operator.id}.state.{short.name}.ttl",
                message=f"a {join} keeps '{short.input}' for {short.ttl} and '{long.input}' "
                f"{'' if forever == 'forever' else 'for '}{forever}, a thousand times as long or more",
            )


def _lasts(ttl: str) -> float:
    """Return the milliseconds of a TTL; 0 ms means forever."""
    return parse_duration(ttl) or FOREVER
