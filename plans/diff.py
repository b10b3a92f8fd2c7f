"""The differences of two plans by meaning: which settings and facts differ, who set them, and what becomes of state.

Layout, key order and the spelling of durations are no differences. Wording and layout belong to
:mod:`plans.diff_report`.

>>> [(change.path, change.before, change.after) for change in diff(Plan(name="a"), Plan(name="b"))]
[('name', 'a', 'b')]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from plans.cached import SETTINGS as CACHED
from plans.cached import cached_of, cached_values, layered, who_set_cached
from plans.configuration import PARALLELISM, STATE_TTL, TIME_ZONE
from plans.connectors import check_table
from plans.digest import operator_facts, table_facts
from plans.document import LAYERS, op_name
from plans.durations import format_duration, parse_duration
from plans.model import LookupJoin, Operator, Plan, StateEntry, Table
from plans.operator_settings import group_names, settings_of
from plans.setting_values import shown
from plans.setting_words import retry_text, who_set_setting
from plans.states import same_duration, source, state_of, top_layer

__all__ = ["APPLIES_AT_ONCE", "UNREADABLE", "Change", "diff"]

APPLIES_AT_ONCE = "state kept, applies at once"
APPLIES_AT_START = "state kept, applies at the next start"
NEW_CHECKPOINTS = "state kept, a checkpoint keeps its partitions"
CACHE_STARTS_EMPTY = "applies at the next start, with an empty cache"
APPLIES_TO_NEXT_JOB = "same result, applies to the next job"
NO_EFFECT = "no effect"
UNREADABLE = "running state cannot be read"
INCOMPATIBLE = "plan incompatible with running state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference. ``kind`` is ``~`` changed, ``+`` added or ``-`` removed; ``note`` says who set it or what it is.

    ``subject`` is what a summary counts: a setting, a table or an operator (by ``name``), or no more than a reason.
    ``keeps_state`` tells whether state written by the old plan can still be used.
    """

    kind: Literal["~", "+", "-"]
    subject: Literal["setting", "table", "operator", "reason"]
    name: str
    path: str
    before: str | None = None
    after: str | None = None
    note: str = ""
    effect: str
    keeps_state: bool = True


def diff(before: Plan, after: Plan) -> tuple[Change, ...]:
    """All differences from ``before`` to ``after``: name, config, tables, then operators in the order of ``after``."""
    return (
        *_plan(before, after),
        *_config(before, after),
        *_tables(before, after),
        *_operators(before, after),
        *_reasons(before, after),
    )


def _plan(before: Plan, after: Plan) -> Iterator[Change]:
    if before.name != after.name:
        yield _setting("name", before.name, after.name, APPLIES_AT_START)
    if before.mode != after.mode:
        yield replace(_setting("mode", before.mode, after.mode, INCOMPATIBLE), keeps_state=False)


def _reasons(before: Plan, after: Plan) -> Iterator[Change]:
    for path in sorted(before.reasons.keys() | after.reasons.keys()):
        old, new = before.reasons.get(path), after.reasons.get(path)
        if old != new:
            yield replace(_setting(f"reasons.{path}", old, new, NO_EFFECT), subject="reason")


def _config(before: Plan, after: Plan) -> Iterator[Change]:
    has_state = any(state_of(operator) for operator in before.operators)
    for key in sorted(before.config.keys() | after.config.keys()):
        old, new = before.config.get(key), after.config.get(key)
        if old == new or (key == STATE_TTL and old and new and same_duration(old, new)):
            continue
        change = _setting(f"config.{key}", old, new, APPLIES_AT_START)
        if key == STATE_TTL:
            change = replace(change, effect=APPLIES_AT_ONCE, note="where no hint or edit says otherwise")
        elif key == TIME_ZONE:
            change = replace(change, note="expressions may give other results")
        elif key == PARALLELISM and has_state:
            # State is routed to partitions by their number, and is not redistributed.
            change = replace(change, effect=NEW_CHECKPOINTS)
        yield change


def _setting(path: str, old: str | None, new: str | None, effect: str) -> Change:
    kind: Literal["~", "+", "-"] = "+" if old is None else "-" if new is None else "~"
    return Change(kind=kind, subject="setting", name=path, path=path, before=old, after=new, effect=effect)


def _tables(before: Plan, after: Plan) -> Iterator[Change]:
    for name in sorted(before.tables.keys() | after.tables.keys()):
        old, new = before.tables.get(name), after.tables.get(name)
        path = f"tables.{name}"
        if old is None or new is None:
            kind: Literal["+", "-"] = "-" if new is None else "+"
            connector = (old or new or Table(columns=(), options={})).options.get("connector", "")
            note = f"table, {connector}"
            yield Change(
                kind=kind,
                subject="table",
                name=name,
                path=path,
                note=note,
                effect=INCOMPATIBLE,
                keeps_state=False,
            )
            continue
        for fact in _facts(table_facts(old), table_facts(new)):
            fact_path = f"{path}.{fact.path}"
            yield replace(fact, subject="table", name=name, path=fact_path, effect=INCOMPATIBLE, keeps_state=False)
        shown_old, shown_new = _shown_options(name, old), _shown_options(name, new)
        for key in [*old.options, *(key for key in new.options if key not in old.options)]:
            if key != "connector" and old.options.get(key) != new.options.get(key):
                change = _setting(f"{path}.options.{key}", shown_old.get(key), shown_new.get(key), APPLIES_AT_START)
                yield change


def _shown_options(name: str, table: Table) -> Mapping[str, str]:
    """The options to show; a value that is refused may be a literal secret, so it is not repeated."""
    refused = {problem.path for problem in check_table(name, table)}
    return {
        key: "(refused)" if f"tables.{name}.options.{key}" in refused else value for key, value in table.options.items()
    }


def _operators(before: Plan, after: Plan) -> Iterator[Change]:
    old = {operator.id: operator for operator in before.operators}
    new = {operator.id: operator for operator in after.operators}
    for operator in before.operators:
        if operator.id not in new:
            yield _appeared("-", operator)
    for operator in after.operators:
        if operator.id not in old:
            yield _appeared("+", operator)
            continue
        previous = old[operator.id]
        for fact in _facts(operator_facts(previous), operator_facts(operator)):
            path = f"{operator.id}.{fact.path}"
            yield replace(fact, name=operator.id, path=path, effect=_effect(operator), keeps_state=False)
        yield from _settings(previous, operator)
        yield from _cached(previous, operator)
        entries = {entry.name: entry for entry in state_of(previous)}
        for entry in state_of(operator):
            if entry.name in entries:
                yield from _state(operator.id, entries[entry.name], entry, before, after)


def _appeared(kind: Literal["+", "-"], operator: Operator) -> Change:
    return Change(
        kind=kind,
        subject="operator",
        name=operator.id,
        path=operator.id,
        note=op_name(operator),
        effect=_effect(operator),
        keeps_state=False,
    )


def _effect(operator: Operator) -> str:
    """A checkpoint is only continued by a plan with the same operators and tables; a run refuses any other."""
    return UNREADABLE if state_of(operator) else INCOMPATIBLE


def _facts(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """The facts that differ, down to the state entries and options; paths are relative."""
    for key in [*old, *(key for key in new if key not in old)]:
        a, b = old.get(key), new.get(key)
        if a == b:
            continue
        if key == "state" and a and b:
            by_name = {entry["name"]: entry for entry in a}
            if [entry["name"] for entry in a] == [entry["name"] for entry in b]:
                for entry in b:
                    for fact in _facts(by_name[entry["name"]], entry):
                        yield replace(fact, path=f"state.{entry['name']}.{fact.path}")
                continue
        if isinstance(a, dict) and isinstance(b, dict):
            for fact in _facts(a, b):
                yield replace(fact, path=f"{key}.{fact.path}")
            continue
        change = Change(kind="~", subject="operator", name="", path=key, effect="")
        if isinstance(a, list) and isinstance(b, list):
            yield replace(change, note=_list_note(a, b))
        else:
            yield replace(change, before=_brief(a), after=_brief(b))


def _list_note(old: list[Any], new: list[Any]) -> str:
    added = [_brief(item) for item in new if item not in old]
    removed = [_brief(item) for item in old if item not in new]
    parts = [f"added {', '.join(added)}"] if added else []
    parts += [f"removed {', '.join(removed)}"] if removed else []
    return "; ".join(parts) or "order changed"


def _brief(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value.keys() == {"left", "right"}:
        return f"{value['left']} = {value['right']}"
    if isinstance(value, dict) and "name" in value:
        details = " ".join(str(item) for key, item in value.items() if key != "name")
        return f"{value['name']} ({details})"
    return json.dumps(value, ensure_ascii=False)


def _state(operator_id: str, old: StateEntry, new: StateEntry, before: Plan, after: Plan) -> Iterator[Change]:
    path = f"{operator_id}.{new.name}"
    if not same_duration(old.ttl, new.ttl):
        yield Change(
            kind="~",
            subject="setting",
            name=f"{path}.ttl",
            path=f"{path}.ttl",
            before=_canonical(old.ttl),
            after=_canonical(new.ttl),
            note=_who(new),
            effect=APPLIES_AT_ONCE,
        )
        return
    for layer in LAYERS:
        was, is_now = old.origin.get(layer), new.origin.get(layer)
        # What config said follows from the change of config, which is listed.
        explained = layer != "hint" and before.config.get(STATE_TTL) != after.config.get(STATE_TTL)
        if not explained and not (was == is_now or (was and is_now and same_duration(was, is_now))):
            change = _setting(f"{path}.origin.{layer}", was, is_now, NO_EFFECT)
            yield replace(change, note=f"{_canonical(new.ttl)} stays, from {source(new)}")


def _cached(old: Operator, new: Operator) -> Iterator[Change]:
    """The settings of a cached result that differ; where nobody spoke, the defaults hold."""
    was, is_now = cached_of(old) or layered({}), cached_of(new) or layered({})
    a, b = cached_values(was), cached_values(is_now)
    for name in CACHED:
        if a[name] != b[name]:
            note = who_set_cached(is_now, name).replace(" · ", " over ", 1)
            change = _setting(f"{new.id}.cached.{name}", shown(a[name]), shown(b[name]), APPLIES_TO_NEXT_JOB)
            yield replace(change, note=note)
    if a == b and was.origin != is_now.origin:
        change = _setting(f"{new.id}.cached.origin", None, None, NO_EFFECT)
        yield replace(change, kind="~", note="other layers ask for what runs")


def _settings(old: Operator, new: Operator) -> Iterator[Change]:
    """The settings of an operator that differ; a change of a lookup's cache starts with an empty one."""
    if op_name(old) != op_name(new):
        return
    before, after = settings_of(old), settings_of(new)
    for group in group_names(new):
        effect = CACHE_STARTS_EMPTY if group == "cache" else APPLIES_AT_START
        was, is_now = before.get(group), after.get(group)
        if was is None or is_now is None:
            if was is not is_now:
                change = _setting(f"{new.id}.{group}", retry_text(was), retry_text(is_now), effect)
                yield _parking(change, old, new)
            continue
        for name in is_now.specs:
            a, b = was.values.get(name), is_now.values.get(name)
            path = f"{new.id}.{group}.{name}"
            if a != b:
                change = _setting(path, None if a is None else shown(a), None if b is None else shown(b), effect)
                note = who_set_setting(is_now, name).replace(" · ", " over ", 1) if b is not None else ""
                yield _parking(replace(change, note=note), old, new) if name == "mode" else replace(change, note=note)
        if was.values == is_now.values and was.origin != is_now.origin:
            change = _setting(f"{new.id}.{group}.origin", None, None, NO_EFFECT)
            yield replace(change, kind="~", note="other layers ask for what runs")


def _parking(change: Change, old: Operator, new: Operator) -> Change:
    """Rows that wait in state are a state of their own, which the plan with none of them does not read."""
    parks = [isinstance(o, LookupJoin) and o.retry is not None and o.retry.mode == "deferred" for o in (old, new)]
    return replace(change, effect=UNREADABLE, keeps_state=False) if parks[0] != parks[1] else change


def _who(entry: StateEntry) -> str:
    """Who set the TTL, and over what."""
    layers = [layer for layer in reversed(LAYERS) if layer in entry.origin]
    if source(entry) == "edit":
        layer = top_layer(entry)
        return f"edit over {layer} {entry.origin.get(layer, '')}".rstrip()
    weaker = layers[1:2]
    return layers[0] + (f" over {weaker[0]} {entry.origin[weaker[0]]}" if weaker else "") if layers else "default"


def _canonical(duration: str) -> str:
    return format_duration(parse_duration(duration))
