"""Which row kinds flow on the edges of a plan.

A scan emits what its source does; calcs, lookups and unions pass on what comes; operators with state say theirs in the
plan. ``-U`` is left out where the changes of an aggregate, or of upserts that are made a changelog, only ever reach
sinks that replace rows by the same keys. State TTL
never creates kinds: an expired row is forgotten, not deleted. In batch everything is insert-only.

>>> merged([("+I",), ("+I", "-D")])
('+I', '-D')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import assert_never

from plans.connectors.table import is_upsert_sink, source_kinds
from plans.declarations.row_kinds import RowKind
from plans.model.plan import Plan
from plans.operators import (
    Aggregate,
    Calc,
    ChangelogNormalize,
    Correlate,
    Expand,
    Join,
    LookupJoin,
    Operator,
    Scan,
    Sink,
    SinkMaterialize,
    Sort,
    Stateful,
    Union,
)

__all__ = ["INSERT_ONLY", "ORDERED", "merged", "output_kinds", "refused_kinds", "with_changelogs"]

_ORDER: tuple[RowKind, ...] = ("+I", "-U", "+U", "-D")

INSERT_ONLY: tuple[RowKind, ...] = ("+I",)
ORDERED = ("FIRST_VALUE", "LAST_VALUE", "LISTAGG")
"""Aggregate functions that depend on the order of rows."""


def merged(kinds: Iterable[tuple[RowKind, ...]]) -> tuple[RowKind, ...]:
    """All kinds that occur, in the order +I, -U, +U, -D."""
    found = {kind for group in kinds for kind in group}
    return tuple(kind for kind in _ORDER if kind in found)


def output_kinds(plan: Plan) -> dict[str, tuple[RowKind, ...]]:
    """The row kinds that each operator emits (a sink: receives), by operator id, as the plan states them."""
    found: dict[str, tuple[RowKind, ...]] = {}
    for operator in plan.operators:
        match operator:
            case Join() | Aggregate() | ChangelogNormalize() | SinkMaterialize():
                found[operator.id] = operator.changelog
            case Scan():
                found[operator.id] = _scanned(plan, operator)
            case Calc() | LookupJoin() | Correlate() | Expand() | Union() | Sort() | Sink():
                found[operator.id] = merged(found[i] for i in operator.inputs)
            case _:
                assert_never(operator)
    return found


def _scanned(plan: Plan, scan: Scan) -> tuple[RowKind, ...]:
    return source_kinds(plan.tables[scan.table]) if scan.table in plan.tables else INSERT_ONLY


def refused_kinds(kinds: Iterable[RowKind], accepted: Collection[RowKind]) -> tuple[RowKind, ...]:
    """The kinds that a sink which accepts ``accepted`` cannot take.

    ``-U`` takes a row back as ``-D`` does: a sink that deletes can take it. It reaches an upsert sink when a filter may
    drop the ``+U`` that belongs to it, or when the update changes the sink's key.

    >>> refused_kinds(("+I", "-U", "+U"), ("+I", "+U", "-D")), refused_kinds(("+I", "-U"), ("+I",))
    ((), ('-U',))
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
    found: dict[str, tuple[RowKind, ...]] = {}
    operators: list[Operator] = []
    for operator in plan.operators:
        kinds = merged(found[i] for i in operator.inputs)
        match operator:
            case Scan():
                kinds = _scanned(plan, operator)
            case Join():
                kinds = _join_kinds(operator, kinds)
            case Aggregate():
                kinds = _aggregate_kinds(plan, operator, kinds, consumers)
            case ChangelogNormalize():
                whole = not _upserted_by(plan, operator.id, operator.key, consumers)
                kinds = ("+I", "-U", "+U", "-D") if whole else ("+I", "+U", "-D")
            case SinkMaterialize():
                kinds = ("+I", "+U") if kinds == INSERT_ONLY else ("+I", "+U", "-D")
            case Calc() | LookupJoin() | Correlate() | Expand() | Union() | Sort() | Sink():
                pass  # their rows keep their kinds
            case _:
                assert_never(operator)
        found[operator.id] = kinds
        operators.append(replace(operator, changelog=kinds) if isinstance(operator, Stateful) else operator)
    return replace(plan, operators=tuple(operators))


def _join_kinds(join: Join, inputs: tuple[RowKind, ...]) -> tuple[RowKind, ...]:
    if join.join_type in ("inner", "semi") and inputs == INSERT_ONLY:
        return INSERT_ONLY
    return ("+I", "-D")


def _aggregate_kinds(
    plan: Plan, aggregate: Aggregate, inputs: tuple[RowKind, ...], consumers: dict[str, list[Operator]]
) -> tuple[RowKind, ...]:
    kinds: set[RowKind] = {"+I", "+U"} if aggregate.aggregates else {"+I"}
    if inputs != INSERT_ONLY:
        kinds.add("-D")
    if "+U" in kinds and not _upserted_by(plan, aggregate.id, aggregate.keys, consumers):
        kinds.add("-U")
    return tuple(kind for kind in _ORDER if kind in kinds)


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
