"""Reads the state in a checkpoint: the amount per operator and state entry, and the effect of other TTLs.

    state = read_state(hintplan.load("plan.json"), "/data/checkpoints/revenue", edited=plan_with_other_ttls)
    state.total.rows

It reads the last committed batch of each query, also while the plan runs there, and changes nothing. This module knows
neither the command line nor Spark.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa

from hintplan.plans.analysis.streaming_queries import Query
from hintplan.plans.analysis.watermarks import watermark_sources
from hintplan.plans.api.plans import PlanLike, plan_of
from hintplan.plans.checkpoint.record import CheckpointRecord, recorded_plan
from hintplan.plans.compare.carryover import continued
from hintplan.plans.compare.query_record import operators_of
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.evidence.ages import NONE, Counts, added
from hintplan.plans.evidence.period import Period
from hintplan.plans.model.config import TIME_ZONE
from hintplan.plans.model.plan import Plan
from hintplan.runtime.builders.event_time import event_times
from hintplan.runtime.engine.watermarks import moved_watermark
from hintplan.runtime.inspect.contents import (
    Amount,
    CheckpointState,
    EntryState,
    OperatorState,
    OperatorWatermark,
    QueryState,
    Status,
    UnderEdit,
)
from hintplan.runtime.inspect.counts import Counted, Under, newest_first
from hintplan.runtime.inspect.entries import Entry, choice, entries_of, fits, stored_amounts
from hintplan.runtime.inspect.opening import Batches, OpenCheckpoint, at_last_batches, open_checkpoint, stored
from hintplan.runtime.inspect.partition import PARKED, Kept, count_parked_rows, count_tables
from hintplan.runtime.inspect.state_owner import OwnedState
from hintplan.runtime.operator import FOREVER, NEVER
from hintplan.runtime.operators.lookup_retry import is_parked
from hintplan.runtime.state.layout import StateLayout, layout_of
from hintplan.runtime.state.manifest import read_tables
from hintplan.runtime.state.observation import joined_observations
from hintplan.runtime.storage.files import Files
from hintplan.runtime.storage.manifest import Manifest, added_lateness

_BUCKET = re.compile(r"@-?\d+$")
"""The end of the name of a table that is a bucket of time."""


def read_state(
    plan: PlanLike,
    checkpoint: str | os.PathLike[str],
    *,
    at: int | None = None,
    edited: Plan | None = None,
    entries: Sequence[str] = (),
    show: int = 0,
) -> CheckpointState:
    """Return the state of ``plan`` in ``checkpoint``, a path or a URL, at the time ``at`` (ms since 1970; default now).

    ``edited`` is the same plan with other TTLs; the rows that each different TTL would leave are also counted.
    ``entries`` selects operators, ``join_o_c``, or single states, ``join_o_c.leftState``. For each state, at most
    ``show`` rows are returned, the last written first. PlanError if the plan is invalid or ``entries`` has an unknown
    name; RunError if the checkpoint belongs to an unrelated plan, or cannot be read.
    """
    plan, checkpoint = plan_of(plan), os.fspath(checkpoint)
    opened = open_checkpoint(plan, checkpoint)
    now = int(time.time() * 1000) if at is None else at
    kept = entries_of(plan, edited)
    wanted = choice(kept, {state.operator for state in opened.states}, entries)
    before = recorded_plan(opened.record)
    recorded = {} if before is None else entries_of(before, None)
    asked = _Asked(plan=plan, kept=kept, recorded=recorded, wanted=wanted, now=now, show=show)
    return CheckpointState(
        plan=plan.name,
        written_by=opened.record.plan,
        checkpoint=checkpoint,
        at=now,
        partitions=opened.record.partitions,
        time_zone=plan.config.get(TIME_ZONE, "UTC"),
        queries=at_last_batches(opened, lambda batches: tuple(_query_states(opened, batches, asked))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request: the state entries of a plan's operators that are ``wanted``, with expiry judged at ``now``.

    ``recorded`` are the entries of the plan that last ran on the checkpoint.
    """

    plan: Plan
    kept: Mapping[str, Sequence[Entry]]
    recorded: Mapping[str, Sequence[Entry]]
    wanted: Callable[[str, str], bool]
    now: int
    show: int

    def entries(self, operator: str) -> list[Entry]:
        return [entry for entry in self.kept.get(operator, ()) if self.wanted(operator, entry.name)]

    def stored_entries(self, state: OwnedState) -> Sequence[Entry]:
        """Return the entries of a stored state: of the plan if it reads or may keep them, else of the last plan."""
        if state.status == "read" or state.keepable:
            return self.kept[state.operator]
        return self.recorded.get(state.was or state.operator, ())


def _query_states(opened: OpenCheckpoint, batches: Batches, asked: _Asked) -> Iterator[QueryState]:
    for query in _queries(asked.plan, opened.record):
        batch = batches.get(query.id)
        states = [state for state in opened.states if state.query == query.id]
        yield QueryState(
            id=query.id,
            sinks=query.sinks,
            operators=tuple(_operator_states(opened, query, states, batches, asked)),
            batch=batch.number if batch else None,
            started=batch.started if batch else None,
        )


def _queries(plan: Plan, record: CheckpointRecord) -> list[Query]:
    """Return the queries with which the plan would continue the checkpoint, then the other queries of the record."""
    queries = {query.id: query for query in continued(plan, record.queries, recorded_plan(record))}
    for query in record.queries:
        queries.setdefault(query.id, Query(id=query.id, sinks=query.sinks, names=query.names))
    return list(queries.values())


def _operator_states(
    opened: OpenCheckpoint, query: Query, states: Sequence[OwnedState], batches: Batches, asked: _Asked
) -> Iterator[OperatorState]:
    """Yield the requested states of a query, in the order of the plan; states that are not in the plan come last."""
    states_of: dict[str, list[OperatorState]] = {}
    for state in states:
        files, partitions = stored(opened, state, batches)
        if partitions:
            operator_state = _operator_state(state, files, partitions, asked)
            states_of.setdefault(state.operator, []).append(operator_state)
    in_plan = operators_of(asked.plan.by_id, query)
    for name in in_plan:
        if name not in states_of and name in asked.kept:
            entries = tuple(_nothing_stored(entry) for entry in asked.entries(name))
            states_of[name] = [OperatorState(id=name, status="read", entries=entries)]
    for name in [*in_plan, *sorted(states_of.keys() - set(in_plan))]:
        yield from (state for state in states_of.get(name, ()) if state.entries)


def _operator_state(
    state: OwnedState, files: Files, partitions: Mapping[int, Manifest], asked: _Asked
) -> OperatorState:
    status: Status = state.status
    of_state = asked.stored_entries(state)
    is_known = bool(of_state) and fits(of_state, partitions.values())
    if status == "read" and not is_known:
        status = "other-layout"
    layouts = [layout for entry in of_state for layout in entry.layouts] if is_known else []
    sizes = _stored_tables(partitions, layouts)
    if is_known:
        entries = [entry for entry in of_state if asked.wanted(state.operator, entry.name)]
        counts = _counted(entries, files, partitions, asked)
        observed = _observed(partitions)
        late = _lateness(of_state, partitions)
        entry_states = [
            replace(_entry_state(entry, counts, sizes, observed, asked.show), lateness=late.get(entry.name))
            for entry in entries
        ]
    else:  # only the amounts in the manifests are known
        tables = ((name, amount) for name, amount in sizes.items() if asked.wanted(state.operator, name))
        entry_states = [EntryState(name=name, amount=amount) for name, amount in tables]
    return OperatorState(
        id=state.operator,
        status=status,
        entries=tuple(entry_states),
        was=state.was,
        keepable=state.keepable and is_known,
        watermark=_watermark(state.operator, partitions, asked),
    )


def _watermark(operator: str, partitions: Mapping[int, Manifest], asked: _Asked) -> OperatorWatermark | None:
    """Return the stored watermark, which is the same in all partitions, and the source that holds it back.

    Return None for processing time.
    """
    stored = next((m.watermark for m in partitions.values() if m.watermark is not None), None)
    current = asked.plan.by_id.get(operator)
    if stored is None or (current is not None and current.goes_by_clock):
        return None
    after = None if stored.after == NEVER else stored.after
    event_time = event_times(asked.plan).get(operator)
    if event_time is None or len(event_time.sources) != len(stored.marks):
        return OperatorWatermark(after=after)
    holder = moved_watermark(stored, {}, event_time, asked.now).holder
    if holder is None or holder.source < 0 or stored.after == FOREVER:
        return OperatorWatermark(after=after)
    held_by = watermark_sources(asked.plan)[operator][holder.source]
    return OperatorWatermark(after=after, held_by=held_by, split=holder.split or None)


def _counted(
    entries: Sequence[Entry], files: Files, partitions: Mapping[int, Manifest], asked: _Asked
) -> dict[str, list[Counted]]:
    """Return the counts of the tables of ``entries`` in each partition."""
    tables = [Kept(layout=layout, ttls=_ttls(entry, layout)) for entry in entries for layout in entry.layouts]
    counts: dict[str, list[Counted]] = {}
    for partition in partitions.values():
        for name, counted in count_tables(files, partition, tables, now=asked.now, show=asked.show):
            counts.setdefault(name, []).append(counted)
        for entry in entries:
            parked = None
            if not entry.layouts:
                parked = count_parked_rows(files, partition, entry.keys, show=asked.show)
            if parked is not None:
                counts.setdefault(PARKED, []).append(parked)
    return counts


def _ttls(entry: Entry, layout: StateLayout) -> tuple[int, ...]:
    """Return the TTLs in ms under which rows of a table are counted; rows that wait for the watermark have none."""
    ttls = tuple(parse_duration(ttl) for ttl in (entry.ttl or "0 ms", entry.edited) if ttl)
    return tuple(0 for _ in ttls) if layout.by_time else ttls


def _nothing(entry: Entry) -> Amount:
    return Amount(keys=0, expired=None if entry.ttl is None else 0, soon=None if entry.ttl is None else 0)


def _nothing_stored(entry: Entry) -> EntryState:
    return EntryState(name=entry.name, input=entry.input, ttl=entry.ttl, amount=_nothing(entry))


def _observed(partitions: Mapping[int, Manifest]) -> dict[str, tuple[Period, ...]]:
    """Return the observations of each table over all partitions."""
    observed: dict[str, tuple[Period, ...]] = {}
    for partition in partitions.values():
        if partition.tables is not None and not is_parked(partition.tables):
            for name, table in read_tables(partition.tables).items():
                observed[name] = joined_observations(observed.get(name, ()), table.observed)
    return observed


def _lateness(entries: Sequence[Entry], partitions: Mapping[int, Manifest]) -> dict[str, Counts]:
    """Return the lateness of the late rows of each entry over all partitions; without a watermark, of none."""
    watermarks = [partition.watermark for partition in partitions.values() if partition.watermark is not None]
    if not watermarks:
        return {}
    # An operator has an entry for each input, in their order.
    names = [entry.name for entry in entries if entry.ttl is None and entry.layouts]
    none = (NONE,) * len(names)
    of_inputs = reduce(added_lateness, (watermark.lateness for watermark in watermarks), none)
    return dict(zip(names, of_inputs, strict=False))


def _entry_state(
    entry: Entry,
    counts: Mapping[str, Sequence[Counted]],
    sizes: Mapping[str, Amount],
    observed: Mapping[str, tuple[Period, ...]],
    show: int,
) -> EntryState:
    names = [layout.name for layout in entry.layouts] or [PARKED]
    amounts: list[Amount] = []
    edits: list[Under] = []
    shown: list[tuple[str, pa.Table]] = []
    for name in names:
        answers = counts.get(name, ())
        amount = Amount(bytes=sizes[name].bytes if name in sizes else 0)
        for answer in answers:
            under = answer.under[0]
            expiry = {} if entry.ttl is None else {"expired": under.expired, "soon": under.soon}
            amount += Amount(rows=under.rows, keys=answer.keys, oldest=answer.oldest, newest=answer.newest, **expiry)
            edits += answer.under[1:]
        amounts.append(amount)
        tables = [answer.shown for answer in answers if answer.shown is not None]
        shown += [(name, newest_first(tables, show))] if tables else []
    total = _nothing(entry)
    for amount in amounts:
        total += amount
    edit = sum(edits, Under())
    ages = (answer.ages for name in names for answer in counts.get(name, ()))
    periods = (observed.get(name, ()) for name in names)
    return EntryState(
        name=entry.name,
        input=entry.input,
        ttl=entry.ttl,
        # The first table has all keys: DISTINCT values are stored only for existing groups.
        amount=replace(total, keys=amounts[0].keys or 0),
        edited=None
        if entry.edited is None
        else UnderEdit(ttl=entry.edited, rows=edit.rows, expired=edit.expired, soon=edit.soon),
        tables=tuple(zip(names, amounts, strict=True)) if len(names) > 1 else (),
        shown=tuple(shown),
        keys=entry.keys,
        row_ages=reduce(added, ages, NONE),
        observed=reduce(joined_observations, periods, ()),
    )


def _stored_tables(partitions: Mapping[int, Manifest], layouts: Sequence[StateLayout]) -> dict[str, Amount]:
    """Return the stored amount of each table over all partitions, according to the manifests.

    The buckets of a table by time count as one table.
    """
    amounts: dict[str, Amount] = {}
    for partition in partitions.values():
        for name, amount in stored_amounts(partition.tables).items() if partition.tables is not None else ():
            layout = layout_of(name, layouts)
            whole = _BUCKET.sub("", name) if layout is None else layout.name
            amounts[whole] = amounts.get(whole, Amount()) + amount
    return amounts
