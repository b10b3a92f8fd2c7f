"""Carries the edits of an old plan over to a new one, compiled from changed SQL: a three-way merge.

The base of the merge is recorded in the old plan: a value that differs from its recorded layers is an edit. Facts are
always the new plan's. An edit whose operator or hint is gone is an orphan. There is no result until all orphans are
mapped to an operator or dropped. Knows no files.

>>> from hintplan.plans.format.compiled import with_record
>>> compiled = with_record(Plan(name="p"))
>>> [(edit.path, edit.value, edit.before) for edit in rebase_plan(compiled, replace(compiled, name="other")).kept]
[('name', 'other', 'SQL (another value)')]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hintplan.plans.compare.match import match, only_renamed
from hintplan.plans.compare.successors import Successor, successor, table_successor
from hintplan.plans.edit.edit import with_current_layers
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.files.codec import dumps, loads
from hintplan.plans.format.digest import operator_facts, table_facts
from hintplan.plans.frozen import frozen
from hintplan.plans.merge.decompose import GroupPart, Key, Parts, compose, decompose, settings_by_key
from hintplan.plans.merge.merge_text import (
    REFUSED,
    CarriedEdit,
    layer_value_text,
    path_of,
    refused_options,
    top_layer_text,
    unit_text,
)
from hintplan.plans.merge.three_way import Disagreement, merge_settings, same_layers
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import ABSENT, NO_EDIT, PlanSetting
from hintplan.plans.model.reasons import without_idle_reasons
from hintplan.plans.operators import Operator
from hintplan.plans.text.names import did_you_mean

_CAUSES = ("lookup.cache", "lookup.full-cache.reload-strategy")


@frozen
class Orphan:
    """Edits whose operator or table is gone; ``name`` is its name for ``--map``, and ``successor`` a likely successor.

    If the operator remains and only the setting is gone, there is nothing to map, and ``why`` is the reason.
    """

    name: str
    edits: tuple[CarriedEdit, ...]
    successor: Successor | None = None
    why: str = ""


@frozen
class RebasedPlan:
    """The result of a rebase; ``plan`` is None if there are orphans, conflicts, or problems of the result.

    ``renamed`` maps operators whose edits were carried over to another id without ``--map``. ``kept`` are edits that
    are unchanged, ``changed_underneath`` edits that now override another hint, config or table. ``same`` are edits that
    the new SQL makes unnecessary. ``conflicts`` are settings that the new plan edits to another value.
    """

    plan: Plan | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[CarriedEdit, ...] = ()
    changed_underneath: tuple[CarriedEdit, ...] = ()
    same: tuple[CarriedEdit, ...] = ()
    dropped: tuple[CarriedEdit, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    conflicts: tuple[CarriedEdit, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Account:
    """The state of the rebase: the edits by result, and ``moved``, the old and new paths of edits that remain.

    ``groups`` are the paths of groups of settings that an edit had added as a whole.
    """

    kept: list[CarriedEdit] = field(default_factory=list)
    underneath: list[CarriedEdit] = field(default_factory=list)
    same: list[CarriedEdit] = field(default_factory=list)
    conflicts: list[CarriedEdit] = field(default_factory=list)
    lost: dict[str, list[CarriedEdit]] = field(default_factory=dict)
    gone: dict[str, list[CarriedEdit]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)


def rebase_plan(
    new: Plan, old: Plan, mapping: Mapping[str, str] | None = None, *, drop_orphans: bool = False
) -> RebasedPlan:
    """Return ``new`` with the edits of ``old``; raise PlanError if ``mapping`` is invalid.

    ``mapping`` maps ids of operators of the old plan to ids of the new one, and tables as ``tables.<name>``. Operators
    that were only renamed need no mapping.
    """
    moves = mapping or {}
    _check_mapping(moves, old, new)
    followed = {a: b for a, b in only_renamed(old, new).items() if a not in moves and b not in moves.values()}
    moves = {**followed, **moves}
    parts, account = decompose(old), _Account()
    # Config and tables come first, because the layers of operators follow them.
    edited = new
    for outside in (True, False):
        new_parts = decompose(edited)
        units = dict(new_parts.units)
        for key in parts.units:
            if (key[0] != "operators") == outside and key[0] != "reasons":
                _carry(parts.units[key], key, _moved(key, moves, old, new), units, account)
        edited = with_current_layers(compose(Parts(units=units, orders=new_parts.orders)))
    _find_lost(account, edited)
    edited = _with_reasons(edited, old, account)
    orphans = tuple(_orphans(account, old, new))
    before, after = old.by_id, new.by_id
    result = RebasedPlan(
        plan=edited,
        renamed={a: b for a, b in followed.items() if any(path.startswith(f"{a}.") for path in account.moved)},
        kept=tuple(_noted(carried, before, after) for carried in account.kept),
        changed_underneath=tuple(account.underneath),
        same=tuple(account.same),
        dropped=tuple(edit for orphan in orphans for edit in orphan.edits) if drop_orphans else (),
        orphans=() if drop_orphans else orphans,
        conflicts=tuple(account.conflicts),
    )
    refused = refused_options(old) | refused_options(new)
    if refused:
        result = _masked(result, refused)
    if result.orphans or result.conflicts:
        return replace(result, plan=None)
    try:
        loads(dumps(edited))
    except PlanError as error:
        return replace(result, plan=None, problems=error.diagnostics)
    return result


def _masked(rebased: RebasedPlan, refused: Collection[str]) -> RebasedPlan:
    """Return ``rebased`` without the values of refused options, which may be literal secrets."""

    def masked(edits: tuple[CarriedEdit, ...]) -> tuple[CarriedEdit, ...]:
        return tuple(
            replace(edit, value=REFUSED, before="SQL", after="SQL") if edit.path in refused else edit for edit in edits
        )

    orphans = tuple(replace(orphan, edits=masked(orphan.edits)) for orphan in rebased.orphans)
    names = ("kept", "changed_underneath", "same", "dropped", "conflicts")
    masked_fields: dict[str, Any] = {name: masked(getattr(rebased, name)) for name in names}
    return replace(rebased, orphans=orphans, **masked_fields)


def _carry(unit: object, key: Key, target: Key, units: dict[Key, Any], account: _Account) -> None:
    """Carry the edit in a part of the old plan, if any, over to the ``units`` of the new plan."""
    if isinstance(unit, PlanSetting):
        if not unit.edited:
            return
        if key[0] in ("operators", "tables") and target[:2] not in units:
            owner = key[1] if key[0] == "operators" else f"tables.{key[1]}"
            account.lost.setdefault(owner, []).append(_carried(key, unit))
        else:
            _carry_setting(unit, key, target, units, account)
        return
    if not isinstance(unit, GroupPart):
        return
    new_unit = units.get(target, ABSENT)
    if target[:2] not in units:
        for edit in _edits_of(unit, key):
            account.lost.setdefault(key[1], []).append(edit)
    elif unit.settings is None:
        if unit.edited:
            _carry_removal(unit, key, target, units, account)
    elif new_unit is ABSENT or new_unit.settings is None:
        if unit.edited:
            units[target] = replace(unit, record=None if new_unit is ABSENT else new_unit.record)
            after = unit_text(new_unit) if new_unit is not ABSENT and new_unit.edited else "nothing"
            account.kept.append(CarriedEdit(path=path_of(target), value=unit_text(unit), before="nothing", after=after))
            account.moved[path_of(key)] = path_of(target)
            account.groups.add(path_of(target))
            account.moved |= {path_of((*key, name)): path_of((*target, name)) for name in unit.settings}
        else:
            for edit in _edits_of(unit, key):
                account.gone.setdefault(path_of(target), []).append(edit)
    else:
        below: dict[Key, Any] = {(*target, name): setting for name, setting in new_unit.settings.items()}
        causes = any((cause := unit.settings.get(name)) is not None and cause.edited for name in _CAUSES)
        for name, setting in unit.settings.items():
            # An edit of lookup.cache has removed these settings, so their absence is not an edit of its own.
            if setting.edited and not (setting.edit is ABSENT and causes):
                _carry_setting(setting, (*key, name), (*target, name), below, account)
        settings = {path[-1]: setting for path, setting in below.items() if setting is not ABSENT}
        units[target] = replace(new_unit, settings=settings)
        account.moved.setdefault(path_of(key), path_of(target))


def _carry_removal(unit: GroupPart, key: Key, target: Key, units: dict[Key, Any], account: _Account) -> None:
    new_unit = units.get(target, ABSENT)
    account.moved[path_of(key)] = path_of(target)
    if new_unit is ABSENT or new_unit.settings is None:
        account.same.append(CarriedEdit(path=path_of(target), value="off", before="SQL", after="nothing"))
        return
    units[target] = replace(new_unit, settings=None, null=True)
    carried = CarriedEdit(path=path_of(target), value="off", before="what the SQL said", after=unit_text(new_unit))
    (account.kept if new_unit.record == unit.record else account.underneath).append(carried)


def _carry_setting(setting: PlanSetting, key: Key, target: Key, units: dict[Key, Any], account: _Account) -> None:
    new_unit = units.get(target, ABSENT)
    now = replace(setting, layers={}, edit=NO_EDIT) if new_unit is ABSENT else new_unit
    carried = CarriedEdit(
        path=path_of(target),
        value=layer_value_text(setting.value),
        before=top_layer_text(setting),
        after=top_layer_text(now),
    )
    try:
        merged = merge_settings(replace(setting, edit=NO_EDIT), setting, now)
    except Disagreement:
        account.conflicts.append(replace(carried, after=unit_text(now)))
        return
    units[target] = merged
    if not setting.layers and setting.value == now.value:
        return  # the old plan does not record whether this is an edit, and it makes no difference
    if merged is ABSENT or not merged.edited:
        if now.value is not ABSENT:
            account.same.append(carried)
        return
    account.moved[path_of(key)] = path_of(target)
    (account.kept if same_layers(setting, merged) else account.underneath).append(carried)


def _edits_of(group: GroupPart, key: Key) -> Iterator[CarriedEdit]:
    """Yield the edits of a group that the new plan does not have."""
    if group.settings is None:
        if group.edited:
            yield CarriedEdit(path=path_of(key), value="off", before="nothing", after="nothing")
        return
    for name, setting in group.settings.items():
        if setting.edited:
            yield _carried((*key, name), setting)


def _carried(key: Key, setting: PlanSetting) -> CarriedEdit:
    return CarriedEdit(
        path=path_of(key), value=layer_value_text(setting.value), before=top_layer_text(setting), after="nothing"
    )


def _find_lost(account: _Account, plan: Plan) -> None:
    """Move edits that have no effect with the new settings to ``gone``, such as the size of a removed cache."""
    values = {
        path_of(key): layer_value_text(setting.value) for key, setting in settings_by_key(decompose(plan).units).items()
    }
    for edits in (account.kept, account.underneath):
        for edit in [*edits]:
            if edit.value not in (values.get(edit.path), "off", "(none)") and edit.path not in account.groups:
                edits.remove(edit)
                account.gone.setdefault(edit.path, []).append(edit)


def _noted(carried: CarriedEdit, old: Mapping[str, Operator], new: Mapping[str, Operator]) -> CarriedEdit:
    """Return the edit, with a note if the facts of its operator have changed."""
    name = carried.path.partition(".")[0]
    if name not in old or name not in new:
        return carried
    a, b = operator_facts(old[name]), operator_facts(new[name])
    changed = ", ".join(name for name in {**a, **b} if a.get(name) != b.get(name))
    return replace(carried, note=f"the operator has other {changed}") if changed else carried


def _moved(key: Key, mapping: Mapping[str, str], old: Plan, new: Plan) -> Key:
    """Return the key in the new plan for a part of the old one."""
    if key[0] == "tables" and f"tables.{key[1]}" in mapping:
        return ("tables", mapping[f"tables.{key[1]}"].removeprefix("tables."), *key[2:])
    if key[0] != "operators" or key[1] not in mapping:
        return key
    target = mapping[key[1]]
    if len(key) > 2 and key[2] == "state":
        return ("operators", target, "state", _state_for(old, key[1], key[3], new, target), *key[4:])
    return ("operators", target, *key[2:])


def _state_for(old: Plan, old_id: str, name: str, new: Plan, new_id: str) -> str:
    """Return the name of the state for the same input: if the sides of a join were swapped, it is the other state."""
    before = next(entry for entry in old.operator(old_id).state if entry.name == name)
    same = [entry.name for entry in new.operator(new_id).state if entry.input == before.input]
    return same[0] if len(same) == 1 else name


def _check_mapping(mapping: Mapping[str, str], old: Plan, new: Plan) -> None:
    kinds = [
        {o.id: type(o).__name__ for o in plan.operators} | {f"tables.{table}": "Table" for table in plan.tables}
        for plan in (old, new)
    ]
    for before, after in mapping.items():
        for name, names, side in ((before, kinds[0], "old"), (after, kinds[1], "new")):
            if name not in names:
                hint = did_you_mean(name, names, what="operators and tables")
                raise PlanError(f"--map: the {side} plan has no operator or table '{name}'", hint=hint)
        if kinds[0][before] != kinds[1][after]:
            message = f"--map: '{before}' and '{after}' are not of the same kind, so they have other settings"
            raise PlanError(message, hint="map an operator to one of its kind, or use --drop-orphans")


def _orphans(account: _Account, old: Plan, new: Plan) -> Iterator[Orphan]:
    before = old.by_id
    renamed = match(old, new).renamed if account.lost else {}
    candidates = [operator for operator in new.operators if operator.id not in before]
    likely: Successor | None
    for name, edits in account.lost.items():
        if name in renamed:
            likely = Successor(id=renamed[name], why="it does the same, under another name")
        elif name in before:
            likely = successor(before[name], candidates)
        else:
            tables = {t: table_facts(new.tables[t]) for t in new.tables if t not in old.tables}
            likely = table_successor(table_facts(old.tables[name.removeprefix("tables.")]), tables)
        yield Orphan(name=name, edits=tuple(edits), successor=likely)
    for name, edits in account.gone.items():
        why = "the new SQL has no such setting, so there is nothing to edit"
        yield Orphan(name=name, edits=tuple(edits), why=why)


def _with_reasons(plan: Plan, old: Plan, account: _Account) -> Plan:
    """Return the plan with the reasons of remaining edits, in addition to its own reasons."""
    moved = {account.moved.get(path, path): text for path, text in old.reasons.items()}
    lost = {edit.path for edits in (*account.lost.values(), *account.gone.values()) for edit in edits}
    kept = {path: text for path, text in moved.items() if path not in lost}
    return without_idle_reasons(replace(plan, reasons={**kept, **plan.reasons}))
