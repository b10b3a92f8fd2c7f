"""What follows from an edit of the settings of a lookup join.

A new ``lookup.cache`` brings the settings that go with it, as its layers and defaults have them, and takes away the
others. Nothing waits for a FULL cache, and ordered rows do not wait in state.

>>> with_lookup_retry(lookup, (3, "10 s")).retry.max_attempts           # doctest: +SKIP
3
"""

from __future__ import annotations

from dataclasses import replace

from plans.analysis.lookup_check import asked_of, resolved
from plans.connectors.table import can_lookup
from plans.errors import PlanError
from plans.model.plan import Plan
from plans.operators import LookupJoin
from plans.settings.layers import EDIT, Settings, edits_of, ordered
from plans.settings.lookup import CACHE, GROUPS, SETTINGS
from plans.settings.lookup_cache import applicable, belongs
from plans.settings.lookup_layers import async_refusal, layered_cache
from plans.settings.setting import Value

__all__ = ["resettled_lookup", "with_lookup_retry", "with_lookup_setting"]


def resettled_lookup(operator: LookupJoin, plan: Plan, *, insert_only: bool) -> LookupJoin:
    """The lookup with its settings resolved again from the layers that the plan has now; edits stay edits."""
    fresh = resolved(operator, plan, insert_only=insert_only, strict=False).groups
    groups: dict[str, Settings] = {}
    for group, old in operator.settings.items():
        edits = edits_of(old)
        if group not in GROUPS:
            groups[group] = old
        elif group == "cache":
            values = layered_cache({**asked_of(operator, plan)["cache"], EDIT: edits}).values
            groups[group] = replace(fresh[group], values=values)
        elif group in fresh:
            groups[group] = replace(fresh[group], values=ordered(old.specs, {**fresh[group].values, **edits}))
        elif "hint" not in old.origin:
            groups[group] = old  # a retry that an edit has added
    return _following(replace(operator, settings=groups), plan)


def with_lookup_setting(operator: LookupJoin, plan: Plan, path: str, group: str, name: str, value: Value) -> LookupJoin:
    """The lookup with one setting changed; PlanError if it has none of that name as it is set."""
    groups = dict(operator.settings)
    if operator.table not in plan.tables:
        raise PlanError(f"there is no table '{operator.table}'", path=path, hint="mend the plan first")
    if group not in groups:
        message = f"'{operator.id}' does not retry, so there is no '{name}' to set"
        raise PlanError(message, path=path, hint=f"set {operator.id}.retry='<attempts> x <delay>' first")
    settings = groups[group]
    if settings.values.get(name) != value and (reason := _idle(operator, plan, group, name, value)) is not None:
        message, hint = reason
        raise PlanError(f"'{name}' has no effect here: {message}", path=path, hint=hint)
    if group == "cache":
        edits = {**edits_of(settings), name: value}
        values = layered_cache({**asked_of(operator, plan)[group], EDIT: edits}).values
        if name not in applicable(values):
            raise PlanError(f"'{name}' does not go with '{CACHE}' {values[CACHE]}", path=path, hint=belongs(name))
    else:
        values = {**settings.values, name: value}
    groups[group] = replace(settings, values=values)
    return _following(replace(operator, settings=groups), plan)


def _idle(operator: LookupJoin, plan: Plan, group: str, name: str, value: Value) -> tuple[str, str] | None:
    """Why the setting would have no effect on the lookup as it is, and what to do; None if it has one."""
    full = operator.cache.values[CACHE] == "FULL"
    if group == "async":
        modes = can_lookup(plan.tables[operator.table])
        reason = async_refusal(name, value, modes, full=full, insert_only=True)
        if reason is None:
            return None
        return reason, f"set {operator.id}.cache.{CACHE}=PARTIAL or NONE first" if full else "leave it"
    if group == "retry" and name == "mode" and value == "deferred":
        if plan.mode == "batch":
            return "a batch job keeps no state to park a row in", "leave it; it holds for streams"
        if operator.async_.output_mode == "ordered":
            message = "a row that waits in state is overtaken, but the output-mode is 'ordered'"
            return message, f"set {operator.id}.async.output-mode=allow_unordered first"
    return None


def _following(operator: LookupJoin, plan: Plan) -> LookupJoin:
    """What follows from an edit: nothing waits for a FULL cache; ordered rows, and those of a batch, not in state."""
    groups = dict(operator.settings)
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
    return replace(operator, settings=groups)


def with_lookup_retry(operator: LookupJoin, plan: Plan, wanted: tuple[Value, Value] | None) -> LookupJoin:
    """The lookup with ``wanted`` attempts and delay; None never looks a row up again."""
    groups = dict(operator.settings)
    if wanted is None:
        groups.pop("retry", None)
        return replace(operator, settings=groups)
    if operator.cache.values[CACHE] == "FULL":
        message = "a FULL cache holds the whole table: what it lacks, another attempt would not find either"
        hint = f"set {operator.id}.cache.{CACHE}=PARTIAL or NONE first"
        raise PlanError(f"'retry' has no effect here: {message}", path=f"operators.{operator.id}.retry", hint=hint)
    parks = plan.mode != "batch" and operator.async_.output_mode == "allow_unordered"
    mode = "deferred" if parks else "inline"
    added: dict[str, Value] = {"retry-predicate": "lookup_miss", "retry-strategy": "fixed_delay", "mode": mode}
    none = Settings(specs=SETTINGS["retry"], values=added, origin={"default": {"mode": mode}})
    old = groups.get("retry", none)
    values = ordered(old.specs, {**old.values, "fixed-delay": wanted[1], "max-attempts": wanted[0]})
    return replace(operator, settings={**groups, "retry": replace(old, values=values)})
