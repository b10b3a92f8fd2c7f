"""Compares two plans by meaning: settings and facts that differ, the layers that set them, and the effect on state.

Layout, key order, the order of independent operators and the spelling of durations are not differences. The effect of a
change on a running job is decided in :mod:`hintplan.plans.settings.effects`. Other modules own the wording and layout
of reports.

>>> [(change.path, change.before, change.after) for change in compare_plans(Plan(name="a"), Plan(name="b"))]
[('name', 'a', 'b')]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from hintplan.plans.compare.change import Change, Kind
from hintplan.plans.compare.consequences import with_consequences
from hintplan.plans.compare.facts import brief, facts_between
from hintplan.plans.compare.match import Match, match
from hintplan.plans.connectors.check import shown_options
from hintplan.plans.connectors.table import is_sink_directory
from hintplan.plans.declarations.tables import Table
from hintplan.plans.format.digest import operator_facts, table_facts
from hintplan.plans.format.document import function_document
from hintplan.plans.model.config import KEYS, NAME
from hintplan.plans.model.plan import Plan
from hintplan.plans.model.plan_setting import STATE_GROUP, PlanSetting
from hintplan.plans.model.reasons import outdated_reasons
from hintplan.plans.model.settings import option_effect, settings_by_name
from hintplan.plans.operators import Operator, tables_used
from hintplan.plans.settings.effects import (
    FILES_ELSEWHERE,
    FUNCTION,
    INCOMPATIBLE,
    NO_EFFECT,
    NO_NOTE,
    PARKS,
    PARKS_NO_MORE,
    SCRIPT,
    UNKNOWN_KEY,
    UNREADABLE,
    Effect,
    in_batch,
)
from hintplan.plans.settings.layers import EDIT
from hintplan.plans.settings.setting import Value, effect_between, same_value, value_text
from hintplan.plans.settings.state import STATE_TTL, TTL
from hintplan.plans.text.counts import first_of

_PARKING_SETTINGS = (("retry", "mode"), ("cache", "lookup.cache"))
"""The settings that decide whether a lookup parks rows, which needs a separate state."""

_SAID = 3

T = TypeVar("T")


def compare_plans(before: Plan, after: Plan) -> tuple[Change, ...]:
    """Return all differences from ``before`` to ``after``.

    They are in this order: name, config, tables, functions, operators in the order of ``after``, then reasons.
    """
    around = [*_plan(before, after), *_config(before, after), *_tables(before, after), *_functions(before, after)]
    matched = match(before, after)
    changes = [*around, *_operators(before, after, matched)]
    if before.mode == after.mode == "batch":
        changes = [replace(change, effect=in_batch(change.effect)) for change in changes]
    else:
        changes = with_consequences(changes, before, after, matched.renamed)
    if after.reasons:
        outdated = dict(outdated_reasons(before, after))
        changes = [
            replace(c, reason=after.reasons.get(c.setting), reason_for=outdated.get(c.setting)) if c.setting else c
            for c in changes
        ]
    return (*changes, *_reasons(before, after))


def _plan(before: Plan, after: Plan) -> Iterator[Change]:
    if before.name != after.name:
        yield _setting("name", "name", before.name, after.name, KEYS[NAME].effect)
    if before.mode != after.mode:
        yield replace(_setting("mode", "mode", before.mode, after.mode, INCOMPATIBLE), setting=None)
    for path, old, new in (
        ("source", before.source, after.source),
        ("init", ", ".join(before.init) or None, ", ".join(after.init) or None),
    ):
        if old != new:
            yield replace(_setting(path, path, old, new, SCRIPT), setting=None)


def _reasons(before: Plan, after: Plan) -> Iterator[Change]:
    operators = after.by_id
    for path, old, new in _differing(before.reasons, after.reasons):
        head = path.partition(".")[0]
        change = _setting(f"reasons.{path}", path, old, new, NO_NOTE)
        yield replace(change, subject="reason", operator=head if head in operators else None)


def _differing(before: Mapping[str, T], after: Mapping[str, T]) -> Iterator[tuple[str, T | None, T | None]]:
    """Yield each name whose values differ, sorted, with the values of both sides."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield name, old, new


def _config(before: Plan, after: Plan) -> Iterator[Change]:
    notes = {
        STATE_TTL: "unless a hint or an edit overrides it",
        "table.local-time-zone": "expressions may give other results",
    }
    for key, old, new in _differing(before.config, after.config):
        if key == STATE_TTL and same_value(TTL, old, new):
            continue
        effect = KEYS[key].effect if key in KEYS else UNKNOWN_KEY
        yield replace(_setting(f"config.{key}", f"config.{key}", old, new, effect), note=notes.get(key, ""))


def _setting(path: str, setting: str, old: str | None, new: str | None, effect: Effect) -> Change:
    kind: Kind = "+" if old is None else "-" if new is None else "~"
    return Change(
        kind=kind, subject="setting", name=path, path=path, setting=setting, before=old, after=new, effect=effect
    )


def _tables(before: Plan, after: Plan) -> Iterator[Change]:
    for name, old, new in _differing(before.tables, after.tables):
        path = f"tables.{name}"
        change = Change(kind="~", subject="table", name=name, path=path, effect=INCOMPATIBLE)
        if old is None or new is None:
            declared = old or new
            note = f"table, {declared.options.get('connector', '') if declared else ''}"
            yield replace(change, kind="-" if new is None else "+", note=note)
            continue
        yield from _of_facts(change, table_facts(old), table_facts(new))
        shown_old, shown_new = shown_options(name, old), shown_options(name, new)
        for key in [*old.options, *(key for key in new.options if key not in old.options)]:
            if key != "connector" and old.options.get(key) != new.options.get(key):
                option = f"{path}.options.{key}"
                elsewhere = _files_go_elsewhere(key, old, new, name, after)
                effect = FILES_ELSEWHERE if elsewhere else option_effect(key)
                yield _setting(option, option, shown_old.get(key), shown_new.get(key), effect)


def _files_go_elsewhere(option: str, old: Table, new: Table, name: str, plan: Plan) -> bool:
    """Return True if ``option`` is a directory to which a sink of ``plan`` writes files, and it has moved."""
    if not is_sink_directory(new, option):
        return False
    moved = old.options.get(option, "").rstrip("/") != new.options.get(option, "").rstrip("/")
    return moved and any(table == name for _, table in tables_used(plan.operators, "writes"))


def _functions(before: Plan, after: Plan) -> Iterator[Change]:
    for name, old, new in _differing(before.functions, after.functions):
        change = Change(kind="~", subject="function", name=name, path=f"functions.{name}", effect=FUNCTION)
        if old is None or new is None:
            declared = old or new
            note = f"function, {declared.class_name}" if declared else ""
            yield replace(change, kind="-" if new is None else "+", note=note)
        else:
            yield from _of_facts(change, function_document(old), function_document(new))


_ROWS_GO = "EXISTING ROWS ARE DELETED"
"""The note on a sink that overwrites its table from now on."""


def _of_facts(change: Change, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Yield ``change`` once for each fact that differs, with the path and values of the fact."""
    for fact in facts_between(old, new):
        path = f"{change.path}.{fact.path}"
        note = _ROWS_GO if fact.path == "overwrite" and new.get("overwrite") else fact.note
        yield replace(change, path=path, before=fact.before, after=fact.after, note=note)


def _operators(before: Plan, after: Plan, found: Match) -> Iterator[Change]:
    old = {found.renamed.get(operator.id, operator.id): operator for operator in before.operators}
    gone = {operator.id for operator in found.removed}
    for operator in found.removed:
        yield _appeared("-", operator, before)
    for operator in after.operators:
        previous = old.get(operator.id)
        if previous is None or previous.id in gone:
            yield _appeared("+", operator, after)
        elif previous is not operator and previous != operator:
            yield from _operator(previous, operator, found, before, after)


def _appeared(kind: Literal["+", "-"], operator: Operator, plan: Plan) -> Change:
    note = brief(f"{operator.op}: {operator.describe(plan)}")
    return replace(_of_operator(operator), kind=kind, note=note)


def _of_operator(operator: Operator) -> Change:
    """Return a change of facts with the worst possible effect, which :func:`with_consequences` refines."""
    # An operator with state whose facts change starts with empty state.
    return Change(
        kind="-/+" if operator.state else "~",
        subject="operator",
        name=operator.id,
        path=operator.id,
        effect=UNREADABLE if operator.state else INCOMPATIBLE,
        operator=operator.id,
    )


def _operator(old: Operator, new: Operator, found: Match, before: Plan, after: Plan) -> Iterator[Change]:
    change = _of_operator(new)
    if old.id != new.id:
        note = f"{new.op} renamed, the same facts under another id"
        yield replace(change, before=old.id, after=new.id, note=note)
    for change_of_fact in _of_facts(change, {**operator_facts(old), "id": new.id}, operator_facts(new)):
        moved = change_of_fact.path == f"{new.id}.inputs"
        yield replace(change_of_fact, note=_moved(old, new, found, before, after)) if moved else change_of_fact
    if old.op == new.op:
        yield from _settings(old, new, before, after)


def _moved(old: Operator, new: Operator, found: Match, before: Plan, after: Plan) -> str:
    """Describe why an operator reads other inputs: they were renamed, or the operator moved within the query."""
    was = [found.renamed.get(name, name) for name in old.inputs]
    if was == list(new.inputs):
        pairs = zip(old.inputs, new.inputs, strict=True)
        return ", ".join(f"{a} is now called {b}" for a, b in pairs if a != b)
    matched = {found.renamed.get(name, name) for name in before.by_id} & after.by_id.keys()
    came, went = [n for n in new.inputs if n not in was], [n for n in was if n not in new.inputs]
    if not came and not went:
        return "order of inputs changed"
    prefix = "moved: " if {*came, *went} <= matched else ""
    reads = f"reads {', '.join(came)}" if came else "no longer reads"
    return f"{prefix}{reads}{' instead of ' if came and went else ' ' if went else ''}{', '.join(went)}"


def _settings(old: Operator, new: Operator, before: Plan, after: Plan) -> Iterator[Change]:
    """Yield the settings that differ, and the layers where only the layers differ."""
    was, now = settings_by_name(old), settings_by_name(new)
    groups = {group for group, _ in was}, {group for group, _ in now}
    reported: set[str] = set()
    # Removed settings follow all settings of the new plan.
    for key in [*now, *(key for key in was if key not in now)]:
        group, is_state = key[0], (now.get(key) or was[key]).state is not None
        if group not in groups[0] or group not in groups[1]:
            if group not in reported and not is_state:  # another state is another fact
                reported.add(group)
                yield _whole_group(group, _of_group(group, was), _of_group(group, now), old, new)
            continue
        a, b = was.get(key), now.get(key)
        if a is not None and b is not None and same_value(b.setting, a.value, b.value):
            if is_state:
                yield from _origins(a, b, before, after)
            elif a.layers != b.layers and f"{group}.origin" not in reported:
                first, second = _of_group(group, was), _of_group(group, now)
                if _values(first) == _values(second):
                    reported.add(f"{group}.origin")
                    change = _setting(f"{new.id}.{group}.origin", f"{new.id}.{group}", None, None, NO_EFFECT)
                    note = _other_layers(first, second)
                    yield replace(change, kind="~", subject="origin", note=note, operator=new.id)
            continue
        yield _changed_setting(a, b, old, new)


def _changed_setting(a: PlanSetting | None, b: PlanSetting | None, old: Operator, new: Operator) -> Change:
    present = b or a
    assert present is not None
    path = f"{new.id}.{present.group}.{present.name}"
    effect = present.effect
    if a is not None and b is not None and b.setting is not None:
        effect = effect_between(b.setting, a.value, b.value)
    if (present.group, present.name) in _PARKING_SETTINGS and old.parks_rows != new.parks_rows:
        effect = PARKS if new.parks_rows else PARKS_NO_MORE
    change = _setting(
        path.replace(f".{STATE_GROUP}", ".", 1) if present.state else path,
        path,
        None if a is None else value_text(a.value),
        None if b is None else value_text(b.value),
        effect,
    )
    follows = None
    if present.state and a is not None and b is not None and {a.set_by, b.set_by} <= {"config", "default"}:
        follows = f"config.{STATE_TTL}"
    layers = {layer: value_text(value) for layer, value in b.layers.items()} if b is not None else {}
    note = _who(b) if b is not None else ""
    return replace(change, note=note, operator=new.id, layers=layers, follows=follows)


def _of_group(group: str, settings: Mapping[tuple[str, str], PlanSetting]) -> dict[str, PlanSetting]:
    return {name: setting for (owner, name), setting in settings.items() if owner == group}


def _values(settings: Mapping[str, PlanSetting]) -> dict[str, Value]:
    return {name: setting.value for name, setting in settings.items()}


def _whole_group(
    group: str, was: Mapping[str, PlanSetting], now: Mapping[str, PlanSetting], old: Operator, new: Operator
) -> Change:
    effect = next(iter((now or was).values())).effect
    if group == "retry" and old.parks_rows != new.parks_rows:
        effect = PARKS if new.parks_rows else PARKS_NO_MORE
    change = _setting(f"{new.id}.{group}", f"{new.id}.{group}", _group_text(was), _group_text(now), effect)
    return replace(change, operator=new.id)


def _group_text(settings: Mapping[str, PlanSetting]) -> str | None:
    values = {name: value_text(value) for name, value in _values(settings).items()}
    if not values:
        return None
    if {"max-attempts", "fixed-delay"} <= values.keys():
        return f"{values['max-attempts']} x {values['fixed-delay']}"
    return " · ".join(f"{name} {value}" for name, value in values.items())


def _other_layers(was: Mapping[str, PlanSetting], now: Mapping[str, PlanSetting]) -> str:
    """Describe layers of a group that differ although the values in force are equal: ``hint timeout 5 s, was 3 s``."""
    differences = []
    for name, setting in now.items():
        old = was[name].layers
        for layer in dict.fromkeys((*old, *setting.layers)):
            a, b = old.get(layer), setting.layers.get(layer)
            if a != b:
                before = "" if a is None else f", was {value_text(a)}"
                differences.append(f"{layer} {name} {'(none)' if b is None else value_text(b)}{before}")
    return f"the same runs; {first_of(differences, _SAID, between='; ')}"


def _origins(old: PlanSetting, new: PlanSetting, before: Plan, after: Plan) -> Iterator[Change]:
    for layer in dict.fromkeys((*old.layers, *new.layers)):
        was, is_now = old.layers.get(layer), new.layers.get(layer)
        # The change of config itself is listed, so its effect on this layer is not repeated.
        explained = layer != "hint" and before.config.get(STATE_TTL) != after.config.get(STATE_TTL)
        if not explained and not same_value(new.setting, was, is_now):
            path = f"{new.operator}.{new.state}.origin.{layer}"
            texts = [None if value is None else value_text(value) for value in (was, is_now)]
            change = _setting(path, new.path, texts[0], texts[1], NO_EFFECT)
            note = f"{new.spoken(new.value)} stays, from {new.set_by}"
            yield replace(change, subject="origin", note=note, operator=new.operator)


def _who(setting: PlanSetting) -> str:
    """Name the layer that set the value, and the strongest layer that it overrides."""
    weaker = [layer for layer in setting.layers if layer != setting.set_by]
    if setting.set_by == EDIT and not weaker:
        return EDIT
    over = weaker[-1] if weaker else None
    if over is None or (over == "default" and setting.set_by != EDIT):
        return setting.set_by
    return f"{setting.set_by} over {over} {setting.spoken(setting.layers[over])}"
