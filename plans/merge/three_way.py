"""Merges the parts of two plans with their common base: takes changes of one side, and equal changes of both.

The layers and the edit of a setting are merged separately. An edit on one side thus remains an edit over the changed
SQL of the other side. A part that both sides changed differently is a :class:`Conflict`. Knows nothing about the
meaning of combined parts.

>>> from hintplan.plans.model.plan_setting import setting_of
>>> from hintplan.plans.settings.state import ttl_settings
>>> hints = [{"hint": "1 d"}, {"hint": "1 d", "edit": "3 d"}, {"hint": "2 d"}]
>>> sides = [setting_of("join_o_c", "state.leftState", "ttl", ttl_settings(**layers)) for layers in hints]
>>> (merged := merge_settings(*sides)).layers, merged.edit
({'default': '0 ms', 'hint': '2 d'}, '3 d')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from hintplan.plans.frozen import frozen
from hintplan.plans.merge.decompose import GroupPart, Key, Parts
from hintplan.plans.model.plan_setting import ABSENT, ALL_LAYERS, NO_EDIT, Digest, PlanSetting, digest_of

_T = TypeVar("_T")

Side = Literal["base", "ours", "theirs"]

_DERIVED = ("default", "config", "table")
"""Layers that are derived from config and tables, which are merged once (:func:`with_current_layers`)."""


@frozen
class Conflict:
    """A part that both sides changed differently; ABSENT if a side does not have it."""

    key: Key
    base: Any
    ours: Any
    theirs: Any


class Disagreement(Exception):
    """Both sides made different changes."""


def merged_units(base: Parts, ours: Parts, theirs: Parts) -> tuple[dict[Key, Any], tuple[Conflict, ...]]:
    """Return the merged parts and all conflicts; a Conflict replaces each part that has one."""
    units: dict[Key, Any] = {}
    conflicts: list[Conflict] = []
    for key in dict.fromkeys((*ours.units, *theirs.units, *base.units)):
        sides = [parts.units.get(key, ABSENT) for parts in (base, ours, theirs)]
        merged = _merged_unit(key, *sides)
        units[key] = merged
        if isinstance(merged, Conflict):
            conflicts.append(merged)
        elif isinstance(merged, GroupPart) and merged.settings is not None:
            conflicts += [setting for setting in merged.settings.values() if isinstance(setting, Conflict)]
    return units, tuple(conflicts)


def resolve_conflicts(units: Mapping[Key, Any], side: Side) -> dict[Key, Any]:
    """Return the parts with every conflict resolved in favour of ``side``."""
    return {key: _resolved(unit, side) for key, unit in units.items()}


def _resolved(unit: object, side: Side) -> object:
    if isinstance(unit, Conflict):
        chosen: object = getattr(unit, side)
        return chosen
    if isinstance(unit, GroupPart) and unit.settings is not None:
        resolved_settings = {name: _resolved(setting, side) for name, setting in unit.settings.items()}
        settings = {name: setting for name, setting in resolved_settings.items() if setting is not ABSENT}
        return replace(unit, settings=settings)
    return unit


def _merged_unit(key: Key, base: object, ours: object, theirs: object) -> object:
    present = [side for side in (base, ours, theirs) if side is not ABSENT]
    try:
        if ours is ABSENT or theirs is ABSENT:
            return _pick(base, ours, theirs)
        if isinstance(ours, PlanSetting) and isinstance(theirs, PlanSetting):
            return merge_settings(base, ours, theirs)
        have_settings = all(isinstance(side, GroupPart) and side.settings is not None for side in present)
        if isinstance(ours, GroupPart) and isinstance(theirs, GroupPart) and have_settings:
            return _merged_group(key, base, ours, theirs)
        return _pick(base, ours, theirs)
    except Disagreement:
        return Conflict(key=key, base=base, ours=ours, theirs=theirs)


def merge_settings(base: object, ours: PlanSetting, theirs: PlanSetting) -> PlanSetting:
    """Return the setting with each layer, and the edit, from the side that changed it; ABSENT if nothing remains."""
    before = base if isinstance(base, PlanSetting) else replace(ours, layers={}, edit=NO_EDIT)
    layers = {}
    for layer in ALL_LAYERS:
        sides = [side.layers.get(layer, ABSENT) for side in (before, ours, theirs)]
        try:
            value = _pick(*sides)
        except Disagreement:
            if layer not in _DERIVED:
                raise
            value = max(sides[1:], key=repr)
        if value is not ABSENT:
            layers[layer] = value
    edit = _pick(before.edit, ours.edit, theirs.edit)
    top = next(reversed(layers.values()), ABSENT)
    if edit is not NO_EDIT and _same(edit, top):
        # The SQL now has the value of the edit, so the value in force stays and is no longer an edit.
        layers, edit = layers and {**layers, next(reversed(layers)): edit}, NO_EDIT
    elif edit is NO_EDIT and isinstance(top, Digest):
        raise Disagreement  # one side has undone an edit, and only the other side has the value below it
    setting: PlanSetting = replace(ours, layers=layers, edit=edit) if layers or edit is not NO_EDIT else ABSENT
    return setting


def _merged_group(key: Key, base: object, ours: GroupPart, theirs: GroupPart) -> GroupPart:
    before = (base.settings or {}) if isinstance(base, GroupPart) else {}
    first, second = ours.settings or {}, theirs.settings or {}
    settings = {}
    for name in dict.fromkeys((*first, *second, *before)):
        sides = [settings.get(name, ABSENT) for settings in (before, first, second)]
        merged = _merged_unit((*key, name), *sides)
        if merged is not ABSENT:
            settings[name] = merged
    record = _pick(base.record if isinstance(base, GroupPart) else None, ours.record, theirs.record)
    return replace(ours, settings=settings, null=False, record=record)


def _pick(base: _T, ours: _T, theirs: _T) -> _T:
    if _same(ours, theirs):
        return theirs if isinstance(ours, Digest) else ours  # prefer a value to its digest
    if _same(theirs, base):
        return ours
    if _same(ours, base):
        return theirs
    raise Disagreement


def same_layers(a: PlanSetting, b: PlanSetting) -> bool:
    """Return True if both have the same strongest layer with the same value."""
    return a.top_layer == b.top_layer and _same(a.top, b.top)


def _same(a: object, b: object) -> bool:
    if isinstance(a, Digest) and not isinstance(b, Digest):
        return isinstance(b, str) and digest_of(b) == a.text
    if isinstance(b, Digest) and not isinstance(a, Digest):
        return isinstance(a, str) and digest_of(a) == b.text
    return bool(a == b) and type(a) is type(b)


def merged_order(base: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return all names of both sides; a name of only one side follows its neighbour.

    The names of both sides are in the order of the side that changed it.

    >>> merged_order(("a", "b"), ("a", "x", "b"), ("a", "b", "y"))
    ('a', 'x', 'b', 'y')
    """
    in_ours, in_theirs = set(ours), set(theirs)
    first = tuple(name for name in ours if name in in_theirs)
    second = tuple(name for name in theirs if name in in_ours)
    common = in_ours & in_theirs
    before = tuple(name for name in base if name in common)
    # If both sides have reordered, any choice is fine that does not depend on which side is ours.
    spine = second if first == before else first if second == before else min(first, second)
    followers: dict[str | None, list[tuple[str, ...]]] = {}
    for side in (ours, theirs):
        anchor: str | None = None
        run: list[str] = []
        for name in (*side, None):
            if name is None or name in common:
                if run:
                    followers.setdefault(anchor, []).append(tuple(run))
                anchor, run = name, []
            else:
                run.append(name)
    order: list[str] = []
    for name in (None, *spine):
        order += [] if name is None else [name]
        order += [follower for run in sorted(followers.get(name, [])) for follower in run]
    return tuple(order)
