"""Derives the row kinds on the edges of a plan.

A scan emits the kinds of its source. Calcs, lookups and unions pass on the kinds of their input. Operators with state
state their kinds in the plan. An aggregate, or an operator that normalizes upserts, omits ``-U`` if its changes only
reach sinks that upsert by the same keys. State TTL never adds kinds: an expired row is forgotten, not deleted. In batch
everything is insert-only.

>>> refused_kinds(("+I", "-U", "+U"), ("+I", "+U", "-D")), refused_kinds(("+I", "-U"), ("+I",))
((), ('-U',))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

from hintplan.plans.connectors.table import is_upsert_sink
from hintplan.plans.declarations.row_kinds import INSERT_ONLY, RowKind, RowKinds, merged
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Stateful


def output_kinds(plan: Plan) -> dict[str, RowKinds]:
    """Return the row kinds that each operator emits (a sink: receives), by operator id, as the plan states them."""
    kinds: dict[str, RowKinds] = {}
    for operator in plan.operators:
        inputs = merged(kinds[i] for i in operator.inputs)
        kinds[operator.id] = operator.row_kinds(inputs, plan)
    return kinds


def refused_kinds(kinds: Iterable[RowKind], accepted: Collection[RowKind]) -> RowKinds:
    """Return the kinds that a sink which accepts ``accepted`` cannot take.

    ``-U`` retracts a row as ``-D`` does, so a sink that deletes can take it. An upsert sink receives it when a filter
    may drop the matching ``+U``, or when the update changes the sink's key.
    """
    return tuple(k for k in kinds if k not in accepted and not (k == "-U" and "-D" in accepted))


def with_changelogs(plan: Plan) -> Plan:
    """Return the plan with the ``changelog`` of every stateful operator, derived from its inputs and readers."""
    if plan.mode == "batch":
        return replace(plan, operators=tuple(operator.with_changelog(INSERT_ONLY) for operator in plan.operators))
    kinds: dict[str, RowKinds] = {}
    operators: list[Operator] = []
    for operator in plan.operators:
        if isinstance(operator, Stateful):
            upserted = partial(_upserted_by, plan, operator.id)
            changes = merged(kinds[i] for i in operator.changing_inputs)
            operator = operator.with_changelog(operator.derived_changelog(changes, upserted))
        kinds[operator.id] = operator.row_kinds(merged(kinds[i] for i in operator.inputs), plan)
        operators.append(operator)
    return replace(plan, operators=tuple(operators))


def _upserted_by(plan: Plan, producer: str, keys: tuple[str, ...]) -> bool:
    """Return True if every path to a sink passes on ``keys``, unfiltered, to a sink that upserts by exactly them."""
    # Operators still to follow, with the names of the keys at each.
    open_ways = [(producer, keys)] if keys else []
    reached = False
    while open_ways:
        operator_id, keys = open_ways.pop()
        if not plan.readers[operator_id]:
            return False
        for reader in plan.readers[operator_id]:
            if reader.is_sink:
                if not _upserts_by(reader, keys, plan):
                    return False
                reached = True
            else:
                above = reader.key_above(keys)
                if above is None:
                    return False
                open_ways.append((reader.id, above))
    return reached


def _upserts_by(sink: Operator, keys: tuple[str, ...], plan: Plan) -> bool:
    table = plan.tables[sink.table or ""]
    return is_upsert_sink(table) and set(table.primary_key) == set(keys)
