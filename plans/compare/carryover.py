"""What becomes of the state in a checkpoint when a plan continues it: the one place where this is decided.

State carries over if the plan would have computed the same state from the same rows: a state has a *lineage*, a digest
of what its operator and everything below it mean, without ids, aliases, TTLs and other settings. ``hintplan run``
refuses, ``hintplan check`` tells and ``hintplan diff`` predicts by what :func:`carried` says. The runtime marks stored
state with its lineage, and starts empty where it finds another.

Spark numbers the sources and the stateful operators of a query, and finds them again by these numbers. So a query goes
on if it has the same sources, and as many stateful operators as before. Knows no files and no Spark.

>>> record = QueryRecord(id="sink_r", sinks=("sink_r",), sources=("orders (print)",), states=())
>>> carried((record,), (record,))[0].outcome
'goes on'
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from plans.analysis.streaming_queries import Query, can_share, path_to
from plans.connectors.table import sink_directory
from plans.declarations.row_kinds import INSERT_ONLY, RowKinds, merged
from plans.format.digest import operator_facts
from plans.model.plan import Plan
from plans.operators import Operator, Scan, kind_of, state_of, tables_used

Outcome = Literal["goes on", "new", "left behind", "refused"]
StateOutcome = Literal["carries over", "new", "starts empty", "left behind", "cannot be read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord:
    """The state of one operator in one query; ``lineage`` is a digest of what the state means."""

    operator: str
    lineage: str
    instances: int = 1
    """How many times the query computes the operator, each with state of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecord:
    """What a checkpoint knows of a query: its sinks, its sources and states in the order in which Spark numbers them.

    ``parked`` says that the plan which last ran has no such query: it stands where it stopped. ``problem`` says why
    a plan cannot run it. ``files`` is the directory that it writes files to, where Spark notes which batches are there.
    ``begun`` says that Spark has started it, so that there is a checkpoint of it.
    """

    id: str
    sinks: tuple[str, ...]
    sources: tuple[str, ...]
    states: tuple[StateRecord, ...]
    parked: bool = False
    problem: str = ""
    files: str = ""
    begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVerdict:
    """What becomes of the state of ``operator``; ``was`` is the operator it belonged to, if that has another id."""

    operator: str
    outcome: StateOutcome
    was: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVerdict:
    """What becomes of a query; ``because`` is empty if it simply goes on."""

    query: str
    outcome: Outcome
    because: str = ""
    states: tuple[StateVerdict, ...] = ()

    @property
    def loses(self) -> bool:
        """Whether state, or the place that the query has reached in its sources, is not used any more."""
        return self.outcome == "left behind" or any(state.outcome == "starts empty" for state in self.states)


def parks_rows(operator: Operator) -> bool:
    """Whether rows of ``operator`` wait in state to be asked again, as those of a lookup with deferred retries."""
    asks = kind_of(operator).asks
    return asks is not None and asks.parks_rows(operator)


def keeps_state(operator: Operator) -> bool:
    """Whether ``operator`` keeps anything in a checkpoint."""
    return bool(state_of(operator)) or parks_rows(operator)


def continued(plan: Plan, recorded: Sequence[QueryRecord]) -> tuple[Query, ...]:
    """The queries as which ``plan`` continues a checkpoint: sinks stay in the query they were in, new ones get one."""
    present = [sink.id for sink in plan.sinks]
    found = []
    for record in recorded:
        sinks = tuple(sink for sink in record.sinks if sink in present)
        if sinks:
            found.append(Query(id=record.id, sinks=sinks))
    grouped = {sink for query in found for sink in query.sinks}
    return (*found, *(Query(id=sink, sinks=(sink,)) for sink in present if sink not in grouped))


def query_records(plan: Plan, queries: Sequence[Query]) -> tuple[QueryRecord, ...]:
    """What a checkpoint records of ``plan`` when it runs as ``queries``."""
    operators, places = plan.by_id, {operator.id: place for place, operator in enumerate(plan.operators)}
    lineages, scans = state_lineages(plan), {scan.id: scan for scan in plan.scans}
    records = []
    for query in queries:
        instances = _instances(operators, places, query)
        order = operators_of(operators, query)
        states = tuple(
            StateRecord(operator=name, lineage=lineages[name], instances=instances[name])
            for name in order
            if keeps_state(operators[name])
        )
        sources = tuple(
            _source(plan, scans[name]) for name in order if name in scans for _ in range(min(instances[name], 9))
        )
        problem = _problem(plan, query)
        files = _files(plan, query)
        records.append(
            QueryRecord(id=query.id, sinks=query.sinks, sources=sources, states=states, problem=problem, files=files)
        )
    return tuple(records)


def operators_of(operators: Mapping[str, Operator], query: Query, *, top: str | None = None) -> list[str]:
    """What a query computes of the ``operators`` of its plan, each before its inputs, as Spark numbers them.

    It begins at the top of the query, or at ``top`` if that is given.
    """
    tops = [name for sink in query.sinks for name in _top(operators, query, sink)] if top is None else [top]
    return _order(operators, tops)


def numbered_states(plan: Plan, query: Query) -> list[str]:
    """The operators of a query that keep state, each at the number that Spark knows it by: once for each time it runs.

    Spark numbers them from the sink down, the operators below the first input of one before those below the next.
    """
    operators = plan.by_id
    found: list[str] = []
    waiting = [name for sink in reversed(query.sinks) for name in reversed(_top(operators, query, sink))]
    if query.is_shared:
        waiting = waiting[:1]
    while waiting:
        name = waiting.pop()
        if keeps_state(operators[name]):
            found.append(name)
        waiting += reversed(operators[name].inputs)
    return found


def carried(recorded: Sequence[QueryRecord], wanted: Sequence[QueryRecord]) -> tuple[QueryVerdict, ...]:
    """What becomes of each query of a checkpoint that recorded ``recorded`` if a plan continues it as ``wanted``."""
    old, new = {record.id: record for record in recorded}, {record.id: record for record in wanted}
    written = {record.files: record.id for record in recorded if record.files}
    verdicts = [_query(old.get(record.id), record, written) for record in wanted]
    for record in recorded:
        if record.id not in new and not record.parked:
            states = tuple(StateVerdict(operator=state.operator, outcome="left behind") for state in record.states)
            because = f"the plan does not write {' or '.join(record.sinks)} any more"
            verdicts.append(QueryVerdict(query=record.id, outcome="left behind", because=because, states=states))
    return tuple(verdicts)


def after_run(recorded: Sequence[QueryRecord], wanted: Sequence[QueryRecord]) -> tuple[QueryRecord, ...]:
    """What the checkpoint records once ``wanted`` continues it: queries that were left behind stay, to be taken up."""
    present = {record.id for record in wanted}
    begun = {record.id for record in recorded if record.begun}
    running = (replace(record, begun=record.id in begun) for record in wanted)
    return (*running, *(replace(record, parked=True) for record in recorded if record.id not in present))


def _query(old: QueryRecord | None, new: QueryRecord, written: Mapping[str, str]) -> QueryVerdict:
    if old is None and new.files in written:
        because = (
            f"it is new and would write files to {new.files}, where {written[new.files]} has written: "
            "Spark takes batches with the same numbers for written; give its table another path"
        )
        states = tuple(StateVerdict(operator=state.operator, outcome="cannot be read") for state in new.states)
        return QueryVerdict(query=new.id, outcome="refused", because=because, states=states)
    if old is None:
        states = tuple(StateVerdict(operator=state.operator, outcome="new") for state in new.states)
        because = "it has not run on this checkpoint, and reads its sources from the beginning"
        return QueryVerdict(query=new.id, outcome="new", because=because, states=states)
    because = new.problem or _refusal(old, new)
    if because:
        states = tuple(StateVerdict(operator=state.operator, outcome="cannot be read") for state in new.states)
        return QueryVerdict(query=new.id, outcome="refused", because=because, states=states)
    return QueryVerdict(query=new.id, outcome="goes on", states=tuple(map(_state, old.states, new.states)))


def _refusal(old: QueryRecord, new: QueryRecord) -> str:
    """Why Spark could not go on with the query."""
    if old.sources != new.sources:
        came, went = Counter(new.sources) - Counter(old.sources), Counter(old.sources) - Counter(new.sources)
        parts = [f"it also reads {_listed(came)}"] if came else []
        parts += [f"it no longer reads {_listed(went)}"] if went else []
        what = " and ".join(parts) or "it reads its sources in another order"
        return f"{what}, and Spark finds the place in each source by its number"
    if [state.instances for state in old.states] != [state.instances for state in new.states]:
        came = Counter(state.operator for state in new.states) - Counter(state.operator for state in old.states)
        went = Counter(state.operator for state in old.states) - Counter(state.operator for state in new.states)
        parts = [f"{_listed(came)} keeps state now"] if came else []
        parts += [f"{_listed(went)} keeps none any more"] if went else []
        what = " and ".join(parts) or "what is computed several times has changed"
        return f"{what}, and Spark finds the state of each operator by its number"
    if old.begun and old.files and new.files and old.files != new.files:
        return (
            f"it has written files to {old.files}, and not to {new.files}: Spark notes the files of each batch beside "
            "them, and must find all batches in one directory"
        )
    return ""


def _state(old: StateRecord, new: StateRecord) -> StateVerdict:
    was = old.operator if old.operator != new.operator else None
    outcome: StateOutcome = "carries over" if old.lineage == new.lineage else "starts empty"
    return StateVerdict(operator=new.operator, outcome=outcome, was=was)


def _listed(names: Counter[str]) -> str:
    return " and ".join(sorted(names))


def _top(operators: Mapping[str, Operator], query: Query, sink: str) -> tuple[str, ...]:
    """Where Spark's query begins: at the operator above several sinks, or above the only one."""
    operator = operators.get(sink)
    if operator is None:
        return ()
    if query.is_shared and kind_of(operator).is_sink and (path := path_to(operators, operator)):
        return (path[0].id,)
    return operator.inputs


def _problem(plan: Plan, query: Query) -> str:
    """Why the sinks of a query can no longer be written together."""
    if not query.is_shared:
        return ""
    sinks = [sink for sink in plan.sinks if sink.id in query.sinks]
    paths = {sink.id: path_to(plan.by_id, sink) for sink in sinks}
    if len({path[0].id if path else "" for path in paths.values()}) > 1:
        return f"{' and '.join(query.sinks)} were written by one query, and no longer hang below one operator"
    for sink in sorted(sinks, key=lambda sink: query.sinks.index(sink.id)):
        if not can_share(plan, sink, paths[sink.id][1:]):
            return f"{sink.id} was written in one query with others, and needs one of its own now"
    return ""


def _files(plan: Plan, query: Query) -> str:
    sink = next((sink for sink in plan.sinks if sink.id == query.sinks[0]), None)
    table = plan.tables.get(sink.table) if sink is not None else None
    return sink_directory(table) if table is not None else ""


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
    found: Counter[str] = Counter({name for sink in query.sinks for name in _top(operators, query, sink)})
    for name in sorted(operators_of(operators, query), key=places.__getitem__, reverse=True):
        for source in operators[name].inputs:
            found[source] += found[name]
    return found


def _source(plan: Plan, scan: Scan) -> str:
    table = plan.tables.get(scan.table)
    return f"{scan.table} ({table.options.get('connector', '') if table else ''})"


def state_lineages(plan: Plan) -> dict[str, str]:
    """A digest of what the state of each operator means, by its id; of those without state, of what they put out.

    Plans that differ in nothing but names of operators, aliases, settings and what is above have the same.
    """
    rows: dict[str, str] = {}
    found: dict[str, str] = {}
    kinds: dict[str, RowKinds] = {}
    for operator in plan.operators:
        inputs = [kinds.get(name, INSERT_ONLY) for name in operator.inputs]
        # A state is laid out to take rows back if rows with a kind come.
        below = [[rows.get(name, "?"), each != INSERT_ONLY] for name, each in zip(operator.inputs, inputs, strict=True)]
        facts = {key: value for key, value in operator_facts(operator).items() if key not in ("id", "inputs")}
        if "state" in facts:
            facts["state"] = [entry["name"] for entry in facts["state"]]
        reads = _reads(plan, operator)
        rows[operator.id] = _digest([facts, reads, below])
        kinds[operator.id] = kind_of(operator).row_kinds(operator, merged(inputs), plan)
        found[operator.id] = _digest([_without_output(operator, facts), reads, below, parks_rows(operator)])
    return found


def _without_output(operator: Operator, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What decides on the state of an operator, without what decides only on what it puts out."""
    own = {key: value for key, value in facts.items() if key != "changelog"}
    kept = kind_of(operator).state
    return own if kept is None else kept.facts(operator, own)


def _reads(plan: Plan, operator: Operator) -> list[object]:
    """The columns of a table that an operator reads, with their types."""
    for reader, name in tables_used((operator,), "reads", "looks up"):
        table = plan.tables.get(name)
        if table is None:
            return [name]
        types = {column.name: column.type for column in table.columns}
        columns = operator_facts(reader)["columns"]
        return [name, table.options.get("connector"), [types.get(column) for column in columns]]
    return []


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
