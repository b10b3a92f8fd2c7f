"""Decide how a plan continues a checkpoint: the queries it runs, the verdict on each, the reasons, and what is refused.

``hintplan check`` prints the decision, and ``hintplan run`` follows it. :mod:`hintplan.plans.compare.carryover` decides
what carries over. The reasons come from the differences to the plan that last ran. This module knows no Spark and reads
no files.

>>> from hintplan.plans.model.plan import Plan
>>> continuation(None, Plan(name="p")).verdicts
()
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

from hintplan.plans.analysis.streaming_queries import Query, queries, single_queries
from hintplan.plans.checkpoint.record import CheckpointRecord, document_of, following, recorded_plan
from hintplan.plans.compare.carryover import (
    QueryVerdict,
    StateVerdict,
    after_run,
    carried,
    continued,
    in_order,
    with_old_timers,
)
from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.compare.keeping import keepable
from hintplan.plans.compare.lineage import keeps_state
from hintplan.plans.compare.query_record import QueryRecord, StateRecord, query_records
from hintplan.plans.compare.report import change_values
from hintplan.plans.compare.sources import Order
from hintplan.plans.errors import RunError
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.text.counts import first_of, joined_with_and
from hintplan.plans.text.names import did_you_mean

ALLOW_DROP = "--allow-state-drop"
KEEP = "--keep-state"
_SAID = 3


@frozen
class Continuation:
    """The continuation of a checkpoint: the ``queries`` to run, and ``verdicts`` on present and earlier queries.

    ``changes`` are the differences to the plan that last ran. ``causes`` maps the id of an operator to the changes
    because of which its state starts empty, is kept by consent, or is left behind. ``keepable`` are the operators whose
    state could be kept by consent, but is not.
    """

    queries: tuple[Query, ...]
    verdicts: tuple[QueryVerdict, ...] = ()
    records: tuple[QueryRecord, ...] = ()
    changes: tuple[Change, ...] = ()
    causes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    keepable: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        return any(verdict.outcome == "refused" for verdict in self.verdicts)

    @property
    def loses(self) -> bool:
        """True if the run would stop using something that is in the checkpoint."""
        return any(verdict.loses for verdict in self.verdicts)


def continuation(
    record: CheckpointRecord | None,
    plan: Plan,
    *,
    share: bool = True,
    partitions: int | None = None,
    reached: Mapping[str, int] = MappingProxyType({}),
    keep: Collection[str] = (),
) -> Continuation:
    """Return how ``plan`` continues the checkpoint of ``record``, or starts a new checkpoint if ``record`` is None.

    ``share`` means that Spark can write several sinks in one query, and that its logs can be renumbered for other
    sources. Spark Connect can do neither. ``partitions`` is the number of state partitions; None keeps the recorded
    number. ``reached`` maps each query to its next batch. ``keep`` names operators that keep, by consent, state whose
    rows a different query computed. Raise RunError if one of them cannot.
    """
    if record is None:
        if keep:
            raise RunError(
                "there is no state to keep: the checkpoint is new",
                hint=f"give the checkpoint on which the plan has run, or omit {KEEP}",
            )
        running = queries(plan) if share else single_queries(plan)
        records = after_run((), query_records(plan, running), run=1, partitions=partitions or 1)
        return Continuation(queries=running, records=records)
    before = recorded_plan(record)
    running = continued(plan, record.queries, before, share=share)
    wanted = query_records(plan, running)
    if not share:
        wanted = with_old_timers(record.queries, wanted)
    may_keep = {} if before is None else keepable(before, plan)
    kept = {name: may_keep[name] for name in keep if name in may_keep}
    verdicts = tuple(
        replace(verdict, outcome="refused", because=because, states=_unread(verdict.states))
        if (because := _unwritable(query, share=share))
        else verdict
        for query, verdict in _beside(running, carried(record.queries, wanted, renumber=share, keep=kept))
    )
    changes = () if before is None else compare_plans(before, plan)
    causes = {} if before is None else _causes(before, plan, verdicts, changes)
    for name in keep:
        _refuse_to_keep(name, plan, verdicts, may_keep, causes)
    return Continuation(
        queries=running,
        verdicts=verdicts,
        records=after_run(
            record.queries,
            wanted,
            run=record.run + 1,
            partitions=partitions or record.partitions,
            reached=reached,
            keep=kept,
        ),
        changes=changes,
        causes=causes,
        keepable=_keepable(plan, verdicts, may_keep),
    )


def _keepable(plan: Plan, verdicts: Sequence[QueryVerdict], may_keep: Collection[str]) -> tuple[str, ...]:
    """Return the operators whose empty state may be kept, from the sources up.

    An operator qualifies only if every operator below it that starts without state may keep its state, too.
    """
    continuing = [verdict for verdict in verdicts if verdict.outcome == "continues"]
    empty = {state.operator for query in continuing for state in query.states if state.outcome == "starts empty"}
    begun = empty | {state.operator for query in continuing for state in query.states if state.outcome == "new"}
    return tuple(
        operator.id
        for operator in plan.operators
        if operator.id in empty and begun.intersection(plan.upstream(operator.id)) <= set(may_keep)
    )


def _refuse_to_keep(
    name: str,
    plan: Plan,
    verdicts: Sequence[QueryVerdict],
    may_keep: Collection[str],
    causes: Mapping[str, tuple[Change, ...]],
) -> None:
    """Raise RunError if operator ``name`` cannot keep its state.

    It cannot in three cases: the checkpoint has no such state; its rows would have another form; or it is computed from
    other state that is not kept. State that carries over needs no consent, but consent for it is accepted: a restarted
    run gets the same options again.
    """
    stateful = [operator.id for operator in plan.operators if keeps_state(operator)]
    if name not in stateful:
        names = [each for part in name.split(",") if (each := part.strip())]
        hint = did_you_mean(name, stateful)
        if len(names) > 1 and set(names) <= set(stateful):
            hint = f"give the option once for each operator: {' '.join(f'{KEEP} {each}' for each in names)}"
        raise RunError(f"{KEEP} {name}: the plan has no operator with state that is called so", hint=hint)
    for verdict in verdicts:
        outcomes = {state.operator: state.outcome for state in verdict.states}
        if outcomes.get(name) == "starts empty":
            because = cause_text(causes.get(name, ()))
            raise RunError(
                f"the state of {name} cannot be kept: its rows would have another form"
                + (f" ({because})" if because else ""),
                hint=f"{KEEP} is for operators whose state has the same meaning, except for the rows that reach it; "
                f"{ALLOW_DROP} continues without it",
            )
        if outcomes.get(name) == "new":
            raise RunError(f"{name} has no state in the checkpoint that it could keep", hint=f"leave out {KEEP} {name}")
        below = [
            upstream
            for upstream in plan.upstream(name)
            if upstream != name and outcomes.get(upstream) in ("starts empty", "new")
        ]
        if outcomes.get(name) == "is kept" and below:
            raise RunError(
                f"the state of {name} cannot be kept without the state of {first_of(below, _SAID)}, from which its "
                f"rows are computed",
                hint=" ".join(f"{KEEP} {upstream}" for upstream in below) + " keeps that too"
                if all(upstream in may_keep for upstream in below)
                else f"{ALLOW_DROP} continues without both",
            )


def with_orders(found: Continuation, record: CheckpointRecord | None, orders: Mapping[str, Order]) -> Continuation:
    """Return ``found``, with the sources of each query in Spark's order if ``orders`` has the query."""
    before = {} if record is None else {query.id: query for query in record.queries}
    records = tuple(
        in_order(before.get(query.id), query, orders[query.id]) if query.id in orders else query
        for query in found.records
    )
    return replace(found, records=records)


def record_after(
    found: Continuation,
    record: CheckpointRecord | None,
    plan: Plan,
    *,
    partitions: int,
    spark: str,
    reached: Mapping[str, int] = MappingProxyType({}),
) -> CheckpointRecord | None:
    """Return the checkpoint record to write when ``plan`` starts, or None if the latest record is already equal.

    ``reached`` has the next batch of each query, with which another plan than before begins.
    """
    wanted = CheckpointRecord(
        plan=plan.name,
        partitions=partitions,
        spark=spark,
        queries=found.records,
        document=document_of(plan),
    )
    if record is None:
        return wanted
    edited = record.document != wanted.document
    wanted = replace(wanted, since=tuple(sorted(reached.items())) if edited else record.since)
    is_recorded = replace(wanted, run=record.run, after=record.after, layout=record.layout) == record
    return None if is_recorded else following(record, wanted)


def record_of_begun(record: CheckpointRecord | None) -> CheckpointRecord | None:
    """Return the checkpoint record to write once Spark has started all queries, or None if nothing changes."""
    if record is None or all(query.begun or query.parked for query in record.queries):
        return None
    queries = tuple(replace(query, begun=query.begun or not query.parked) for query in record.queries)
    return following(record, replace(record, queries=queries))


def record_of_written(record: CheckpointRecord, operators: Mapping[str, Collection[str]]) -> CheckpointRecord | None:
    """Return the record to write once these ``operators`` of each query have written state, or None if it is equal."""
    queries = tuple(
        replace(query, states=tuple(_written(state, operators.get(query.id, ())) for state in query.states))
        for query in record.queries
    )
    return None if queries == record.queries else following(record, replace(record, queries=queries))


def _written(state: StateRecord, operators: Collection[str]) -> StateRecord:
    return replace(state, begun=state.begun or state.operator in operators)


def refuse(found: Continuation, checkpoint: str, *, allow_drop: bool) -> None:
    """Raise RunError if the plan cannot continue the checkpoint, or would lose something without ``allow_drop``."""
    reasons = [f"{verdict.title}: {verdict.because}" for verdict in found.verdicts if verdict.outcome == "refused"]
    if reasons:
        differs = cause_text([change for change in found.changes if is_cause(change)])
        raise RunError(
            f"checkpoint {checkpoint} cannot be continued by this plan: {'; '.join(dict.fromkeys(reasons))}"
            + (f"; differences: {differs}" if differs else ""),
            hint="run the plan it was written by, or give the changed plan a new checkpoint directory; "
            "settings, such as a TTL, may change on a running checkpoint",
        )
    if found.loses and not allow_drop:
        raise RunError(
            f"checkpoint {checkpoint} holds state that this plan does not continue: {'; '.join(_losses(found))}",
            hint=f"hintplan check has the details; hintplan run {ALLOW_DROP} continues without it, "
            f"{_keeping(found)}the plan that wrote it continues with it, and with a new checkpoint directory "
            f"this plan reads its sources from the "
            "beginning",
        )


def _keeping(found: Continuation) -> str:
    options = first_of([f"{KEEP} {name}" for name in found.keepable], _SAID)
    return f"{options} with the rows that are there, " if options else ""


def _losses(found: Continuation) -> Iterator[str]:
    for verdict in found.verdicts:
        if verdict.outcome == "left behind":
            yield f"{verdict.title} is left behind, because {verdict.because}"
        for sink in verdict.sinks:
            yield f"{sink} is left behind, because the plan no longer writes it"
        for source in verdict.sources:
            if source.outcome == "left behind":
                yield f"{source.operator} is left behind, because {verdict.title} no longer reads {source.table}"
        lost: dict[tuple[str, str], list[str]] = {}
        for state in verdict.states:
            if state.outcome == "starts empty" or (state.outcome == "left behind" and verdict.outcome == "continues"):
                because = cause_text(found.causes.get(state.operator, ()))
                lost.setdefault((state.outcome, because), []).append(state.operator)
        for (outcome, because), operators in lost.items():
            several = len(operators) > 1
            verb = {"starts empty": "start empty" if several else outcome}.get(
                outcome, f"{'are' if several else 'is'} {outcome}"
            )
            yield f"{joined_with_and(operators)} {verb}" + (f" ({because})" if because else "")


def cause_text(causes: Sequence[Change]) -> str:
    """Describe, in a few words, the differences that change the meaning of a state."""
    texts = []
    for change in causes:
        shown = change_values(change)
        if change.subject == "operator" and change.kind in ("+", "-"):
            texts.append(f"{change.path} is {'new' if change.kind == '+' else 'gone'} ({change.note})")
        else:
            texts.append(f"{change.path} {shown}".rstrip() + (f" {change.note}" if change.note and not shown else ""))
    return first_of(texts, _SAID)


def _causes(
    before: Plan, plan: Plan, verdicts: Sequence[QueryVerdict], changes: Sequence[Change]
) -> dict[str, tuple[Change, ...]]:
    """Map each operator whose state is empty, kept or left behind to the changed facts at or below it, own first."""
    facts = [change for change in changes if change.effect.level in ("drop", "incompatible") and not _renames(change)]
    states = [state for verdict in verdicts if verdict.outcome == "continues" for state in verdict.states]
    causes = {}
    for state in states:
        if state.outcome in ("starts empty", "is kept"):
            causes[state.operator] = _at_or_below(state.operator, plan, facts)
        elif state.outcome == "left behind":
            gone = tuple(change for change in facts if change.path == state.operator and change.kind == "-")
            readers = {reader.id for reader in before.readers[state.operator]}
            other = (change for change in facts if change.operator in readers and change.path.endswith(".inputs"))
            causes[state.operator] = gone or _at_or_below(state.operator, before, facts) or tuple(other)
    return causes


def _at_or_below(name: str, plan: Plan, facts: Sequence[Change]) -> tuple[Change, ...]:
    below = plan.upstream(name)
    tables = {table for operator_id in below if (table := getattr(plan.by_id[operator_id], "table", None))}
    own = [c for operator_id in below for c in facts if c.operator == operator_id and c.path != f"{operator_id}.inputs"]
    own = own or [
        c for operator_id in below for c in facts if c.operator == operator_id and "is now called" not in c.note
    ]
    declared = (c for c in facts if c.operator is None and any(c.path.startswith(f"tables.{t}.") for t in tables))
    return (*own, *declared)


def is_cause(change: Change) -> bool:
    """Return True if ``change`` is of facts and affects state: no setting, and more than a rename."""
    grave = change.effect.level in ("drop", "incompatible") and change.subject in ("operator", "table")
    return grave and not _renames(change) and not change.note.startswith("reads ")


def _renames(change: Change) -> bool:
    """Return True if only names differ; state does not depend on names."""
    renamed = change.subject == "operator" and change.path == change.name and change.before is not None
    return renamed or (".state." in change.path and change.path.endswith(".input"))


def _beside(running: Sequence[Query], verdicts: Sequence[QueryVerdict]) -> Iterator[tuple[Query | None, QueryVerdict]]:
    by_id = {query.id: query for query in running}
    for verdict in verdicts:
        yield by_id.get(verdict.query), verdict


def _unread(states: Sequence[StateVerdict]) -> tuple[StateVerdict, ...]:
    return tuple(replace(state, outcome="cannot be read") for state in states)


def _unwritable(query: Query | None, *, share: bool) -> str:
    if query is None or not query.is_shared or share:
        return ""
    return f"it has several sinks ({', '.join(query.sinks)}), which Spark Connect cannot write"
