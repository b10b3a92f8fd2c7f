"""Decides which state, sources and sinks of a checkpoint a plan continues; no other module decides this.

A state carries over if the plan would have computed the same state from the same rows. To decide this, each state has a
*lineage*: a digest of its operator and everything below it, without ids, aliases, TTLs and other settings.
``hintplan run`` refuses, ``hintplan check`` reports and ``hintplan diff`` predicts by the verdicts of :func:`carried`.
Each state has a folder of its own, which the record names. A state that starts empty gets a new folder.

Spark numbers the sources of a query, and finds its position in each source by this number. After a change of sources,
the query continues in logs of a new generation, in which the remaining sources have new numbers. Knows no files and no
Spark.

>>> record = QueryRecord(id="sink_r", sinks=("sink_r",), sources=(), states=())
>>> carried((), (record,))[0].outcome, carried((record,), ())[0].outcome
('new', 'left behind')
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from hintplan.plans.analysis.streaming_queries import Query, queries, single_queries
from hintplan.plans.compare.query_record import WAKING, QueryRecord, StateRecord
from hintplan.plans.compare.sinks import continued_sinks
from hintplan.plans.compare.sources import ENDING, TIMER, ContinuedSources, Order, continued_sources, order_under
from hintplan.plans.connectors.table import sink_directory
from hintplan.plans.frozen import frozen
from hintplan.plans.model.late_rows import late_rows_of
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.counts import count

_OWN = (WAKING, ENDING, TIMER)
"""The sources of hintplan itself, which no verdict lists."""

Outcome = Literal["continues", "new", "left behind", "refused"]
SourceOutcome = Literal["new", "left behind"]
StateOutcome = Literal["carries over", "is kept", "new", "starts empty", "left behind", "cannot be read"]


@frozen
class SourceVerdict:
    """The fate of a source that a query begins or ceases to read.

    ``operator`` reads the source; ``table`` is the name of the table with its connector.
    """

    operator: str
    table: str
    outcome: SourceOutcome


@frozen
class StateVerdict:
    """The fate of the state of ``operator``.

    ``was`` is the operator that owned the state before, if its id differs. ``kept`` lists the earlier runs that kept
    the state by consent. ``late`` is true if the query computes the operator only to write its late rows.
    """

    operator: str
    outcome: StateOutcome
    was: str | None = None
    kept: tuple[int, ...] = ()
    late: bool = False


@frozen
class QueryVerdict:
    """The fate of a query; ``because`` is empty if the query simply continues.

    These fields are filled only if the query continues: ``sources`` lists the sources that it begins to read or no
    longer reads, and ``sinks`` the sinks that it no longer writes.

    ``writes`` lists the sinks that it writes, each with its former id if that differs. ``title`` is the name of the
    query in messages.
    """

    query: str
    outcome: Outcome
    because: str = ""
    states: tuple[StateVerdict, ...] = ()
    sources: tuple[SourceVerdict, ...] = ()
    sinks: tuple[str, ...] = ()
    writes: tuple[tuple[str, str | None], ...] = ()
    is_shared: bool = False

    @property
    def title(self) -> str:
        return self.query if self.is_shared or not self.writes else self.writes[0][0]

    @property
    def loses(self) -> bool:
        """True if the checkpoint has state, or a position in a source or of a sink, that is no longer used."""
        lost = ("starts empty", "left behind")
        left = bool(self.sinks) or any(source.outcome == "left behind" for source in self.sources)
        return self.outcome == "left behind" or left or any(state.outcome in lost for state in self.states)


def continued(
    plan: Plan, recorded: Sequence[QueryRecord], before: Plan | None, *, share: bool = True
) -> tuple[Query, ...]:
    """Return the queries with which ``plan`` continues a checkpoint.

    A sink stays in the query that it was in. Sinks are matched by meaning with ``before``, the plan that last ran on
    the checkpoint, or by their ids without it. New sinks form new queries; they share queries with each other if
    ``share`` allows it. A new sink for late rows joins a query that has them.
    """
    ids = {sink.id: sink.id for sink in plan.sinks}
    goes_on = ids if before is None else continued_sinks(before, plan)
    heirs = {was: now for now, was in goes_on.items()}
    claimed = {heirs.get(sink) for record in recorded if not record.parked for sink in record.sinks}
    # A parked query ran under an earlier plan than ``before``, so only the id of a sink can match.
    parked = {name: name for name in ids if name not in claimed}
    continuing = []
    for record in recorded:
        left = parked if record.parked else heirs
        kept = [(left.pop(sink), name) for sink, name in zip(record.sinks, record.called, strict=True) if sink in left]
        if kept:
            sinks, sink_names = (tuple(column) for column in zip(*kept, strict=True))
            continuing.append(Query(id=record.id, sinks=sinks, names=() if sink_names == sinks else sink_names))
    grouped = {sink for query in continuing for sink in query.sinks}
    for name in ids:
        if name not in grouped and _joins(plan, name, continuing, recorded):
            grouped.add(name)
    new = [name for name in ids if name not in grouped]
    taken = [record.id for record in recorded]
    return (*continuing, *(queries(plan, new, taken=taken) if share else single_queries(plan, new, taken=taken)))


def _joins(plan: Plan, sink: str, queries: list[Query], recorded: Sequence[QueryRecord]) -> bool:
    """Add ``sink`` to the first of ``queries`` that computes the late rows which it writes; False if it writes others.

    Another query would judge which rows are late by a watermark of its own.
    """
    late = late_rows_of(plan.by_id, sink)
    if late is None:
        return False
    for place, query in enumerate(queries):
        if not set(late.inputs).isdisjoint(plan.upstream(*query.sinks)):
            (files,) = (dict(record.files) for record in recorded if record.id == query.id)
            directory = sink_directory(plan.tables[late.target])
            names = (sink if number == 1 else f"{sink}_{number}" for number in itertools.count(1))
            free = (name for name in names if name not in query.called and files.get(name, directory) == directory)
            sinks, called = (*query.sinks, sink), (*query.called, next(free))
            queries[place] = Query(id=query.id, sinks=sinks, names=() if called == sinks else called)
            return True
    return False


def carried(
    recorded: Sequence[QueryRecord],
    wanted: Sequence[QueryRecord],
    *,
    renumber: bool = True,
    keep: Mapping[str, str] = MappingProxyType({}),
) -> tuple[QueryVerdict, ...]:
    """Return the verdict on each query when a plan continues a checkpoint as the queries ``wanted``.

    ``recorded`` are the queries in the checkpoint's record. ``renumber`` is true if Spark's logs can be rewritten for
    other sources, which is impossible on Spark Connect. ``keep`` maps each operator that keeps a state of another
    lineage by consent to the operator that owned this state.
    """
    old, new = {record.id: record for record in recorded}, {record.id: record for record in wanted}
    written = {directory: record.id for record in recorded for _, directory in record.files}
    verdicts = [_query(old.get(record.id), record, written, renumber=renumber, keep=keep) for record in wanted]
    for record in recorded:
        if record.id not in new and not record.parked:
            states = tuple(StateVerdict(operator=state.operator, outcome="left behind") for state in record.states)
            because = f"the plan no longer writes {' or '.join(record.sinks)}"
            verdicts.append(QueryVerdict(query=record.id, outcome="left behind", because=because, states=states))
    return tuple(verdicts)


def with_old_timers(recorded: Sequence[QueryRecord], wanted: Sequence[QueryRecord]) -> tuple[QueryRecord, ...]:
    """Return ``wanted`` with the timers that the queries had before, which Spark Connect cannot add or remove.

    A timer that nothing needs never runs out. Without its timer, an operator waits for rows.
    """
    before = {record.id: record for record in recorded if record.begun}
    return tuple(_with_old_timers(before.get(record.id), record) for record in wanted)


def _with_old_timers(old: QueryRecord | None, new: QueryRecord) -> QueryRecord:
    if old is None:
        return new
    sources = (source for source in new.sources if source.table != TIMER)
    return replace(new, sources=(*sources, *(source for source in old.sources if source.table == TIMER)))


def after_run(
    recorded: Sequence[QueryRecord],
    wanted: Sequence[QueryRecord],
    *,
    run: int,
    partitions: int,
    reached: Mapping[str, int] = MappingProxyType({}),
    keep: Mapping[str, str] = MappingProxyType({}),
) -> tuple[QueryRecord, ...]:
    """Return the queries that the checkpoint records once ``wanted`` continues it.

    Queries that were left behind stay in the record as parked, so that a later plan can continue them. ``run`` is the
    number of the record's next entry; states that begin in it get a new folder. From the next batch on, state is
    divided into ``partitions``. ``reached`` has the number of this batch by query; the default is the first batch.
    ``keep`` is as in :func:`carried`.
    """
    before = {record.id: record for record in recorded}
    present = {record.id for record in wanted}
    running = tuple(
        _placed(before.get(record.id), record, run, (partitions, reached.get(record.id, 0)), keep) for record in wanted
    )
    return (*running, *(replace(record, parked=True) for record in recorded if record.id not in present))


def _placed(
    old: QueryRecord | None, new: QueryRecord, run: int, scale: tuple[int, int], keep: Mapping[str, str]
) -> QueryRecord:
    if old is None:
        old = QueryRecord(id=new.id, sinks=(), sources=(), states=(), scales=(scale,))
    kept = continued_states(old.states, new.states, keep)
    scales = old.scales if old.scales[-1][0] == scale[0] else (*old.scales, scale)
    states = tuple(
        replace(
            state,
            place=former.place,
            begun=former.begun and scales == old.scales,
            kept=former.kept if former.lineage == state.lineage else (*former.kept, run),
            written="" if former.stored == state.lineage else former.stored,
        )
        if (former := kept.get(state.operator))
        else replace(state, place=f"{state.operator}.{run}")
        for state in new.states
    )
    continuing = {origin: name for name, origin in continued_sources(old.sources, new.sources).origins.items()}
    order = tuple((continuing[operator], number) for operator, number in old.order if operator in continuing)
    return replace(
        new,
        files=(*new.files, *((name, directory) for name, directory in old.files if name not in new.called)),
        begun=old.begun,
        scales=scales,
        states=states,
        generation=old.generation,
        order=order if len(order) == len(old.order) else (),
    )


def in_order(old: QueryRecord | None, new: QueryRecord, order: Order) -> QueryRecord:
    """Return ``new``, the continuation of ``old``, with its sources in Spark's ``order``.

    A new generation of logs begins if the order differs from the recorded order.
    """
    if old is None or not old.begun or not old.order:  # a run on Spark Connect records no order
        return replace(new, order=order)
    origins = continued_sources(old.sources, new.sources).origins
    stays = order_under(order, origins) == old.order
    return replace(new, order=order, generation=old.generation + (not stays))


def continued_states(
    old: Sequence[StateRecord], new: Sequence[StateRecord], keep: Mapping[str, str] = MappingProxyType({})
) -> dict[str, StateRecord]:
    """Return the state that each operator continues, by the operator's id.

    A state of the same lineage matches, and the operator's own state first if there are several. An operator without
    such a state continues the state of the operator to which ``keep`` maps it. A state that was only computed for late
    rows does not match an operator whose results are written: it may have begun later than the other states.
    """
    left = list(old)
    states: dict[str, StateRecord] = {}
    for own in (True, False):
        for state in new:
            same = (each for each in left if each.lineage == state.lineage and (state.late or not each.late))
            match = next((record for record in same if record.operator == state.operator or not own), None)
            if state.operator not in states and match is not None:
                states[state.operator] = match
                left.remove(match)
    for state in new:
        match = next((record for record in left if record.operator == keep.get(state.operator)), None)
        if state.operator not in states and match is not None:
            states[state.operator] = match
            left.remove(match)
    return states


def _query(
    old: QueryRecord | None,
    new: QueryRecord,
    written: Mapping[str, str],
    *,
    renumber: bool,
    keep: Mapping[str, str],
) -> QueryVerdict:
    was = {} if old is None else dict(zip(old.called, old.sinks, strict=True))
    verdict = QueryVerdict(
        query=new.id,
        outcome="new",
        writes=tuple(
            (sink, was[name] if was.get(name, sink) != sink else None)
            for sink, name in zip(new.sinks, new.called, strict=True)
        ),
        is_shared=new.called != (new.id,),
    )
    if old is None and (taken := [directory for _, directory in new.files if directory in written]):
        because = (
            f"it is new and would write files to {taken[0]}, where {written[taken[0]]} has written: "
            "Spark takes batches with the same numbers for written; give its table another path"
        )
        states = tuple(StateVerdict(operator=state.operator, outcome="cannot be read") for state in new.states)
        return replace(verdict, outcome="refused", because=because, states=states)
    if old is None:
        states = tuple(StateVerdict(operator=state.operator, outcome="new") for state in new.states)
        because = "it has not run on this checkpoint, and reads its sources from the beginning"
        return replace(verdict, because=because, states=states)
    sources = continued_sources(old.sources, new.sources)
    because = _refusal(old, new, sources, renumber=renumber)
    if because:
        states = tuple(StateVerdict(operator=state.operator, outcome="cannot be read") for state in new.states)
        return replace(verdict, outcome="refused", because=because, states=states)
    return replace(
        verdict,
        outcome="continues",
        states=tuple(_states(old.states, new.states, sources, keep)),
        sources=tuple(_sources(old, new, sources)),
        sinks=tuple(
            sink
            for sink, name in zip(old.sinks, old.called, strict=True)
            if name not in new.called and name not in old.late
        ),
    )


def _sources(old: QueryRecord, new: QueryRecord, found: ContinuedSources) -> Iterator[SourceVerdict]:
    """Yield the sources that the query begins to read, and the sources that it no longer reads."""
    for source in new.sources:
        if source.operator not in found.origins and source.table not in _OWN:
            yield SourceVerdict(operator=source.operator, table=source.table, outcome="new")
    origins = set(found.origins.values())
    for source in old.sources:
        if source.operator not in origins and source.table not in _OWN and not source.late:
            yield SourceVerdict(operator=source.operator, table=source.table, outcome="left behind")


def _refusal(old: QueryRecord, new: QueryRecord, sources: ContinuedSources, *, renumber: bool) -> str:
    """Return the reason why the query cannot continue, or an empty string if it can."""
    if sources.unclear:
        return (
            f"it reads {' and '.join(sources.unclear)} in several places, before or now, and it is not clear which "
            f"of them continues which; change one of them at a time"
        )
    was, now = _read_places(old), _read_places(new)
    listed = [[(source.table, source.places) for source in record.sources] for record in (old, new)]
    if listed[0] != listed[1] and old.begun and not (renumber and old.order):
        came, went = sorted(now.keys() - was.keys()), sorted(was.keys() - now.keys())
        parts = [f"it also reads {' and '.join(came)}"] if came else []
        parts += [f"it no longer reads {' and '.join(went)}"] if went else []
        parts += [
            f"it reads {name} in {count(now[name], 'place')} instead of {was[name]}"
            for name in sorted(was.keys() & now.keys())
            if was[name] != now[name]
        ]
        differs = " and ".join(parts) or "it reads its sources in another order"
        return (
            f"{differs}, and Spark finds the place in each source by its number; only a run without Spark Connect can "
            "give them new numbers, if it was one that wrote the checkpoint"
        )
    before = dict(old.files)
    for name, directory in new.files:
        if old.begun and before.get(name, directory) != directory:
            return (
                f"it has written files to {before[name]}, and not to {directory}: Spark records the files of each "
                f"batch next to them, and must find all batches in one directory"
            )
    return ""


def _read_places(query: QueryRecord) -> Counter[str]:
    """Return how often the query reads each table."""
    places: Counter[str] = Counter()
    for source in query.sources:
        places[source.table] += source.places
    return places


def _states(
    old: Sequence[StateRecord], new: Sequence[StateRecord], sources: ContinuedSources, keep: Mapping[str, str]
) -> Iterator[StateVerdict]:
    kept = continued_states(old, new, keep)
    continued_ids = {state_record.operator for state_record in kept.values()}
    lost = [record.operator for record in old if record.operator not in continued_ids and not record.late]
    for state in new:
        if state.operator in kept:
            former = kept[state.operator]
            yield StateVerdict(
                operator=state.operator,
                outcome="carries over" if former.lineage == state.lineage else "is kept",
                was=None if former.operator == state.operator else former.operator,
                kept=former.kept,
                late=state.late,
            )
        elif state.operator in lost or not (state.late or sources.origins.keys().isdisjoint(state.sources)):
            # A new state lacks the rows that were read before it existed, just as a state with a new meaning does.
            yield StateVerdict(operator=state.operator, outcome="starts empty")
            if state.operator in lost:
                lost.remove(state.operator)
        else:
            yield StateVerdict(operator=state.operator, outcome="new", late=state.late)
    yield from (StateVerdict(operator=name, outcome="left behind") for name in lost)
