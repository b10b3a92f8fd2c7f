"""Merges two versions of a plan with a common base, by meaning: the core of the git merge driver.

Settings are merged path by path, and the facts of an operator or table as one unit. An edit on one side overrides a
change of the SQL on the other side. The merged plan is checked like any other; an invalid plan is not a result.

>>> base, ours = Plan(name="p"), Plan(name="q")
>>> merge_plans(base, ours, base).plan == ours
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hintplan.plans.compare.change import Change
from hintplan.plans.compare.diff import compare_plans
from hintplan.plans.edit.edit import with_current_layers
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.files.codec import dumps, loads
from hintplan.plans.frozen import frozen
from hintplan.plans.merge.decompose import Key, Parts, compose, decompose, settings_by_key
from hintplan.plans.merge.merge_text import CarriedEdit, layer_value_text, path_of, top_layer_text, unit_text
from hintplan.plans.merge.three_way import Conflict, Side, merged_order, merged_units, resolve_conflicts, same_layers
from hintplan.plans.model.graph import dependency_order
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import ABSENT
from hintplan.plans.model.reasons import without_idle_reasons

EMPTY = Parts(units={}, orders={("operators",): ()})
"""The base of two plans that were created independently."""


@frozen
class MergedPlan:
    """The result of a merge; ``plan`` is None after ``conflicts``, or ``problems`` that only the combination has.

    ``changed`` lists the changes of the merge to our side. ``underneath`` lists edits of one side whose hint, config or
    table the other side has changed.
    """

    plan: Plan | None
    conflicts: tuple[Conflict, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    changed: tuple[Change, ...] = ()
    underneath: tuple[CarriedEdit, ...] = ()


def merge_plans(base: Plan | None, ours: Plan, theirs: Plan) -> MergedPlan:
    """Return the plan with the changes of both sides since ``base``, which is None if there was no plan."""
    if _same(theirs, base) or _same(theirs, ours):
        return MergedPlan(plan=ours)
    if _same(ours, base):
        return MergedPlan(plan=theirs, changed=compare_plans(ours, theirs))
    sides = _sides(base, ours, theirs)
    units, conflicts = merged_units(*sides)
    if conflicts:
        return MergedPlan(plan=None, conflicts=conflicts)
    plan = _whole(units, *sides)
    lost = tuple(_lost(units, plan))
    if lost:
        return MergedPlan(plan=None, problems=lost)
    try:
        loads(dumps(plan))
    except PlanError as error:
        return MergedPlan(plan=None, problems=error.diagnostics)
    return MergedPlan(plan=plan, changed=compare_plans(ours, plan), underneath=tuple(_underneath(units, *sides[1:])))


def _same(a: Plan, b: Plan | None) -> bool:
    """Return True if both plans have the same text, which includes the order of options."""
    return b is not None and a == b and all([*a.tables[t].options] == [*b.tables[t].options] for t in a.tables)


def conflict_sides(base: Plan | None, ours: Plan, theirs: Plan) -> Mapping[Side, bytes]:
    """Return the canonical text of each side, with all merged parts equal: the texts differ only in the conflicts.

    If the merged plan has no place for a conflict, the texts are the whole plans, so that there is a choice. An example
    is the size of a cache that one side has removed.
    """
    sides = _sides(base, ours, theirs)
    units, conflicts = merged_units(*sides)
    whole: dict[Side, bytes] = {"ours": dumps(ours), "theirs": dumps(theirs)}
    whole["base"] = dumps(base) if base is not None else b""
    if not conflicts:
        return whole
    texts: dict[Side, bytes] = {}
    for side in ("base", "ours", "theirs"):
        parts = resolve_conflicts(units, side)
        # There may be no base, so keys that every plan needs are filled in.
        for key in (("name",), ("format",), ("mode",)):
            if parts.get(key, ABSENT) is ABSENT:
                parts[key] = sides[1].units[key]
        texts[side] = dumps(_whole(parts, *sides))
    return whole if texts["ours"] == texts["theirs"] else texts


def _sides(base: Plan | None, ours: Plan, theirs: Plan) -> tuple[Parts, Parts, Parts]:
    return (EMPTY if base is None else decompose(base), decompose(ours), decompose(theirs))


def _whole(units: Mapping[Key, Any], base: Parts, ours: Parts, theirs: Parts) -> Plan:
    names = dict.fromkeys((*ours.orders, *theirs.orders))
    orders = {key: merged_order(*(side.orders.get(key, ()) for side in (base, ours, theirs))) for key in names}
    orders["operators",] = _in_dependency_order(orders["operators",], units)
    return without_idle_reasons(with_current_layers(compose(Parts(units=units, orders=orders))))


def _in_dependency_order(order: tuple[str, ...], units: Mapping[Key, Any]) -> tuple[str, ...]:
    """Return ``order`` with inputs before their readers; operators on a cycle come last."""
    facts = {name: units.get(("operators", name), ABSENT) for name in order}
    sorted_names = dependency_order(
        {name: fact.get("inputs", ()) for name, fact in facts.items() if fact is not ABSENT}
    )
    placed = set(sorted_names)
    return (*sorted_names, *(name for name in order if name not in placed))


def _lost(units: Mapping[Key, Any], plan: Plan) -> Iterator[Diagnostic]:
    """Yield edits that have no effect with the settings of the other side, such as the size of a removed cache."""
    settings = settings_by_key(decompose(plan).units)
    for key, setting in settings_by_key(units).items():
        if setting.edited and setting.edit is not ABSENT:
            merged = settings.get(key)
            if merged is None or merged.value != setting.edit:
                message = f"the edit {unit_text(setting)} does not fit the other side's settings"
                yield Diagnostic(message=message, path=path_of(key), hint="take back one of the two edits")


def _underneath(units: Mapping[Key, Any], ours: Parts, theirs: Parts) -> Iterator[CarriedEdit]:
    sides = [settings_by_key(side.units) for side in (ours, theirs)]
    for key, setting in settings_by_key(units).items():
        edited = [side[key] for side in sides if key in side and side[key].edited]
        # Both sides may have the edit; report it if its layers changed on either side.
        for was in edited:
            if setting.edited and was.layers and not same_layers(was, setting):
                path, value = path_of(key), layer_value_text(setting.value)
                yield CarriedEdit(path=path, value=value, before=top_layer_text(was), after=top_layer_text(setting))
                break
