"""What a checkpoint knows of the queries of the plan that ran on it: sinks, sources, states, and what they mean.

>>> QueryRecord(id="sink_r", sinks=("sink_r",), sources=(), states=(), generation=2).logs
'sink_r/logs.2'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hintplan.plans.analysis.streaming_queries import Query, path_to
from hintplan.plans.compare.lineage import keeps_state, parks_rows, state_lineages
from hintplan.plans.compare.sources import Order, SourceRecord
from hintplan.plans.connectors.table import sink_directory
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, kind_of, state_of, table_of

WAKING = "rows that wait"
"""What an operator reads that rows wait in, as the table of a source: the time at which they are due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord:
    """The state of one operator in one query; ``lineage`` is a digest of what the state means.

    ``place`` is the folder that it is in, empty as long as the checkpoint has none. ``begun`` says that it has been
    written in the scale in force, so that each partition has a manifest there. ``kept`` are the runs that went on with
    it by consent, though the plan would have computed another; its files go on with the lineage that they began with,
    ``written``. ``sources`` are the operators whose rows
    it is made of; none of rows that only wait.
    """

    operator: str
    lineage: str
    sources: tuple[str, ...] = ()
    place: str = ""
    begun: bool = False
    kept: tuple[int, ...] = ()
    written: str = ""

    @property
    def stored(self) -> str:
        """The lineage that is in the files of the state."""
        return self.written or self.lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """What a checkpoint knows of a query: its sinks, its sources and states from the top down.

    ``order`` has the sources as Spark numbers them; it is empty if that is not known, as on Spark Connect. Spark's logs
    are those of a ``generation``, of which a new one begins when the order becomes another.

    ``names`` are what the checkpoint calls the sinks, in their order, empty if it calls them by their ids: a sink keeps
    its name when a plan gives it another id. ``parked`` says that the plan which last ran has no such query: it stands
    where it stopped. ``files`` are the names of the sinks that write files, or have written some, each with its
    directory, where Spark notes which batches are there.
    ``begun`` says that Spark has started it, so that there is a checkpoint of it. ``scales`` are the numbers of
    partitions that its states had, each with the batch from which on; the last one is in force.
    """

    id: str
    sinks: tuple[str, ...]
    sources: tuple[SourceRecord, ...]
    states: tuple[StateRecord, ...]
    order: Order = ()
    generation: int = 0
    parked: bool = False
    files: tuple[tuple[str, str], ...] = ()
    begun: bool = False
    scales: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the sinks in the checkpoint, in their order."""
        return self.names or self.sinks

    @property
    def logs(self) -> str:
        """The folder of the checkpoint with Spark's logs of the query."""
        return f"{self.id}/logs.{self.generation}" if self.generation else self.id

    @property
    def readers(self) -> tuple[str, ...]:
        """The operator that reads each of Spark's sources, of several the first; empty if that is not known."""
        if not self.order:
            return (self.sources[0].operator,) if len(self.sources) == 1 else ()
        first = {number: operator for operator, number in reversed(self.order)}
        return tuple(first[number] for number in sorted(first))


def query_records(plan: Plan, queries: Sequence[Query]) -> tuple[QueryRecord, ...]:
    """What a checkpoint records of ``plan`` when it runs as ``queries``."""
    operators, places = plan.by_id, {operator.id: place for place, operator in enumerate(plan.operators)}
    lineages = state_lineages(plan)
    records = []
    for query in queries:
        order = operators_of(operators, query)
        instances = _instances(operators, places, query)
        states = tuple(
            StateRecord(operator=name, lineage=lineages[name], sources=_made_of(operators, name))
            for name in order
            if keeps_state(operators[name])
        )
        sources = tuple(
            SourceRecord(
                operator=name,
                table=_source(plan, operators[name], lineages[name]),
                lineage=lineages[name],
                places=instances[name],
            )
            for name in order
            if _gives_rows(operators[name]) or parks_rows(operators[name])
        )
        records.append(
            QueryRecord(
                id=query.id,
                sinks=query.sinks,
                sources=sources,
                states=states,
                files=tuple(_files(plan, query)),
                names=query.names,
            )
        )
    return tuple(records)


def _made_of(operators: Mapping[str, Operator], name: str) -> tuple[str, ...]:
    below = _order(operators, [name]) if state_of(operators[name]) else ()
    return tuple(each for each in below if _gives_rows(operators[each]))


def _gives_rows(operator: Operator) -> bool:
    kind = kind_of(operator)
    return kind.is_source or kind.has_rows


def operators_of(operators: Mapping[str, Operator], query: Query, *, top: str | None = None) -> list[str]:
    """What a query computes of the ``operators`` of its plan, each before its inputs, as Spark numbers them.

    It begins at the top of the query, or at ``top`` if that is given.
    """
    return _order(operators, _tops(operators, query) if top is None else [top])


def _tops(operators: Mapping[str, Operator], query: Query) -> list[str]:
    """Where the rows of a query leave what Spark computes of it: above its only sink, or above each of several."""
    found: dict[str, None] = {}
    for sink in query.sinks:
        operator = operators.get(sink)
        path = path_to(operators, operator) if operator is not None and query.is_shared else ()
        found |= dict.fromkeys([path[0].id] if path else operator.inputs if operator is not None else ())
    return list(found)


def _files(plan: Plan, query: Query) -> Iterator[tuple[str, str]]:
    tables = {sink.id: plan.tables.get(sink.table) for sink in plan.sinks}
    for sink in query.sinks:
        table = tables.get(sink)
        if table is not None and (directory := sink_directory(table)):
            yield query.name_of(sink), directory


def _order(operators: Mapping[str, Operator], tops: Sequence[str]) -> list[str]:
    """All operators of a query from the sink down, each before its inputs: the order in which Spark numbers them."""
    found: dict[str, None] = {}
    waiting = list(reversed(tops))
    while waiting:
        name = waiting.pop()
        if name in operators and name not in found:
            found[name] = None
            waiting += reversed(operators[name].inputs)
    return list(found)


def _instances(operators: Mapping[str, Operator], places: Mapping[str, int], query: Query) -> Counter[str]:
    """How often Spark computes each operator of the query: once for each way that leads from it to the top.

    ``places`` are where operators stand in the plan, inputs before those that read them.
    """
    found = Counter(_tops(operators, query))
    for name in sorted(operators_of(operators, query), key=places.__getitem__, reverse=True):
        for source in operators[name].inputs:
            found[source] += found[name]
    return found


def _source(plan: Plan, operator: Operator, lineage: str) -> str:
    """What is read at ``operator``: a table with its connector, rows of the plan, of which others are others."""
    if kind_of(operator).has_rows:
        return f"VALUES {lineage[:8]}"
    name = table_of(operator) if kind_of(operator).is_source else None
    if name is None:
        return WAKING
    table = plan.tables.get(name)
    return f"{name} ({table.options.get('connector', '') if table else ''})"
