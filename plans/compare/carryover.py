"""What becomes of the state in a checkpoint when a plan continues it: the one place where this is decided.

State carries over if the plan would have computed the same state from the same rows: a state has a *lineage*, a digest
of what its operator and everything below it mean, without ids, aliases, TTLs and other settings. ``hintplan run``
refuses, ``hintplan check`` tells and ``hintplan diff`` predicts by what :func:`carried` says. Each state has a folder
of its own, which the record names; a state that begins anew gets a new one.

Spark numbers the sources of a query, and finds its place in them again by these numbers. With other sources it goes on
in logs of a new generation, in which those that it still has have got their new numbers. Knows no files and no Spark.

>>> record = QueryRecord(id="sink_r", sinks=("sink_r",), sources=(), states=())
>>> carried((record,), (record,))[0].outcome
'goes on'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from hintplan.plans.analysis.streaming_queries import Query, queries, single_queries
from hintplan.plans.compare.query_record import WAKING, QueryRecord, StateRecord
from hintplan.plans.compare.sinks import continued_sinks
from hintplan.plans.compare.sources import ContinuedSources, Order, continued_sources, order_under
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.counts import count

Outcome = Literal["goes on", "new", "left behind", "refused"]
SourceOutcome = Literal["new", "left behind"]
StateOutcome = Literal["carries over", "is kept", "new", "starts empty", "left behind", "cannot be read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVerdict:
    """What becomes of the place that a query has reached in what ``operator`` reads, a ``table`` with its connector."""

    operator: str
    table: str
    outcome: SourceOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVerdict:
    """What becomes of the state of ``operator``; ``was`` is the operator it belonged to, if that has another id.

    ``kept`` are the runs that went on with it by consent before.
    """

    operator: str
    outcome: StateOutcome
    was: str | None = None
    kept: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVerdict:
    """What becomes of a query; ``because`` is empty if it simply goes on.

    ``sources`` are those that it begins to read, or no longer reads, ``sinks`` those that it no longer writes; of a
    query that goes on only. ``writes`` are the sinks that it does write, each with the id that it had, if that is
    another; ``title`` is what people know the query by.
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
        """Whether state, or the place that the query has reached in its sources or for a sink, is not used any more."""
        lost = ("starts empty", "left behind")
        left = bool(self.sinks) or any(source.outcome == "left behind" for source in self.sources)
        return self.outcome == "left behind" or left or any(state.outcome in lost for state in self.states)


def continued(
    plan: Plan, recorded: Sequence[QueryRecord], before: Plan | None, *, share: bool = True
) -> tuple[Query, ...]:
    """The queries as which ``plan`` continues a checkpoint: sinks stay in the query they were in, by what they mean.

    ``before`` is the plan that last ran on it; without it, sinks are found by their ids. New ones begin by themselves,
    with each other if they may ``share`` a query.
    """
    ids = {sink.id: sink.id for sink in plan.sinks}
    goes_on = ids if before is None else continued_sinks(before, plan)
    heirs = {was: now for now, was in goes_on.items()}
    claimed = {heirs.get(sink) for record in recorded if not record.parked for sink in record.sinks}
    # What stands since an earlier plan is taken up by its id alone.
    parked = {name: name for name in ids if name not in claimed}
    found = []
    for record in recorded:
        left = parked if record.parked else heirs
        kept = [(left.pop(sink), name) for sink, name in zip(record.sinks, record.called, strict=True) if sink in left]
        if kept:
            sinks, names = (tuple(each) for each in zip(*kept, strict=True))
            found.append(Query(id=record.id, sinks=sinks, names=() if names == sinks else names))
    grouped = {sink for query in found for sink in query.sinks}
    new = [name for name in ids if name not in grouped]
    taken = [record.id for record in recorded]
    return (*found, *(queries(plan, new, taken=taken) if share else single_queries(plan, new, taken=taken)))


def carried(
    recorded: Sequence[QueryRecord],
    wanted: Sequence[QueryRecord],
    *,
    renumber: bool = True,
    keep: Mapping[str, str] = MappingProxyType({}),
) -> tuple[QueryVerdict, ...]:
    """What becomes of each query of a checkpoint that recorded ``recorded`` if a plan continues it as ``wanted``.

    ``renumber`` says that Spark's logs can be written anew for other sources, which Spark Connect does not let us.
    ``keep`` has the operators that go on by consent with a state of another lineage, each with whose that was.
    """
    old, new = {record.id: record for record in recorded}, {record.id: record for record in wanted}
    written = {directory: record.id for record in recorded for _, directory in record.files}
    verdicts = [_query(old.get(record.id), record, written, renumber=renumber, keep=keep) for record in wanted]
    for record in recorded:
        if record.id not in new and not record.parked:
            states = tuple(StateVerdict(operator=state.operator, outcome="left behind") for state in record.states)
            because = f"the plan does not write {' or '.join(record.sinks)} any more"
            verdicts.append(QueryVerdict(query=record.id, outcome="left behind", because=because, states=states))
    return tuple(verdicts)


def after_run(
    recorded: Sequence[QueryRecord],
    wanted: Sequence[QueryRecord],
    *,
    run: int,
    partitions: int,
    reached: Mapping[str, int] = MappingProxyType({}),
    keep: Mapping[str, str] = MappingProxyType({}),
) -> tuple[QueryRecord, ...]:
    """What the checkpoint records once ``wanted`` continues it: queries that were left behind stay, to be taken up.

    States that begin in this ``run``, the number of the record's next entry, get a place of their own. State is divided
    into ``partitions`` from the next batch on, which is the one in ``reached``, by query, or the first one. ``keep`` is
    as in :func:`carried`.
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
            place=found.place,
            begun=found.begun and scales == old.scales,
            kept=found.kept if found.lineage == state.lineage else (*found.kept, run),
            written="" if found.stored == state.lineage else found.stored,
        )
        if (found := kept.get(state.operator))
        else replace(state, place=f"{state.operator}.{run}")
        for state in new.states
    )
    names = {origin: name for name, origin in continued_sources(old.sources, new.sources).origins.items()}
    order = tuple((names[operator], number) for operator, number in old.order if operator in names)
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
    """``new``, which goes on for ``old``, with its sources in the ``order`` that Spark has them in."""
    if old is None or not old.begun or not old.order:  # which a run on Spark Connect does not know
        return replace(new, order=order)
    origins = continued_sources(old.sources, new.sources).origins
    stays = order_under(order, origins) == old.order
    return replace(new, order=order, generation=old.generation + (not stays))


def continued_states(
    old: Sequence[StateRecord], new: Sequence[StateRecord], keep: Mapping[str, str] = MappingProxyType({})
) -> dict[str, StateRecord]:
    """The state that each operator goes on with, by its id: of the same lineage, its own one if there are several.

    Where there is none, that of the operator that ``keep`` has for it.
    """
    left = list(old)
    found: dict[str, StateRecord] = {}
    for own in (True, False):
        for state in new:
            same = (each for each in left if each.lineage == state.lineage)
            match = next((each for each in same if each.operator == state.operator or not own), None)
            if state.operator not in found and match is not None:
                found[state.operator] = match
                left.remove(match)
    for state in new:
        match = next((each for each in left if each.operator == keep.get(state.operator)), None)
        if state.operator not in found and match is not None:
            found[state.operator] = match
            left.remove(match)
    return found


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
        outcome="goes on",
        states=tuple(_states(old.states, new.states, sources, keep)),
        sources=tuple(_sources(old, new, sources)),
        sinks=tuple(sink for sink, name in zip(old.sinks, old.called, strict=True) if name not in new.called),
    )


def _sources(old: QueryRecord, new: QueryRecord, found: ContinuedSources) -> Iterator[SourceVerdict]:
    """The sources that the query begins to read, and those that it reads no more."""
    for source in new.sources:
        if source.operator not in found.origins and source.table != WAKING:
            yield SourceVerdict(operator=source.operator, table=source.table, outcome="new")
    origins = set(found.origins.values())
    for source in old.sources:
        if source.operator not in origins and source.table != WAKING:
            yield SourceVerdict(operator=source.operator, table=source.table, outcome="left behind")


def _refusal(old: QueryRecord, new: QueryRecord, sources: ContinuedSources, *, renumber: bool) -> str:
    """Why the query could not go on."""
    if sources.unclear:
        return (
            f"it reads {' and '.join(sources.unclear)} in several places, before or now, and which of them goes on for "
            "which is not clear; change one of them at a time"
        )
    was, now = _read_places(old), _read_places(new)
    listed = [[(each.table, each.places) for each in record.sources] for record in (old, new)]
    if listed[0] != listed[1] and old.begun and not (renumber and old.order):
        came, went = sorted(now.keys() - was.keys()), sorted(was.keys() - now.keys())
        parts = [f"it also reads {' and '.join(came)}"] if came else []
        parts += [f"it no longer reads {' and '.join(went)}"] if went else []
        parts += [
            f"it reads {name} in {count(now[name], 'place')} instead of {was[name]}"
            for name in sorted(was.keys() & now.keys())
            if was[name] != now[name]
        ]
        what = " and ".join(parts) or "it reads its sources in another order"
        return (
            f"{what}, and Spark finds the place in each source by its number; only a run without Spark Connect can "
            "give them new numbers, if it was one that wrote the checkpoint"
        )
    before = dict(old.files)
    for name, directory in new.files:
        if old.begun and before.get(name, directory) != directory:
            return (
                f"it has written files to {before[name]}, and not to {directory}: Spark notes the files of each batch "
                "beside them, and must find all batches in one directory"
            )
    return ""


def _read_places(query: QueryRecord) -> Counter[str]:
    """In how many places the query reads each table."""
    found: Counter[str] = Counter()
    for source in query.sources:
        found[source.table] += source.places
    return found


def _states(
    old: Sequence[StateRecord], new: Sequence[StateRecord], sources: ContinuedSources, keep: Mapping[str, str]
) -> Iterator[StateVerdict]:
    kept = continued_states(old, new, keep)
    continued_ids = {each.operator for each in kept.values()}
    lost = [each.operator for each in old if each.operator not in continued_ids]
    for state in new:
        if state.operator in kept:
            found = kept[state.operator]
            yield StateVerdict(
                operator=state.operator,
                outcome="carries over" if found.lineage == state.lineage else "is kept",
                was=None if found.operator == state.operator else found.operator,
                kept=found.kept,
            )
        elif state.operator in lost or not sources.origins.keys().isdisjoint(state.sources):
            # One that is new lacks the rows that were read before it as much as one that means something else now.
            yield StateVerdict(operator=state.operator, outcome="starts empty")
            if state.operator in lost:
                lost.remove(state.operator)
        else:
            yield StateVerdict(operator=state.operator, outcome="new")
    yield from (StateVerdict(operator=name, outcome="left behind") for name in lost)
