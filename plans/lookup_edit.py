"""Edits of the settings of lookup joins, with everything that follows from them.

    lookup_rates.async.capacity     lookup_rates.retry.max-attempts     lookup_rates.cache.lookup.partial-cache.max-rows
    lookup_rates.retry='3 x 10 s'   lookup_rates.retry=off

An edit leaves the origin alone. A new ``lookup.cache`` brings the settings that go with it, as its layers and defaults
have them, and takes away the others. After an edit of config or table options, :func:`resettled` moves what follows.

>>> parse_retry("3 x 10 s")
(3, '10 s')
"""

from __future__ import annotations

import re
from dataclasses import replace

from plans.changelog import INSERT_ONLY, output_kinds
from plans.connectors import can_lookup
from plans.errors import PlanError
from plans.graph import check_graph
from plans.lookup_cache import applicable, belongs
from plans.lookup_check import asked_of, resolved
from plans.lookup_document import Settings, lookup_document, ordered, settings_of, with_settings
from plans.lookup_layers import EDIT, layered_cache, set_by
from plans.lookup_settings import CACHE, GROUPS, SETTINGS, Group, SettingError, parse_value
from plans.model import LookupJoin, Plan, Value
from plans.names import did_you_mean, nearest

__all__ = ["parse_retry", "resettled", "set_lookup", "settable"]

_RETRY_FORM = "write '<attempts> x <delay>', such as '3 x 10 s', or off"


def settable(operator: LookupJoin) -> list[str]:
    """The forms of the paths that can be set, for messages."""
    return [f"{operator.id}.{group}.<setting>" for group in GROUPS] + [f"{operator.id}.retry"]


def set_lookup(plan: Plan, path: str, operator: LookupJoin, rest: str, value: str) -> Plan:
    """Set the setting at ``rest`` of ``operator``; PlanError if it is none, or a bad value."""
    group, _, name = rest.partition(".")
    if rest == "retry":
        edited = _with_retry(operator, plan, path, value)
    elif group not in GROUPS or not name:
        raise _no_setting(operator, path, rest)
    elif name == "origin" or name.startswith("origin."):
        message = "an origin records what default, config, table and hint asked for; it is not set"
        raise PlanError(
            message, path=path, hint=f"set {operator.id}.{group}.{next(iter(SETTINGS[group]))} and the like"
        )
    elif name not in SETTINGS[group]:
        hint = did_you_mean(name, SETTINGS[group], what="settings")
        raise PlanError(f"'{group}' has no setting '{name}'", path=path, hint=hint)
    else:
        edited = _with_setting(operator, plan, path, group, name, _parsed(path, group, name, value))
    return replace(plan, operators=tuple(edited if other.id == operator.id else other for other in plan.operators))


def resettled(plan: Plan) -> Plan:
    """The plan with the settings of every lookup resolved again from its layers; edits stay edits.

    A plan whose edges or tables are wrong stays as it is: the edit may be on the way to repair it.
    """
    lookups = [operator for operator in plan.operators if isinstance(operator, LookupJoin)]
    if any(operator.table not in plan.tables for operator in lookups) or any(check_graph(plan)):
        return plan
    kinds = output_kinds(plan)
    settled = {
        operator.id: _resettled(operator, plan, insert_only=kinds[operator.inputs[0]] == INSERT_ONLY)
        for operator in lookups
    }
    return replace(plan, operators=tuple(settled.get(operator.id, operator) for operator in plan.operators))


def _resettled(operator: LookupJoin, plan: Plan, *, insert_only: bool) -> LookupJoin:
    fresh = resolved(operator, plan, insert_only=insert_only, strict=False).groups
    groups: dict[Group, Settings] = {}
    for group, old in settings_of(operator).items():
        edits = _edits(group, old)
        if group == "cache":
            values = layered_cache({**asked_of(operator, plan)["cache"], EDIT: edits}).values
            groups[group] = Settings(values=values, origin=fresh[group].origin)
        elif group in fresh:
            values = ordered(group, {**fresh[group].values, **edits})
            groups[group] = Settings(values=values, origin=fresh[group].origin)
        elif "hint" not in old.origin:
            groups[group] = old  # a retry that an edit has added
    return _following(with_settings(operator, groups), plan)


def _edits(group: Group, settings: Settings) -> dict[str, Value]:
    return {name: value for name, value in settings.values.items() if set_by(group, settings, name) == EDIT}


def _with_setting(operator: LookupJoin, plan: Plan, path: str, group: Group, name: str, value: Value) -> LookupJoin:
    groups = settings_of(operator)
    if operator.table not in plan.tables:
        raise PlanError(f"there is no table '{operator.table}'", path=path, hint="mend the plan first")
    if group not in groups:
        message = f"'{operator.id}' does not retry, so there is no '{name}' to set"
        raise PlanError(message, path=path, hint=f"set {operator.id}.retry='<attempts> x <delay>' first")
    settings = groups[group]
    if group == "cache":
        edits = {**_edits(group, settings), name: value}
        values = layered_cache({**asked_of(operator, plan)[group], EDIT: edits}).values
        if name not in applicable(values):
            raise PlanError(f"'{name}' does not go with '{CACHE}' {values[CACHE]}", path=path, hint=belongs(name))
    else:
        values = {**settings.values, name: value}
    groups[group] = Settings(values=values, origin=settings.origin)
    return _following(with_settings(operator, groups), plan)


def _following(operator: LookupJoin, plan: Plan) -> LookupJoin:
    """What follows from an edit: nothing waits for a FULL cache; ordered rows, and those of a batch, not in state."""
    groups = settings_of(operator)
    waits, full = groups["async"], operator.cache.values[CACHE] == "FULL"
    modes = can_lookup(plan.tables[operator.table]) if operator.table in plan.tables else frozenset()
    if full:
        groups["async"] = replace(waits, values={**waits.values, "enabled": False})
        groups.pop("retry", None)
    elif not waits.values["enabled"] and "sync" not in modes and "async" in modes:
        groups["async"] = replace(waits, values={**waits.values, "enabled": True})
    retry = groups.get("retry")
    parks = plan.mode != "batch" and waits.values["output-mode"] == "allow_unordered"
    if retry is not None and retry.values["mode"] == "deferred" and not parks:
        groups["retry"] = replace(retry, values={**retry.values, "mode": "inline"})
    return with_settings(operator, groups)


def _with_retry(operator: LookupJoin, plan: Plan, path: str, text: str) -> LookupJoin:
    groups = settings_of(operator)
    if text.strip().lower() == "off":
        groups.pop("retry", None)
        return with_settings(operator, groups)
    try:
        attempts, delay = parse_retry(text)
    except SettingError as error:
        raise PlanError(str(error), path=path, hint=error.hint) from error
    parks = plan.mode != "batch" and operator.async_.output_mode == "allow_unordered"
    mode = "deferred" if parks else "inline"
    added: dict[str, Value] = {"retry-predicate": "lookup_miss", "retry-strategy": "fixed_delay", "mode": mode}
    old = groups.get("retry", Settings(values=added, origin={"default": {"mode": mode}}))
    values = ordered("retry", {**old.values, "fixed-delay": delay, "max-attempts": attempts})
    return with_settings(operator, {**groups, "retry": Settings(values=values, origin=old.origin)})


def parse_retry(text: str) -> tuple[Value, Value]:
    """The attempts and the delay of ``3 x 10 s``; SettingError if it is something else."""
    match = re.fullmatch(r"\s*(\S+)\s*[xX\N{MULTIPLICATION SIGN}]\s*(.+)", text)
    if match is None:
        raise SettingError(f"expected attempts and delay, found '{text}'", hint=_RETRY_FORM)
    specs = SETTINGS["retry"]
    return parse_value(specs["max-attempts"], match[1]), parse_value(specs["fixed-delay"], match[2])


def _parsed(path: str, group: Group, name: str, text: str) -> Value:
    try:
        return parse_value(SETTINGS[group][name], text)
    except SettingError as error:
        raise PlanError(f"'{name}': {error}", path=path, hint=error.hint) from error


def _paths(operator: LookupJoin) -> list[str]:
    groups = settings_of(operator)
    return [f"{operator.id}.{group}.{name}" for group in groups for name in groups[group].values]


def _no_setting(operator: LookupJoin, path: str, rest: str) -> PlanError:
    can = f"can be set: {', '.join(settable(operator))}"
    if rest.partition(".")[0] in lookup_document(operator) and rest.partition(".")[0] not in GROUPS:
        message = f"'{rest.partition('.')[0]}' of an operator is a fact of the query"
        return PlanError(message, path=path, hint=f"change the SQL and compile it again; {can}")
    found = nearest(f"{operator.id}.{rest}", _paths(operator))
    hint = f"did you mean '{found}'? {can}" if found else can
    return PlanError(f"'{rest}' is not a setting" if rest else "not a setting", path=path, hint=hint)
