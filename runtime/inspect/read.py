"""Reads the state in a checkpoint: per operator and state entry how much there is, and what a TTL makes of it.

    found = read_state(hintplan.load("plan.json"), "/data/checkpoints/revenue", edited=plan_with_other_ttls)
    found.total.rows

It reads the last committed batch of each query, also while the plan runs there, and changes nothing. Knows no command
line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plans.analysis.streaming_queries import Query
from plans.analysis.validate import validate
from plans.checkpoint.record import CheckpointRecord
from plans.compare.carryover import continued, operators_of, state_lineages
from plans.declarations.durations import parse_duration
from plans.errors import PlanError, RunError
from plans.model.config import TIME_ZONE
from plans.model.plan import Plan
from runtime.checkpoint.record import read_undamaged
from runtime.engine.saved import Saved
from runtime.inspect.batches import Batch, committed_batches, counted, saved_states
from runtime.inspect.contents import Amount, CheckpointState, EntryState, OperatorState, QueryState, UnderEdit
from runtime.inspect.counts import Counted, Under, newest_first
from runtime.inspect.entries import Entry, choice, entries_of, stored_amounts
from runtime.inspect.partition import PARKED, Kept, Parked, Question
from runtime.inspect.plain_path import plain_path
from runtime.inspect.state_owner import StateOwner, state_owner_of
from runtime.spark.failure import root_cause
from runtime.spark.session import prepare_session, start_session
from runtime.spark.shipping import ship_code

_Number = tuple[str, int]
"""A stateful operator as Spark knows it: by query and number."""


def read_state(
    plan: Plan,
    checkpoint: str,
    spark: SparkSession | None = None,
    *,
    at: int | None = None,
    edited: Plan | None = None,
    entries: Sequence[str] = (),
    show: int = 0,
) -> CheckpointState:
    """What ``checkpoint`` holds of the state of ``plan`` at the time ``at`` (ms since 1970; now, if None).

    ``edited`` is the same plan with other TTLs: of each that differs, what it would leave is counted too. ``entries``
    limits the answer to operators, ``join_o_c``, or states of them, ``join_o_c.leftState``. Of each state at most
    ``show`` rows are returned, those written last.
    PlanError if the plan is wrong or ``entries`` names what is not there; RunError if the checkpoint belongs to a plan
    that has nothing to do with this one, or cannot be read.
    """
    problems = validate(plan)
    if problems:
        raise PlanError(diagnostics=problems)
    if plan.mode == "batch":
        raise RunError(f"{plan.name} is a batch plan: it keeps no state")
    spark = spark or SparkSession.getActiveSession() or start_session(None, {})
    zone = plan.config.get(TIME_ZONE, "UTC")
    own = prepare_session(spark, time_zone=zone, once=True)
    # One row may be a part of a segment, of 32 MiB.
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    record = _record(own, checkpoint, plan)
    ship_code(own)
    now = int(time.time() * 1000) if at is None else at
    kept = entries_of(plan, edited)
    try:
        with plain_path(own, checkpoint) as path:
            batches = committed_batches(own, path)
            committed = {query: batch for query, batch in batches.items() if batch is not None}
            saved = saved_states(own, path, committed)
            queries = _queries(plan, record, batches)
            owners = {
                number: state_owner_of(number[1], found, plan, kept, operators_of(plan.by_id, queries[number[0]]))
                for number, found in saved.items()
            }
            wanted = choice(kept, {owner.id for owner in owners.values()}, entries)
            readable = {
                number: tuple(entry for entry in kept[owner.id] if wanted(owner.id, entry.name))
                for number, owner in owners.items()
                if owner.status == "read"
            }
            questions = [
                _question(number, saved[number], kept[owners[number].id], asked, now, show)
                for number, asked in readable.items()
                if asked
            ]
            answers = counted(own, path, committed, questions)
    except PySparkException as error:
        raise RunError(f"the state in {checkpoint} cannot be read: {root_cause(error)}") from error
    found = _Found(
        plan=plan,
        saved=saved,
        owners=owners,
        kept=kept,
        readable=readable,
        answers=answers,
        wanted=wanted,
        show=show,
    )
    return CheckpointState(
        plan=plan.name,
        written_by=record.plan,
        checkpoint=checkpoint,
        at=now,
        partitions=record.partitions,
        time_zone=zone,
        queries=tuple(_query_state(query, batches.get(query.id), found) for query in queries.values()),
    )


def _record(spark: SparkSession, checkpoint: str, plan: Plan) -> CheckpointRecord:
    record = read_undamaged(spark, checkpoint)
    if record is None:
        raise RunError(
            f"there is no checkpoint in {checkpoint}",
            hint="give the directory that 'hintplan run --checkpoint' was given",
        )
    meanings = {state.lineage for query in record.queries for state in query.states}
    strange = record.operators.isdisjoint(operator.id for operator in plan.operators)
    if strange and meanings.isdisjoint(state_lineages(plan).values()):
        raise RunError(
            f"checkpoint {checkpoint} was written by plan {record.plan}, which has no operator in common with "
            f"{plan.name}",
            hint="give the plan it was written by",
        )
    return record


def _question(
    number: _Number,
    partitions: Mapping[int, Saved],
    entries: Sequence[Entry],
    asked: Sequence[Entry],
    now: int,
    show: int,
) -> Question:
    parked = any(entry.name == PARKED and not entry.layouts for entry in entries)
    tables = tuple(
        Kept(
            layout=layout,
            ttls=tuple(parse_duration(ttl) for ttl in (entry.ttl, entry.edited) if ttl is not None),
            is_asked=entry in asked,
        )
        for entry in entries
        for layout in entry.layouts
    )
    return Question(
        query=number[0],
        number=number[1],
        saved=partitions,
        tables=Parked(key=entries[0].keys) if parked else tables,
        now=now,
        show=show,
    )


def _queries(plan: Plan, record: CheckpointRecord, batches: Mapping[str, Batch | None]) -> dict[str, Query]:
    """The queries as which the plan would continue the checkpoint, then those that it has not, by id."""
    found = {query.id: query for query in continued(plan, record.queries)}
    for recorded in record.queries:
        found.setdefault(recorded.id, Query(id=recorded.id, sinks=recorded.sinks))
    for name in sorted(batches):
        found.setdefault(name, Query(id=name, sinks=(name,)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was read, and what it was read for."""

    plan: Plan
    saved: Mapping[_Number, Mapping[int, Saved]]
    owners: Mapping[_Number, StateOwner]
    kept: Mapping[str, Sequence[Entry]]
    readable: Mapping[_Number, Sequence[Entry]]
    answers: Mapping[tuple[str, int, str], Sequence[Counted]]
    wanted: Callable[[str, str], bool]
    show: int


def _query_state(query: Query, batch: Batch | None, found: _Found) -> QueryState:
    stored: dict[str, list[int]] = {}
    for name, number in sorted(found.owners):
        if name == query.id:
            stored.setdefault(found.owners[name, number].id, []).append(number)
    unnamed = any(owner.status == "unnamed" for (name, _), owner in found.owners.items() if name == query.id)
    operators: list[OperatorState] = []
    in_plan = operators_of(found.plan.by_id, query)
    for name in [*in_plan, *sorted(stored.keys() - set(in_plan))]:
        numbers = stored.get(name, [])
        for copy, number in enumerate(numbers, start=1):
            operators += _operator_state((query.id, number), (copy, len(numbers)), found)
        if not numbers and name in found.kept and not unnamed:
            nothing = tuple(
                EntryState(name=entry.name, input=entry.input, ttl=entry.ttl, amount=_nothing(entry))
                for entry in found.kept[name]
                if found.wanted(name, entry.name)
            )
            operators += [OperatorState(id=name, status="read", entries=nothing)] if nothing else []
    return QueryState(
        id=query.id,
        sinks=query.sinks,
        operators=tuple(operators),
        batch=batch.number if batch else None,
        started=batch.started if batch else None,
    )


def _nothing(entry: Entry) -> Amount:
    return Amount(keys=0, expired=None if entry.ttl is None else 0, soon=None if entry.ttl is None else 0)


def _operator_state(number: _Number, copies: tuple[int, int], found: _Found) -> list[OperatorState]:
    """The operator under ``number``; nothing if it was not asked for."""
    partitions, owner = found.saved[number], found.owners[number]
    if number in found.readable:
        entries = [_entry_state(entry, number, partitions, found) for entry in found.readable[number]]
    else:
        entries = [entry for entry in _from_manifests(partitions) if found.wanted(owner.id, entry.name)]
    if not entries:
        return []
    copy, of = copies
    return [
        OperatorState(
            id=owner.id,
            status=owner.status,
            entries=tuple(entries),
            number=number[1],
            was=owner.was,
            copy=copy,
            copies=of,
        )
    ]


def _entry_state(entry: Entry, number: _Number, partitions: Mapping[int, Saved], found: _Found) -> EntryState:
    names = [layout.name for layout in entry.layouts] or [PARKED]
    sizes = _stored_tables(partitions)
    amounts: list[Amount] = []
    edits: list[Under] = []
    shown: list[tuple[str, pa.Table]] = []
    for name in names:
        answers = found.answers.get((*number, name), ())
        amount = Amount(bytes=sizes[name].bytes if name in sizes else 0)
        for answer in answers:
            under = answer.under[0]
            expiry = {} if entry.ttl is None else {"expired": under.expired, "soon": under.soon}
            amount += Amount(rows=under.rows, keys=answer.keys, oldest=answer.oldest, newest=answer.newest, **expiry)
            edits += answer.under[1:]
        amounts.append(amount)
        tables = [answer.shown for answer in answers if answer.shown is not None]
        shown += [(name, newest_first(tables, found.show))] if tables else []
    total = _nothing(entry)
    for amount in amounts:
        total += amount
    edit = sum(edits, Under())
    return EntryState(
        name=entry.name,
        input=entry.input,
        ttl=entry.ttl,
        # The first table has all keys: values are remembered for the groups that are there.
        amount=replace(total, keys=amounts[0].keys or 0),
        edited=None
        if entry.edited is None
        else UnderEdit(ttl=entry.edited, rows=edit.rows, expired=edit.expired, soon=edit.soon),
        tables=tuple(zip(names, amounts, strict=True)) if len(names) > 1 else (),
        shown=tuple(shown),
        keys=entry.keys,
    )


def _from_manifests(partitions: Mapping[int, Saved]) -> list[EntryState]:
    """What the manifests alone tell of state that the plan has no operator for."""
    return [EntryState(name=name, amount=amount) for name, amount in _stored_tables(partitions).items()]


def _stored_tables(partitions: Mapping[int, Saved]) -> dict[str, Amount]:
    """What is stored of each table over all partitions, as far as manifests tell."""
    found: dict[str, Amount] = {}
    for saved in partitions.values():
        for name, amount in stored_amounts(saved.manifest).items() if saved.manifest is not None else ():
            found[name] = found.get(name, Amount()) + amount
    return found
