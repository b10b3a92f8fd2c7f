"""The checkpoint's record of the queries of the plan that ran on it: sinks, sources, states and their lineages.

>>> QueryRecord(id="sink_r", sinks=("sink_r",), sources=(), states=(), generation=2).logs
'sink_r/logs.2'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hintplan.plans.analysis.streaming_queries import Query, path_to
from hintplan.plans.analysis.watermarks import first_of_time, waking_operators
from hintplan.plans.compare.lineage import keeps_state, state_lineages
from hintplan.plans.compare.sources import ENDING, TIMER, Order, SourceRecord, waking_name, woken_operator
from hintplan.plans.connectors.table import sink_directory
from hintplan.plans.frozen import frozen
from hintplan.plans.model.late_rows import late_rows_of
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator

WAKING = "rows that wait"
"""The source table of an operator that parks rows: it reads the times at which rows are due."""


@frozen
class StateRecord:
    """The state of one operator in one query; ``lineage`` is a digest of the meaning of the state.

    ``place`` is the folder of the state, empty while the checkpoint has none. ``begun`` is true once the state has been
    written with the number of partitions in force, so that each partition has a manifest. ``kept`` lists the runs that
    kept the state by consent although the plan would have computed another. The files of such a state keep their first
    lineage, ``written``. ``sources`` are the operators that read the rows from which the state is computed. It is empty
    if the state only holds waiting rows. ``late`` is true if the query computes the operator only to write its late
    rows: another query has its results.
    """

    operator: str
    lineage: str
    sources: tuple[str, ...] = ()
    place: str = ""
    begun: bool = False
    kept: tuple[int, ...] = ()
    written: str = ""
    late: bool = False

    @property
    def stored(self) -> str:
        """The lineage in the files of the state."""
        return self.written or self.lineage


@frozen
class QueryRecord:
    """The checkpoint's record of a query: its sinks, and its sources and states from the sink end down.

    ``order`` lists the sources as Spark numbers them; it is empty if unknown, as on Spark Connect. A new ``generation``
    of Spark's logs begins when the order changes.

    ``names`` lists the names of the sinks in the checkpoint, in the order of ``sinks``; it is empty if they equal the
    ids. A sink keeps its name when a plan gives it another id. ``late`` lists the names of the sinks that write late
    rows, which a query gains and loses with a setting. ``parked`` is true if the plan that last ran has no such
    query: the query stays where it stopped. ``files`` lists the names of the sinks that write files, or once did, each
    with its directory. Spark records the written batches in this directory.

    ``begun`` is true once Spark has started the query, so that it has a checkpoint. ``scales`` lists the numbers of
    partitions that its states have had, each with its first batch; the last one is in force.
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
    late: tuple[str, ...] = ()

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the sinks in the checkpoint, in the order of ``sinks``."""
        return self.names or self.sinks

    @property
    def logs(self) -> str:
        """The folder of the checkpoint with Spark's logs of the query."""
        return f"{self.id}/logs.{self.generation}" if self.generation else self.id

    @property
    def timers(self) -> tuple[str, ...]:
        """The operators that have a timer."""
        return tuple(woken_operator(source.operator) for source in self.sources if source.table == TIMER)

    @property
    def readers(self) -> tuple[str, ...]:
        """The operator that reads each of Spark's sources, the first one if there are several; empty if unknown."""
        if not self.order:
            return (self.sources[0].operator,) if len(self.sources) == 1 else ()
        first = {number: operator for operator, number in reversed(self.order)}
        return tuple(first[number] for number in sorted(first))


def query_records(plan: Plan, queries: Sequence[Query]) -> tuple[QueryRecord, ...]:
    """Return the record of each query when ``plan`` runs as ``queries``."""
    operators, places = plan.by_id, {operator.id: place for place, operator in enumerate(plan.operators)}
    lineages = state_lineages(plan)
    ended, waking = frozenset(first_of_time(plan)), waking_operators(plan)
    records = []
    for query in queries:
        order = operators_of(operators, query)
        late = tuple(sink for sink in query.sinks if late_rows_of(operators, sink) is not None)
        wanted = {*plan.upstream(*(sink for sink in query.sinks if sink not in late))}
        instances = _instances(operators, places, query)
        states = tuple(
            StateRecord(
                operator=name, lineage=lineages[name], sources=_made_of(operators, name), late=name not in wanted
            )
            for name in order
            if keeps_state(operators[name])
        )
        sources = tuple(
            SourceRecord(
                operator=name,
                table=_source(plan, operators[name], lineages[name]),
                lineage=lineages[name],
                places=instances[name],
                late=name not in wanted,
            )
            for name in order
            if _gives_rows(operators[name]) or operators[name].parks_rows or name in ended
        )
        timers = tuple(
            SourceRecord(
                operator=waking_name(name),
                table=TIMER,
                lineage=lineages[name],
                places=instances[name],
                late=name not in wanted,
            )
            for name in order
            if name in waking
        )
        records.append(
            QueryRecord(
                id=query.id,
                sinks=query.sinks,
                sources=(*sources, *timers),
                states=states,
                files=tuple(_files(plan, query)),
                names=query.names,
                late=tuple(map(query.name_of, late)),
            )
        )
    return tuple(records)


def _made_of(operators: Mapping[str, Operator], name: str) -> tuple[str, ...]:
    below = _order(operators, [name]) if operators[name].state else ()
    return tuple(operator_id for operator_id in below if _gives_rows(operators[operator_id]))


def _gives_rows(operator: Operator) -> bool:
    return operator.is_source or operator.has_rows


def operators_of(operators: Mapping[str, Operator], query: Query, *, top: str | None = None) -> list[str]:
    """Return the ``operators`` that Spark computes for a query, each before its inputs, as Spark numbers them.

    The order starts at the topmost operators of the query, or at ``top`` if given.
    """
    return _order(operators, _tops(operators, query) if top is None else [top])


def _tops(operators: Mapping[str, Operator], query: Query) -> list[str]:
    """Return the topmost operators that Spark computes for a query: the inputs of its only sink, or several tops."""
    top_ids: dict[str, None] = {}
    for sink in query.sinks:
        operator = operators.get(sink)
        path = path_to(operators, operator) if operator is not None and query.is_shared else ()
        top_ids |= dict.fromkeys([path[0].id] if path else operator.inputs if operator is not None else ())
    return list(top_ids)


def _files(plan: Plan, query: Query) -> Iterator[tuple[str, str]]:
    tables = {sink.id: plan.tables.get(sink.table) for sink in plan.sinks}
    for sink in query.sinks:
        table = tables.get(sink)
        if table is not None and (directory := sink_directory(table)):
            yield query.name_of(sink), directory


def _order(operators: Mapping[str, Operator], tops: Sequence[str]) -> list[str]:
    """Return ``tops`` and all operators below them, each before its inputs, in the order of Spark's numbers."""
    ordered: dict[str, None] = {}
    waiting = list(reversed(tops))
    while waiting:
        name = waiting.pop()
        if name in operators and name not in ordered:
            ordered[name] = None
            waiting += reversed(operators[name].inputs)
    return list(ordered)


def _instances(operators: Mapping[str, Operator], places: Mapping[str, int], query: Query) -> Counter[str]:
    """Return how often Spark computes each operator of the query: once for each path to one of the topmost operators.

    ``places`` has the position of each operator in the plan, where inputs precede their readers.
    """
    instances = Counter(_tops(operators, query))
    for name in sorted(operators_of(operators, query), key=places.__getitem__, reverse=True):
        for source in operators[name].inputs:
            instances[source] += instances[name]
    return instances


def _source(plan: Plan, operator: Operator, lineage: str) -> str:
    """Name the source of ``operator``: a table with its connector, rows of the plan with lineage, or a source of ours.

    Operators that park rows are woken by a source, and one ends the tables of operators that go by the watermark.
    """
    if operator.has_rows:
        return f"VALUES {lineage[:8]}"
    name = operator.table if operator.is_source else None
    if name is None:
        return WAKING if operator.parks_rows else ENDING
    table = plan.tables.get(name)
    return f"{name} ({table.options.get('connector', '') if table else ''})"
