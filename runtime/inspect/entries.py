"""The state entries of a plan's operators and the stored tables each consists of, and which of them are asked for.

A single entry has all tables of its operator, as ``groupAggregateState`` has the groups and the values that DISTINCT
remembers; several have one each. The rows that a deferred lookup parks are an entry too, without a TTL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hintplan.plans.analysis.changelog import output_kinds
from hintplan.plans.analysis.columns import output_columns
from hintplan.plans.compare.lineage import parks_rows
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import Operator, Stateful, state_of
from hintplan.plans.text.names import did_you_mean
from hintplan.runtime.build.bound import layouts_of
from hintplan.runtime.inspect.contents import Amount
from hintplan.runtime.inspect.partition import PARKED
from hintplan.runtime.operators.lookup_retry import is_parked, read_parked
from hintplan.runtime.state.layout import StateLayout
from hintplan.runtime.state.manifest import read_manifest, read_tables
from hintplan.runtime.storage.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A state entry, its TTLs as the plan and as an edit of it has them (None if equal), and its tables.

    ``keys`` are the columns that its rows are found by.
    """

    name: str
    input: str | None = None
    ttl: str | None = None
    edited: str | None = None
    layouts: tuple[StateLayout, ...] = ()
    keys: tuple[str, ...] = ()


def entries_of(plan: Plan, edited: Plan | None) -> dict[str, tuple[Entry, ...]]:
    """The entries of each operator that keeps state; ``edited`` is the same plan with other TTLs."""
    columns, kinds = output_columns(plan), output_kinds(plan)
    found: dict[str, tuple[Entry, ...]] = {}
    for operator in plan.operators:
        if parks_rows(operator):
            lookup: Any = operator
            found[operator.id] = (Entry(name=PARKED, keys=tuple(key.left or "" for key in lookup.keys)),)
        elif state_of(operator):
            inputs = tuple(columns[name] for name in operator.inputs)
            changelog = tuple(kinds[name] != ("+I",) for name in operator.inputs)
            layouts = layouts_of(cast(Stateful, operator), inputs, changelog, plan.functions)
            ttls = {} if edited is None else {each.name: each.ttl for each in state_of(edited.operator(operator.id))}
            found[operator.id] = _entries(operator, layouts, ttls)
    return found


def _entries(operator: Operator, layouts: Sequence[StateLayout], ttls: Mapping[str, str]) -> tuple[Entry, ...]:
    states = sorted(state_of(operator), key=lambda state: state.index)
    parts = [tuple(layouts)] if len(states) == 1 else [(layout,) for layout in layouts]
    found = []
    for state, tables in zip(states, parts, strict=True):
        other = ttls.get(state.name, state.ttl)
        found.append(
            Entry(
                name=state.name,
                input=state.input,
                ttl=state.ttl,
                edited=None if parse_duration(other) == parse_duration(state.ttl) else other,
                layouts=tables,
                keys=tuple(dict.fromkeys(tables[0].key)) or tuple(tables[0].identity.names),
            )
        )
    return tuple(found)


def choice(
    kept: Mapping[str, Sequence[Entry]], stored: Collection[str], asked: Sequence[str]
) -> Callable[[str, str], bool]:
    """Whether an operator and an entry of it are among the paths ``asked`` for; all are if there are none.

    A path is an operator, of the plan or one that has ``stored`` something, or a state as ``hintplan set`` takes it.
    PlanError for any other.
    """
    states = {f"{operator}.{entry.name}" for operator, entries in kept.items() for entry in entries}
    known = sorted(states | kept.keys() | set(stored))
    names = set()
    for text in asked:
        name = text.removeprefix("operators.").removesuffix(".ttl").replace(".state.", ".")
        if name not in known:
            raise PlanError(f"there is no state '{text}'", path=text, hint=did_you_mean(name, known, what="states"))
        names.add(name)
    return lambda operator, entry: not names or operator in names or f"{operator}.{entry}" in names


def fits(entries: Sequence[Entry], partitions: Iterable[Manifest]) -> bool:
    """Whether what is stored has the columns that the plan's operator keeps."""
    layouts = {layout.name: layout.fingerprint for entry in entries for layout in entry.layouts}
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
    """What a manifest tells of each table; RunError if its format is not known."""
    if is_parked(manifest):
        _, _, parked = read_parked(manifest)
        times = [each.at for each in parked]
        rows, size = sum(each.rows for each in parked), sum(each.size for each in parked)
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
