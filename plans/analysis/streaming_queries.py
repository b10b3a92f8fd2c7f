"""Groups the sinks of a streaming plan into queries: Spark runs the sinks of one group as one query.

Two sinks belong to one query if they share a stateful operator, a lookup or a function call. They also do if only calcs
separate them from a common operator. Such a query computes each operator once per micro-batch, keeps its state once,
and writes one sink after the other.

Spark computes a query up to the operators that only calcs separate from its sinks; this module calls them *tops*. A
calc that uses the current time, which only a query knows, is a top itself. Sinks that share only tables stay in
separate queries: reading a table twice costs less than waiting for each other. Pure: takes a plan, returns names.

>>> from hintplan.plans.operators import Scan, Sink
>>> from hintplan.plans.declarations.tables import Table
>>> scan = Scan(id="scan_t", table="t", columns=("a",))
>>> sinks = tuple(Sink(id=f"sink_{name}", inputs=("scan_t",), table=name) for name in "rs")
>>> tables = {name: Table(columns=(), options={"connector": "print"}) for name in "rs"}
>>> queries(Plan(name="p", tables=tables, operators=(scan, *sinks)))
(Query(id='scan_t', sinks=('sink_r', 'sink_s')),)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Requesting, Stateful

_NOW = re.compile(r"\b(?:current_timestamp|current_date|now)\b", re.IGNORECASE)


@frozen
class Query:
    """One query of Spark with its ``sinks``; its name is its only sink, or an operator that several sinks share.

    ``names`` are the names of the sinks in a checkpoint, in the order of ``sinks``; empty if they equal the ids.
    """

    id: str
    sinks: tuple[str, ...]
    names: tuple[str, ...] = field(default=(), repr=False)

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the sinks in a checkpoint, in the order of ``sinks``."""
        return self.names or self.sinks

    @property
    def is_shared(self) -> bool:
        return self.called != (self.id,)

    def name_of(self, sink: str) -> str:
        """Return the name of a sink in a checkpoint by its id."""
        return self.called[self.sinks.index(sink)]

    def part_called(self, name: str) -> str:
        """Return the part of the query's identity for the sink with this name in a checkpoint.

        It is empty for a sink that was the only one of its query, so that it can be joined by a sink for late rows.
        """
        return "" if name == self.id else f"/{name}"


def queries(plan: Plan, sinks: Collection[str] | None = None, *, taken: Collection[str] = ()) -> tuple[Query, ...]:
    """Return the queries of a streaming plan in the order of their first sinks; its edges may be invalid.

    With ``sinks``, return only the queries that write these sinks. No query gets a name that is ``taken``.
    """
    operators = plan.by_id
    reached = {sink.id: _bonds(operators, sink) for sink in plan.sinks if sinks is None or sink.id in sinks}
    return _called([(_name(plan, group, reached), tuple(group)) for group in _connected(reached)], taken)


def _called(groups: Sequence[tuple[str, tuple[str, ...]]], taken: Collection[str]) -> tuple[Query, ...]:
    """Return the queries that write ``groups`` of sinks, each with the name of its group, or a similar free name."""
    named = []
    used = set(taken)
    for name, group in groups:
        alternatives = (f"{name}_{number}" for number in range(2, len(used) + 3))
        free = next(candidate for candidate in (name, *alternatives) if candidate not in used)
        used.add(free)
        named.append(Query(id=free, sinks=group, names=(free,) if group == (name,) != (free,) else ()))
    return tuple(named)


def _bonds(operators: Mapping[str, Operator], sink: Operator) -> frozenset[str]:
    """Return the operators below ``sink`` that bind it to other sinks: sinks that share one of them form a query."""
    path = path_to(operators, sink)
    top = {path[0].id} if path else set()
    return frozenset(top.union(name for name in _below(operators, sink) if is_dear(operators[name])))


def _below(operators: Mapping[str, Operator], sink: Operator) -> set[str]:
    below: set[str] = set()
    waiting = list(sink.inputs)
    while waiting:
        name = waiting.pop()
        if name in operators and name not in below:
            below.add(name)
            waiting += operators[name].inputs
    return below


def _connected(reached: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the sinks in groups that share an operator, directly or through other sinks."""
    leads_to: dict[str, str] = {}  # from a sink to an earlier one of its group; the first leads nowhere

    def first_of(sink: str) -> str:
        while sink in leads_to:
            above = leads_to[sink]
            leads_to[sink] = leads_to.get(above, above)
            sink = above
        return sink

    place = {sink: number for number, sink in enumerate(reached)}
    reader: dict[str, str] = {}
    for sink, below in reached.items():
        for operator in below:
            earlier, own = first_of(reader.setdefault(operator, sink)), first_of(sink)
            if earlier != own:
                first, later = sorted((earlier, own), key=place.__getitem__)
                leads_to[later] = first
    groups: dict[str, list[str]] = {}
    for sink in reached:
        groups.setdefault(first_of(sink), []).append(sink)
    return list(groups.values())


def _name(plan: Plan, group: Sequence[str], reached: Mapping[str, frozenset[str]]) -> str:
    """Return the only sink of a query, or else the last operator that most of its sinks share."""
    if len(group) == 1:
        return group[0]
    shares = Counter(name for sink in group for name in reached[sink])
    most = max(shares.values())
    return next(operator.id for operator in reversed(plan.operators) if shares[operator.id] == most)


def single_queries(
    plan: Plan, sinks: Collection[str] | None = None, *, taken: Collection[str] = ()
) -> tuple[Query, ...]:
    """Return a query for each sink, for runs in which a query cannot have several."""
    wanted = [sink.id for sink in plan.sinks if sinks is None or sink.id in sinks]
    return _called([(name, (name,)) for name in wanted], taken)


def path_to(operators: Mapping[str, Operator], sink: Operator) -> tuple[Operator, ...]:
    """Return the top from which ``sink`` has its rows in a query with several sinks, and the calcs between them.

    The calcs, in the order of the rows, belong to this sink alone. None of them uses the current time, which only a
    query knows. Return an empty tuple if there is no top, because an edge leads nowhere or into a cycle.
    """
    calcs: dict[str, Operator] = {}
    above = operators.get(sink.inputs[0]) if sink.inputs else None
    while above is not None and _is_of_sink(above) and above.id not in calcs:
        calcs[above.id] = above
        above = operators.get(above.inputs[0]) if above.inputs else None
    if above is None or above.id in calcs or above.is_sink:
        return ()
    return (above, *reversed(calcs.values()))


def tops(plan: Plan, query: Query) -> tuple[str, ...]:
    """Return the operators up to which Spark computes ``query``: its only sink, or the tops of its several sinks."""
    if not query.is_shared:
        return query.sinks
    return tuple(dict.fromkeys(path_to(plan.by_id, plan.operator(sink))[0].id for sink in query.sinks))


def is_dear(operator: Operator) -> bool:
    """Return True if computing the operator twice costs more than reading a table twice.

    This is true of operators with state, lookups and function calls.
    """
    return isinstance(operator, Stateful | Requesting)


def _is_of_sink(operator: Operator) -> bool:
    texts = (text for _, text in operator.expressions())
    return operator.below_shared and not any(_NOW.search(text) for text in texts if text)
