"""The state entries of a plan's operators, the stored tables of each, and the selection of entries by path.

The last entry of an operator has all tables that remain: ``groupAggregateState`` has the groups and the values for
DISTINCT. Each entry before it has one table. The rows that a deferred lookup parks are also an entry, without a TTL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.declarations.row_kinds import INSERT_ONLY
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Stateful
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.builders.bound import layouts_of
from hintplan.runtime.inspect.contents import Amount
from hintplan.runtime.inspect.partition import PARKED
from hintplan.runtime.operators.lookup_retry import is_parked, read_parked
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.manifest import read_manifest, read_tables
from hintplan.runtime.storage.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A state entry with its tables, its TTL in the plan, and its TTL in an edited plan, or None if that is equal.

    An entry without a TTL keeps rows until the watermark passes them, or until a lookup finds them.

    ``keys`` are the columns of the lookup key of its rows.
    """

    name: str
    input: str | None = None
    ttl: str | None = None
    edited: str | None = None
    layouts: tuple[StateLayout, ...] = ()
    keys: tuple[str, ...] = ()


def entries_of(plan: Plan, edited: Plan | None) -> dict[str, tuple[Entry, ...]]:
    """Return the entries of each operator that keeps state; ``edited`` is the same plan with other TTLs."""
    columns, kinds = output_columns(plan), output_kinds(plan)
    entries: dict[str, tuple[Entry, ...]] = {}
    for operator in plan.operators:
        if operator.parks_rows:
            lookup: Any = operator
            entries[operator.id] = (Entry(name=PARKED, keys=tuple(key.left or "" for key in lookup.keys)),)
        elif operator.state:
            inputs = tuple(columns[name] for name in operator.inputs)
            changelog = tuple(kinds[name] != INSERT_ONLY for name in operator.inputs)
            layouts = layouts_of(cast(Stateful, operator), inputs, changelog, plan.functions)
            ttls = {} if edited is None else {state.name: state.ttl for state in edited.operator(operator.id).state}
            entries[operator.id] = _entries(operator, layouts, ttls)
    return entries


def _entries(operator: Operator, layouts: Sequence[StateLayout], ttls: Mapping[str, str | None]) -> tuple[Entry, ...]:
    states = sorted(operator.state, key=lambda state: state.index)
    last = len(states) - 1
    parts = [*((layout,) for layout in layouts[:last]), tuple(layouts[last:])]
    entries = []
    for state, tables in zip(states, parts, strict=True):
        other = ttls.get(state.name) or state.ttl
        entries.append(
            Entry(
                name=state.name,
                input=state.input,
                ttl=state.ttl,
                edited=None if _as_long(other, state.ttl) else other,
                layouts=tables,
                keys=tuple(dict.fromkeys(tables[0].key)) or tuple(tables[0].identity.names),
            )
        )
    return tuple(entries)


def _as_long(a: str | None, b: str | None) -> bool:
    return a == b or (a is not None and b is not None and parse_duration(a) == parse_duration(b))


def choice(
    kept: Mapping[str, Sequence[Entry]], stored: Collection[str], asked: Sequence[str]
) -> Callable[[str, str], bool]:
    """Return a predicate that selects an operator and an entry by the paths ``asked``; without paths, it selects all.

    A path is an operator of the plan, an operator with ``stored`` state, or a state in the notation of ``hintplan
    set``. PlanError for any other path.
    """
    states = {f"{operator}.{entry.name}" for operator, entries in kept.items() for entry in entries}
    valid = sorted(states | kept.keys() | set(stored))
    selected = set()
    for text in asked:
        name = text.removeprefix("operators.").removesuffix(".ttl").replace(".state.", ".")
        if name not in valid:
            raise PlanError(f"there is no state '{text}'", path=text, hint=did_you_mean(name, valid, what="states"))
        selected.add(name)
    return lambda operator, entry: not selected or operator in selected or f"{operator}.{entry}" in selected


def fits(entries: Sequence[Entry], partitions: Iterable[Manifest]) -> bool:
    """Return whether the stored tables have the columns of the plan's operator."""
    layouts = [layout for entry in entries for layout in entry.layouts]
    for partition in partitions:
        if partition.tables is not None:
            if is_parked(partition.tables) == bool(layouts):
                return False
            try:
                if layouts:
                    read_manifest(partition.tables, layouts)
            except RunError:
                return False
    return True


def stored_amounts(manifest: bytes) -> dict[str, Amount]:
    """Return the amount of each table according to a manifest; RunError if its format is unknown."""
    if is_parked(manifest):
        _, _, parked = read_parked(manifest)
        times = [parked_segment.at for parked_segment in parked]
        rows, size = (
            sum(parked_segment.rows for parked_segment in parked),
            sum(parked_segment.size for parked_segment in parked),
        )
        return {PARKED: Amount(rows=rows, bytes=size, oldest=min(times), newest=max(times))}
    return {
        name: Amount(
            rows=table.rows,
            bytes=sum(segment.size for segment in table.segments),
            oldest=min((segment.first_write for segment in table.segments), default=None),
            newest=max((segment.last_write for segment in table.segments), default=None),
        )
        for name, table in read_tables(manifest).items()
    }
