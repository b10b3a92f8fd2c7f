"""Merges two versions of a plan that come from a common one, by meaning: the core of the git merge driver.

Settings are merged path by path, an operator's or table's facts as one unit. An edit on one side is kept over what the
other side's SQL says now. The merged plan is checked like any other; one that does not stand up is no result.

>>> base, ours = Plan(name="p"), Plan(name="q")
>>> merge(base, ours, base).plan == ours
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import diff
from hintplan.plans.edit.edit import settled
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.files.codec import dumps, loads
from hintplan.plans.merge.decompose import ABSENT, NO_EDIT, Key, Parts, put_together, settings_in, take_apart
from hintplan.plans.merge.merge_text import Carried, described, path_of, value_of, who_asked
from hintplan.plans.merge.three_way import Conflict, Side, merged_order, merged_units, resolved, same_layers
from hintplan.plans.model.graph import dependency_order
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.reasons import without_idle_reasons

EMPTY = Parts(units={}, orders={("operators",): ()})
"""The base of two plans that were added independently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What became of a merge. ``plan`` is None if there are ``conflicts``, or ``problems`` that only the two make.

    ``changed`` is what the merge brought to ours; ``underneath`` are edits of one side whose hint, config or table the
    other side changed.
    """

    plan: Plan | None
    conflicts: tuple[Conflict, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    changed: tuple[Change, ...] = ()
    underneath: tuple[Carried, ...] = ()


def merge(base: Plan | None, ours: Plan, theirs: Plan) -> Merged:
    """The plan with the changes of both sides since ``base``; None stands for a plan that there was not yet."""
    if _same(theirs, base) or _same(theirs, ours):
        return Merged(plan=ours)
    if _same(ours, base):
        return Merged(plan=theirs, changed=diff(ours, theirs))
    sides = _sides(base, ours, theirs)
    units, conflicts = merged_units(*sides)
    if conflicts:
        return Merged(plan=None, conflicts=conflicts)
    plan = _whole(units, *sides)
    lost = tuple(_lost(units, plan))
    if lost:
        return Merged(plan=None, problems=lost)
    try:
        loads(dumps(plan))
    except PlanError as error:
        return Merged(plan=None, problems=error.diagnostics)
    return Merged(plan=plan, changed=diff(ours, plan), underneath=tuple(_underneath(units, *sides[1:])))


def _same(a: Plan, b: Plan | None) -> bool:
    """Whether both are written alike; the order of options is no difference to a plan, but it is to its text."""
    return b is not None and a == b and all([*a.tables[t].options] == [*b.tables[t].options] for t in a.tables)


def conflict_sides(base: Plan | None, ours: Plan, theirs: Plan) -> Mapping[Side, bytes]:
    """The canonical text of each side, alike in all that could be merged: they differ in the conflicts only.

    Where what disagrees has no place in what was merged, such as the size of a cache that one side took away, they are
    the whole plans: there must be something to choose from.
    """
    sides = _sides(base, ours, theirs)
    units, conflicts = merged_units(*sides)
    whole: dict[Side, bytes] = {"ours": dumps(ours), "theirs": dumps(theirs)}
    whole["base"] = dumps(base) if base is not None else b""
    if not conflicts:
        return whole
    found: dict[Side, bytes] = {}
    for side in ("base", "ours", "theirs"):
        parts = resolved(units, side)
        # What every plan has and the base, which may not exist, lacks, is no reason to have no text.
        for key in (("name",), ("format",), ("mode",)):
            if parts.get(key, ABSENT) is ABSENT:
                parts[key] = sides[1].units[key]
        found[side] = dumps(_whole(parts, *sides))
    return whole if found["ours"] == found["theirs"] else found


def _sides(base: Plan | None, ours: Plan, theirs: Plan) -> tuple[Parts, Parts, Parts]:
    return (EMPTY if base is None else take_apart(base), take_apart(ours), take_apart(theirs))


def _whole(units: Mapping[Key, Any], base: Parts, ours: Parts, theirs: Parts) -> Plan:
    names = dict.fromkeys((*ours.orders, *theirs.orders))
    orders = {key: merged_order(*(side.orders.get(key, ()) for side in (base, ours, theirs))) for key in names}
    orders["operators",] = _in_dependency_order(orders["operators",], units)
    return without_idle_reasons(settled(put_together(Parts(units=units, orders=orders))))


def _in_dependency_order(order: tuple[str, ...], units: Mapping[Key, Any]) -> tuple[str, ...]:
    """``order``, with inputs before their consumers where it was not so; what is on a cycle stays behind."""
    facts = {name: units.get(("operators", name), ABSENT) for name in order}
    found = dependency_order({name: fact.get("inputs", ()) for name, fact in facts.items() if fact is not ABSENT})
    done = set(found)
    return (*found, *(name for name in order if name not in done))


def _lost(units: Mapping[Key, Any], plan: Plan) -> Iterator[Diagnostic]:
    """Edits of one side that have no place beside the other's, such as the size of a cache that is not there."""
    found = settings_in(take_apart(plan).units)
    for key, setting in settings_in(units).items():
        if setting.edit is not NO_EDIT and setting.edit is not ABSENT:
            there = found.get(key)
            if there is None or there.value != setting.edit:
                message = f"the edit {described(setting)} has no place beside the other side's settings"
                yield Diagnostic(message=message, path=path_of(key), hint="take back one of the two edits")


def _underneath(units: Mapping[Key, Any], ours: Parts, theirs: Parts) -> Iterator[Carried]:
    sides = [settings_in(side.units) for side in (ours, theirs)]
    for key, setting in settings_in(units).items():
        edited = [side[key] for side in sides if key in side and side[key].edit is not NO_EDIT]
        # An edit that both have is merged over the same layers, or over those that one of them changed.
        for was in edited:
            if setting.edit is not NO_EDIT and was.layers and not same_layers(was, setting):
                path, value = path_of(key), value_of(setting.value)
                yield Carried(path=path, value=value, before=who_asked(was), after=who_asked(setting))
                break
