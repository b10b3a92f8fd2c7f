"""Finds repeated lookups and calls: equal requests of several operators, or one operator that is computed repeatedly.

Operators with the same requests look up one table by the same columns, or call one function with the same arguments.
Their rows come from the same tables, and neither is above the other. Such operators arise where two branches of a query
read one view and select or filter differently. Each sends its own requests, so that answers may differ, and each has
its own settings. Knows no Spark, and not the SQL of a plan.

>>> list(repeated(Plan(name="p"))), list(one_sided_edits(Plan(name="p")))
([], [])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hintplan.plans.analysis.streaming_queries import is_dear, queries, single_queries, tops
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.model.graph import check_graph
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import PlanSetting
from hintplan.plans.model.settings import operator_settings
from hintplan.plans.operators import Requesting
from hintplan.plans.settings.layers import EDIT
from hintplan.plans.settings.setting import Value, value_text

MOST_TIMES = 1_000
"""The maximum number of computations of an operator for the same rows, plus one for each operator of the plan.

A chain of forty unions of two calcs each would be computed 2**40 times.
"""


@frozen
class _Alike:
    """Lookups of one table, or calls of one function, with the same requests; ``text`` describes them."""

    target: str
    text: str
    operators: tuple[str, ...]


@frozen
class Repeated:
    """Operators with the same requests to ``target``, a table or a function, and the number of requests per row."""

    target: str
    operators: tuple[str, ...]
    times: int


@frozen
class OneSided:
    """A setting at ``path`` that differs from the operator ``other`` with the same requests; None if missing."""

    path: str
    value: Value | None
    alike: _Alike
    other: str
    other_value: Value | None

    @property
    def message(self) -> str:
        """The message about it, in one line that begins with the value."""
        own, other = ("none" if value is None else value_text(value) for value in (self.value, self.other_value))
        return f"{own}, applies to this operator alone: '{self.other}', which {self.alike.text}, has {other}"


def times_computed(plan: Plan) -> Counter[str]:
    """Return how many times each operator of a valid graph is computed for the same rows.

    A streaming query computes an operator once for all readers if it does more than read tables. A batch job computes
    an operator once for each path to a sink, and a cached result once for all.
    """
    running = queries(plan) if plan.mode == "streaming" else single_queries(plan)
    times = Counter(top for query in running for top in tops(plan, query))
    of_queries = {top: 1 << number for number, query in enumerate(running) for top in tops(plan, query)}
    dear: set[str] = set()
    if plan.mode == "streaming":
        for operator in plan.operators:
            if is_dear(operator) or not dear.isdisjoint(operator.inputs):
                dear.add(operator.id)
    for operator in reversed(plan.operators):
        mask = of_queries.get(operator.id, 0)
        for source in operator.inputs:
            of_queries[source] = of_queries.get(source, 0) | mask
        if operator.id in dear:
            times[operator.id] = min(times[operator.id], mask.bit_count())
        cached = operator.cached
        if cached is not None and cached.enabled:
            times[operator.id] = min(times[operator.id], 1)
        for source in operator.inputs:
            times[source] += times[operator.id]
    return times


def check_times(plan: Plan) -> Iterator[Diagnostic]:
    """Yield a problem for the most repeated operator of a valid graph if a run would refuse it."""
    computed = times_computed(plan)
    name = max(computed, key=lambda operator_id: computed[operator_id], default="")
    most = MOST_TIMES + len(plan.operators)
    if computed[name] > most:
        times = f"{computed[name]:,}" if computed[name] < 10**18 else "more than 10^18"
        yield Diagnostic(
            message=f"'{name}' would be computed {times} times, once for each path from it to a sink; at most "
            f"{most:,} are run",
            path=f"operators.{name}",
            hint="keep the result of an operator on the way: write it to a table, or in batch mode cache it",
        )


def repeated(plan: Plan) -> Iterator[Repeated]:
    """Yield repeated requests in the order of the operators; yield nothing if edges are invalid."""
    if any(check_graph(plan)):
        return
    computed = times_computed(plan)
    for alike in _alike(plan):
        times = sum(computed[name] for name in alike.operators)
        if times > 1:
            yield Repeated(target=alike.target, operators=alike.operators, times=times)


def one_sided_edits(plan: Plan) -> Iterator[OneSided]:
    """Yield edits of one of several operators with the same requests, once for each operator with another value."""
    settings = _settings(plan)
    yield from _one_sided(plan, [setting.path for setting in settings.values() if setting.set_by == EDIT])


def one_sided_changes(before: Plan, after: Plan) -> Iterator[OneSided]:
    """Yield changes from ``before`` as :func:`one_sided_edits` does, including groups that were switched off."""
    was, now = _settings(before), _settings(after)
    paths = dict.fromkeys((*was, *now))
    yield from _one_sided(after, [p for p in paths if _value(was, p) != _value(now, p)])


def _one_sided(plan: Plan, paths: list[str]) -> Iterator[OneSided]:
    if any(check_graph(plan)):
        return
    settings = _settings(plan)
    groups = {name: alike for alike in _alike(plan) for name in alike.operators}
    for path in paths:
        operator, _, name = path.partition(".")
        alike = groups[operator]
        for other in alike.operators:
            value, other_value = _value(settings, path), _value(settings, f"{other}.{name}")
            if value != other_value:
                yield OneSided(path=path, value=value, alike=alike, other=other, other_value=other_value)


def _settings(plan: Plan) -> dict[str, PlanSetting]:
    settings: dict[str, PlanSetting] = {}
    for operator in plan.operators:
        if isinstance(operator, Requesting):
            own = {group.name for group in operator.groups if not group.optional}
            settings |= {setting.path: setting for setting in operator_settings(operator) if setting.group in own}
    return settings


def _value(settings: dict[str, PlanSetting], path: str) -> Value | None:
    setting = settings.get(path)
    return None if setting is None else setting.value


def _alike(plan: Plan) -> list[_Alike]:
    """Return the lookups and calls of a valid graph, grouped by equal requests, in the order of the operators."""
    tables: dict[str, frozenset[str]] = {}
    asked: dict[str, frozenset[tuple[object, ...]]] = {}
    groups: dict[tuple[object, ...], _Alike] = {}
    for operator in plan.operators:
        own = frozenset({operator.table} if operator.is_source and operator.table is not None else ())
        tables[operator.id] = own.union(*(tables[name] for name in operator.inputs))
        below = frozenset[tuple[object, ...]]().union(*(asked[name] for name in operator.inputs))
        asked[operator.id] = below
        if not isinstance(operator, Requesting):
            continue
        identity = operator.request_identity
        key = (operator.op, identity, tables[operator.id])
        # In two branches with two equal lookups each, the first lookups form a group, and the second lookups another.
        place = (sum(1 for request in below if request[1:] == key), *key)
        asked[operator.id] = below | {place}
        before = groups[place].operators if place in groups else ()
        text = operator.same_requests_text.format(f"'{identity.target}'")
        groups[place] = _Alike(target=identity.target, text=text, operators=(*before, operator.id))
    return list(groups.values())
