"""Which row kinds flow on the edges of a plan.

A scan emits what its source does; calcs, lookups and unions pass on what comes; operators with state say theirs in the
plan. ``-U`` is left out where the changes of an aggregate, or of upserts that are made a changelog, only ever reach
sinks that replace rows by the same keys. State TTL never creates kinds: an expired row is forgotten, not deleted. In
batch everything is insert-only.

>>> refused_kinds(("+I", "-U", "+U"), ("+I", "+U", "-D")), refused_kinds(("+I", "-U"), ("+I",))
((), ('-U',))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from plans.connectors.table import is_upsert_sink
from plans.declarations.row_kinds import INSERT_ONLY, RowKind, RowKinds, merged
from plans.model.plan import Plan
from plans.operators import Calc, Operator, Sink, Stateful, kind_of

__all__ = ["output_kinds", "refused_kinds", "with_changelogs"]


def output_kinds(plan: Plan) -> dict[str, RowKinds]:
    """The row kinds that each operator emits (a sink: receives), by operator id, as the plan states them."""
    found: dict[str, RowKinds] = {}
    for operator in plan.operators:
        inputs = merged(found[i] for i in operator.inputs)
        found[operator.id] = kind_of(operator).row_kinds(operator, inputs, plan)
    return found


def refused_kinds(kinds: Iterable[RowKind], accepted: Collection[RowKind]) -> tuple[RowKind, ...]:
    """The kinds that a sink which accepts ``accepted`` cannot take.

    ``-U`` takes a row back as ``-D`` does: a sink that deletes can take it. It reaches an upsert sink when a filter may
    drop the ``+U`` that belongs to it, or when the update changes the sink's key.
    """
    return tuple(k for k in kinds if k not in accepted and not (k == "-U" and "-D" in accepted))


def with_changelogs(plan: Plan) -> Plan:
    """The plan with the ``changelog`` of every join and aggregate derived from what feeds it and what reads it."""
    if plan.mode == "batch":
        complete = (replace(o, changelog=INSERT_ONLY) if isinstance(o, Stateful) else o for o in plan.operators)
        return replace(plan, operators=tuple(complete))
    consumers: dict[str, list[Operator]] = {o.id: [] for o in plan.operators}
    for operator in plan.operators:
        for source in operator.inputs:
            consumers[source].append(operator)
    found: dict[str, RowKinds] = {}
    operators: list[Operator] = []
    for operator in plan.operators:
        inputs = merged(found[i] for i in operator.inputs)
        if isinstance(operator, Stateful):
            operator = _with_changelog(plan, operator, inputs, consumers)
        found[operator.id] = kind_of(operator).row_kinds(operator, inputs, plan)
        operators.append(operator)
    return replace(plan, operators=tuple(operators))


def _with_changelog(plan: Plan, operator: Stateful, inputs: RowKinds, consumers: dict[str, list[Operator]]) -> Stateful:
    """The operator with the changelog that its inputs and its readers make."""
    changelog = kind_of(operator).changelog
    assert changelog is not None  # a test sees to it that every kind with state has it
    kinds = changelog(operator, inputs, lambda keys: _upserted_by(plan, operator.id, keys, consumers))
    return replace(operator, changelog=kinds)


def _upserted_by(plan: Plan, producer: str, keys: tuple[str, ...], consumers: dict[str, list[Operator]]) -> bool:
    """Whether every way to a sink passes ``keys`` on, unfiltered, to a sink that upserts by exactly them."""
    # Operators still to follow, with the keys under the names they have there.
    open_ways = [(producer, keys)] if keys else []
    reached = False
    while open_ways:
        operator_id, keys = open_ways.pop()
        if not consumers[operator_id]:
            return False
        for consumer in consumers[operator_id]:
            if isinstance(consumer, Sink):
                table = plan.tables[consumer.table]
                if not is_upsert_sink(table) or set(table.primary_key) != set(keys):
                    return False
                reached = True
            elif isinstance(consumer, Calc) and consumer.filter is None:
                shown = {(item.expression or item.name).strip("`"): item.name for item in consumer.select}
                if not set(keys) <= shown.keys():
                    return False
                open_ways.append((consumer.id, tuple(shown[key] for key in keys)))
            else:
                return False
    return reached
